//! The guard: a second process that tears down what the first one started.
//!
//! It is this program again, in a process group of its own so that Ctrl-C passes it by. It reads
//! duties from a pipe and carries them out, last first, when the pipe closes. The kernel closes
//! the pipe on return, panic, SIGINT and SIGKILL alike, so there is one way to tear down and every
//! run exercises it.
//!
//! Elsewhere: what a guard killed beside its owner leaves behind (`postgres::directory`).

use std::fmt::{self, Display};
use std::fs;
use std::io::{self, BufRead, ErrorKind, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::args;
use crate::process::{Signal, Target, marked};

/// Stands in the environment of everything that is started: so it is found also if its owner dies before
/// it can say what it has started.
const MARK: &str = "BATON_GUARD";
/// Looks for what was started and never told of; each ends what it finds.
const LOOKS: u32 = 10;
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Longer than the 10 s nextest gives its tests to end.
pub const GRACE: Duration = Duration::from_secs(15);

/// The owner's end. Dropping it tears everything down and waits until that is done.
pub struct Guard {
    /// `None` only while dropping, and in unit tests, whose binary cannot become a guard.
    link: Option<(Child, ChildStdin)>,
}

impl Guard {
    pub fn start() -> Result<Self> {
        // Not `current_exe`: its path is wrong once a build has replaced the file.
        let mut child = Command::new("/proc/self/exe")
            .arg(args::GUARD)
            // A guard is nobody's to end: it does so by itself.
            .env_remove(MARK)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()
            .context("could not start the guard process")?;
        let pipe = child.stdin.take().context("the guard has no pipe")?;
        Ok(Self { link: Some((child, pipe)) })
    }

    /// Marks what is about to be started.
    pub fn mark(&self, command: &mut Command) {
        if let Some((guard, _)) = &self.link {
            command.env(MARK, guard.id().to_string());
        }
    }

    /// Watches what was just started. If nobody can watch it, it is stopped at once.
    pub fn watch(&mut self, target: Target, signal: Signal) -> Result<()> {
        self.tell(&Line::Add(Duty::Stop { target, signal })).inspect_err(|_| target.stop(signal, GRACE))
    }

    /// `target` has ended; its id may soon belong to a stranger.
    pub fn forget(&mut self, target: Target) -> Result<()> {
        self.tell(&Line::Forget(target))
    }

    pub fn remove_at_end(&mut self, directory: &Path) -> Result<()> {
        self.tell(&Line::Add(Duty::Remove(directory.to_owned())))
    }

    fn tell(&mut self, line: &Line) -> Result<()> {
        match &mut self.link {
            Some((_, pipe)) => pipe.write_all(format!("{line}\n").as_bytes()).context("the guard process is gone"),
            None => Ok(()),
        }
    }

    #[cfg(test)]
    pub fn absent() -> Self {
        Self { link: None }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some((mut child, pipe)) = self.link.take() {
            drop(pipe);
            match child.wait() {
                Ok(status) if status.success() => {}
                other => eprintln!("warning: not everything was torn down: {other:?}"),
            }
        }
    }
}

/// The guard's end: the whole life of the second process.
pub fn serve() -> ExitCode {
    let duties = remaining_duties(io::stdin().lock());
    let mut code = ExitCode::SUCCESS;
    for duty in duties.iter().rev() {
        if let Err(error) = duty.carry_out() {
            eprintln!("warning: could not {duty}: {error}");
            code = ExitCode::FAILURE;
        }
    }
    end_the_rest();
    code
}

/// What was started and never told of.
fn end_the_rest() {
    let own = std::process::id().to_string();
    let mut quiet = 0;
    for _ in 0..LOOKS {
        let left: Vec<_> = marked(MARK, &own).collect();
        // The environment of a program that begins just now cannot be read yet: one more look.
        quiet = if left.is_empty() { quiet + 1 } else { 0 };
        if quiet > 1 {
            return;
        }
        left.into_iter().for_each(|id| Target::Process(id).stop(Signal::Term, GRACE));
        std::thread::sleep(LOOK_PAUSE);
    }
}

fn remaining_duties(mut input: impl BufRead) -> Vec<Duty> {
    let mut duties = Vec::new();
    let mut text = String::new();
    while input.read_line(&mut text).is_ok() {
        // A line without its end was cut short by the owner's death: half a path must never be
        // removed. What came before still counts.
        let Some(Ok(line)) = text.strip_suffix('\n').map(str::parse) else {
            break;
        };
        match line {
            Line::Add(duty) => duties.push(duty),
            Line::Forget(ended) => duties.retain(|duty| !matches!(duty, Duty::Stop { target, .. } if *target == ended)),
        }
        text.clear();
    }
    duties
}

#[derive(Debug, PartialEq)]
enum Line {
    Add(Duty),
    Forget(Target),
}

#[derive(Debug, PartialEq)]
enum Duty {
    Stop { target: Target, signal: Signal },
    Remove(PathBuf),
}

impl Duty {
    fn carry_out(&self) -> io::Result<()> {
        match self {
            Self::Stop { target, signal } => {
                target.stop(*signal, GRACE);
                Ok(())
            }
            Self::Remove(directory) => remove(directory),
        }
    }
}

/// Removes a directory that may be gone, or that a dying process may still write to.
pub fn remove(directory: &Path) -> io::Result<()> {
    const ATTEMPTS: u32 = 20;
    const PAUSE: Duration = Duration::from_millis(100);
    for _ in 1..ATTEMPTS {
        match fs::remove_dir_all(directory) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound && !directory.exists() => {
                return Ok(());
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
    fs::remove_dir_all(directory)
}

impl Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add(duty) => write!(f, "{duty}"),
            Self::Forget(target) => write!(f, "forget {target}"),
        }
    }
}

impl Display for Duty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stop { target, signal } => write!(f, "stop {signal} {target}"),
            Self::Remove(directory) => write!(f, "remove {}", directory.display()),
        }
    }
}

impl FromStr for Line {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let (verb, rest) = line.split_once(' ').ok_or(())?;
        match verb {
            "stop" => {
                let (signal, target) = rest.split_once(' ').ok_or(())?;
                Ok(Self::Add(Duty::Stop { target: target.parse()?, signal: signal.parse()? }))
            }
            "remove" => Ok(Self::Add(Duty::Remove(rest.into()))),
            "forget" => Ok(Self::Forget(rest.parse()?)),
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_survives_the_pipe() {
        let target = Target::Group(12);
        for line in [
            Line::Add(Duty::Stop { target: Target::Process(3), signal: Signal::Quit }),
            Line::Add(Duty::Stop { target, signal: Signal::Term }),
            Line::Add(Duty::Remove("/var/tmp/with a space".into())),
            Line::Forget(target),
        ] {
            assert_eq!(line.to_string().parse(), Ok(line));
        }
        assert_eq!("stop TERM gro".parse::<Line>(), Err(()));
    }

    #[test]
    fn what_was_forgotten_or_cut_short_is_no_duty() {
        let input = "remove /a\nstop TERM group 1\nstop QUIT group 2\nforget group 1\nremove /v";
        let expected = [Duty::Remove("/a".into()), Duty::Stop { target: Target::Group(2), signal: Signal::Quit }];
        assert_eq!(remaining_duties(input.as_bytes()), expected);
    }

    #[test]
    fn removing_what_is_gone_is_fine() {
        assert!(remove(Path::new("/var/tmp/baton-never-existed")).is_ok());
    }
}
