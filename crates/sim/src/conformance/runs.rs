//! Rows of runs and of money against whoever reaches the database past the store, and against neighbours.

use super::steps::{clean, counts, enqueue, exactly};
use super::tampering::uuid;
use crate::lab::{Lab, Node, Place, name};
use crate::run_lab::{Deeds, agents, begin, create, even, grant, toolbox, until, until_is};
use crate::stage;
use anyhow::{Context, Result, ensure};
use baton_core::command::{Actor, Command, Refusal};
use baton_core::credits::Credits;
use baton_core::doc;
use baton_core::ledger::grant::Grant;
use baton_core::rules::Rules;
use baton_core::run::cancel::{Cancel, Delete};
use baton_core::run::hold::Hold;
use baton_core::run::retry::Retry;
use baton_core::run::signal::Signal;
use baton_core::run::start::Start;
use baton_core::run::{Run, RunError, State};
use baton_core::{Json, OrgId, RunId};
use baton_engine::{Engine, Registry};
use baton_store::{CommitError, ListLedger, ListRuns, Order, Store, StoreError};
use serde_json::{Value, json};
use std::sync::Arc;

/// Tables of which a row never changes once it is there.
const APPENDED: [&str; 5] = ["ledger", "run_step", "run_task", "run_attempt", "run_plan"];
/// All tables of runs.
pub(super) const ALL: [&str; 7] = ["ledger", "run_step", "run_task", "run_attempt", "run_plan", "run_agent", "run"];

/// A lab whose node works on runs.
pub(super) async fn working(lab: &mut Lab) -> Result<Engine> {
    let mut registry = Registry::builtin();
    registry.work(toolbox(&Deeds::default()));
    lab.definitions = Arc::new(registry.definitions(Rules::default()));
    stage::start(lab, "node_a", registry).await
}

pub(super) fn document() -> Value {
    let mut document = even(1, 1, 2, "priced");
    document["budget"] = json!("10");
    document
}

async fn completed(store: &Store) -> Result<Run> {
    let id = begin(store, &document(), toolbox(&Deeds::default()).known()).await?;
    until_is(store, id, State::Completed).await
}

async fn refuses(store: &Store, sql: &str) -> Result<()> {
    let refused = store.raw(sql).await;
    ensure!(matches!(refused, Err(StoreError::Rejected(_))), "{sql}: {refused:?}");
    Ok(())
}

pub async fn the_database_itself_refuses_to_change_what_ended_of_a_run(mut lab: Lab) -> Result<()> {
    let engine = working(&mut lab).await?;
    let store = engine.store();
    grant(store, 100).await?;
    completed(store).await?;
    for table in APPENDED {
        refuses(store, &format!("UPDATE {table} SET org = 'other'")).await?;
    }
    for sql in [
        "UPDATE ledger SET amount = amount + 1",
        "UPDATE run_step SET result = NULL",
        "UPDATE run_task SET body = '{}'",
        "UPDATE run_attempt SET body = '{}'",
        "UPDATE run_plan SET plan = '{}'",
        // An ended agent is as final as its steps.
        "UPDATE run_agent SET body = '{}'",
        "UPDATE run_agent SET state = 'failed'",
        // What cannot be: a state that there is not, an amount of nothing, less than nothing.
        "UPDATE run SET state = 'moon'",
        "INSERT INTO ledger SELECT org, account, n + 100, kind, 0, balance_after, 'x', run, at FROM ledger",
        "INSERT INTO ledger SELECT org, account, n + 100, kind, 1, -1, 'x', run, at FROM ledger",
        // No number is given twice, and an org never pays or gets the same thing twice.
        "INSERT INTO ledger SELECT org, account, n, kind, amount, balance_after, key || 'x', run, at FROM ledger",
        "INSERT INTO ledger SELECT org, account, n + 100, kind, amount, balance_after, key, run, at FROM ledger \
         WHERE kind = 'grant'",
        "INSERT INTO ledger SELECT org, account, n + 100, kind, amount, balance_after, key, run, at FROM ledger \
         WHERE kind = 'reserve'",
    ] {
        refuses(store, sql).await?;
    }
    for table in ALL {
        refuses(store, &format!("DELETE FROM {table}")).await?;
        if lab.place == Place::Postgres {
            refuses(store, &format!("TRUNCATE {table}")).await?;
        }
    }
    clean(store).await
}

/// Takes away what guards the tables of runs.
async fn disarm(lab: &Lab, store: &Store) -> Result<()> {
    for table in ALL {
        if lab.place == Place::Postgres {
            store.raw(&format!("ALTER TABLE {table} DISABLE TRIGGER USER")).await?;
        } else {
            store.raw(&format!("DROP TRIGGER {table}_is_never_removed")).await?;
        }
    }
    if lab.place != Place::Postgres {
        for table in APPENDED {
            store.raw(&format!("DROP TRIGGER {table}_is_never_changed")).await?;
        }
        store.raw("DROP TRIGGER run_agent_end_is_final").await?;
    }
    Ok(())
}

pub async fn every_kind_of_tampering_with_a_run_is_named(mut lab: Lab) -> Result<()> {
    let engine = working(&mut lab).await?;
    let store = engine.store();
    grant(store, 1_000).await?;
    disarm(&lab, store).await?;
    let tampering: [(&str, &str); 12] = [
        ("UPDATE ledger SET amount = amount + 1 WHERE run = ID AND kind = 'charge' AND n = 2", "run_inconsistent"),
        ("UPDATE ledger SET balance_after = 0 WHERE run = ID AND kind = 'allocated'", "run_inconsistent"),
        ("DELETE FROM ledger WHERE run = ID AND kind = 'charge'", "run_inconsistent"),
        ("DELETE FROM run_step WHERE run = ID AND n = 2", "run_inconsistent"),
        ("DELETE FROM run_task WHERE run = ID", "run_inconsistent"),
        ("DELETE FROM run_attempt WHERE run = ID", "run_inconsistent"),
        ("DELETE FROM run_agent WHERE run = ID", "run_inconsistent"),
        (r#"UPDATE run SET body = replace(body, '"steps":2', '"steps":3') WHERE id = ID"#, "run_inconsistent"),
        (r#"UPDATE run SET body = replace(body, '"charged":"2"', '"charged":"1"') WHERE id = ID"#, "run_inconsistent"),
        (r#"UPDATE run_plan SET plan = replace(plan, '"attempts":3', '"attempts":4') WHERE id = ID"#, "body_changed"),
        ("DELETE FROM run_plan WHERE id = ID", "plan_missing"),
        ("DELETE FROM run WHERE id = ID", "orphan_chain"),
    ];
    for (sql, expected) in tampering {
        let run = completed(store).await?;
        let others = store.audit(None).await?.violations_total;
        store.raw(&sql.replace("ID", &uuid(&lab, run.id.0))).await?;
        let report = store.audit(None).await?;
        let hex = run.id.0.simple().to_string();
        let named = report.violations.iter().filter(|v| v.subject.contains(&hex) && v.code == expected).count();
        ensure!(named > 0, "{sql}: {:?}", report.violations);
        ensure!(report.violations_total > others, "{sql}");
    }
    Ok(())
}

pub async fn tampering_with_an_orgs_credits_is_named(mut lab: Lab) -> Result<()> {
    let engine = working(&mut lab).await?;
    let store = engine.store();
    grant(store, 100).await?;
    completed(store).await?;
    disarm(&lab, store).await?;
    clean(store).await?;
    let told = async |sql: &str, back: &str, expected: &str| -> Result<()> {
        store.raw(sql).await?;
        let report = store.audit(None).await?;
        let codes: Vec<&str> = report.violations.iter().map(|v| v.code.as_str()).collect();
        ensure!(codes.contains(&expected), "{sql}: {codes:?}");
        store.raw(back).await?;
        clean(store).await
    };
    let balance = |from: u32, to: u32| {
        format!(
            r#"UPDATE doc SET body = replace(body, '"balance":"{from}"', '"balance":"{to}"') WHERE class = 'account'"#
        )
    };
    told(&balance(98, 99), &balance(99, 98), "balance_mismatch").await?;
    let entry = |by: i64| format!("UPDATE ledger SET amount = amount + {by} WHERE account = 'org' AND n = 1");
    told(&entry(5), &entry(-5), "ledger_broken").await
}

fn orgs() -> [OrgId; 2] {
    [name("acme"), name("globex")]
}

/// A run of each org, completed, and told a signal.
async fn settle_in(store: &Store) -> Result<Vec<Run>> {
    let mut runs = Vec::new();
    for org in orgs() {
        let grant = Grant { org: org.clone(), amount: Credits::whole(50), key: "first".to_owned(), note: None };
        store.commit(grant, Actor::Api).await?;
        let mut create = create(&document(), toolbox(&Deeds::default()).known())?;
        create.org = org.clone();
        let run = store.commit(create, Actor::Api).await?;
        let signal = Signal { org: org.clone(), run: run.id, name: name("go"), data: Json::of(&json!(org.as_str())) };
        store.commit(signal, Actor::Api).await?;
        store.commit(Start { org: org.clone(), run: run.id }, Actor::Api).await?;
        let mut events = store.watch_events();
        let ended = loop {
            let found = store.run(&org, run.id).await?.context("it is there")?;
            if found.state == State::Completed {
                break found;
            }
            let _ = tokio::time::timeout(std::time::Duration::from_millis(20), events.changed()).await;
        };
        runs.push(ended);
    }
    Ok(runs)
}

pub async fn runs_of_another_org_do_not_exist(mut lab: Lab) -> Result<()> {
    let engine = working(&mut lab).await?;
    let store = engine.store();
    let runs = settle_in(store).await?;
    for run in &runs {
        let org = run.org.clone();
        let foreign = orgs().into_iter().find(|other| *other != org).context("there are two")?;
        ensure!(store.run(&foreign, run.id).await?.is_none() && store.run_plan(&foreign, run.id).await?.is_none());
        ensure!(store.agents(&foreign, run.id, 1, None, 9).await?.is_empty());
        ensure!(store.attempts(&foreign, run.id).await?.is_empty());
        let agent = *run.agents.first().context("it has one")?;
        ensure!(store.agent(&org, agent).await?.is_some() && store.agent(&foreign, agent).await?.is_none());
        ensure!(store.step_records(&org, agent, 0, 9).await?.len() == 2);
        ensure!(store.step_records(&foreign, agent, 0, 9).await?.is_empty());
        ensure!(store.task_records(&foreign, agent, 0, 9).await?.is_empty());
        let signal = doc::Key { class: doc::Class::Signal, key: format!("{}/go", run.id) };
        ensure!(store.doc(&org, &signal).await?.is_some() && store.doc(&foreign, &signal).await?.is_none());
        let ask = |org: &OrgId| ListRuns {
            org: org.clone(),
            project: None,
            state: None,
            order: Order::Rising,
            after: None,
            limit: 9,
        };
        ensure!(store.runs(ask(&org)).await?.items.iter().map(|run| run.id).eq([run.id]));
        let mut accounts = vec!["org".to_owned(), run.account().to_string(), format!("agent:{agent}")];
        accounts.sort_unstable();
        let ask = |org: &OrgId| ListLedger {
            org: org.clone(),
            accounts: accounts.clone(),
            order: Order::Rising,
            after: None,
            limit: 99,
        };
        let (own, theirs) = (store.ledger(ask(&org)).await?.items, store.ledger(ask(&foreign)).await?.items);
        ensure!(own.iter().filter(|row| row.run == Some(run.id)).count() >= 4, "{own:?}");
        ensure!(theirs.iter().all(|row| row.account == "org" && row.run != Some(run.id)), "{theirs:?}");
        let from = baton_store::Cursor::START;
        ensure!(store.run_events(&foreign, run.id, from, 99).await?.items.is_empty());
    }
    clean(store).await
}

async fn unknown<C: Command<No = RunError>>(store: &Store, command: C) -> Result<()> {
    match store.commit(command, Actor::Api).await.map(drop) {
        Err(CommitError::Refused(no)) if no.code() == "run_not_found" => Ok(()),
        other => anyhow::bail!("{other:?}"),
    }
}

pub async fn commands_reach_only_runs_of_ones_own(mut lab: Lab) -> Result<()> {
    let engine = working(&mut lab).await?;
    let store = engine.store();
    let runs = settle_in(store).await?;
    let run: RunId = runs.first().context("there are two")?.id;
    let org = || orgs()[1].clone();
    unknown(store, Start { org: org(), run }).await?;
    unknown(store, Retry { org: org(), run }).await?;
    unknown(store, Cancel { org: org(), run, reason: None }).await?;
    unknown(store, Delete { org: org(), run }).await?;
    for pause in [true, false] {
        unknown(store, Hold { org: org(), run, agent: None, pause }).await?;
    }
    unknown(store, Signal { org: org(), run, name: name("stop"), data: Json::of(&json!(1)) }).await?;
    ensure!(store.run(&orgs()[0], run).await?.as_ref() == runs.first());
    clean(store).await
}

/// What later migrations made.
const UNDO_LATER: &str = "CREATE SEQUENCE event_pos; SELECT setval('event_pos', max(pos)) FROM event; \
    DROP SEQUENCE event_block; DROP INDEX event_heads; CREATE INDEX event_tail ON event (pos); \
    ALTER TABLE lane DROP COLUMN door; DROP INDEX live_ready; ALTER TABLE live DROP COLUMN needs; \
    ALTER TABLE live DROP CONSTRAINT live_is_sound; ALTER TABLE job DROP CONSTRAINT job_is_sound; \
    ALTER TABLE event DROP CONSTRAINT event_is_sound; ALTER TABLE lane DROP CONSTRAINT lane_is_sound; \
    CREATE INDEX live_ready ON live (class, org, lane, slot, priority, ord) WHERE phase = 1; \
    DROP TYPE job_born, job_entered, job_moved, job_ended, lane_counted, event_told";

pub async fn what_was_there_before_there_were_runs_is_still_there(lab: Lab) -> Result<()> {
    let mut lab = lab;
    let node: Node = lab.node().await?;
    let job = enqueue(&node).await?.id;
    for table in ALL {
        node.store.raw(&format!("DROP TABLE {table}")).await?;
    }
    // What came after is done again too.
    node.store.raw(UNDO_LATER).await?;
    node.store.raw("DELETE FROM schema_version WHERE version >= 5").await?;
    node.store.close().await;
    drop(node);
    let engine = working(&mut lab).await?;
    let store = engine.store();
    counts(store, "SELECT count(*) FROM schema_version WHERE version = 5", 1).await?;
    exactly(store, "p1", [job]).await?;
    grant(store, 100).await?;
    let run = completed(store).await?;
    until(store, run.id, |run| run.counts.completed == 1).await?;
    ensure!(agents(store, run.id).await?.len() == 1);
    clean(store).await
}
