//! What stands at the door: keys that are made, rotated and revoked, questions that are answered,
//! passed on and withdrawn, endpoints that are told what happens.

use super::actor::{act, free};
use super::client::{once, order};
use super::{Client, Story, Witness};
use crate::answers::{open_decision, resolve};
use crate::endpoints::{self, GONE, OPEN};
use crate::lab::name;
use anyhow::{Context, Result, bail, ensure};
use baton_core::access::change::{Act, Change, Kept, NewKey};
use baton_core::access::{Ended, Grant, Key, Proof, Role};
use baton_core::command::Actor;
use baton_core::decision::{Case, How};
use baton_core::doc;
use baton_core::id::{KeyId, WebhookId};
use baton_core::job::cancel::Cancel;
use baton_core::job::state::Face;
use baton_core::once::Rendered;
use baton_core::time::Span;
use baton_core::webhook::change::{Act as Hook, Change as HookChange, Spec};
use baton_core::webhook::{Filter, Webhook};
use baton_core::{Digest, Micros, OrgId};
use baton_engine::Registry;
use baton_store::{Answer, Cursor, JobRecord, ListJobs, Order};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use uuid::Uuid;

pub struct Door;

const PROJECT: &str = "door";
/// A read may run ahead of the mark that announces it, so look again now and then.
const LOOK: Duration = Duration::from_millis(50);
const KEY: KeyId = KeyId(Uuid::from_u128(7));
const HOOK: WebhookId = WebhookId(Uuid::from_u128(8));
const DEAD_HOOK: WebhookId = WebhookId(Uuid::from_u128(9));

/// Key, what it asks, and what comes of it: how the decision is closed, and how the job ends.
const ASKING: [(&str, &str, How, Face); 4] = [
    ("answered", "{}", How::Resolved, Face::Completed),
    ("broken", r#"{"options":[{"name":"confirm","effect":"fail"}]}"#, How::Resolved, Face::Failed),
    (
        "passed on",
        r#"{"withinMs":60000,"onBreach":{"escalate":{"to":"cto","withinMs":60000,"then":"cancel"}}}"#,
        How::Expired,
        Face::Canceled,
    ),
    ("withdrawn", r#"{"withinMs":3600000}"#, How::Withdrawn, Face::Canceled),
];

fn proof(n: u8) -> Proof {
    Proof(Digest([n; 32]))
}

/// Says it under a key, so that saying it again changes nothing.
async fn key(client: &Client<'_>, step: &str, act: Act) -> Result<()> {
    let change = Change { org: OrgId::default(), id: KEY, act, by: None };
    let render = |kept: &Kept| Rendered { status: 200, body: kept.id.to_string() };
    match client.store.commit_once(change, Actor::Api, once(step, render)).await? {
        Answer::Fresh(_) | Answer::Replayed(_) => Ok(()),
    }
}

async fn hook(client: &Client<'_>, id: WebhookId, url: &str) -> Result<()> {
    let types = Some(BTreeSet::from([name("job.completed")]));
    let filter = Filter { types, projects: Some(BTreeSet::from([name(PROJECT)])) };
    let spec = Spec { label: "ours".to_owned(), url: url.to_owned(), filter };
    let place = Cursor::START.to_string();
    let act = Hook::Create { spec, place, signer: endpoints::signer().fingerprint(), room: true };
    // Refused if it is there already.
    client.tell(HookChange { org: OrgId::default(), id, act }).await?;
    Ok(())
}

async fn deliveries(client: &Client<'_>, id: WebhookId) -> Result<Vec<JobRecord>> {
    let ask = ListJobs {
        org: OrgId::default(),
        project: Webhook::project(id),
        filter: Default::default(),
        order: Order::Falling,
        after: None,
        limit: 100,
        bytes: usize::MAX,
    };
    Ok(client.store.jobs(ask).await?.items)
}

/// Waits until an endpoint has been told enough.
async fn told(client: &Client<'_>, id: WebhookId, enough: impl Fn(&[JobRecord]) -> bool) -> Result<()> {
    let mut events = client.store.watch_events();
    loop {
        events.mark_unchanged();
        let sent = deliveries(client, id).await?;
        if enough(&sent) && sent.iter().all(|record| record.job.is_ended()) {
            return Ok(());
        }
        let _ = tokio::time::timeout(LOOK, events.changed()).await;
    }
}

/// Waits until somebody else was asked.
async fn passed_on(client: &Client<'_>) -> Result<()> {
    let mut events = client.store.watch_events();
    loop {
        events.mark_unchanged();
        let job = client.record("passed on").await?.job;
        let Some(id) = open_decision(&job) else { return Ok(()) };
        let doc = client.store.doc(&OrgId::default(), &Case::at(id)).await?.context("the decision is lost")?;
        if Case::of(&doc).is_some_and(|case| case.history.iter().any(|turn| turn.what == "escalated")) {
            return Ok(());
        }
        let _ = tokio::time::timeout(LOOK, events.changed()).await;
    }
}

fn asks(record: &JobRecord) -> bool {
    open_decision(&record.job).is_some()
}

impl Story for Door {
    const PROJECTS: &'static [&'static str] =
        &[PROJECT, "webhook-00000000000000000000000000000008", "webhook-00000000000000000000000000000009"];

    fn registry() -> Registry {
        let mut registry = Registry::empty();
        registry.add(free("asks"), act);
        registry.deliver(endpoints::deliver());
        registry
    }

    async fn play(client: &mut Client<'_>) -> Result<()> {
        let new = NewKey {
            id: KEY,
            label: "ci".to_owned(),
            grant: Grant::of(Role::Operator),
            proof: proof(1),
            expires_at: None,
        };
        key(client, "create", Act::Create(Box::new(new))).await?;
        key(client, "rotate", Act::Rotate { proof: proof(2), grace: Span::secs(60) }).await?;
        hook(client, HOOK, OPEN).await?;
        hook(client, DEAD_HOOK, GONE).await?;
        for (job, question, ..) in ASKING {
            let question: Value = serde_json::from_str(question)?;
            client.ask(job, order(PROJECT, "asks", &json!({ "do": "ask", "question": question }))).await?;
        }
        for job in ["answered", "broken"] {
            let found = client.until(job, |record| asks(record) || record.job.is_ended()).await?;
            if let Some(decision) = open_decision(&found.job) {
                client.tell(resolve(decision, "confirm", job)).await?;
            }
        }
        client.until("withdrawn", |record| asks(record) || record.job.is_ended()).await?;
        let org = OrgId::default();
        client.tell(Cancel { org, job: client.id("withdrawn")?, reason: None }).await?;
        client.until("passed on", |record| asks(record) || record.job.is_ended()).await?;
        client.advance("nobody answers", Span::secs(61)).await?;
        // Time must not pass again before somebody else is asked: they have their own.
        passed_on(client).await?;
        client.advance("nobody answers again", Span::secs(61)).await?;
        client.ended(&["answered", "broken", "passed on", "withdrawn"]).await?;
        key(client, "leave", Act::Leave(Ended { session: Digest([9; 32]), until: Micros(i64::MAX) })).await?;
        key(client, "revoke", Act::Revoke).await?;
        told(client, HOOK, |sent| !sent.is_empty()).await?;
        told(client, DEAD_HOOK, |sent| !sent.is_empty()).await
    }

    async fn check(witness: &Witness<'_>) -> Result<()> {
        let org = OrgId::default();
        for (job, _, _, face) in ASKING {
            witness.ended_as(job, face)?;
        }
        let doc = witness.store.doc(&org, &Key::at(KEY)).await?.context("the key is lost")?;
        let kept = Key::of(&doc).context("the key cannot be read")?;
        ensure!(doc.flag && kept.revoked_at.is_some() && kept.proof == proof(2), "{kept:?}");
        ensure!(doc.head.n == 4, "it was made, rotated, left and revoked, each once: {:?}", doc.head);
        let cases = decisions(witness).await?;
        for (job, _, how, _) in ASKING {
            let id = witness.id(job)?;
            let of_job = cases.iter().filter(|case| case.subject == baton_core::decision::Subject::Job(id));
            let closed = of_job.map(|case| case.closed.as_ref().map(|closed| closed.how)).collect::<Vec<_>>();
            // A crash while it executes makes it ask again: the first question is then withdrawn by nobody,
            // because it was never there.
            ensure!(closed == [Some(how)], "{job} was decided as {closed:?}");
        }
        ensure!(cases.len() == ASKING.len(), "there are {} decisions", cases.len());
        // One job completed, so each endpoint was told one thing, once.
        for (id, face) in [(HOOK, Face::Completed), (DEAD_HOOK, Face::Failed)] {
            let sent = witness.jobs.iter().filter(|record| record.job.project == Webhook::project(id));
            let sent = sent.map(|record| record.job.status.face()).collect::<Vec<_>>();
            ensure!(sent == [face], "{id} was told {sent:?}");
        }
        let doc = witness.store.doc(&org, &Webhook::at(DEAD_HOOK)).await?.context("the endpoint is lost")?;
        ensure!(!doc.flag, "it said that it is gone, and is told more");
        Ok(())
    }
}

async fn decisions(witness: &Witness<'_>) -> Result<Vec<Case>> {
    let ask = baton_store::ListDocs {
        org: OrgId::default(),
        class: doc::Class::Decision,
        prefix: String::new(),
        flag: None,
        order: Order::Rising,
        after: None,
        limit: 100,
    };
    let page = witness.store.docs(ask).await?;
    let read = |(key, doc): &(doc::Key, doc::Doc)| match Case::of(doc) {
        Some(case) => Ok(case),
        None => bail!("{} cannot be read", key.key),
    };
    page.items.iter().map(read).collect()
}
