//! `address` in the data directory: where the server that uses it listens.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

const FILE: &str = "address";

/// There while the server is up. After a crash it may be stale; the data directory's lock, not
/// this file, says whether somebody is there.
pub struct Posted(PathBuf);

pub fn post(data_dir: &Path, address: SocketAddr) -> io::Result<Posted> {
    let path = data_dir.join(FILE);
    // Whole or not at all: somebody may be waiting to read it.
    let draft = data_dir.join("address.new");
    fs::write(&draft, format!("{address}\n"))?;
    fs::rename(&draft, &path)?;
    Ok(Posted(path))
}

pub fn read(data_dir: &Path) -> Option<SocketAddr> {
    fs::read_to_string(data_dir.join(FILE)).ok()?.trim().parse().ok()
}

impl Drop for Posted {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
