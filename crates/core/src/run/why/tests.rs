use super::*;
use crate::canon::Json;
use crate::decision::{Question, Subject};
use crate::event::Head;
use crate::id::{AgentId, RunId};
use crate::job::{Kind as JobKind, Lease, Pause, Status};
use crate::lane::{LaneKey, Place};
use crate::ledger::Purse;
use crate::name::OrgId;
use crate::plan::{Tools, check};
use crate::run::hand::{Doing, Done, Step, Task};
use crate::run::state::AgentState;
use crate::run::{Counts, Fault, Money, State, Terms};
use serde_json::json;
use uuid::Uuid;

const NOW: Micros = Micros(1_000_000_000_000);

fn ago(seconds: i64) -> Micros {
    NOW.plus(Span::secs(-seconds))
}

/// All that a question is about, to be bent by each test.
struct Scene {
    run: Run,
    plan: Plan,
    agents: Vec<Agent>,
    jobs: BTreeMap<JobId, Job>,
    cases: BTreeMap<DecisionId, Case>,
    lane: Option<Queue>,
    available: Credits,
}

impl Scene {
    fn facts(&self) -> Facts<'_> {
        Facts {
            now: NOW,
            run: &self.run,
            plan: &self.plan,
            live: &self.agents,
            jobs: &self.jobs,
            cases: &self.cases,
            lane: self.lane.as_ref(),
            available: self.available,
        }
    }

    fn run(&self) -> Why {
        of_run(&self.facts())
    }

    fn agent(&self) -> Why {
        of_agent(&self.facts(), &self.agents[0])
    }

    fn step(&self, at: (u32, u32)) -> Why {
        of_step(&self.facts(), &self.agents[0], at, None)
    }

    fn doing(mut self, doing: Doing) -> Self {
        if let Some(step) = self.agents[0].tasks.get_mut(&0).and_then(|task| task.steps.get_mut(&0)) {
            step.doing = doing;
        }
        self
    }
}

fn job(status: Status) -> Job {
    let run = RunId(Uuid::from_u128(1));
    Job {
        org: OrgId::default(),
        id: JobId(Uuid::from_u128(2)),
        project: "p".parse().unwrap(),
        kind: JobKind { name: super::super::AGENT_JOB.parse().unwrap(), version: 1 },
        priority: 200,
        status,
        lane: Place { key: LaneKey::of_run(run), max: Some(1), kept: true },
        since: ago(60),
        attempts: 1,
        max_attempts: 3,
        failures: 0,
        max_failures: 3,
        token: 1,
        wakes: 0,
        created_at: ago(60),
        started_at: Some(ago(30)),
        has_deadline: false,
        outside: false,
        dedupe: None,
        aside: None,
        head: Head { at: ago(30), ..Head::NONE },
    }
}

fn executing() -> Job {
    job(Status::Executing { lease: Lease { worker: "w".parse().unwrap(), until: NOW.plus(Span::secs(20)) } })
}

/// A run at work: one agent, two tasks of two steps, the first of which is called.
fn scene() -> Scene {
    let step = |name: &str| json!({ "name": name, "tool": "sleep", "input": { "for": "1h" } });
    let tasks = json!([
        { "name": "first", "steps": [step("a"), step("b")] },
        { "name": "second", "depends_on": ["first"], "steps": [step("c")] },
    ]);
    let agents = json!([{ "name": "one", "parallelism": "dag", "tasks": tasks }]);
    let document = json!({ "name": "r", "plan": { "agents": agents }, "budget": "20" });
    let compiled = check(&document, &Tools::builtin()).unwrap();
    let plan = compiled.plan;
    let (run, agent) = (RunId(Uuid::from_u128(1)), AgentId(Uuid::from_u128(3)));
    let held = Step {
        attempt: 1,
        started_at: ago(10),
        held: Credits::ZERO,
        charged: Credits::ZERO,
        lost: 0,
        is_unsafe: false,
        doing: Doing::Call,
    };
    let task = Task {
        attempt: 1,
        started_at: ago(20),
        deadline: NOW.plus(Span::secs(600)),
        not_before: None,
        done: Done::default(),
        skipped: 0,
        charged: Credits::ZERO,
        steps: [(0, held)].into(),
    };
    let agents = vec![Agent {
        org: OrgId::default(),
        id: agent,
        run,
        project: "p".parse().unwrap(),
        index: 0,
        name: plan.agents[0].name.clone(),
        run_attempt: 1,
        state: AgentState::Running,
        attempt: 1,
        error: None,
        created_at: ago(60),
        started_at: Some(ago(30)),
        ended_at: None,
        paused_at: None,
        paused_by: None,
        deadline: None,
        not_before: None,
        job: Some(JobId(Uuid::from_u128(2))),
        token: 1,
        purse: Purse::default(),
        charged: Credits::ZERO,
        done: Done::default(),
        skipped: 0,
        tasks: [(0, task)].into(),
        task_count: 0,
        step_count: 0,
        kept: BTreeMap::new(),
        unknown: Vec::new(),
        before: None,
        head: Head { at: ago(10), ..Head::NONE },
    }];
    let digest = Json::of(&json!({})).digest();
    let run = Run {
        org: OrgId::default(),
        id: run,
        project: "p".parse().unwrap(),
        name: "r".to_owned(),
        labels: BTreeMap::new(),
        priority: super::super::Priority::Normal,
        terms: Terms::of(&plan, digest),
        budget: compiled.budget,
        state: State::Running,
        attempt: 1,
        failures: 0,
        error: None,
        reason: None,
        created_at: ago(120),
        queued_at: Some(ago(60)),
        started_at: Some(ago(30)),
        ended_at: None,
        paused_at: None,
        paused_by: None,
        deadline: Some(NOW.plus(Span::secs(3_600))),
        money: Money::default(),
        counts: Counts { agents: 1, ..Counts::default() },
        agents: vec![agent],
        before: Vec::new(),
        signals: 0,
        job: None,
        deleted_at: None,
        head: Head { at: ago(30), ..Head::NONE },
    };
    let jobs = [(JobId(Uuid::from_u128(2)), executing())].into();
    Scene { run, plan, agents, jobs, cases: BTreeMap::new(), lane: None, available: Credits::whole(100) }
}

#[track_caller]
fn only(why: &Why) -> &Wait {
    assert_eq!(why.waits_for.len(), 1, "{why:#?}");
    assert!(!why.summary.is_empty() && why.summary.ends_with('.'), "{}", why.summary);
    &why.waits_for[0]
}

#[test]
fn a_run_waits_to_be_started_and_for_credits_that_are_not_there() {
    let mut scene = scene();
    scene.run.state = State::Created;
    let why = scene.run();
    assert_eq!((only(&why).what, only(&why).since), (What::Start, Some(scene.run.created_at)));
    assert!(only(&why).who.as_ref().unwrap().contains("/start"));
    scene.available = Credits::whole(1);
    let why = scene.run();
    assert_eq!(why.waits_for.iter().map(|wait| wait.what).collect::<Vec<_>>(), [What::Start, What::Credits]);
    assert!(why.waits_for[1].detail.contains("its budget is 20, and the org has 1"), "{why:#?}");
}

#[test]
fn a_pending_run_waits_for_a_worker_until_its_deadline() {
    let mut scene = scene();
    scene.run.state = State::Pending;
    scene.run.job = Some(JobId(Uuid::from_u128(2)));
    scene.jobs.insert(JobId(Uuid::from_u128(2)), job(Status::Queued { due_at: ago(60) }));
    let why = scene.run();
    let wait = only(&why);
    assert_eq!((wait.what, wait.since, wait.until), (What::Worker, scene.run.queued_at, scene.run.deadline));
    assert!(wait.next.as_ref().unwrap().contains("run_timeout"));
    assert_eq!(why.summary, "The run is pending and waits for a worker, since 1m ago, for at most 1h more.");
}

#[test]
fn a_paused_run_says_who_paused_it_and_when_it_is_cancelled() {
    let mut scene = scene();
    scene.run.state = State::Paused;
    scene.run.paused_at = Some(ago(5));
    scene.run.paused_by = Some("key:ann".to_owned());
    scene.agents[0].state = AgentState::Paused;
    for why in [scene.run(), scene.agent()] {
        let wait = only(&why);
        assert_eq!((wait.what, wait.until), (What::Pause, Some(ago(5).plus(scene.run.terms.paused_for))));
        assert!(wait.detail.contains("key:ann") && wait.who.as_ref().unwrap().contains("/resume"), "{wait:?}");
    }
    scene.run.state = State::Running;
    scene.agents[0].paused_by = Some("key:bob".to_owned());
    let why = scene.agent();
    assert!(only(&why).detail.contains("key:bob") && only(&why).until == scene.run.deadline, "{why:#?}");
}

#[test]
fn a_step_says_what_it_waits_for_until_when_and_who_can_help() {
    let soon = NOW.plus(Span::secs(90));
    let id = DecisionId(Uuid::from_u128(9));
    let signal = |until| Doing::Signal { name: "go".to_owned(), until };
    for (doing, what, until, part) in [
        (Doing::Call, What::Call, None, "call 1 of 1 of sleep"),
        (Doing::Backoff(soon), What::Retry, Some(soon), "call 1 of 1"),
        (Doing::Sleep(soon), What::Time, Some(soon), "sleeps"),
        (signal(None), What::Signal, None, "signal go"),
        (signal(Some(soon)), What::Signal, Some(soon), "signal go"),
        (Doing::Answer(id), What::Answer, None, "dec_"),
        (Doing::Unknown(id), What::Outcome, None, "dec_"),
    ] {
        let scene = scene().doing(doing);
        let why = scene.step((0, 0));
        let wait = only(&why);
        assert_eq!((wait.what, wait.until), (what, until), "{why:#?}");
        assert!(wait.detail.contains(part), "{why:#?}");
        // Its agent and its run wait for the same.
        assert_eq!(only(&scene.agent()).what, what);
        assert_eq!(only(&scene.run()).what, what);
        assert!(only(&scene.run()).detail.starts_with("agent one: step first.a: "));
        assert_eq!(only(&of_task(&scene.facts(), &scene.agents[0], 0, None)).what, what);
    }
}

#[test]
fn a_question_says_whose_it_is_and_what_its_deadline_does() {
    let id = DecisionId(Uuid::from_u128(9));
    let mut scene = scene().doing(Doing::Answer(id));
    let asked = json!({
        "prompt": "Ship?", "responsibility": "cto", "withinMs": 60_000,
        "onBreach": { "escalate": { "to": "ceo", "then": "fail" } },
    });
    let subject = Subject::Step { run: scene.run.id, agent: scene.agents[0].id, task: 0, step: 0 };
    let case = Case::of_step(subject, "p".parse().unwrap(), "step.question", Question::of(&asked).unwrap(), ago(10));
    scene.cases.insert(id, case);
    let why = scene.step((0, 0));
    let wait = only(&why);
    assert!(wait.detail.starts_with("Ship? (confirm, decline)"), "{wait:?}");
    assert_eq!(wait.until, Some(NOW.plus(Span::secs(50))));
    assert!(wait.who.as_ref().unwrap().contains("cto") && wait.next.as_ref().unwrap().contains("ceo is asked"));
    assert_eq!(wait.id.as_deref(), Some(&*id.to_string()));
    assert_eq!(why.summary, "Step first.a waits for an answer, since 10s ago, for at most 50s more.");
}

#[test]
fn what_has_not_begun_names_what_comes_before_it() {
    let scene = scene();
    let why = of_task(&scene.facts(), &scene.agents[0], 1, None);
    assert_eq!((why.status.as_str(), only(&why).what), ("pending", What::Dependency));
    assert!(only(&why).detail.contains("task first has not ended"), "{why:#?}");
    let why = scene.step((0, 1));
    assert_eq!(only(&why).what, What::Dependency, "{why:#?}");
    let why = scene.step((1, 0));
    assert!(only(&why).detail.contains("task second: task first has not ended"), "{why:#?}");
}

#[test]
fn an_agent_waits_for_a_place_a_worker_or_its_next_attempt() {
    let mut scene = scene();
    scene.agents[0].state = AgentState::Pending;
    scene.agents[0].tasks.clear();
    scene.jobs.insert(JobId(Uuid::from_u128(2)), job(Status::Queued { due_at: ago(60) }));
    assert_eq!(only(&scene.agent()).what, What::Worker);
    scene.lane = Some(Queue { max: Some(1), running: 1, waiting: 3, paused: false });
    let why = scene.agent();
    assert_eq!(only(&why).what, What::Lane);
    assert!(only(&why).detail.starts_with("1 of 1 places of the lane run:run_"), "{why:#?}");
    scene.lane = Some(Queue { paused: true, ..Queue::default() });
    assert!(only(&scene.agent()).who.as_ref().unwrap().contains("/resume"));
    scene.agents[0].not_before = Some(NOW.plus(Span::secs(3)));
    assert_eq!(only(&scene.agent()).what, What::Retry);
}

#[test]
fn what_has_ended_waits_for_nothing_and_says_why() {
    let mut scene = scene();
    scene.run.state = State::Failed;
    scene.run.error = Some(Fault::new("timeout", "too slow"));
    let why = scene.run();
    assert_eq!(only(&why).what, What::Nothing);
    assert_eq!(why.summary, "The run has ended as failed: too slow (timeout). It can be retried.");
    assert!(only(&why).who.as_ref().unwrap().contains("/retry"));
    scene.run.attempt = scene.run.terms.max_attempts;
    assert!(!scene.run().summary.contains("retried"));
    scene.run.state = State::Completed;
    scene.run.error = None;
    assert_eq!(scene.run().summary, "The run has ended as completed.");
}

#[test]
fn every_state_of_a_job_is_explained() {
    let soon = NOW.plus(Span::secs(9));
    let full = Queue { max: Some(1), running: 1, waiting: 2, paused: false };
    let lease = Lease { worker: "w".parse().unwrap(), until: soon };
    for (status, lane, what) in [
        (Status::Queued { due_at: soon }, None, What::Time),
        (Status::Queued { due_at: ago(1) }, None, What::Worker),
        (Status::Queued { due_at: ago(1) }, Some(full), What::Lane),
        (Status::Executing { lease }, None, What::Call),
        (Status::AwaitingTool { pause: Pause::Retry, due_at: Some(soon) }, None, What::Retry),
        (Status::AwaitingTool { pause: Pause::Retry, due_at: Some(ago(1)) }, None, What::Worker),
        (Status::AwaitingTool { pause: Pause::Tool, due_at: None }, None, What::Signal),
        (Status::AwaitingTool { pause: Pause::Tool, due_at: Some(soon) }, None, What::Signal),
        (Status::AwaitingUser { due_at: None }, None, What::Answer),
        (Status::AwaitingUser { due_at: Some(ago(1)) }, None, What::Worker),
        (Status::Ended { how: crate::job::End::Failed, at: ago(1) }, None, What::Nothing),
    ] {
        let mut job = job(status);
        job.kind.name = "echo".parse().unwrap();
        let why = of_job(&job, None, lane.as_ref(), Some("it broke"), NOW);
        assert_eq!(only(&why).what, what, "{why:#?}");
    }
}

#[test]
fn lengths_of_time_are_told_in_few_words() {
    for (span, text) in [
        (Span(0), "less than a second"),
        (Span(-5), "less than a second"),
        (Span::secs(61), "1m1s"),
        (Span::secs(3_600 + 61), "1h1m"),
        (Span::secs(2 * 86_400 + 3_700), "2d1h"),
        (Span(i64::MAX), "more than a year"),
    ] {
        assert_eq!(long(span), text);
    }
}
