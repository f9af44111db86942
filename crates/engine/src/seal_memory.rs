//! The last seal of each org, remembered beside the key and so outside the database.
//!
//! Seals name the one before, but nothing in the database names the last: whoever cuts off the
//! newest seals together with what they cover leaves a history that looks merely shorter. This
//! file remembers how long it was.

use baton_core::OrgId;
use baton_core::canon::Digest;
use baton_core::seal::SealHead;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

pub type Heads = BTreeMap<OrgId, SealHead>;

/// No file means that nothing was sealed yet.
pub fn load(path: &Path) -> io::Result<Heads> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Heads::new()),
        Err(e) => return Err(e),
    };
    let wrong = |line: &str| io::Error::new(ErrorKind::InvalidData, format!("{} has a line {line:?}", path.display()));
    text.lines().map(|line| parse(line).ok_or_else(|| wrong(line))).collect()
}

fn parse(line: &str) -> Option<(OrgId, SealHead)> {
    let mut words = line.split(' ');
    let org = words.next()?.parse().ok()?;
    let head = SealHead {
        n: words.next()?.parse().ok()?,
        to_pos: words.next()?.parse().ok()?,
        mac: Digest::from_hex(words.next()?)?,
    };
    words.next().is_none().then_some((org, head))
}

/// Whole or not at all, and durable: a memory that forgets is none.
pub fn save(path: &Path, heads: &Heads) -> io::Result<()> {
    let mut draft = PathBuf::from(path);
    draft.set_extension("heads.new");
    let mut file = File::create(&draft)?;
    for (org, head) in heads {
        writeln!(file, "{org} {} {} {}", head.n, head.to_pos, head.mac)?;
    }
    file.sync_all()?;
    fs::rename(&draft, path)?;
    match path.parent() {
        Some(dir) => File::open(dir)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_found_again_and_nonsense_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("seal.heads");
        assert!(load(&path).unwrap().is_empty());
        let head = SealHead { n: 3, to_pos: 77, mac: Digest::of(&[b"x"]) };
        let heads = Heads::from([(OrgId::default(), head), (OrgId::system(), SealHead { n: 1, ..head })]);
        save(&path, &heads).unwrap();
        assert_eq!(load(&path).unwrap(), heads);
        fs::write(&path, "default 3").unwrap();
        assert_eq!(load(&path).unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
