//! What there is to ask about.

use std::time::Duration;

use anyhow::{Context, Result};

use crate::run::Deadline;
use crate::server::{Server, text_in};

const POLL: Duration = Duration::from_millis(20);

/// By the names that the configuration has for them.
pub type Ids = Vec<(&'static str, String)>;

/// Something of everything, and the ids of it.
pub fn furnish(server: &Server, deadline: Deadline) -> Result<Ids> {
    let mut ids = Vec::new();
    for (name, project, payload) in [
        ("BATON_FAILED", "demo", r#"{"fail":"deterministic"}"#),
        ("BATON_ASKING", "demo", r#"{"ask":true}"#),
        ("BATON_PARKED", "far", r#"{"wait":true}"#),
    ] {
        let enqueue = ["jobs", "enqueue", "echo", "--json", "--project", project, "--payload", payload];
        ids.push((name, text_in(&server.tell(&enqueue)?, "job_")?));
    }
    let create = ["keys", "create", "to be rotated", "--role", "admin", "--json"];
    ids.push(("BATON_OTHER_KEY", text_in(&server.tell(&create)?, "key_")?));
    server.tell(&["schedules", "set", "nightly", "--project", "demo", "--cron", "0 3 * * *", "--type", "noop"])?;
    // Nothing ever has such a name, so nothing is sent to anybody.
    let add = ["webhooks", "add", "https://hooks.invalid/baton", "--json"];
    ids.push(("BATON_WEBHOOK", text_in(&server.tell(&add)?, "whk_")?));
    loop {
        let decisions = server.tell(&["decisions", "list", "--json"])?;
        if let Ok(decision) = text_in(&decisions, "dec_") {
            ids.push(("BATON_DECISION", decision));
            return Ok(ids);
        }
        deadline.check().context("no decision was opened")?;
        std::thread::sleep(POLL);
    }
}
