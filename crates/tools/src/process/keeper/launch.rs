//! Starting a program as it was ordered. The only place with `unsafe`: what is to be done between
//! `fork` and `exec`, and to files that are known by their number only, has no other name.

#![allow(unsafe_code, reason = "see above; each block says why it is sound")]

use crate::process::limits;
use crate::process::order::{Order, Unstarted};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getpid, getppid, set_parent_process_death_signal, setrlimit, setsid,
};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

/// No program gets a file that the server was started with.
pub fn seal() -> io::Result<()> {
    const FIRST: i32 = 3;
    let entries = std::fs::read_dir("/proc/self/fd")?;
    let numbers: Vec<i32> = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number >= FIRST) {
        // SAFETY: there is one thread, so nothing is closed or opened meanwhile. One number is that of
        // the directory that was just read; the system says that it is bad, and nothing happens.
        let file = unsafe { BorrowedFd::borrow_raw(number) };
        match fcntl_setfd(file, FdFlags::CLOEXEC) {
            Ok(()) | Err(Errno::BADF) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

pub fn launch(order: &Order) -> Result<Child, Unstarted> {
    if !order.cwd.is_dir() {
        let why = format!("the directory {} is not there", order.cwd.display());
        return Err(Unstarted { missing: true, why });
    }
    let mut command = Command::new(&order.program);
    command.args(&order.arguments).current_dir(&order.cwd).env_clear().envs(&order.env).stdin(Stdio::piped());
    let (keeper, limits) = (getpid(), limits(order));
    // SAFETY: there is one thread, so no lock is held by another at the fork; and nothing is done but
    // calls of the system: no memory is allocated.
    unsafe { command.pre_exec(move || prepare(keeper, &limits).map_err(io::Error::from)) };
    command.spawn().map_err(|error| Unstarted::from_error(&order.program, &error))
}

/// In the child: a session of its own, no life without its keeper, and limits. Memory comes last.
fn prepare(keeper: Pid, limits: &[(Resource, Option<u64>)]) -> rustix::io::Result<()> {
    setsid()?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Some(keeper) {
        return Err(Errno::SRCH);
    }
    for (resource, most) in limits {
        if most.is_some() {
            setrlimit(*resource, Rlimit { current: *most, maximum: *most })?;
        }
    }
    Ok(())
}

fn limits(order: &Order) -> [(Resource, Option<u64>); 5] {
    [
        (Resource::Core, Some(0)),
        (Resource::Nofile, Some(limits::OPEN_FILES)),
        (Resource::Fsize, Some(order.file_bytes)),
        (Resource::Nproc, order.processes),
        (Resource::As, Some(order.memory_bytes)),
    ]
}
