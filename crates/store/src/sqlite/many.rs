//! A statement for many rows: looked for among the prepared ones once, and only if there is a row.

use rusqlite::{CachedStatement, Connection};

pub(super) struct Many<'c> {
    conn: &'c Connection,
    sql: &'static str,
    found: Option<CachedStatement<'c>>,
}

impl<'c> Many<'c> {
    pub const fn new(conn: &'c Connection, sql: &'static str) -> Self {
        Self { conn, sql, found: None }
    }

    pub fn get(&mut self) -> rusqlite::Result<&mut CachedStatement<'c>> {
        Ok(match &mut self.found {
            Some(statement) => statement,
            none => none.insert(self.conn.prepare_cached(self.sql)?),
        })
    }
}
