//! Migrations: which there are, and whether this binary and that database fit together.
//!
//! Migrations expand first and contract later. Each says the oldest binary (by the schema it
//! knows) that can still work with the schema it makes, so that rolling upgrades work and an
//! incompatible older binary is refused. Applied migrations are never edited: a checksum is
//! kept of each.

use crate::error::OpenError;
use baton_core::canon::Digest;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Migration {
    pub version: u32,
    pub name: &'static str,
    /// The oldest known schema of a binary that can work with the result.
    pub oldest: u32,
    pub sql: &'static str,
}

impl Migration {
    pub fn checksum(&self) -> Digest {
        Digest::of(&[self.sql.as_bytes()])
    }
}

/// A migration as the database remembers it.
#[derive(Clone, Debug)]
pub(crate) struct Applied {
    pub version: u32,
    pub oldest: u32,
    pub checksum: Vec<u8>,
}

/// The newest schema that stands in a database, and the newest that this binary makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Versions {
    pub found: u32,
    pub known: u32,
}

/// How a database stands that this binary can work with, now or once it has migrated it.
pub(crate) fn versions(known: &[Migration], applied: &[Applied]) -> Result<Versions, OpenError> {
    pending(known, applied)?;
    let newest = |versions: &mut dyn Iterator<Item = u32>| versions.max().unwrap_or(0);
    let found = newest(&mut applied.iter().map(|a| a.version));
    Ok(Versions { found, known: newest(&mut known.iter().map(|m| m.version)) })
}

/// The migrations still to run, or why this binary must keep away.
pub(crate) fn pending<'a>(known: &'a [Migration], applied: &[Applied]) -> Result<Vec<&'a Migration>, OpenError> {
    let knows = known.last().map_or(0, |m| m.version);
    let found = applied.iter().map(|a| a.version).max().unwrap_or(0);
    let oldest = applied.iter().map(|a| a.oldest).max().unwrap_or(0);
    if oldest > knows {
        return Err(OpenError::TooNew { found, oldest, known: knows });
    }
    for migration in known {
        if let Some(was) = applied.iter().find(|a| a.version == migration.version)
            && was.checksum != migration.checksum().0
        {
            return Err(OpenError::Edited { version: migration.version });
        }
    }
    Ok(known.iter().filter(|m| m.version > found).collect())
}

/// For looking at a database without changing it: nothing may be missing.
pub(crate) fn complete(known: &[Migration], applied: &[Applied]) -> Result<(), OpenError> {
    let Versions { found, known } = versions(known, applied)?;
    if found < known { Err(OpenError::TooOld { found, known }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Migration = Migration { version: 1, name: "one", oldest: 1, sql: "a" };
    const TWO: Migration = Migration { version: 2, name: "two", oldest: 1, sql: "b" };

    fn applied(m: &Migration, oldest: u32) -> Applied {
        Applied { version: m.version, oldest, checksum: m.checksum().0.to_vec() }
    }

    #[test]
    fn what_is_missing_runs_in_order() {
        let versions =
            |was: &[Applied]| pending(&[ONE, TWO], was).unwrap().iter().map(|m| m.version).collect::<Vec<_>>();
        assert_eq!(versions(&[]), [1, 2]);
        assert_eq!(versions(&[applied(&ONE, 1)]), [2]);
        assert!(versions(&[applied(&ONE, 1), applied(&TWO, 1)]).is_empty());
    }

    #[test]
    fn a_newer_schema_is_fine_while_it_says_so_and_refused_otherwise() {
        let newer = |oldest| [applied(&ONE, 1), applied(&TWO, oldest)];
        assert!(pending(&[ONE], &newer(1)).unwrap().is_empty());
        let no = pending(&[ONE], &newer(2)).unwrap_err();
        assert!(matches!(no, OpenError::TooNew { found: 2, oldest: 2, known: 1 }));
        assert!(no.to_string().contains("Start the newer Baton again"));
    }

    #[test]
    fn whoever_only_looks_is_told_what_is_missing() {
        assert!(complete(&[ONE], &[applied(&ONE, 1)]).is_ok());
        assert!(complete(&[ONE], &[applied(&ONE, 1), applied(&TWO, 1)]).is_ok(), "newer, and still fine");
        let no = complete(&[ONE, TWO], &[applied(&ONE, 1)]).unwrap_err();
        assert!(matches!(no, OpenError::TooOld { found: 1, known: 2 }), "{no}");
    }

    #[test]
    fn an_edited_migration_is_noticed() {
        let edited = Applied { checksum: vec![0; 32], ..applied(&ONE, 1) };
        assert!(matches!(pending(&[ONE], &[edited]), Err(OpenError::Edited { version: 1 })));
    }
}
