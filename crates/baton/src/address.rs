//! `address` in the data directory: where the server that uses it listens.
//!
//! The server keeps the file locked while it is up. So whoever reads it can tell a server that is
//! there from one that was, without getting into the way of either.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

const FILE: &str = "address";

/// There while the server is up; after a crash the file stays, unlocked.
pub struct Posted {
    path: PathBuf,
    _held: File,
}

pub fn post(data_dir: &Path, address: SocketAddr) -> io::Result<Posted> {
    let path = data_dir.join(FILE);
    // Whole or not at all: somebody may be waiting to read it.
    let draft = data_dir.join("address.new");
    let mut file = File::create(&draft)?;
    // Nobody looks at the draft, so nobody holds it.
    file.try_lock()?;
    writeln!(file, "{address}")?;
    fs::rename(&draft, &path)?;
    Ok(Posted { path, _held: file })
}

/// Where a server listens, or did.
pub fn read(data_dir: &Path) -> Option<SocketAddr> {
    fs::read_to_string(data_dir.join(FILE)).ok()?.trim().parse().ok()
}

/// Where a server listens that is up.
pub fn alive(data_dir: &Path) -> Option<SocketAddr> {
    let mut file = File::open(data_dir.join(FILE)).ok()?;
    // A crash has let go of it.
    let Err(TryLockError::WouldBlock) = file.try_lock_shared() else { return None };
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

impl Drop for Posted {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_up_is_told_from_one_that_was() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(alive(dir.path()), None);
        let address: SocketAddr = "127.0.0.1:7".parse().unwrap();
        let posted = post(dir.path(), address).unwrap();
        assert_eq!(
            (alive(dir.path()), alive(dir.path()), read(dir.path())),
            (Some(address), Some(address), Some(address))
        );
        drop(posted);
        assert_eq!((alive(dir.path()), read(dir.path())), (None, None));
        // As a crash leaves it.
        fs::write(dir.path().join(FILE), "127.0.0.1:7\n").unwrap();
        assert_eq!((alive(dir.path()), read(dir.path())), (None, Some(address)));
        drop(post(dir.path(), address).unwrap());
    }
}
