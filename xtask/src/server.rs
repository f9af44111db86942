//! A server to ask: the real binary, an empty database, a free port, no limit on how fast.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use crate::cargo;
use crate::guard::{GRACE, Guard};
use crate::process::{Identity, Signal, Target};
use crate::run::{Deadline, run};
use crate::stage::Stage;

/// For commands that need nothing else built.
pub const BUILD: Stage = Stage { name: "build", budget_s: 600 };

/// What it says to whoever started it; the key is in it, so it stays in the directory.
const SAID: &str = "said";
const POLL: Duration = Duration::from_millis(20);

pub struct Server {
    child: Child,
    /// Holds its data, its log, and what is left beside them.
    pub directory: PathBuf,
    pub address: String,
    /// The first admin key.
    pub key: String,
}

impl Server {
    /// `name` is its own among those that one command starts.
    pub fn start(name: &str, deadline: Deadline, guard: &mut Guard) -> Result<Self> {
        let own = Identity::of(std::process::id()).context("this process is not in /proc")?;
        let directory = std::env::temp_dir().join(format!("baton-{name}-{own}"));
        guard.remove_at_end(&directory)?;
        DirBuilder::new().mode(0o700).create(&directory).context("could not make a directory for the server")?;
        let (said, log) = (File::create(directory.join(SAID))?, File::create(log(&directory))?);
        let mut command = baton(&directory)?;
        command.args(["up", "--listen", "127.0.0.1:0", "--rate-limit", "0", "--log", "json", "--data-dir"]);
        command.arg(data(&directory)).stdout(said).stderr(log).process_group(0);
        guard.mark(&mut command);
        let mut child = command.spawn().context("could not start baton; was it built?")?;
        guard.watch(Target::Group(child.id()), Signal::Term)?;
        let address = loop {
            if let Some(address) = listening(&fs::read_to_string(directory.join(SAID))?) {
                break address;
            }
            let ended = child.try_wait()?.map(|status| anyhow!("the server ended with {status}"));
            if let Some(error) = ended.or_else(|| deadline.check().err()) {
                return Err(explain(&directory, error));
            }
            std::thread::sleep(POLL);
        };
        let key = fs::read_to_string(data(&directory).join("admin.key")).context("the server has left no admin key")?;
        Ok(Self { child, directory, address, key: key.trim().to_owned() })
    }

    /// What the command line says to this.
    pub fn tell(&self, args: &[&str]) -> Result<String> {
        let mut command = baton(&self.directory)?;
        command.args(args).args(["--server", &format!("http://{}", self.address)]).env("BATON_KEY", &self.key);
        let said = command.output().context("could not run baton")?;
        if !said.status.success() {
            bail!("baton {} was refused: {}", args.join(" "), String::from_utf8_lossy(&said.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&said.stdout).into_owned())
    }

    /// It must have lived until now, and must end well.
    pub fn stop(mut self, guard: &mut Guard) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            return Err(explain(&self.directory, anyhow!("the server ended with {status} while it was asked")));
        }
        let group = Target::Group(self.child.id());
        group.stop(Signal::Term, GRACE);
        let status = self.child.wait()?;
        guard.forget(group)?;
        if !status.success() {
            return Err(explain(&self.directory, anyhow!("the server ended with {status} when it was told to stop")));
        }
        Ok(())
    }
}

pub fn build(deadline: Deadline, guard: &mut Guard) -> Result<()> {
    run(&mut cargo::cargo(["build", "--package", "baton", "--locked"]), deadline, guard)
}

/// The binary that the tests have run, or that was just built.
pub fn binary() -> Result<PathBuf> {
    Ok(cargo::target()?.join("debug/baton"))
}

/// It, with nothing of the developer's own settings.
fn baton(directory: &Path) -> Result<Command> {
    let mut command = Command::new(binary()?);
    command.env_clear().env("HOME", directory).current_dir(directory).stdin(Stdio::null());
    Ok(command)
}

/// The first text that begins so in some JSON, such as an id of a kind.
pub fn text_in(said: &str, prefix: &str) -> Result<String> {
    let start = said.find(&format!("\"{prefix}")).with_context(|| format!("no {prefix} was said"))? + 1;
    Ok(said[start..].chars().take_while(|c| *c != '"').collect())
}

/// What the server says when it is up.
fn listening(said: &str) -> Option<String> {
    let (_, rest) = said.split_once("listens on  http://")?;
    // A line that is still being written has no end.
    let (address, _) = rest.split_once('\n')?;
    Some(address.to_owned())
}

fn explain(directory: &Path, error: anyhow::Error) -> anyhow::Error {
    const LINES: usize = 15;
    let log = fs::read_to_string(log(directory)).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    let tail = lines[lines.len().saturating_sub(LINES)..].join("\n  ");
    anyhow!("{error:#}; the server's log ends with\n  {tail}")
}

fn data(directory: &Path) -> PathBuf {
    directory.join("data")
}

fn log(directory: &Path) -> PathBuf {
    directory.join("log")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_read_from_the_line_that_tells_it() {
        let said = "Baton 0.1.0 is up\n\n  listens on  http://127.0.0.1:4711\n  data in     x\n";
        assert_eq!(listening(said).as_deref(), Some("127.0.0.1:4711"));
        assert_eq!(listening(&said[..50]), None);
        assert_eq!(listening(""), None);
    }
}
