//! Steps of a cron expression that can never be taken.
//!
//! `*/70` in the minutes would be read as "minute 0 of every hour", because an expression only ever
//! steps inside its field. Whoever wrote it meant something else.

/// How many values the fields have, from seconds to weekdays.
const VALUES: [(&str, u32); 6] =
    [("seconds", 60), ("minutes", 60), ("hours", 24), ("days", 31), ("months", 12), ("weekdays", 7)];

/// What is wrong with the first step that leads out of its range before it is taken once; one that
/// is exactly as long as its field is another way to say "once".
pub fn too_long(cron: &str) -> Option<String> {
    let fields: Vec<&str> = cron.split_whitespace().collect();
    let known = VALUES.get(VALUES.len().checked_sub(fields.len())?..)?;
    known.iter().zip(fields).find_map(|((name, values), field)| {
        field.split(',').find_map(|part| {
            let (range, step) = part.split_once('/')?;
            let values = wide(range).unwrap_or(*values);
            let far = step.parse::<u32>().ok().filter(|step| *step > values)?;
            Some(format!("{part} cannot step by {far} among {values} {name}; it would always be the first of them"))
        })
    })
}

/// How many values a range of numbers has.
fn wide(range: &str) -> Option<u32> {
    let (from, to) = range.split_once('-')?;
    to.parse::<u32>().ok()?.checked_sub(from.parse().ok()?)?.checked_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_longer_than_its_range_is_found() {
        for (cron, part) in [
            ("*/70 * * * *", "*/70 cannot step by 70 among 60 minutes"),
            ("*/61 * * * * *", "among 60 seconds"),
            ("0 */25 * * *", "among 24 hours"),
            ("0 0 */32 * *", "among 31 days"),
            ("0 0 1 */13 *", "among 12 months"),
            ("0 0 * * */8", "among 7 weekdays"),
            ("5,10-20/30 * * * *", "10-20/30 cannot step by 30 among 11 minutes"),
        ] {
            let said = too_long(cron).unwrap_or_default();
            assert!(said.contains(part), "{cron}: {said}");
        }
    }

    #[test]
    fn a_step_that_can_be_taken_or_says_once_is_none_of_ours() {
        let fine =
            ["*/60 * * * *", "0 */24 * * *", "*/59 * * * *", "10-20/11 * * * *", "0 9 * * 1-5", "@daily", "", "x"];
        for cron in fine {
            assert_eq!(too_long(cron), None, "{cron}");
        }
        assert_eq!(too_long("* * * * * * * */99"), None, "no expression at all is found elsewhere");
    }
}
