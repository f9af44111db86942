//! Runs: three agents with three tasks of three steps each, among them steps, tasks and agents that are
//! tried again, a task that is skipped, an unsafe step, one that waits for a signal; paused and resumed on
//! the way. Beside it one that is cancelled.

use super::client::once;
use super::{Client, Story, Witness};
use crate::answers::resolve;
use crate::lab::name;
use crate::run_lab::{Deeds, create, toolbox};
use anyhow::{Context, Result, ensure};
use baton_core::command::Actor;
use baton_core::credits::Credits;
use baton_core::ledger::OrgAccount;
use baton_core::ledger::grant::Grant;
use baton_core::once::Rendered;
use baton_core::run::cancel::Cancel;
use baton_core::run::hand::Doing;
use baton_core::run::hold::Hold;
use baton_core::run::signal::Signal;
use baton_core::run::start::Start;
use baton_core::run::{Agent, AgentState, Run, State, StepState};
use baton_core::{Json, OrgId, RunId, doc};
use baton_engine::{Options, Registry};
use baton_store::Answer;
use serde_json::{Value, json};
use std::sync::OnceLock;
use std::time::Duration;

pub struct Runs;

const GRANTED: Credits = Credits::whole(1_000);

/// What the tools did, in all lives of all servers: it happened, whatever they remember.
fn deeds() -> &'static Deeds {
    static DEEDS: OnceLock<Deeds> = OnceLock::new();
    DEEDS.get_or_init(Deeds::default)
}

fn steps(all: &[Value]) -> Value {
    let named = |(n, step): (usize, &Value)| {
        let mut step = step.clone();
        step["name"] = json!(format!("s{n}"));
        step
    };
    all.iter().enumerate().map(named).collect()
}

fn priced() -> Value {
    json!({ "tool": "priced" })
}

fn fails(what: &str, code: &str) -> Value {
    json!({ "tool": "priced", "input": { "fails": { what: 1 }, "code": code } })
}

/// The big one.
fn work() -> Value {
    let plain = |n: usize| json!({ "name": format!("t{n}"), "steps": steps(&[priced(), priced(), priced()]) });
    let never = json!({ "tool": "priced", "input": { "fails": { "step": 9 }, "code": "not_found" } });
    json!({
        "name": "work", "project": "runs", "budget": "100",
        "plan": { "agents": [
            { "name": "tries", "parallelism": "parallel", "tasks": [
                { "name": "step", "steps": steps(&[priced(), fails("step", "timeout"), priced()]) },
                { "name": "task", "failure_mode": "retry", "steps": steps(&[priced(), fails("task", "not_found"), priced()]) },
                plain(2),
            ] },
            { "name": "continues", "failure_mode": "continue", "tasks": [
                { "name": "falls", "steps": steps(&[priced(), never, priced()]) },
                { "name": "waits", "steps": steps(&[
                    priced(), json!({ "tool": "wait", "input": { "signal": "go" } }), priced(),
                ]) },
                { "name": "wide", "parallelism": "parallel", "steps": steps(&[priced(), priced(), priced()]) },
            ] },
            { "name": "again", "failure_mode": "retry", "tasks": [
                { "name": "risks", "steps": steps(&[
                    priced(), json!({ "tool": "risky", "input": { "mark": "risk", "result": { "sent": true } } }), priced(),
                ]) },
                { "name": "breaks", "steps": steps(&[fails("agent", "not_found"), priced(), priced()]) },
                plain(2),
            ] },
        ] },
    })
}

/// The one that is cancelled: it has spent one credit by then.
fn vain() -> Value {
    json!({
        "name": "vain", "project": "runs", "budget": "5",
        "plan": { "agents": [{ "name": "sleeper", "tasks": [
            { "name": "sleeps", "steps": steps(&[priced(), json!({ "tool": "sleep", "input": { "for": "1h" } }), priced()]) },
        ] }] },
    })
}

/// A run that was promised under this key.
async fn begin(client: &mut Client<'_>, key: &str, document: &Value) -> Result<RunId> {
    let create = create(document, toolbox(deeds()).known())?;
    let render = |run: &Run| Rendered { status: 201, body: run.id.to_string() };
    let made = client.store.commit_once(create, Actor::Api, once(key, render)).await?;
    let id = match made {
        Answer::Fresh(run) => run.id.to_string(),
        Answer::Replayed(before) => before.body,
    };
    let id: RunId = client.noted(key, || id.clone()).parse()?;
    client.tell(Start { org: OrgId::default(), run: id }).await?;
    Ok(id)
}

async fn agents(client: &Client<'_>, run: RunId) -> Result<(Run, Vec<Agent>)> {
    let org = OrgId::default();
    let found = client.store.run(&org, run).await?.context("the run is lost")?;
    let agents = client.store.agents(&org, run, found.attempt, None, 10).await?;
    Ok((found, agents))
}

/// Answers what is asked on the way, looking at what really happened.
async fn until(client: &Client<'_>, id: RunId, enough: impl Fn(&Run, &[Agent]) -> bool) -> Result<()> {
    let mut events = client.store.watch_events();
    loop {
        events.mark_unchanged();
        let (run, agents) = agents(client, id).await?;
        if enough(&run, &agents) || run.state.is_ended() {
            return Ok(());
        }
        for step in agents.iter().flat_map(Agent::steps).map(|(_, _, step)| step) {
            if let Doing::Unknown(decision) = step.doing {
                let done = deeds().times(id, "risk") > 0;
                let mut answer = resolve(decision, if done { "done" } else { "not_done" }, "looked");
                answer.data = done.then(|| json!({ "sent": true }));
                client.tell(answer).await?;
            }
        }
        // A read may run ahead of the mark that announces it, so look again now and then.
        let _ = tokio::time::timeout(Duration::from_millis(20), events.changed()).await;
    }
}

fn waits(agents: &[Agent], doing: fn(&Doing) -> bool) -> bool {
    agents.iter().flat_map(Agent::steps).any(|(_, _, step)| doing(&step.doing))
}

impl Story for Runs {
    const PROJECTS: &'static [&'static str] = &["runs"];

    fn registry() -> Registry {
        let mut registry = Registry::empty();
        registry.work(toolbox(deeds()));
        registry
    }

    fn tune(options: &mut Options) {
        options.poll_every = Duration::from_millis(50);
    }

    async fn play(client: &mut Client<'_>) -> Result<()> {
        let org = OrgId::default;
        client.tell(Grant { org: org(), amount: GRANTED, key: "story".to_owned(), note: None }).await?;
        let vain = begin(client, "vain", &vain()).await?;
        until(client, vain, |_, agents| waits(agents, |doing| matches!(doing, Doing::Sleep(_)))).await?;
        client.tell(Cancel { org: org(), run: vain, reason: Some("no longer wanted".to_owned()) }).await?;
        let work = begin(client, "work", &work()).await?;
        until(client, work, |_, agents| waits(agents, |doing| matches!(doing, Doing::Signal { .. }))).await?;
        if !client.taken("resumed") {
            client.tell(Hold { org: org(), run: work, agent: None, pause: true }).await?;
            client.tell(Hold { org: org(), run: work, agent: None, pause: false }).await?;
            client.first_time("resumed");
        }
        client.tell(Signal { org: org(), run: work, name: name("go"), data: Json::of(&json!(7)) }).await?;
        until(client, work, |run, _| run.state.is_ended()).await?;
        until(client, vain, |run, _| run.state.is_ended()).await
    }

    async fn check(witness: &Witness<'_>) -> Result<()> {
        let org = OrgId::default();
        let ask = baton_store::ListRuns {
            org: org.clone(),
            project: None,
            state: None,
            order: baton_store::Order::Rising,
            after: None,
            limit: 10,
        };
        let runs = witness.store.runs(ask).await?.items;
        let [vain, work] = runs.as_slice() else { anyhow::bail!("there are {} runs", runs.len()) };
        ensure!(vain.state == State::Cancelled && vain.money.charged == Credits::whole(1), "{vain:?}");
        ensure!(work.state == State::Completed, "{work:?}");

        ensure!(work.money.charged == Credits::whole(EXPECTED), "{:?}", work.money);
        ensure!(deeds().times(work.id, "risk") == 1, "it was done {} times", deeds().times(work.id, "risk"));
        let agents = witness.store.agents(&org, work.id, 1, None, 10).await?;
        let states: Vec<(&str, AgentState, u32)> =
            agents.iter().map(|agent| (agent.name.as_str(), agent.state, agent.attempt)).collect();
        let done = AgentState::Completed;
        ensure!(states == [("tries", done, 1), ("continues", done, 1), ("again", done, 2)], "{states:?}");
        let [tries, continues, again] = agents.as_slice() else { anyhow::bail!("three agents") };
        for (agent, ended) in [(tries, 11), (continues, 8), (again, 13)] {
            let steps = witness.store.step_records(&org, agent.id, 0, 100).await?;
            let ended_steps = steps.iter().filter(|step| step.state != StepState::Cancelled).count();
            ensure!(ended_steps == ended, "{} ended {ended_steps} steps: {steps:?}", agent.name);
            for step in steps.iter().filter(|step| step.state == StepState::Completed && !step.more.carried) {
                ensure!(step.result.is_some(), "{step:?}");
            }
        }
        let account = doc::Key { class: doc::Class::Account, key: "org".to_owned() };
        let account = witness.store.doc(&org, &account).await?.context("the account is lost")?;
        let left = OrgAccount::from_doc(account).purse.balance;
        ensure!(left.micros() == GRANTED.micros() - Credits::whole(EXPECTED + 1).micros(), "{left} are left");
        Ok(())
    }
}

/// Every call costs one, also those that failed: 12 by the first agent, 7 by the second, 12 by the third.
const EXPECTED: u32 = 31;
