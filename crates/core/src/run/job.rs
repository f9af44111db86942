//! The jobs that work on agents.

use super::{Agent, Run};
use crate::canon::Json;
use crate::command::{Ctx, Reads};
use crate::definition::{Definitions, JobType, Timeout};
use crate::id::{JobId, RunId};
use crate::job::enqueue::{Enqueue, Origin};
use crate::job::intake::{self, Intake};
use crate::lane::{LaneKey, Place};
use crate::name::{OrgId, ProjectId, TypeName};
use crate::time::Span;
use crate::world::View;
use serde::{Deserialize, Serialize};

/// The type of jobs that work on agents.
pub const AGENT_JOB: &str = "run.agent";

/// As good as for ever: agents count their attempts themselves, and workers may be lost often.
const TRIES: u32 = 1_000_000_000;

/// How long an agent stays with a worker that does not beat.
const LEASE: Span = Span::secs(30);

/// What such a job is told: which agent of which attempt. An agent that is not there yet is spawned by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errand {
    pub run: RunId,
    pub attempt: u32,
    pub index: u32,
}

/// A job that works on an agent is steered through its run only.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("job {job} works on an agent of {run}: cancel, pause, resume or retry the run instead")]
pub struct OfRun {
    pub job: JobId,
    /// The lane of the run that it belongs to, which is named after it.
    pub run: String,
}

impl OfRun {
    pub const CODE: &'static str = "internal_job";

    /// Refuses what anybody outside wants to do to such a job.
    pub fn check(job: &crate::job::Job) -> Result<(), Self> {
        if job.kind.name.as_str() != AGENT_JOB {
            return Ok(());
        }
        let lane = job.lane.key.as_str();
        Err(Self { job: job.id, run: lane.strip_prefix("run:").unwrap_or(lane).to_owned() })
    }
}

/// Agents decide for themselves how often they are tried and how long they may take.
pub fn agent_job_type(name: TypeName) -> JobType {
    JobType {
        max_attempts: Some(TRIES),
        lease: LEASE,
        timeout: Timeout::Never,
        internal: true,
        ..JobType::new(name, 1, "Works on one agent of a run.")
    }
}

/// A lane is needed only where there are more agents than may work at once.
fn place(run: &Run) -> Place {
    let limited = run.terms.agents > run.terms.max_agents;
    Place { key: LaneKey::of_run(run.id), max: limited.then_some(run.terms.max_agents), kept: limited }
}

fn order(run: &Run, index: u32, kind: TypeName) -> Enqueue {
    let errand = Errand { run: run.id, attempt: run.attempt, index };
    let payload = Json::of(&serde_json::to_value(errand).unwrap_or_default());
    Enqueue {
        priority: Some(run.priority.number()),
        origin: Origin::Engine,
        lane: Some(place(run)),
        ..Enqueue::new(run.org.clone(), ProjectId::agents(), kind, payload)
    }
}

fn kind() -> Option<TypeName> {
    TypeName::new(AGENT_JOB).ok()
}

/// Whether this node can enqueue them.
pub(super) fn is_known(defs: &Definitions) -> bool {
    kind().is_some_and(|kind| defs.newest(&OrgId::system(), &kind).is_some())
}

/// What enqueuing jobs of this run must see.
pub(super) fn reads(run: &Run, defs: &Definitions) -> Reads {
    kind().map(|kind| intake::reads(&order(run, 0, kind), defs)).unwrap_or_default()
}

/// Enqueues a job for each of these places of the plan. A node that does not know the type enqueues
/// nothing, and says so by handing back fewer.
pub(super) fn enqueue(
    run: &Run,
    places: impl IntoIterator<Item = u32>,
    view: &View<'_>,
    cx: &mut Ctx<'_>,
) -> (Vec<JobId>, crate::Changes) {
    let defs = cx.defs;
    let mut intake = Intake::new(*view, defs);
    let mut jobs = Vec::new();
    for index in places {
        let Some(kind) = kind() else { break };
        let Ok(made) = intake.take(&order(run, index, kind), cx) else { break };
        jobs.push(made.job.id);
    }
    (jobs, intake.finish())
}

/// The jobs of these agents, and the questions that were asked for them.
pub(super) fn reads_of<'a>(agents: impl Iterator<Item = &'a Agent>) -> Reads {
    let mut reads = Reads::none();
    for agent in agents {
        reads.jobs.extend(agent.job);
        reads.docs.extend(agent.decisions().map(crate::decision::Case::at));
    }
    reads
}
