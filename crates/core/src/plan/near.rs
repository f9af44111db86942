//! The name that was probably meant.

/// Longest name that is compared, in bytes: comparing takes time in proportion to its square.
const LENGTH: usize = 64;
/// Names that are compared at most.
const NAMES: usize = 500;

/// The known name that differs least, if it does not differ much.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LENGTH {
        return None;
    }
    let near = known.take(NAMES).filter(|other| other.len() <= LENGTH).map(|other| (distance(name, other), other));
    let (distance, other) = near.min_by_key(|(distance, _)| *distance)?;
    // A third of the letters wrong is a typing mistake; more is another word.
    (distance <= 1 + name.len() / 3 && distance < other.len()).then_some(other)
}

/// Letters to change, add or remove to come from one to the other.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut corner = i;
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let changed = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(corner + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_is_found_and_another_word_is_not() {
        let known = ["http.get", "http.post", "sleep"];
        let near = |name| nearest(name, known.into_iter());
        assert_eq!(near("http.gte"), Some("http.get"));
        assert_eq!(near("slepe"), Some("sleep"));
        assert_eq!(near("mail"), None);
        assert_eq!(near(""), None);
        assert_eq!(nearest("x", ["y"].into_iter()), None);
    }

    #[test]
    fn distances_count_letters() {
        for (a, b, n) in [("", "", 0), ("abc", "abc", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("a", "b", 1)] {
            assert_eq!(distance(a, b), n, "{a} {b}");
        }
    }
}
