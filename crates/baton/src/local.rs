//! Finding the server on this machine and the key to it, from any directory.
//!
//! A server that listens on loopback notes under its port where its data is. Whoever may read the
//! first key there, may use it: the file's owner, and nobody else. The key is shown only to a server
//! that is up and holds that directory: after a crash, somebody else may listen on its port.

use crate::address;
use baton_engine::node;
use baton_wire::Token;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// In the data directory, readable by its owner only.
pub const ADMIN_KEY: &str = "admin.key";

/// Where notes about running servers are kept; none if nobody's home is known.
fn notes() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local").join("state")))?;
    Some(state.join("baton").join("servers"))
}

/// There while the server is up.
pub struct Noted(Option<PathBuf>);

/// Notes where a server's data is. That nobody finds it is no reason not to run.
pub fn note(address: SocketAddr, data_dir: &Path) -> Noted {
    let Some(notes) = notes().filter(|_| address.ip().is_loopback()) else { return Noted(None) };
    let path = notes.join(address.port().to_string());
    let dir = std::path::absolute(data_dir).unwrap_or_else(|_| data_dir.to_owned());
    let written = fs::create_dir_all(&notes).and_then(|()| fs::write(&path, dir.as_os_str().as_encoded_bytes()));
    match written {
        Ok(()) => Noted(Some(path)),
        Err(error) => {
            tracing::debug!(cause = %error, "other directories will not find the local key");
            Noted(None)
        }
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}

/// The key to a server on this machine, if we may read it.
pub fn key(server: SocketAddr, data_dir: &Path) -> Option<Token> {
    places(server, data_dir).find_map(|dir| read(&dir).ok().flatten())
}

/// Keeps another secret of the key that is kept for a server, if it is this one: it would open
/// nothing any more. Whether it was.
pub fn replace(server: SocketAddr, data_dir: &Path, token: &Token) -> io::Result<bool> {
    let kept = |dir: &PathBuf| read(dir).is_ok_and(|kept| kept.is_some_and(|kept| kept.id == token.id));
    let Some(dir) = places(server, data_dir).find(kept) else { return Ok(false) };
    node::keep_secret(&dir, ADMIN_KEY, &token.reveal())?;
    Ok(true)
}

/// Where the data of a server that is up on this machine may be.
fn places(server: SocketAddr, data_dir: &Path) -> impl Iterator<Item = PathBuf> {
    let noted = notes().and_then(|notes| fs::read(notes.join(server.port().to_string())).ok());
    let noted = noted.and_then(|bytes| String::from_utf8(bytes).ok()).map(PathBuf::from);
    // At another address of this machine somebody else may listen on the same port.
    noted.into_iter().chain([data_dir.to_owned()]).filter(move |dir| address::alive(dir) == Some(server))
}

/// The first key, as it is kept in a data directory.
pub fn read(data_dir: &Path) -> io::Result<Option<Token>> {
    match fs::read_to_string(data_dir.join(ADMIN_KEY)) {
        Ok(text) => text.trim().parse().map(Some).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
