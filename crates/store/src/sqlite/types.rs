//! Types of jobs that wait in a lane and are asked for.

use crate::group::Ask;
use baton_core::name::TypeName;
use rusqlite::{Connection, OptionalExtension};

/// Types that wait in one lane and are looked at, in the order of their names.
const TYPES_MAX: usize = 1_000;

const NEXT: &str =
    "SELECT type FROM live INDEXED BY live_ready WHERE phase = 1 AND class = ?1 AND org = ?2 AND lane = ?3
     AND (slot AND kept) = ?4 AND type > ?5 ORDER BY type LIMIT 1";

/// The names of the types that an ask is about, in order.
pub(super) struct Types<'a>(Vec<&'a TypeName>);

impl<'a> Types<'a> {
    pub fn asked(ask: &'a Ask) -> Self {
        let mut names: Vec<&TypeName> = ask.kinds.iter().map(|kind| &kind.name).collect();
        names.sort_unstable();
        names.dedup();
        Self(names)
    }

    pub fn includes(&self, name: &str) -> bool {
        self.0.binary_search_by(|asked| asked.as_str().cmp(name)).is_ok()
    }

    /// Those of them that wait here: a class, an org, a lane, and whether they need a slot (1) or not (0). One step of the
    /// index for each type that waits, however many jobs do.
    pub fn of(&self, conn: &Connection, here: (i16, &str, &str, i16)) -> rusqlite::Result<Vec<TypeName>> {
        if let [only] = self.0[..] {
            return Ok(vec![TypeName::clone(only)]);
        }
        let (class, org, lane, needs) = here;
        let mut next = conn.prepare_cached(NEXT)?;
        let mut found = Vec::new();
        let mut at = String::new();
        for _ in 0..TYPES_MAX {
            let after = (class, org, lane, needs, &at);
            let Some(kind) = next.query_row(after, |row| row.get::<_, String>(0)).optional()? else { break };
            if let Ok(known) = self.0.binary_search_by(|name| name.as_str().cmp(&kind)) {
                found.push(TypeName::clone(self.0[known]));
            }
            at = kind;
        }
        Ok(found)
    }
}
