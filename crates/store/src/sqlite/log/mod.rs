//! How the writer's pages get into the log.
//!
//! SQLite hands over a commit in pieces, two for each page that it touched: a header of 24 bytes and the page. Each of them
//! is a call to the system that works on parts of two pages of the file, and together they are a tenth to a quarter of what
//! a commit costs. So pieces that follow each other are held back, and written at once when the commit is complete, which is
//! before SQLite asks for it to be safe on the disk and before anybody else can see it.
//!
//! `held` decides what is held back, without knowing of files; `vfs` stands between SQLite and its own way to files.
//!
//! Invariants
//! - When the last piece of a commit has been taken, nothing is held back: what is told to be written is with the system.
//! - What is held back belongs to a transaction that has not been committed. Whoever ends before its commit loses nothing.
//! - What belongs to one that has failed is never written later.
//! - One connection writes, the one that goes this way. If another wrote as well, what this one holds back of a transaction
//!   that was given up could later be written over it.

mod held;
mod vfs;

use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// A connection that writes; all others are opened as SQLite does it.
pub(super) fn open(path: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags_and_vfs(path, OpenFlags::default(), vfs::name()?)
}

#[cfg(test)]
mod tests;
