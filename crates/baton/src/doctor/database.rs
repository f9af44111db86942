//! The database: whether it is there, sound, and of a schema that this binary knows.

use super::clock::{self, Other};
use super::directory::bytes_text;
use super::finding::{Check, Finding};
use crate::aside;
use crate::config::StoreSettings;
use crate::fault::Fault;
use baton_core::time::Span;
use baton_engine::SystemClock;
use baton_store::{Checkup, Clock as _, OpenError, Place, Server};
use std::net::SocketAddr;

pub async fn look(store: &StoreSettings, running: Option<SocketAddr>) -> Vec<Finding> {
    let embedded = store.database.is_none();
    if let (true, Some(address)) = (embedded, running) {
        let detail = format!("in use by a running server ({address}), which is asked instead");
        return vec![Finding::ok(Check::Database, detail)];
    }
    let before = SystemClock.now();
    let seen = Checkup::of(&store.backend(), &store.data_dir).await;
    let after = SystemClock.now();
    let mut findings = match seen {
        Ok(seen) => {
            let mut findings = vec![sound(&seen)];
            if let Place::Server(server) = &seen.place {
                findings.push(connections(server, running.is_some()));
                let other = Other { whose: "the database's server", says: server.now, coarse: Span(0) };
                findings.push(clock::compare(other, before, after));
            }
            findings
        }
        Err(OpenError::NoDatabase(place)) => vec![none(store, &place)],
        Err(error) => vec![Finding::fault(Check::Database, &Fault::open(&error), advice(&error))],
    };
    findings.extend(moved_aside(store).filter(|_| embedded));
    findings
}

fn sound(seen: &Checkup) -> Finding {
    let what = match &seen.place {
        Place::File { bytes, whole: true } => format!("embedded, {}, every page is sound", bytes_text(*bytes)),
        Place::File { bytes, whole: false } => {
            format!("embedded, {}; too large to be read whole here, `baton audit --offline` does", bytes_text(*bytes))
        }
        Place::Server(server) => format!("PostgreSQL {}", server.version),
    };
    let (schema, known) = (seen.schema, seen.known);
    if schema < known {
        let detail = format!("{what}; schema {schema} is older than this Baton's, which is {known}");
        return Finding::warning(Check::Database, detail, "the next start migrates it; make a backup before");
    }
    if schema > known {
        let detail = format!("{what}; schema {schema} is newer than this Baton's, which is {known}, and still works");
        return Finding::warning(Check::Database, detail, "use the newer Baton here too");
    }
    Finding::ok(Check::Database, format!("{what}; schema {schema}"))
}

/// Whether a node finds as many connections as it takes.
fn connections(server: &Server, running: bool) -> Finding {
    let Server { allowed, taken, needed, .. } = server;
    let detail = format!("{taken} of {allowed} connections are taken; a node takes up to {needed}");
    let advice = "raise max_connections, or take connections away from others";
    // What a running node takes is among those that are taken.
    let wanted = if running { 0 } else { *needed };
    if allowed < needed {
        return Finding::problem(Check::Database, detail, advice);
    }
    if taken + wanted > *allowed {
        return Finding::warning(Check::Database, detail, advice);
    }
    Finding::ok(Check::Database, detail)
}

fn none(store: &StoreSettings, place: &str) -> Finding {
    match aside::last(&store.data_dir).filter(|_| store.database.is_none()) {
        None => Finding::ok(Check::Database, format!("there is none yet in {place}; the first start makes it")),
        Some(moved) => {
            let detail = format!("it was damaged and is now in {}; `baton serve` refuses to start", moved.display());
            Finding::problem(Check::Database, detail, "restore a backup, or start once with --start-empty")
        }
    }
}

fn moved_aside(store: &StoreSettings) -> Option<Finding> {
    let database = store.data_dir.join(baton_store::SQLITE_FILE);
    let moved = aside::last(&store.data_dir).filter(|_| database.exists())?;
    let detail = format!("a damaged database was moved aside and is still kept in {}", moved.display());
    Some(Finding::warning(Check::Database, detail, "look whether anything of it is missed, then remove it"))
}

const fn advice(error: &OpenError) -> &'static str {
    match error {
        OpenError::Damaged { .. } | OpenError::Corrupt { .. } | OpenError::Gone(_) => {
            "restore a backup; `baton serve` would move what is left aside and delete nothing"
        }
        OpenError::TooNew { .. } | OpenError::Edited { .. } => {
            "use the Baton that this database was made with, or a newer one"
        }
        OpenError::Url(_) => "mend --database, BATON_DATABASE_URL or database in the file",
        _ => "see that it runs, that the URL is right, and that this machine may connect to it",
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;
    use baton_core::Micros;

    fn server(allowed: u32, taken: u32) -> Server {
        Server { version: "16.1".to_owned(), now: Micros(0), allowed, taken, needed: 8 }
    }

    #[test]
    fn a_node_must_find_its_connections() {
        assert_eq!(connections(&server(97, 10), false).verdict, Verdict::Ok);
        assert_eq!(connections(&server(97, 90), false).verdict, Verdict::Warning);
        assert_eq!(connections(&server(97, 90), true).verdict, Verdict::Ok, "it has them");
        assert_eq!(connections(&server(7, 1), false).verdict, Verdict::Problem);
    }

    #[test]
    fn a_schema_of_another_version_is_told() {
        let seen = |schema| Checkup { schema, known: 4, place: Place::File { bytes: 1, whole: true } };
        assert_eq!(sound(&seen(4)).verdict, Verdict::Ok);
        assert_eq!(sound(&seen(3)).verdict, Verdict::Warning);
        assert_eq!(sound(&seen(5)).verdict, Verdict::Warning);
    }
}
