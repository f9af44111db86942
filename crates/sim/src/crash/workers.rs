//! Workers outside: a type that is registered and changed, jobs of it, and a run whose steps they do. They go down
//! with the server, in the middle of whatever they do, and others come after them.

use super::client::{once, order};
use super::{Client, Story, Witness};
use crate::answers::resolve;
use crate::lab::name;
use crate::run_lab::{Deeds, create};
use anyhow::{Context, Result, ensure};
use baton_core::command::Actor;
use baton_core::credits::Credits;
use baton_core::definition::{JobType, PutJobType};
use baton_core::id::KeyId;
use baton_core::job::settle::Outcome;
use baton_core::job::state::Face;
use baton_core::lane::{Limit, Rule};
use baton_core::ledger::grant::Grant;
use baton_core::once::Rendered;
use baton_core::plan::{self, Doer, Effect};
use baton_core::run::hand::Doing;
use baton_core::run::remote::Errand;
use baton_core::run::start::Start;
use baton_core::run::{Agent, Run, State};
use baton_core::time::Span;
use baton_core::{Json, OrgId, RunId};
use baton_engine::remote::{self, Handed, Wanted, Worker};
use baton_engine::run::Toolbox;
use baton_engine::{Options, Registry};
use baton_store::{Answer, Store};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::Duration;
use uuid::Uuid;

pub struct Workers;

const PROJECT: &str = "outside";
const MAIL: &str = "mail";
const JOBS: [&str; 3] = ["first", "second", "third"];
/// A read may run ahead of the mark that announces it, so look again now and then.
const LOOK: Duration = Duration::from_millis(20);

/// What workers did, in all lives of all servers: it happened, whatever they remember.
fn deeds() -> &'static Deeds {
    static DEEDS: OnceLock<Deeds> = OnceLock::new();
    DEEDS.get_or_init(Deeds::default)
}

/// `look` may be repeated under its key, `charge` may not.
fn toolbox() -> Toolbox {
    let mut all = Toolbox::default();
    for (tool, effect) in [("look", Effect::Idempotent), ("charge", Effect::Unsafe)] {
        let about = plan::Tool { doer: Doer::Remote, effect, price: Credits::whole(1), timeout: None, attempts: None };
        all.add_remote(name(tool), about, None).unwrap_or_else(|e| panic!("{e}"));
    }
    all
}

fn mail(summary: &str) -> PutJobType {
    let lane = Rule::Own { key: name("mail"), limit: Limit::At(2), depth: None };
    let job_type = JobType { lane, max_attempts: Some(6), ..JobType::new(name(MAIL), 1, summary) };
    PutJobType { org: OrgId::default(), job_type }
}

/// Takes jobs and does them, for ever.
async fn work(workers: remote::Workers) -> Result<()> {
    let wanted = Wanted {
        worker: Worker { org: OrgId::default(), key: KeyId(Uuid::from_u128(3)), name: None },
        types: BTreeSet::from([name(MAIL), name("tool.look"), name("tool.charge")]),
        lanes: None,
        projects: None,
        max: 4,
        wait: Duration::from_secs(5),
    };
    let mut done = Vec::new();
    loop {
        let (settled, parcel) = workers.lease(&wanted, std::mem::take(&mut done)).await?;
        settled.into_iter().collect::<Result<Vec<_>, _>>()?;
        done.extend(workers.open(&wanted, parcel).into_iter().map(act));
    }
}

fn act(handed: Handed) -> (remote::Lease, Outcome) {
    let result = match Errand::read(&handed.leased.payload) {
        Some(errand) => {
            deeds().did(errand.run, &errand.step);
            json!({ "output": { "step": errand.step } })
        }
        None => json!({ "sent": true }),
    };
    (handed.lease, Outcome::Done(Json::of(&result)))
}

async fn begin(client: &mut Client<'_>) -> Result<RunId> {
    let step = |name: &str, tool: &str| json!({ "name": name, "tool": tool });
    let steps = [step("look", "look"), step("charge", "charge"), step("again", "look")];
    let document = json!({
        "name": "outside", "project": PROJECT, "budget": "10",
        "plan": { "agents": [{ "name": "a", "tasks": [{ "name": "t", "steps": steps }] }] },
    });
    let create = create(&document, toolbox().known())?;
    let render = |run: &Run| Rendered { status: 201, body: run.id.to_string() };
    let id = match client.store.commit_once(create, Actor::Api, once("run", render)).await? {
        Answer::Fresh(run) => run.id.to_string(),
        Answer::Replayed(before) => before.body,
    };
    let id: RunId = client.noted("run", || id.clone()).parse()?;
    client.tell(Start { org: OrgId::default(), run: id }).await?;
    Ok(id)
}

/// Answers what is asked on the way, looking at what really happened.
async fn until_ended(store: &Store, id: RunId) -> Result<()> {
    let org = OrgId::default();
    let mut events = store.watch_events();
    loop {
        events.mark_unchanged();
        let run = store.run(&org, id).await?.context("the run is lost")?;
        if run.state.is_ended() {
            return Ok(());
        }
        let agents = store.agents(&org, id, run.attempt, None, 10).await?;
        for step in agents.iter().flat_map(Agent::steps).map(|(_, _, step)| step) {
            if let Doing::Unknown(decision) = step.doing {
                let done = deeds().times(id, "t.charge") > 0;
                let mut answer = resolve(decision, if done { "done" } else { "not_done" }, "looked");
                answer.data = done.then(|| json!({ "step": "t.charge" }));
                // Somebody may have answered in an earlier life.
                let _ = store.commit(answer, Actor::Api).await;
            }
        }
        let _ = tokio::time::timeout(LOOK, events.changed()).await;
    }
}

impl Story for Workers {
    const PROJECTS: &'static [&'static str] = &[PROJECT];

    fn registry() -> Registry {
        let mut registry = Registry::empty();
        registry.work(toolbox());
        registry
    }

    fn tune(options: &mut Options) {
        options.poll_every = Duration::from_millis(50);
        options.sweep_every = Duration::from_millis(50);
    }

    async fn play(client: &mut Client<'_>) -> Result<()> {
        let workers = client.workers.clone();
        let story = async {
            // What a worker held in an earlier life nobody beats for.
            if client.taken("alive") {
                client.advance("leases run out", Span::secs(31)).await?;
            }
            client.first_time("alive");
            let grant =
                Grant { org: OrgId::default(), amount: Credits::whole(100), key: "story".to_owned(), note: None };
            client.tell(grant).await?;
            // Changing it back would be a third version.
            if !client.taken("registered") {
                client.tell(mail("sends mail")).await?;
                client.tell(mail("sends mail quickly")).await?;
                client.first_time("registered");
            }
            for job in JOBS {
                client.ask(job, order(PROJECT, MAIL, &json!({ "job": job }))).await?;
            }
            let run = begin(client).await?;
            client.ended(&JOBS).await?;
            until_ended(&client.store, run).await
        };
        tokio::select! {
            worked = work(workers) => worked,
            told = story => told,
        }
    }

    async fn check(witness: &Witness<'_>) -> Result<()> {
        for job in JOBS {
            witness.ended_as(job, Face::Completed)?;
            let version = witness.record(job)?.job.kind.version;
            ensure!(version >= 2, "{job} was enqueued after the change, as version {version}");
        }
        let defs = witness.store.definitions();
        let newest = defs.newest(&OrgId::default(), &name(MAIL)).context("the type is lost")?;
        ensure!(newest.job_type.summary == "sends mail quickly", "{:?}", newest.job_type);
        let ask = baton_store::ListRuns {
            org: OrgId::default(),
            project: None,
            state: None,
            order: baton_store::Order::Rising,
            after: None,
            limit: 10,
        };
        let runs = witness.store.runs(ask).await?.items;
        let [run] = runs.as_slice() else { anyhow::bail!("there are {} runs", runs.len()) };
        ensure!(run.state == State::Completed, "{run:?}");
        let charged = deeds().times(run.id, "t.charge");
        ensure!(charged == 1, "it was charged {charged} times");
        ensure!(run.money.charged == Credits::whole(3), "{:?}", run.money);
        let calls = witness.jobs.iter().filter(|record| record.job.kind.name.as_str().starts_with("tool.")).count();
        ensure!((3..=4).contains(&calls), "{calls} calls were made");
        Ok(())
    }
}
