//! What a node keeps beside the database: its name and the sealing key, in the data directory.

use crate::entropy::key_bytes;
use baton_core::canon::Digest;
use baton_core::seal::Key;
use baton_core::{WorkerId, seal};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// The node's name, made on first use. It stays the same over restarts: whoever has the data
/// directory is this node, so what it held before is its own to take back.
pub fn load_node(data_dir: &Path) -> io::Result<WorkerId> {
    let text = load_secret(data_dir, "node", || {
        let hex = Digest(key_bytes()?).to_string();
        Ok(format!("node_{}", &hex[..24]))
    })?;
    text.parse().map_err(|e| io::Error::new(ErrorKind::InvalidData, format!("the file node: {e}")))
}

/// The key that seals the history, made on first use, readable by its owner only.
pub fn load_seal_key(data_dir: &Path) -> io::Result<Key> {
    let text = load_secret(data_dir, "seal.key", || Ok(Digest(key_bytes()?).to_string()))?;
    parse_seal_key(&text)
        .ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "the file seal.key does not hold 64 hexadecimal digits"))
}

/// 64 hexadecimal digits.
pub fn parse_seal_key(text: &str) -> Option<seal::Key> {
    Digest::from_hex(text.trim()).map(|d| Key::new(d.0))
}

/// A secret in a file of the data directory, made on first use, readable by its owner only.
pub fn load_secret(dir: &Path, name: &str, make: impl FnOnce() -> io::Result<String>) -> io::Result<String> {
    let path = dir.join(name);
    match fs::read_to_string(&path) {
        Ok(text) => return Ok(text.trim().to_owned()),
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    create_private(dir)?;
    let text = make()?;
    keep_secret(dir, name, &text)?;
    Ok(text)
}

/// Writes a secret into a file of the data directory, instead of what may be in it.
pub fn keep_secret(dir: &Path, name: &str, text: &str) -> io::Result<()> {
    // Whole or not at all: a half-written key after a crash would lock the history for ever.
    let draft = dir.join(format!("{name}.new"));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&draft)?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    fs::rename(&draft, dir.join(name))?;
    File::open(dir)?.sync_all()
}

/// What is in there is nobody else's business.
fn create_private(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_key_are_made_once_and_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("data");
        assert_eq!(load_node(&inner).unwrap(), load_node(&inner).unwrap());
        assert_eq!(load_seal_key(&inner).unwrap(), load_seal_key(&inner).unwrap());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(inner.join("seal.key")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            assert_eq!(fs::metadata(&inner).unwrap().permissions().mode() & 0o777, 0o700);
        }
        fs::write(inner.join("seal.key"), "short").unwrap();
        assert_eq!(load_seal_key(&inner).unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
