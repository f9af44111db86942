//! A throwaway PostgreSQL cluster, reachable from this machine alone.
//!
//! Elsewhere: stopping it and removing its files (`guard`).

mod account;
mod binaries;
mod directory;

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow};

use crate::guard::Guard;
use crate::process::{Signal, Target};
use crate::run::{Deadline, run};
use crate::stage::Stage;
use account::Account;

pub const SET_UP: Stage = Stage { name: "set-up", budget_s: 300 };

/// Where tests find the database.
const URL: &str = "BATON_TEST_DATABASE_URL";

/// Durability is what the tests are about, so it is on although the data is thrown away.
const SETTINGS: [&str; 8] = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=200",
    "shared_buffers=128MB",
    "fsync=on",
    "synchronous_commit=on",
    "autovacuum_naptime=10s",
    "logging_collector=off",
];

/// Between choosing a free port and the server taking it, another program can.
const PORT_ATTEMPTS: u32 = 5;
const POLL: Duration = Duration::from_millis(20);

pub struct Database {
    url: String,
    /// Never waited for: the guard stops the server once its owner is done with it.
    _server: Option<Child>,
}

impl Database {
    pub fn pass_to<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env(URL, &self.url)
    }
}

/// The database the developer named, or a new cluster.
pub fn database(deadline: Deadline, guard: &mut Guard) -> Result<Database> {
    match std::env::var(URL) {
        Ok(url) if !url.is_empty() => Ok(Database { url, _server: None }),
        _ => start(deadline, guard).context("could not start a throwaway PostgreSQL"),
    }
}

fn start(deadline: Deadline, guard: &mut Guard) -> Result<Database> {
    let bin = binaries::find_or_install(deadline, guard)?;
    let account = Account::for_server()?;
    let cluster = Cluster { directory: directory::create(&account, guard)?, bin, account };
    cluster.initialise(deadline, guard).map_err(|error| cluster.explain(error))?;
    for _ in 0..PORT_ATTEMPTS {
        let port = free_port()?;
        if let Some(server) = cluster.serve(port, deadline, guard)? {
            return Ok(Database { url: format!("postgres://baton@127.0.0.1:{port}/baton"), _server: Some(server) });
        }
    }
    Err(cluster.explain(anyhow!("the server ended while starting")))
}

struct Cluster {
    bin: PathBuf,
    account: Account,
    directory: PathBuf,
}

impl Cluster {
    fn initialise(&self, deadline: Deadline, guard: &mut Guard) -> Result<()> {
        let mut initdb = self.command("initdb", &["--username=baton", "--auth=trust"])?;
        // Unsynced: what initdb writes need not survive a crash, only what the tests write.
        initdb.args(["--encoding=UTF8", "--locale=C", "--no-sync"]);
        run(&mut initdb, deadline, guard)?;

        // Single-user mode needs no client program, and leaves nothing to do once it serves.
        let script = self.directory.join("create.sql");
        fs::write(&script, "CREATE DATABASE baton\n")?;
        let mut single = self.command("postgres", &["--single", "-c", "exit_on_error=on"])?;
        single.arg("postgres").stdin(File::open(&script)?);
        run(&mut single, deadline, guard)
    }

    /// `None` when the server gave up, most likely because the port was taken.
    fn serve(&self, port: u16, deadline: Deadline, guard: &mut Guard) -> Result<Option<Child>> {
        let mut command = self.command("postgres", &[])?;
        command.args(["-p", &port.to_string()]);
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        guard.mark(&mut command);
        let mut server = command.process_group(0).spawn()?;
        let group = Target::Group(server.id());
        guard.watch(group, Signal::Quit)?;
        while !self.is_ready(server.id()) {
            if server.try_wait()?.is_some() {
                guard.forget(group)?;
                return Ok(None);
            }
            deadline.check().map_err(|error| self.explain(error))?;
            std::thread::sleep(POLL);
        }
        Ok(Some(server))
    }

    /// The server's own word for it, in the last line of its pid file.
    fn is_ready(&self, server: u32) -> bool {
        let Ok(text) = fs::read_to_string(directory::pid_file(&self.directory)) else {
            return false;
        };
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        lines.first() == Some(&server.to_string().as_str()) && lines.get(7) == Some(&"ready")
    }

    /// `args` come first: the server takes `--single` nowhere else.
    fn command(&self, program: &str, args: &[&str]) -> Result<Command> {
        let log = File::options().create(true).append(true).open(self.log())?;
        let mut command = Command::new(self.bin.join(program));
        // Options of the developer's own servers and clients must not reach this one.
        for name in ["PGDATA", "PGPORT", "PGHOST", "PGUSER", "PGOPTIONS", "PGTZ"] {
            command.env_remove(name);
        }
        command
            .args(args)
            .arg("-D")
            .arg(directory::data(&self.directory))
            .env("LC_ALL", "C")
            // The current directory may be closed to the server's account.
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        self.account.apply(&mut command);
        Ok(command)
    }

    /// Adds what the server said to `error`; its log is about to be deleted.
    fn explain(&self, error: Error) -> Error {
        const LINES: usize = 15;
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(LINES)..].join("\n  ");
        anyhow!("{error:#}; the server's log ends with\n  {tail}")
    }

    fn log(&self) -> PathBuf {
        self.directory.join("log")
    }
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
    Ok(listener.local_addr()?.port())
}
