//! Debian's packages, installed where something is missing.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::guard::Guard;
use crate::run::{Deadline, run};

pub fn install(package: &str, deadline: Deadline, guard: &mut Guard) -> Result<()> {
    if !Path::new("/usr/bin/apt-get").exists() {
        bail!("there is no apt-get");
    }
    println!("installing {package}");
    apt_get(&["update"], deadline, guard)?;
    apt_get(&["install", "-y", "--no-install-recommends", package], deadline, guard)
}

fn apt_get(args: &[&str], deadline: Deadline, guard: &mut Guard) -> Result<()> {
    let is_root = fs::metadata("/proc/self")?.uid() == 0;
    let words: &[&str] = match is_root {
        true => &["env"],
        // Never asks for a password: nobody may be there to give it.
        false => &["sudo", "-n", "env"],
    };
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]).args(args).stdin(Stdio::null());
    run(&mut command, deadline, guard)
}
