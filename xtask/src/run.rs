//! Running one program: under a deadline, or in the foreground.

use std::io::{IsTerminal, stdin};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::guard::{GRACE, Guard};
use crate::process::{Signal, Target};

const POLL: Duration = Duration::from_millis(20);

/// When a budget runs out. Programs run one after another share it.
#[derive(Clone, Copy)]
pub struct Deadline {
    start: Instant,
    budget: Duration,
}

impl Deadline {
    pub fn after(budget: Duration) -> Self {
        Self { start: Instant::now(), budget }
    }

    pub fn check(self) -> Result<()> {
        ensure!(self.elapsed() <= self.budget, "overran the budget of {} s", self.budget.as_secs_f32());
        Ok(())
    }

    pub fn elapsed(self) -> Duration {
        self.start.elapsed()
    }
}

/// Runs `command` to a successful end. At the deadline it is killed with its process group.
pub fn run(command: &mut Command, deadline: Deadline, guard: &mut Guard) -> Result<()> {
    Running::start(command, deadline, guard)?.wait(deadline, guard)
}

/// A program beside others.
pub struct Running {
    child: Child,
    shown: String,
}

impl Running {
    pub fn start(command: &mut Command, deadline: Deadline, guard: &mut Guard) -> Result<Self> {
        let shown = shown(command);
        deadline.check().with_context(|| format!("no time left for `{shown}`"))?;
        guard.mark(command);
        let child = command.process_group(0).spawn().with_context(|| format!("could not start `{shown}`"))?;
        guard.watch(Target::Group(child.id()), Signal::Term)?;
        Ok(Self { child, shown })
    }

    /// To a successful end. At the deadline it is killed with its process group.
    pub fn wait(self, deadline: Deadline, guard: &mut Guard) -> Result<()> {
        let Self { mut child, shown } = self;
        let group = Target::Group(child.id());
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if let Err(overran) = deadline.check() {
                group.stop(Signal::Term, GRACE);
                child.wait()?;
                guard.forget(group)?;
                return Err(overran.context(format!("`{shown}` was killed")));
            }
            std::thread::sleep(POLL);
        };
        guard.forget(group)?;
        if !status.success() {
            bail!("`{shown}` ended with {status}");
        }
        Ok(())
    }
}

/// Runs `command` for as long as it likes, at the developer's terminal; its exit code is ours.
pub fn in_foreground(command: &mut Command, guard: &mut Guard) -> Result<ExitCode> {
    // A terminal stops a program of another group at its first read.
    let own_group = !stdin().is_terminal();
    if own_group {
        command.process_group(0);
    }
    guard.mark(command);
    let mut child = command.spawn().with_context(|| format!("could not start `{}`", shown(command)))?;
    let target = match own_group {
        true => Target::Group(child.id()),
        false => Target::Process(child.id()),
    };
    guard.watch(target, Signal::Term)?;
    let status = child.wait()?;
    guard.forget(target)?;
    // 128 + signal, as shells report it.
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    Ok(code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

fn shown(command: &Command) -> String {
    let mut shown = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args() {
        shown.push(' ');
        shown.push_str(&arg.to_string_lossy());
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    const AMPLE: Duration = Duration::from_secs(60);

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn success_and_failure_are_told_apart() {
        let deadline = Deadline::after(AMPLE);
        assert!(run(&mut sh("exit 0"), deadline, &mut Guard::absent()).is_ok());
        let error = run(&mut sh("exit 3"), deadline, &mut Guard::absent()).unwrap_err();
        assert_eq!(format!("{error:#}"), "`sh -c exit 3` ended with exit status: 3");
    }

    #[test]
    fn an_overrun_is_killed_with_everything_it_started() {
        let note = std::env::temp_dir().join(format!("baton-overrun-{}", std::process::id()));
        let mut command = sh("echo $$ > \"$NOTE\"; sleep 60 & sleep 60");
        let deadline = Deadline::after(Duration::from_millis(500));
        let error = run(command.env("NOTE", &note), deadline, &mut Guard::absent()).unwrap_err();
        let message = format!("{error:#}");
        assert!(message.ends_with("was killed: overran the budget of 0.5 s"));
        let group = std::fs::read_to_string(&note).unwrap();
        std::fs::remove_file(&note).unwrap();
        assert!(!Target::Group(group.trim().parse().unwrap()).is_alive());
    }

    #[test]
    fn nothing_starts_after_the_deadline() {
        let deadline = Deadline::after(Duration::ZERO);
        std::thread::sleep(Duration::from_millis(1));
        let error = run(&mut sh("exit 0"), deadline, &mut Guard::absent()).unwrap_err();
        assert!(format!("{error:#}").starts_with("no time left for"));
    }
}
