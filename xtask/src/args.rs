//! The command line: words in, one [`Command`] out.

use std::ffi::OsString;
use std::fmt::{self, Display};
use std::num::NonZeroU32;

pub const HELP: &str = "\
Everything a developer runs.

usage: cargo xtask <command>

commands:
  test [--fast] [-- NEXTEST ARGS]   set up this machine, check format and lints, run all tests,
                                    ask a server all that its OpenAPI document allows, and let
                                    the SDKs work with one
                                    --fast skips the format and lint checks
  soak [--kills N] [--seeds N] [--backlog N] [--requests N]
                                    the long tests: 100 kills, 20000 seeds, a backlog of
                                    200000 jobs and 10000 malformed requests unless told
  schemathesis [ARGS]               only ask a server all that its document allows; ARGS go to
                                    schemathesis, such as `--seed 7 --max-examples 500`
  sdk                               only test the SDKs, with a server and with ones that are killed
  sim [ARGS]                        simulate; ARGS go to the simulator
  bench [PART] [--json]             measure: commit (the store alone), door (over HTTP),
                                    queue (jobs in and out), runs (steps of agents), or all of them
  with-postgres -- CMD [ARGS]       run CMD beside a throwaway PostgreSQL
  help                              this text

Every command but `sim`, `schemathesis` and `sdk` starts a throwaway PostgreSQL and passes its address on as
BATON_TEST_DATABASE_URL. If that is set already, it is used and nothing is started.
The cluster lives in TMPDIR, or in /var/tmp.

examples:
  cargo xtask test
  cargo xtask test --fast -- -E 'test(lease)'
  cargo xtask soak --kills 500 --seeds 100000
  cargo xtask sim --seed 42
  cargo xtask sim --from 1000 --seeds 200
  cargo xtask bench door --json
  cargo xtask with-postgres -- bash -c 'psql \"$BATON_TEST_DATABASE_URL\"'";

/// How `xtask` starts its own guard; not for people.
pub const GUARD: &str = "__guard";

#[derive(Debug, PartialEq)]
pub enum Command {
    Help,
    Test(TestOptions),
    Soak(SoakOptions),
    Schemathesis(Vec<OsString>),
    Sdk,
    Sim(Vec<OsString>),
    Bench(Vec<OsString>),
    WithPostgres { program: OsString, args: Vec<OsString> },
    Guard,
}

#[derive(Debug, Default, PartialEq)]
pub struct TestOptions {
    pub fast: bool,
    pub nextest_args: Vec<OsString>,
}

#[derive(Debug, PartialEq)]
pub struct SoakOptions {
    pub kills: NonZeroU32,
    pub seeds: NonZeroU32,
    pub backlog: NonZeroU32,
    pub requests: NonZeroU32,
}

impl Default for SoakOptions {
    fn default() -> Self {
        const KILLS: NonZeroU32 = NonZeroU32::new(100).expect("not zero");
        const SEEDS: NonZeroU32 = NonZeroU32::new(20_000).expect("not zero");
        const BACKLOG: NonZeroU32 = NonZeroU32::new(200_000).expect("not zero");
        const REQUESTS: NonZeroU32 = NonZeroU32::new(10_000).expect("not zero");
        Self { kills: KILLS, seeds: SEEDS, backlog: BACKLOG, requests: REQUESTS }
    }
}

#[derive(Debug, PartialEq)]
pub enum UsageError {
    NoCommand,
    UnknownCommand(OsString),
    UnknownArgument { command: &'static str, argument: OsString },
    NotACount { option: &'static str, value: Option<OsString> },
    NoProgram,
}

impl Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCommand => write!(f, "no command given"),
            Self::UnknownCommand(word) => write!(f, "unknown command `{}`", word.display()),
            Self::UnknownArgument { command, argument } => {
                write!(f, "`{command}` has no argument `{}`", argument.display())
            }
            Self::NotACount { option, value } => {
                write!(f, "`{option}` needs a number above zero")?;
                match value {
                    Some(value) => write!(f, ", got `{}`", value.display()),
                    None => Ok(()),
                }
            }
            Self::NoProgram => write!(f, "`with-postgres` needs a program: with-postgres -- CMD"),
        }
    }
}

pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Command, UsageError> {
    let mut words = words.into_iter();
    let name = words.next().ok_or(UsageError::NoCommand)?;
    let rest: Vec<OsString> = words.collect();
    // `schemathesis`, `sim` and `bench` have help of their own; the other commands share this one.
    let wants_help = rest.first().is_some_and(is_help);
    match name.to_str() {
        Some("help" | "--help" | "-h") => Ok(Command::Help),
        Some("schemathesis") => Ok(Command::Schemathesis(rest)),
        Some("sim") => Ok(Command::Sim(rest)),
        Some("bench") => Ok(Command::Bench(rest)),
        Some("test" | "soak" | "sdk" | "with-postgres") if wants_help => Ok(Command::Help),
        Some("test") => test(rest),
        Some("soak") => soak(rest),
        Some("sdk") => match rest.into_iter().next() {
            Some(argument) => Err(UsageError::UnknownArgument { command: "sdk", argument }),
            None => Ok(Command::Sdk),
        },
        Some("with-postgres") => with_postgres(rest),
        Some(GUARD) => Ok(Command::Guard),
        _ => Err(UsageError::UnknownCommand(name)),
    }
}

fn is_help(word: &OsString) -> bool {
    word == "--help" || word == "-h"
}

fn test(words: Vec<OsString>) -> Result<Command, UsageError> {
    let mut options = TestOptions::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--fast") => options.fast = true,
            Some("--") => options.nextest_args = words.by_ref().collect(),
            _ => {
                return Err(UsageError::UnknownArgument { command: "test", argument: word });
            }
        }
    }
    Ok(Command::Test(options))
}

fn soak(words: Vec<OsString>) -> Result<Command, UsageError> {
    let mut options = SoakOptions::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--kills") => options.kills = count("--kills", words.next())?,
            Some("--seeds") => options.seeds = count("--seeds", words.next())?,
            Some("--backlog") => options.backlog = count("--backlog", words.next())?,
            Some("--requests") => options.requests = count("--requests", words.next())?,
            _ => {
                return Err(UsageError::UnknownArgument { command: "soak", argument: word });
            }
        }
    }
    Ok(Command::Soak(options))
}

fn count(option: &'static str, value: Option<OsString>) -> Result<NonZeroU32, UsageError> {
    value
        .as_ref()
        .and_then(|value| value.to_str())
        .and_then(|value| value.parse().ok())
        .ok_or(UsageError::NotACount { option, value })
}

fn with_postgres(words: Vec<OsString>) -> Result<Command, UsageError> {
    let mut words = words.into_iter();
    match words.next() {
        Some(word) if word == "--" => {
            let program = words.next().ok_or(UsageError::NoProgram)?;
            Ok(Command::WithPostgres { program, args: words.collect() })
        }
        Some(word) => Err(UsageError::UnknownArgument { command: "with-postgres", argument: word }),
        None => Err(UsageError::NoProgram),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn check(line: &str, expected: Command) {
        assert_eq!(parse(words(line)), Ok(expected), "for `{line}`");
    }

    fn check_refused(line: &str, expected: &str) {
        match parse(words(line)) {
            Ok(command) => panic!("`{line}` was taken for {command:?}"),
            Err(error) => assert_eq!(error.to_string(), expected, "for `{line}`"),
        }
    }

    #[test]
    fn commands_are_understood() {
        for line in ["help", "--help", "-h", "test --help", "soak -h"] {
            check(line, Command::Help);
        }
        check("test", Command::Test(TestOptions::default()));
        check(
            "test --fast -- -E test(x) --fast",
            Command::Test(TestOptions { fast: true, nextest_args: words("-E test(x) --fast") }),
        );
        check("soak", Command::Soak(SoakOptions::default()));
        check(
            "soak --seeds 7 --kills 3 --backlog 9 --requests 5",
            Command::Soak(SoakOptions {
                kills: NonZeroU32::new(3).unwrap(),
                seeds: NonZeroU32::new(7).unwrap(),
                backlog: NonZeroU32::new(9).unwrap(),
                requests: NonZeroU32::new(5).unwrap(),
            }),
        );
        check("schemathesis --seed 7", Command::Schemathesis(words("--seed 7")));
        check("sdk", Command::Sdk);
        check("sdk --help", Command::Help);
        check("sim --seed 4 --help", Command::Sim(words("--seed 4 --help")));
        check("bench --help", Command::Bench(words("--help")));
        check("with-postgres -- psql -- -c", Command::WithPostgres { program: "psql".into(), args: words("-- -c") });
    }

    #[test]
    fn mistakes_are_named() {
        check_refused("", "no command given");
        check_refused("tset", "unknown command `tset`");
        check_refused("test --fsat", "`test` has no argument `--fsat`");
        check_refused("soak 9", "`soak` has no argument `9`");
        check_refused("soak --kills", "`--kills` needs a number above zero");
        check_refused("soak --kills 0", "`--kills` needs a number above zero, got `0`");
        check_refused("soak --seeds x", "`--seeds` needs a number above zero, got `x`");
        check_refused("sdk python", "`sdk` has no argument `python`");
        check_refused("with-postgres psql", "`with-postgres` has no argument `psql`");
        let no_program = "`with-postgres` needs a program: with-postgres -- CMD";
        check_refused("with-postgres", no_program);
        check_refused("with-postgres --", no_program);
    }
}
