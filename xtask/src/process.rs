//! Processes of others: is it alive, make it stop.
//!
//! Read from `/proc` and signalled through the shell, because the standard library can do neither
//! for a process it does not own, and the guard owns none.

use std::fmt::{self, Display};
use std::fs;
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(20);

/// One process, or a process group with everything in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    Process(u32),
    Group(u32),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Signal {
    /// Ask: tools end their own children first.
    Term,
    /// PostgreSQL's immediate shutdown: no checkpoint, its data is about to be deleted.
    Quit,
    Kill,
}

impl Target {
    /// Asks with `signal`, then kills what is still there after `grace`.
    pub fn stop(self, signal: Signal, grace: Duration) {
        self.send(signal);
        if !self.is_gone_within(grace) {
            self.send(Signal::Kill);
            // Short: what a kill cannot end is stuck in the kernel, and waiting does not help.
            self.is_gone_within(Duration::from_secs(2));
        }
    }

    pub fn is_alive(self) -> bool {
        match self {
            Self::Process(id) => stat(id).is_some_and(|stat| stat.is_running),
            Self::Group(id) => all_processes().filter_map(stat).any(|stat| stat.is_running && stat.group == id),
        }
    }

    fn is_gone_within(self, limit: Duration) -> bool {
        let start = Instant::now();
        while self.is_alive() {
            if start.elapsed() > limit {
                return false;
            }
            std::thread::sleep(POLL);
        }
        true
    }

    fn send(self, signal: Signal) {
        let address = match self {
            Self::Process(id) => format!("{id}"),
            Self::Group(id) => format!("-{id}"),
        };
        // The shell's own `kill`, as the program of that name is not on every machine. It fails
        // when the target is gone already, which is what the caller wants.
        let _ = Command::new("sh")
            .args(["-c", "kill -s \"$1\" -- \"$2\"", "sh"])
            .args([signal.to_string(), address])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
}

/// A name for a process that no other gets: not a later one with the same id, and not one in
/// another container that shares our files.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    namespace: String,
    id: u32,
    started_ticks: u64,
}

impl Identity {
    /// `None` when there is no such process.
    pub fn of(id: u32) -> Option<Self> {
        // "pid:[4026531836]". Whatever process we can see is in our namespace.
        let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
        let digits = |c: &char| c.is_ascii_digit();
        Some(Self {
            namespace: namespace.to_str()?.chars().filter(digits).collect(),
            id,
            started_ticks: stat(id)?.started_ticks,
        })
    }

    /// False where we cannot tell, which is in any other container.
    pub fn is_gone(&self) -> bool {
        let own = Self::of(std::process::id());
        own.is_some_and(|own| own.namespace == self.namespace) && Self::of(self.id) != Some(self.clone())
    }
}

struct Stat {
    /// False for a zombie: dead, and only waiting for its parent to notice.
    is_running: bool,
    group: u32,
    started_ticks: u64,
}

fn stat(id: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
}

fn parse_stat(line: &str) -> Option<Stat> {
    // The second field is the program's name in parentheses, which may hold anything.
    let (_, fields) = line.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    Some(Stat {
        is_running: !matches!(*fields.first()?, "Z" | "X"),
        group: fields.get(2)?.parse().ok()?,
        started_ticks: fields.get(19)?.parse().ok()?,
    })
}

/// Processes that run with this in their environment.
pub fn marked(name: &str, value: &str) -> impl Iterator<Item = u32> {
    let mark = format!("{name}={value}").into_bytes();
    let has_mark = move |id: &u32| {
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == mark)
    };
    all_processes().filter(has_mark).filter(|id| Target::Process(*id).is_alive())
}

fn all_processes() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc").into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

impl Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.namespace, self.id, self.started_ticks)
    }
}

impl FromStr for Identity {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.splitn(3, '-');
        let mut next = || parts.next().ok_or(());
        Ok(Self {
            namespace: next()?.to_owned(),
            id: next()?.parse().map_err(drop)?,
            started_ticks: next()?.parse().map_err(drop)?,
        })
    }
}

impl Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(id) => write!(f, "process {id}"),
            Self::Group(id) => write!(f, "group {id}"),
        }
    }
}

impl FromStr for Target {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (kind, id) = text.split_once(' ').ok_or(())?;
        let id = id.parse().map_err(drop)?;
        match kind {
            "process" => Ok(Self::Process(id)),
            "group" => Ok(Self::Group(id)),
            _ => Err(()),
        }
    }
}

impl Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Term => "TERM",
            Self::Quit => "QUIT",
            Self::Kill => "KILL",
        })
    }
}

impl FromStr for Signal {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "TERM" => Ok(Self::Term),
            "QUIT" => Ok(Self::Quit),
            "KILL" => Ok(Self::Kill),
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_full_of_brackets_does_not_confuse_the_fields() {
        let line = "7 (a) Z (b) S 1 42 7 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 9001 0 0";
        let stat = parse_stat(line).unwrap();
        assert!(stat.is_running);
        assert_eq!((stat.group, stat.started_ticks), (42, 9001));
    }

    #[test]
    fn a_process_is_found_by_its_mark_alone() {
        let own = std::process::id().to_string();
        let mut child = Command::new("sleep").arg("60").env("BATON_TEST_MARK", &own).spawn().unwrap();
        let found = || marked("BATON_TEST_MARK", &own).collect::<Vec<_>>();
        // Its environment can be read a moment after it has begun.
        let start = Instant::now();
        while found().is_empty() && start.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(POLL);
        }
        assert_eq!(found(), [child.id()]);
        assert_eq!(marked("BATON_TEST_MARK", "other").count(), 0);
        child.kill().unwrap();
        // Dead, and not yet buried.
        let start = Instant::now();
        while !found().is_empty() && start.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(POLL);
        }
        assert_eq!(found(), []);
        child.wait().unwrap();
    }

    #[test]
    fn only_a_process_of_ours_that_ended_is_gone() {
        let own = Identity::of(std::process::id()).unwrap();
        assert_eq!(own.to_string().parse(), Ok(own.clone()));
        assert!(!own.is_gone());
        let earlier = Identity { started_ticks: own.started_ticks - 1, ..own.clone() };
        assert!(earlier.is_gone());
        let elsewhere = Identity { namespace: "1".into(), ..earlier };
        assert!(!elsewhere.is_gone());
        assert_eq!(Identity::of(u32::MAX), None);
    }
}
