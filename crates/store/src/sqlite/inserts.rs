//! New rows, many of them with one statement.
//!
//! To begin a statement and to end it costs about as much as what it does for a row, so rows come in sixteen at a time, and
//! what is left over one by one. If one of them fails the whole group is rolled back, hence OR FAIL: see `write_jobs`.

use rusqlite::{CachedStatement, Connection, ToSql};

/// Rows of one statement. More gained nothing.
const ROWS: usize = 16;

/// Where rows are to go.
pub(super) struct Inserts {
    columns: usize,
    many: String,
    one: String,
}

impl Inserts {
    /// The columns are names with commas between them.
    pub fn new(table: &str, columns: &str) -> Self {
        let count = columns.split(',').count();
        let row = format!("({})", vec!["?"; count].join(", "));
        let sql =
            |rows| format!("INSERT OR FAIL INTO {table} ({columns}) VALUES {}", vec![row.as_str(); rows].join(", "));
        Self { columns: count, many: sql(ROWS), one: sql(1) }
    }

    /// Each row puts its values in the order of the columns.
    pub fn bring_in<T>(
        &self,
        conn: &Connection,
        rows: &[T],
        mut put: impl FnMut(&T, &mut Values<'_, '_>),
    ) -> rusqlite::Result<()> {
        let chunks = rows.chunks_exact(ROWS);
        let rest = chunks.remainder();
        for (sql, chunks) in [(&self.many, chunks), (&self.one, rest.chunks_exact(1))] {
            if chunks.len() == 0 {
                continue;
            }
            let mut statement = conn.prepare_cached(sql)?;
            for chunk in chunks {
                let mut values = Values { statement: &mut statement, put: 0, failed: Ok(()) };
                for (n, row) in (1..).zip(chunk) {
                    put(row, &mut values);
                    values.must_be(n * self.columns);
                }
                values.failed?;
                statement.raw_execute()?;
            }
        }
        Ok(())
    }
}

/// The values of one statement.
pub(super) struct Values<'s, 'c> {
    statement: &'s mut CachedStatement<'c>,
    put: usize,
    failed: rusqlite::Result<()>,
}

impl Values<'_, '_> {
    pub fn put(&mut self, value: impl ToSql) -> &mut Self {
        self.put += 1;
        if self.failed.is_ok() {
            self.failed = self.statement.raw_bind_parameter(self.put, value);
        }
        self
    }

    fn must_be(&mut self, count: usize) {
        if self.failed.is_ok() && self.put != count {
            self.failed = Err(rusqlite::Error::InvalidParameterCount(self.put, count));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rows_come_in_however_many_they_are() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE t (n INTEGER PRIMARY KEY, text TEXT)").unwrap();
        let inserts = Inserts::new("t", "n, text");
        let mut next: i64 = 0;
        for count in [0, 1, ROWS - 1, ROWS, ROWS + 1, 3 * ROWS + 7] {
            let rows: Vec<i64> = (next..).take(count).collect();
            let put = |n: &i64, row: &mut Values<'_, '_>| {
                row.put(*n).put((n % 3 > 0).then(|| n.to_string()));
            };
            inserts.bring_in(&conn, &rows, put).unwrap();
            next += i64::try_from(count).unwrap();
        }
        let sound = "SELECT count(*) FROM t WHERE text IS CASE WHEN n % 3 > 0 THEN CAST(n AS TEXT) END";
        let there: i64 = conn.query_row(sound, [], |row| row.get(0)).unwrap();
        assert_eq!(there, next);
    }

    #[test]
    fn a_row_with_values_too_many_or_too_few_is_refused() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE t (a, b)").unwrap();
        let inserts = Inserts::new("t", "a, b");
        for values in [1_i64, 3] {
            let rows = [(); ROWS];
            let refused = inserts.bring_in(&conn, &rows, |(), row| {
                for n in 0..values {
                    row.put(n);
                }
            });
            assert!(matches!(refused, Err(rusqlite::Error::InvalidParameterCount(..))), "{refused:?}");
        }
        assert_eq!(conn.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    }
}
