//! The queue's settings: flags and environment first, then `[queue]` in the file, then the
//! defaults.

use super::{given, invalid};
use crate::args::QueueArgs;
use crate::fault::Fault;
use baton_core::rules::Rules;
use baton_core::time::Span;
use serde::Deserialize;
use std::ops::RangeInclusive;

/// A day and a week, in milliseconds.
const DAY: u32 = 24 * 60 * 60 * 1_000;
const WEEK: u32 = 7 * DAY;
/// Jobs that one process may be told to run at once.
const SLOTS_MAX: u32 = 1_024;

/// `[queue]` in the file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Section {
    pub enabled: Option<bool>,
    /// The same as `slots`, which stands outside.
    pub global_concurrency: Option<u32>,
    pub max_per_project: Option<u32>,
    pub max_global: Option<u32>,
    pub max_attempts: Option<u32>,
    pub default_timeout_ms: Option<u32>,
    pub background_aging_ms: Option<u32>,
    pub max_interactive_burst: Option<u32>,
    pub retained_jobs: Option<u32>,
}

/// A number with its names, of which the flag's is derived: `max_global` is `--max-global`.
struct Setting {
    key: &'static str,
    variable: &'static str,
    /// Where it stands in the file.
    filed: &'static str,
    bounds: RangeInclusive<u32>,
}

impl Setting {
    fn read(&self, text: Option<&String>, file: Option<u32>, default: u32) -> Result<u32, Fault> {
        Ok(self.asked(text, file)?.unwrap_or(default))
    }

    fn asked(&self, text: Option<&String>, file: Option<u32>) -> Result<Option<u32>, Fault> {
        let bad = |what: &str| {
            let (Self { key, variable, filed, bounds }, flag) = (self, self.key.replace('_', "-"));
            let (low, high) = (bounds.start(), bounds.end());
            invalid(format!("{key} must be a whole number from {low} to {high}, not {what}"))
                .hint(format!("it is set by --{flag}, by {variable}, or as {filed} in the file"))
        };
        let number = match given(text.cloned()) {
            Some(text) => Some(text.trim().parse::<u32>().map_err(|_| bad(&format!("{text:?}")))?),
            None => file,
        };
        match number.filter(|number| !self.bounds.contains(number)) {
            Some(number) => Err(bad(&number.to_string())),
            None => Ok(number),
        }
    }
}

pub fn rules(args: &QueueArgs, file: &Section) -> Result<Rules, Fault> {
    let default = Rules::default();
    let ms = |span: Span| u32::try_from(span.0 / 1_000).unwrap_or(u32::MAX);
    let setting = |key, variable, bounds| Setting { key, variable, filed: "the same under [queue]", bounds };
    let per_project = setting("max_per_project", "ORCHESTRATOR_QUEUE_MAX_PER_PROJECT", 1..=1_000_000);
    let global = setting("max_global", "ORCHESTRATOR_QUEUE_MAX_GLOBAL", 1..=1_000_000);
    let attempts = setting("max_attempts", "ORCHESTRATOR_QUEUE_MAX_ATTEMPTS", 1..=1_000);
    let timeout = setting("default_timeout_ms", "ORCHESTRATOR_QUEUE_DEFAULT_TIMEOUT_MS", 1..=WEEK);
    let aging = setting("background_aging_ms", "ORCHESTRATOR_QUEUE_BACKGROUND_AGING_MS", 0..=DAY);
    let burst = setting("max_interactive_burst", "ORCHESTRATOR_QUEUE_MAX_INTERACTIVE_BURST", 0..=1_000);
    let retained = setting("retained_jobs", "BATON_RETAINED_JOBS", 1..=1_000_000);
    let span = |ms: u32| Span::millis(i64::from(ms));
    let timeout_ms = timeout.read(args.default_timeout_ms.as_ref(), file.default_timeout_ms, ms(default.timeout))?;
    let aging_ms = aging.read(args.background_aging_ms.as_ref(), file.background_aging_ms, ms(default.aging))?;
    Ok(Rules {
        enabled: enabled(args.queue_enabled.clone(), file.enabled, default.enabled)?,
        max_per_project: per_project.read(
            args.max_per_project.as_ref(),
            file.max_per_project,
            default.max_per_project,
        )?,
        max_global: global.read(args.max_global.as_ref(), file.max_global, default.max_global)?,
        max_attempts: attempts.read(args.max_attempts.as_ref(), file.max_attempts, default.max_attempts)?,
        timeout: span(timeout_ms),
        aging: span(aging_ms),
        burst: burst.read(args.max_interactive_burst.as_ref(), file.max_interactive_burst, default.burst)?,
        retained: retained.read(args.retained_jobs.as_ref(), file.retained_jobs, default.retained)?,
    })
}

fn enabled(text: Option<String>, file: Option<bool>, default: bool) -> Result<bool, Fault> {
    let Some(text) = given(text) else { return Ok(file.unwrap_or(default)) };
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(invalid(format!("whether the queue is enabled must be true or false, or 1 or 0, not {text:?}")).hint(
            "it is set by --queue-enabled, by ORCHESTRATOR_QUEUE_ENABLED, or as enabled under [queue] in the file",
        )),
    }
}

/// How many jobs run at once: it has two names in the file, of which one may be used.
pub fn slots(flag: Option<&String>, plain: Option<u32>, section: &Section) -> Result<Option<u32>, Fault> {
    if plain.is_some() && section.global_concurrency.is_some() {
        return Err(invalid("slots and global_concurrency under [queue] are the same setting; give one".to_owned()));
    }
    let slots = Setting {
        key: "slots",
        variable: "ORCHESTRATOR_QUEUE_GLOBAL_CONCURRENCY",
        filed: "slots, or global_concurrency under [queue],",
        bounds: 1..=SLOTS_MAX,
    };
    slots.asked(flag, section.global_concurrency.or(plain))
}

/// How many agents of runs are worked on at once.
pub fn agent_slots(flag: Option<&String>, file: Option<u32>) -> Result<Option<u32>, Fault> {
    let slots =
        Setting { key: "agent_slots", variable: "BATON_AGENT_SLOTS", filed: "agent_slots", bounds: 1..=SLOTS_MAX };
    slots.asked(flag, file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Exit;

    fn section(text: &str) -> Section {
        toml::from_str(text).unwrap()
    }

    fn code(result: Result<impl Sized, Fault>) -> (bool, Option<Exit>) {
        let fault = result.err();
        (fault.as_ref().is_some_and(|fault| fault.is("config_invalid")), fault.map(|fault| fault.exit()))
    }

    #[test]
    fn without_a_word_the_rules_are_the_defaults() {
        assert_eq!(rules(&QueueArgs::default(), &Section::default()).unwrap(), Rules::default());
        let empty =
            QueueArgs { queue_enabled: Some(String::new()), max_global: Some(String::new()), ..QueueArgs::default() };
        assert_eq!(rules(&empty, &Section::default()).unwrap(), Rules::default(), "empty means not given");
    }

    #[test]
    fn flags_and_variables_win_over_the_file() {
        let file = section(
            "enabled = false\nmax_per_project = 1\nmax_global = 2\nmax_attempts = 3\ndefault_timeout_ms = 4\n\
             background_aging_ms = 5\nmax_interactive_burst = 6\nretained_jobs = 7\n",
        );
        let expected = Rules {
            enabled: false,
            max_per_project: 1,
            max_global: 2,
            max_attempts: 3,
            timeout: Span::millis(4),
            aging: Span::millis(5),
            burst: 6,
            retained: 7,
        };
        assert_eq!(rules(&QueueArgs::default(), &file).unwrap(), expected);
        let args = QueueArgs {
            queue_enabled: Some("true".to_owned()),
            max_attempts: Some(" 9 ".to_owned()),
            ..QueueArgs::default()
        };
        assert_eq!(rules(&args, &file).unwrap(), Rules { enabled: true, max_attempts: 9, ..expected });
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_its_names() {
        let args = |text: &str| QueueArgs { max_global: Some(text.to_owned()), ..QueueArgs::default() };
        for bad in ["0", "-1", "1.5", "many", "1000001", "99999999999"] {
            assert_eq!(code(rules(&args(bad), &Section::default())), (true, Some(Exit::Config)), "{bad}");
        }
        assert_eq!(code(rules(&QueueArgs::default(), &section("max_attempts = 0"))), (true, Some(Exit::Config)));
        let on = QueueArgs { queue_enabled: Some("maybe".to_owned()), ..QueueArgs::default() };
        assert_eq!(code(rules(&on, &Section::default())), (true, Some(Exit::Config)));
        let said = format!("{:?}", rules(&args("x"), &Section::default()).err());
        assert!(said.contains("--max-global") && said.contains("ORCHESTRATOR_QUEUE_MAX_GLOBAL"), "{said}");
    }

    #[test]
    fn the_number_of_slots_has_one_value_whatever_it_is_called() {
        let named = section("global_concurrency = 5");
        let flag = |text: &str| slots(Some(&text.to_owned()), None, &named);
        assert_eq!(flag("3").unwrap(), Some(3));
        assert_eq!(flag("").unwrap(), Some(5), "empty means not given");
        for bad in ["0", "1025", "-1", "many", "1.5"] {
            assert_eq!(code(flag(bad)), (true, Some(Exit::Config)), "{bad}");
        }
        let said = format!("{:?}", flag("many").err());
        assert!(said.contains("--slots") && said.contains("ORCHESTRATOR_QUEUE_GLOBAL_CONCURRENCY"), "{said}");
        assert_eq!(slots(None, None, &named).unwrap(), Some(5));
        assert_eq!(slots(None, Some(4), &Section::default()).unwrap(), Some(4));
        assert_eq!(slots(None, None, &Section::default()).unwrap(), None);
        assert_eq!(code(slots(None, Some(4), &named)), (true, Some(Exit::Config)));
        assert_eq!(agent_slots(Some(&"3".to_owned()), Some(4)).unwrap(), Some(3));
        assert_eq!(agent_slots(None, Some(4)).unwrap(), Some(4));
        assert_eq!(code(agent_slots(None, Some(0))), (true, Some(Exit::Config)));
    }
}
