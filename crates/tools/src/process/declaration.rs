//! What the operator says about a program, and what is left of it once it is checked.
//!
//! What a program is started with is settled when the server starts: a name is looked up then, and
//! variables are passed on as they were then.

use super::limits;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declaration {
    /// The program, by its absolute path or by a name that is looked up in the server's `PATH`, and
    /// its arguments. No shell reads them.
    pub argv: Vec<String>,
    /// Absolute. Without it the root directory, so that nothing hangs on where the server was started.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// Variables with their values.
    #[serde(default)]
    pub env: Variables,
    /// Variables that are passed on from the server's own environment, if they are there.
    #[serde(default)]
    pub pass_env: Vec<String>,
    #[serde(default = "memory_mb")]
    pub memory_mb: u64,
    #[serde(default = "output_kb")]
    pub output_kb: u64,
    #[serde(default = "file_mb")]
    pub file_mb: u64,
    /// How many processes the server's user may have in all, for the program to start one more.
    #[serde(default)]
    pub processes: Option<u64>,
    // The rest is not about the program, and not looked at here.
    #[serde(default)]
    pub effect: Option<String>,
    #[serde(default)]
    pub price: Option<String>,
    #[serde(default)]
    pub attempts: Option<String>,
    #[serde(default)]
    pub timeout: Option<String>,
}

const fn memory_mb() -> u64 {
    limits::MEMORY_MB
}

const fn output_kb() -> u64 {
    limits::OUTPUT_KB
}

const fn file_mb() -> u64 {
    limits::FILE_MB
}

/// Names and values of an environment. The values are secrets: `Debug` does not show them.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Variables(pub BTreeMap<String, String>);

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A program that can be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) cwd: PathBuf,
    pub(super) env: Variables,
    pub(super) memory_bytes: u64,
    pub(super) output_bytes: usize,
    pub(super) file_bytes: u64,
    pub(super) processes: Option<u64>,
}

impl Process {
    /// What is started. It need not be there now.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Where it is started.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }
}

/// What the names of variables that hold secrets have in them, mostly.
const SECRET_NAMES: [&str; 7] = ["KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH", "PRIVATE"];
/// Shorter values are words that may stand anywhere, and no secrets.
const SECRET_BYTES: usize = 8;
const SCRUBBED: &str = "[scrubbed]";

impl Process {
    /// The text without the secrets that the program was given in its environment, as far as the names of the
    /// variables say that they are some.
    pub(super) fn scrub(&self, text: &str) -> String {
        let secret = |name: &str| SECRET_NAMES.iter().any(|part| name.to_ascii_uppercase().contains(part));
        let values = self.env.0.iter().filter(|(name, value)| secret(name) && value.len() >= SECRET_BYTES);
        values.fold(text.to_owned(), |text, (_, value)| text.replace(value.as_str(), SCRUBBED))
    }

    pub(super) fn scrubbed(&self, result: Value) -> Value {
        match result {
            Value::String(text) => Value::String(self.scrub(&text)),
            Value::Array(all) => all.into_iter().map(|one| self.scrubbed(one)).collect(),
            Value::Object(all) => {
                all.into_iter().map(|(name, value)| (self.scrub(&name), self.scrubbed(value))).collect()
            }
            plain => plain,
        }
    }
}

/// Says which part, and never a value of the environment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDeclaration {
    #[error("argv is empty: it names the program and its arguments")]
    NoProgram,
    #[error("argv[0] is {0:?}: it must be an absolute path, or a name without a slash")]
    RelativeProgram(String),
    #[error("argv[0] is {0:?}, and no directory in the PATH of the server has such a program")]
    UnknownProgram(String),
    #[error("{0} contains a zero byte")]
    ZeroByte(&'static str),
    #[error("cwd is not an absolute path")]
    RelativeDirectory,
    #[error("{0:?} cannot be the name of a variable")]
    BadName(String),
    #[error("{0} cannot be set: names that begin with BATON_ are Baton's own")]
    ReservedName(String),
    #[error("the value of {0} in the environment of the server is not UTF-8")]
    NotText(String),
    #[error("{part} has {found}, at most {limit} are possible")]
    TooMany { part: &'static str, found: usize, limit: usize },
    #[error("{part} is {found}: it must be from {least} to {most}")]
    OutOfRange { part: &'static str, found: u64, least: u64, most: u64 },
}

/// Where programs are that a program calls, unless it is told otherwise.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
const RESERVED: &str = "BATON_";

impl Declaration {
    /// Looks at the environment of this process, so once, when the server starts.
    pub fn check(&self) -> Result<Process, BadDeclaration> {
        self.check_in(|name| std::env::var_os(name))
    }

    fn check_in<V: AsRef<OsStr>>(&self, server: impl Fn(&str) -> Option<V>) -> Result<Process, BadDeclaration> {
        let (first, arguments) = self.argv.split_first().ok_or(BadDeclaration::NoProgram)?;
        at_most("argv", self.argv.len(), limits::ARGUMENTS)?;
        if self.argv.iter().any(|argument| argument.contains('\0')) {
            return Err(BadDeclaration::ZeroByte("argv"));
        }
        let program = program(first, server("PATH").as_ref().map(AsRef::as_ref))?;
        let cwd = self.cwd.clone().unwrap_or_else(|| "/".into());
        if !cwd.is_absolute() {
            return Err(BadDeclaration::RelativeDirectory);
        }
        if cwd.as_os_str().as_encoded_bytes().contains(&0) {
            return Err(BadDeclaration::ZeroByte("cwd"));
        }
        let env = self.environment(server)?;
        let bytes = self.argv.iter().map(String::len).sum::<usize>()
            + env.0.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
        at_most("argv and the environment together, in bytes,", bytes, limits::ARGUMENT_BYTES)?;
        let range = |part, found, least, most| match (least..=most).contains(&found) {
            true => Ok(found),
            false => Err(BadDeclaration::OutOfRange { part, found, least, most }),
        };
        const MIB: u64 = 1024 * 1024;
        let output_kb = range("output_kb", self.output_kb, 1, limits::OUTPUT_KB)?;
        Ok(Process {
            program,
            arguments: arguments.to_vec(),
            cwd,
            env,
            memory_bytes: range("memory_mb", self.memory_mb, limits::LEAST_MEMORY_MB, limits::MOST_MB)? * MIB,
            output_bytes: usize::try_from(output_kb * 1024).unwrap_or(usize::MAX),
            file_bytes: range("file_mb", self.file_mb, 0, limits::MOST_MB)? * MIB,
            processes: self.processes.map(|some| range("processes", some, 1, limits::MOST_PROCESSES)).transpose()?,
        })
    }

    fn environment<V: AsRef<OsStr>>(&self, server: impl Fn(&str) -> Option<V>) -> Result<Variables, BadDeclaration> {
        at_most("the environment", self.env.0.len() + self.pass_env.len(), limits::VARIABLES)?;
        let mut all = BTreeMap::from([("PATH".to_owned(), PATH.to_owned())]);
        for name in &self.pass_env {
            nameable(name)?;
            if let Some(value) = server(name) {
                let value = value.as_ref().to_str().ok_or_else(|| BadDeclaration::NotText(name.clone()))?;
                all.insert(name.clone(), value.to_owned());
            }
        }
        for (name, value) in &self.env.0 {
            nameable(name)?;
            if value.contains('\0') {
                return Err(BadDeclaration::ZeroByte("env"));
            }
            all.insert(name.clone(), value.clone());
        }
        Ok(Variables(all))
    }
}

fn at_most(part: &'static str, found: usize, limit: usize) -> Result<(), BadDeclaration> {
    if found > limit { Err(BadDeclaration::TooMany { part, found, limit }) } else { Ok(()) }
}

fn nameable(name: &str) -> Result<(), BadDeclaration> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(BadDeclaration::BadName(name.to_owned()));
    }
    if name.starts_with(RESERVED) {
        return Err(BadDeclaration::ReservedName(name.to_owned()));
    }
    Ok(())
}

/// A path is taken as it is, there or not: what is missing now may be there when it is called.
fn program(first: &str, path: Option<&OsStr>) -> Result<PathBuf, BadDeclaration> {
    if Path::new(first).is_absolute() {
        return Ok(first.into());
    }
    if first.is_empty() || first.contains('/') {
        return Err(BadDeclaration::RelativeProgram(first.to_owned()));
    }
    std::env::split_paths(path.unwrap_or(OsStr::new(PATH)))
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(first))
        .find(|file| file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0))
        .ok_or_else(|| BadDeclaration::UnknownProgram(first.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn declared(fields: serde_json::Value) -> Declaration {
        serde_json::from_value(fields).unwrap()
    }

    fn checked(fields: serde_json::Value) -> Result<Process, BadDeclaration> {
        declared(fields).check_in(|name| match name {
            "PATH" => Some("relative:/nowhere:/bin:/usr/bin"),
            "LANG" => Some("C"),
            _ => None,
        })
    }

    #[test]
    fn a_name_is_looked_up_once_and_a_path_is_taken_as_it_is() {
        assert_eq!(checked(json!({"argv": ["sh"]})).unwrap().program, Path::new("/bin/sh"));
        assert_eq!(checked(json!({"argv": ["/not/there"]})).unwrap().program, Path::new("/not/there"));
        let unknown = checked(json!({"argv": ["no such program"]}));
        assert_eq!(unknown, Err(BadDeclaration::UnknownProgram("no such program".into())));
        for relative in ["", "./sh", "bin/sh"] {
            assert_eq!(checked(json!({"argv": [relative]})), Err(BadDeclaration::RelativeProgram(relative.into())));
        }
    }

    #[test]
    fn what_a_program_says_is_scrubbed_of_its_secrets() {
        let env = json!({"API_KEY": "s3cr3t-value", "SHORT_TOKEN": "abc", "HOME_DIR": "/somewhere/else"});
        let process = checked(json!({"argv": ["sh"], "env": env})).unwrap();
        assert_eq!(
            process.scrub("it was s3cr3t-value in /somewhere/else, abc"),
            "it was [scrubbed] in /somewhere/else, abc"
        );
        let result = process.scrubbed(json!({"s3cr3t-value": ["s3cr3t-value", 1], "b": null}));
        assert_eq!(result, json!({"[scrubbed]": ["[scrubbed]", 1], "b": null}));
    }

    #[test]
    fn the_environment_is_what_was_declared_and_nothing_else() {
        let env = checked(json!({"argv": ["sh"], "env": {"A": "1"}, "pass_env": ["LANG", "ABSENT"]})).unwrap().env;
        let pairs: Vec<_> = env.0.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("A", "1"), ("LANG", "C"), ("PATH", PATH)]);
        let own = checked(json!({"argv": ["sh"], "env": {"PATH": "/opt"}})).unwrap().env;
        assert_eq!(own.0["PATH"], "/opt");
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        let long = "x".repeat(limits::ARGUMENT_BYTES);
        let refused = [
            json!({"argv": []}),
            json!({"argv": ["/a", "\0"]}),
            json!({"argv": ["/a", long]}),
            json!({"argv": vec!["/a"; limits::ARGUMENTS + 1]}),
            json!({"argv": ["/a"], "cwd": "here"}),
            json!({"argv": ["/a"], "env": {"": "1"}}),
            json!({"argv": ["/a"], "env": {"A=B": "1"}}),
            json!({"argv": ["/a"], "env": {"A": "\0"}}),
            json!({"argv": ["/a"], "env": {"BATON_RUN_ID": "1"}}),
            json!({"argv": ["/a"], "pass_env": ["BATON_KEY"]}),
            json!({"argv": ["/a"], "memory_mb": limits::LEAST_MEMORY_MB - 1}),
            json!({"argv": ["/a"], "memory_mb": u64::MAX}),
            json!({"argv": ["/a"], "output_kb": 0}),
            json!({"argv": ["/a"], "output_kb": limits::OUTPUT_KB + 1}),
            json!({"argv": ["/a"], "file_mb": u64::MAX}),
            json!({"argv": ["/a"], "processes": 0}),
        ];
        for fields in refused {
            assert!(checked(fields.clone()).is_err(), "{fields}");
        }
        let unknown = serde_json::from_value::<Declaration>(json!({"argv": ["/a"], "shell": true}));
        assert!(unknown.unwrap_err().to_string().contains("shell"));
    }

    #[test]
    fn values_of_the_environment_are_not_shown() {
        let fields = json!({"argv": ["sh"], "env": {"TOKEN": "hunter2"}, "timeout": "30s"});
        let shown = format!("{:?} {:?}", declared(fields.clone()), checked(fields).unwrap());
        assert!(shown.contains("TOKEN") && shown.contains("30s") && !shown.contains("hunter2"), "{shown}");
    }
}
