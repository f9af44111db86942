//! One program from its start to its end.

use super::launch::{launch, seal};
use super::sweep::{reap, sweep};
use crate::process::limits;
use crate::process::order::{Ended, How, Order, Report, Unstarted};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, kill_process_group, pidfd_open, set_child_subreaper};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ChildStdin;
use std::time::Duration;

pub fn keep() -> io::Result<()> {
    let mut server = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    server.set_read_timeout(Some(limits::EXCHANGE))?;
    server.set_write_timeout(Some(limits::EXCHANGE))?;
    let (order, input) = Order::read(&mut server)?;
    let launched = ready().map_err(|error| Unstarted::from_error(&order.program, &error)).and_then(|()| launch(&order));
    let mut child = match launched {
        Ok(child) => child,
        Err(unstarted) => return say(&mut server, &Report::Unstarted(unstarted)),
    };
    let stdin = child.stdin.take();
    let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let watched = pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from).and_then(|watch| {
        say(&mut server, &Report::Started(pid.as_raw_nonzero().get()))?;
        Ok(watch)
    });
    let mut kept = Kept { server, pid, how: None };
    let stopped = match watched {
        Ok(watch) => kept.watch(&watch, stdin, &input),
        Err(_) => true,
    };
    kept.end(stopped)
}

/// Everything that can be refused to a keeper is asked for before there is something to keep.
fn ready() -> io::Result<()> {
    seal()?;
    set_child_subreaper(Some(getpid()))?;
    pidfd_open(getpid(), PidfdFlags::empty())?;
    Ok(())
}

struct Kept {
    server: UnixStream,
    pid: Pid,
    /// Set once it is reaped.
    how: Option<How>,
}

impl Kept {
    /// Until it has ended, or is to be killed: then true.
    fn watch(&mut self, watch: &OwnedFd, stdin: Option<ChildStdin>, input: &[u8]) -> bool {
        let mut feed = Feed::new(stdin, input);
        while self.how.is_none() {
            let mut files = vec![PollFd::new(watch, PollFlags::IN), PollFd::new(&self.server, PollFlags::IN)];
            files.extend(feed.stdin.as_ref().map(|stdin| PollFd::new(stdin, PollFlags::OUT)));
            match wait(&mut files, limits::TICK) {
                Ok(()) => {}
                Err(Errno::INTR) => continue,
                Err(_) => return true,
            }
            let ready: Vec<_> = files.iter().map(|file| !file.revents().is_empty()).collect();
            if ready[0] {
                return false;
            }
            if ready[1] {
                let hung_up = !matches!(self.server.read(&mut [0]), Ok(1));
                return hung_up || self.stop(watch);
            }
            if ready.get(2) == Some(&true) {
                feed.some();
            }
            self.reap();
        }
        false
    }

    /// Asks it to end, and gives it a while. Always true: it was the keeper who ended it.
    fn stop(&self, watch: &OwnedFd) -> bool {
        let _ = kill_process_group(self.pid, Signal::TERM);
        // One that is stopped hears nothing.
        let _ = kill_process_group(self.pid, Signal::CONT);
        // The server hanging up ends the grace too.
        let mut files = [PollFd::new(watch, PollFlags::IN), PollFd::new(&self.server, PollFlags::IN)];
        let _ = wait(&mut files, limits::GRACE);
        true
    }

    fn end(mut self, stopped: bool) -> io::Result<()> {
        if self.how.is_none() {
            // While it is not reaped, its number is nobody else's.
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
        let pid = self.pid;
        let left = !sweep(|reaped, how| {
            if reaped == pid {
                self.how = Some(how);
            }
        });
        let how = self.how.unwrap_or(How::Unknown);
        say(&mut self.server, &Report::Ended(Ended { how, stopped, left }))
    }

    fn reap(&mut self) {
        let pid = self.pid;
        reap(|reaped, how| {
            if reaped == pid {
                self.how = Some(how);
            }
        });
    }
}

/// What the program has not read yet.
struct Feed<'a> {
    stdin: Option<ChildStdin>,
    rest: &'a [u8],
}

impl<'a> Feed<'a> {
    fn new(stdin: Option<ChildStdin>, input: &'a [u8]) -> Self {
        // A pipe that could block would make the keeper deaf to a program that never reads.
        let free = stdin
            .filter(|stdin| fcntl_getfl(stdin).and_then(|flags| fcntl_setfl(stdin, flags | OFlags::NONBLOCK)).is_ok());
        let mut feed = Self { stdin: free, rest: input };
        feed.some();
        feed
    }

    /// Writes what there is room for; at the end, or if nobody reads any more, closes.
    fn some(&mut self) {
        while let Some(stdin) = &mut self.stdin {
            match stdin.write(self.rest) {
                _ if self.rest.is_empty() => self.stdin = None,
                Ok(written) if written > 0 => self.rest = &self.rest[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => self.stdin = None,
            }
        }
    }
}

pub fn wait(files: &mut [PollFd<'_>], longest: Duration) -> rustix::io::Result<()> {
    let longest = Timespec::try_from(longest).map_err(|_| Errno::INVAL)?;
    poll(files, Some(&longest)).map(|_| ())
}

fn say(server: &mut UnixStream, report: &Report) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    server.write_all(&line)
}

impl Unstarted {
    pub fn from_error(program: &std::path::Path, error: &io::Error) -> Self {
        const GONE: [Errno; 8] = [
            Errno::NOENT,
            Errno::ACCESS,
            Errno::NOEXEC,
            Errno::NOTDIR,
            Errno::ISDIR,
            Errno::LOOP,
            Errno::NAMETOOLONG,
            Errno::PERM,
        ];
        let missing = Errno::from_io_error(error).is_some_and(|errno| GONE.contains(&errno));
        Self { missing, why: format!("{} cannot be started: {error}", program.display()) }
    }
}
