//! `baton audit`: whether the history is as it was written.

use crate::args::AuditArgs;
use crate::client::{self, Client};
use crate::config::{self, StoreSettings};
use crate::fault::Fault;
use crate::paint::{bad, good, warn};
use crate::{address, print, server};
use baton_core::rules::Rules;
use baton_core::seal::Key;
use baton_engine::registry::Registry;
use baton_engine::{audit, node};
use baton_store::{Corrupt, OpenError};
use baton_wire::Audit;
use comfy_table::{Cell, Color, Row};
use std::io::Write as _;

/// As the engine names it.
const SEAL_KEY_FILE: &str = "seal.key";

pub fn run(args: AuditArgs) -> Result<(), Fault> {
    client::block_on(async {
        let audit = if args.offline {
            offline(&config::store(&args.store)?).await?
        } else {
            Client::new(&args.client)?.get("/api/v1/audit", &[]).await?
        };
        if args.client.json {
            print::json(&audit)?
        } else {
            say(&audit)?
        }
        if audit.clean {
            return Ok(());
        }
        let detail = format!("{} violations: the history was changed after it was written", audit.violations_total);
        Err(Fault::new("history_violated", detail).hint("stop using this database and compare it with a backup"))
    })
}

async fn offline(settings: &StoreSettings) -> Result<Audit, Fault> {
    let dir = &settings.data_dir;
    // Opening would make an empty database, and an empty history is always right.
    if !dir.is_dir() {
        return Err(Fault::new("config_invalid", format!("there is no data directory {}", dir.display()))
            .hint("name it with --data-dir"));
    }
    // Nothing is decided here, so no rule matters.
    let definitions = Registry::builtin().definitions(Rules::default());
    let store = server::open(settings, Corrupt::LeaveAlone, definitions).await.map_err(|fault| {
        let running = fault.is(OpenError::InUse(dir.clone()).code());
        let where_to = address::read(dir).map(|address| format!(" --server http://{address}")).unwrap_or_default();
        if running { fault.hint(format!("a server is running: ask it with `baton audit{where_to}`")) } else { fault }
    })?;
    let memory = settings.seal_memory();
    let report = audit::verify(&store, key(settings)?, Some(&memory)).await;
    store.close().await;
    let report = report.map_err(|error| {
        Fault::new("start_failed", format!("the history cannot be read: {error}")).scrubbed(settings.database.as_ref())
    })?;
    Ok(report.into())
}

/// Without a key the seals' MACs go unchecked; one that was made just now would match none.
fn key(settings: &StoreSettings) -> Result<Option<Key>, Fault> {
    if settings.seal_key.is_some() {
        return Ok(settings.seal_key.clone());
    }
    if !settings.data_dir.join(SEAL_KEY_FILE).exists() {
        return Ok(None);
    }
    let key = node::load_seal_key(&settings.data_dir);
    key.map(Some).map_err(|error| Fault::new("config_invalid", format!("the seal key: {error}")))
}

fn say(audit: &Audit) -> Result<(), Fault> {
    let mut out = print::out();
    let unsealed = audit.seals - audit.macs_checked.min(audit.seals);
    let verdict = match audit.clean {
        false => bad("the history was changed"),
        true if unsealed > 0 => warn("every chain is whole, but without its key no seal can be verified"),
        true => good("the history is as it was written"),
    };
    writeln!(out, "{verdict}")?;
    writeln!(
        out,
        "{} events in {} chains, {} seals ({} verified with the key)",
        audit.events, audit.chains, audit.seals, audit.macs_checked
    )?;
    drop(out);
    if audit.violations.is_empty() {
        return Ok(());
    }
    let rows = audit.violations.iter().map(|violation| {
        Row::from(vec![
            Cell::new(&violation.code).fg(Color::Red),
            Cell::new(&violation.org),
            Cell::new(&violation.subject),
            Cell::new(&violation.detail),
        ])
    });
    print::table(&["VIOLATION", "ORG", "SUBJECT", "WHAT"], rows)?;
    let more = audit.violations_total - (audit.violations.len() as u64).min(audit.violations_total);
    if more > 0 {
        writeln!(print::out(), "and {more} more")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auditing_makes_no_key_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let settings = StoreSettings { data_dir: dir.path().to_owned(), database: None, seal_key: None };
        assert_eq!(key(&settings).unwrap(), None);
        let made = node::load_seal_key(dir.path()).unwrap();
        assert_eq!(key(&settings).unwrap(), Some(made));
    }
}
