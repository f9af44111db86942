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
use crate::run::Deadline;

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
    /// Of what there is to ask about, by the names that the configuration has for them.
    pub ids: Vec<(&'static str, String)>,
}

impl Server {
    pub fn start(deadline: Deadline, guard: &mut Guard) -> Result<Self> {
        let own = Identity::of(std::process::id()).context("this process is not in /proc")?;
        let directory = std::env::temp_dir().join(format!("baton-asked-{own}"));
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
        let ids = furnish(&directory, &address, deadline)?;
        Ok(Self { child, directory, address, key: key.trim().to_owned(), ids })
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

/// The binary that the tests have run, with nothing of the developer's own settings.
fn baton(directory: &Path) -> Result<Command> {
    let mut command = Command::new(cargo::target()?.join("debug/baton"));
    command.env_clear().env("HOME", directory).current_dir(directory).stdin(Stdio::null());
    Ok(command)
}

/// Something of everything, and the ids of it.
fn furnish(directory: &Path, address: &str, deadline: Deadline) -> Result<Vec<(&'static str, String)>> {
    let mut ids = Vec::new();
    for (name, project, payload) in [
        ("BATON_FAILED", "demo", r#"{"fail":"deterministic"}"#),
        ("BATON_ASKING", "demo", r#"{"ask":true}"#),
        ("BATON_PARKED", "far", r#"{"wait":true}"#),
    ] {
        let enqueue = ["jobs", "enqueue", "echo", "--json", "--project", project, "--payload", payload];
        ids.push((name, id(&tell(directory, address, &enqueue)?, "job_")?));
    }
    let create = ["keys", "create", "to be rotated", "--role", "admin", "--json"];
    ids.push(("BATON_OTHER_KEY", id(&tell(directory, address, &create)?, "key_")?));
    tell(
        directory,
        address,
        &["schedules", "set", "nightly", "--project", "demo", "--cron", "0 3 * * *", "--type", "noop"],
    )?;
    // Nothing ever has such a name, so nothing is sent to anybody.
    let add = ["webhooks", "add", "https://hooks.invalid/baton", "--json"];
    ids.push(("BATON_WEBHOOK", id(&tell(directory, address, &add)?, "whk_")?));
    loop {
        let decisions = tell(directory, address, &["decisions", "list", "--json"])?;
        if let Ok(decision) = id(&decisions, "dec_") {
            ids.push(("BATON_DECISION", decision));
            return Ok(ids);
        }
        deadline.check().context("no decision was opened")?;
        std::thread::sleep(POLL);
    }
}

/// The first id of a kind in some JSON.
fn id(said: &str, prefix: &str) -> Result<String> {
    let start = said.find(&format!("\"{prefix}")).with_context(|| format!("no {prefix} in {said}"))? + 1;
    Ok(said[start..].chars().take_while(|c| *c != '"').collect())
}

/// What the command line says to this.
fn tell(directory: &Path, address: &str, args: &[&str]) -> Result<String> {
    let mut command = baton(directory)?;
    command.args(args).args(["--server", &format!("http://{address}")]);
    command.env("BATON_KEY", fs::read_to_string(data(directory).join("admin.key"))?.trim());
    let said = command.output().context("could not run baton")?;
    if !said.status.success() {
        bail!("baton {} was refused: {}", args.join(" "), String::from_utf8_lossy(&said.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&said.stdout).into_owned())
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
