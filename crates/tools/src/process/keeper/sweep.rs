//! Killing what is left of a program.

use super::keep::wait;
use crate::process::limits;
use crate::process::order::How;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process};
use std::fs;

/// Kills the children, again and again: those of a dead child become ours, so the last round finds
/// none. Only children are killed: their numbers are nobody else's until we have reaped them. False
/// if some are left.
pub fn sweep(mut ended: impl FnMut(Pid, How)) -> bool {
    for round in 0..limits::SWEEP_ROUNDS {
        if reap(&mut ended) {
            return true;
        }
        for child in children() {
            let _ = kill_process(child, Signal::KILL);
        }
        let pause = if round < limits::QUICK_ROUNDS { limits::QUICK_PAUSE } else { limits::SWEEP_PAUSE };
        let _ = wait(&mut [], pause);
    }
    reap(&mut ended)
}

/// Takes note of those that have ended. True if there is no child any more.
pub fn reap(mut ended: impl FnMut(Pid, How)) -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => ended(pid, how(status)),
            Ok(None) => return false,
            Err(Errno::INTR) => {}
            Err(_) => return true,
        }
    }
}

fn how(status: WaitStatus) -> How {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => How::Exit(code),
        (_, Some(signal)) => How::Signal(signal),
        _ => How::Unknown,
    }
}

/// Those that the system lists; not every system keeps such a list, but each says whose child one is.
fn children() -> Vec<Pid> {
    match fs::read_to_string("/proc/thread-self/children") {
        Ok(list) => list.split_ascii_whitespace().filter_map(number).collect(),
        Err(_) => searched(),
    }
}

fn searched() -> Vec<Pid> {
    let us = getpid();
    let all = fs::read_dir("/proc").into_iter().flatten();
    all.filter_map(|entry| {
        let name = entry.ok()?.file_name();
        let pid = number(name.to_str()?)?;
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        // After the name of the program, which is in brackets and may hold anything: state and parent.
        let parent = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?;
        (number(parent)? == us).then_some(pid)
    })
    .collect()
}

fn number(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_child_is_found_by_searching_too() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = number(&child.id().to_string()).unwrap();
        assert!(searched().contains(&pid) && children().contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
