//! Calls that workers outside make.
//!
//! A call is a job of the tool's own type: leased, beaten for, fenced and taken over like every other. There is one for
//! each attempt of a step, found again by its name, so an agent that changes hands goes on waiting for the call that was
//! made instead of making another.
//!
//! Invariants
//! - Two calls of one attempt of a step are one job, however it ended, for as long as it is kept.
//! - Only a call that its agent waits for is made.
//! - A call of an unsafe step that may have been made, and of which there is no trace, is not made again; one that was
//!   begun is begun by nobody else.

use super::Fault;
use crate::canon::Json;
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Never, Reads};
use crate::dedupe::{self, Mode};
use crate::definition::{Definitions, JobType, Timeout};
use crate::id::{AgentId, JobId, RunId};
use crate::job::enqueue::{Enqueue, Origin};
use crate::job::intake::{self, Intake};
use crate::job::{Ending, Job, cancel};
use crate::lane::{self, Limit};
use crate::name::{BadName, OrgId, ProjectId, ToolName, TypeName};
use crate::plan::Effect;
use crate::retry;
use crate::template::{BadTemplate, Template};
use crate::world::View;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How the types of such jobs begin.
const TOOL: &str = "tool.";
/// Executions of a call that may be repeated: workers that are lost during it count against this.
const EXECUTIONS: u32 = 20;
/// The failure of a call that was turned away, and so did nothing.
const TURNED_AWAY: &str = "rate_limited";

/// Why a tool cannot be called by workers outside.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRemote {
    #[error("its name is too long for one that workers serve: {0}")]
    Name(#[from] BadName),
    #[error(transparent)]
    Template(#[from] BadTemplate),
}

/// The type of the jobs that are the calls of a tool.
pub fn tool_type(tool: &ToolName) -> Result<TypeName, BadName> {
    TypeName::new(&format!("{TOOL}{tool}"))
}

pub fn is_tool_type(kind: &TypeName) -> bool {
    kind.as_str().starts_with(TOOL)
}

/// How the calls of a tool are treated. Failures that are reported are the step's to repeat, not the job's.
pub fn tool_job_type(tool: &ToolName, limit: Option<u32>) -> Result<JobType, BadRemote> {
    // Without a limit there is nothing to share, and a project's calls need not stand behind another's.
    let key = limit.map_or_else(|| format!("tool:{tool}:{{project}}"), |_| format!("tool:{tool}"));
    let key = Template::new(&key)?;
    Ok(JobType {
        max_attempts: Some(EXECUTIONS),
        lane: lane::Rule::Own { key, limit: limit.map_or(Limit::None, Limit::At), depth: None },
        dedupe: dedupe::Rule { mode: Mode::Once, key: Some(Template::new("{payload.call}")?) },
        retry: retry::Policy { max_failures: Some(0), ..retry::Policy::default() },
        // The agent that made the call watches how long it takes.
        timeout: Timeout::Never,
        internal: true,
        ..JobType::new(tool_type(tool)?, 1, "Makes one call of a tool.")
    })
}

/// What such a job is told, and how it is found again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errand {
    /// The key with the attempt: what makes two calls the same.
    pub call: String,
    pub input: Value,
    /// The same whenever this step is called, until its task is begun anew.
    pub key: String,
    pub run: RunId,
    pub agent: AgentId,
    /// `task.step`, by their names.
    pub step: String,
    pub attempt: u32,
    /// The same by their places in the plan.
    pub place: (u32, u32),
    pub task_attempt: u32,
    pub agent_attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl Errand {
    pub fn read(payload: &Json) -> Option<Self> {
        serde_json::from_str(payload.as_str()).ok()
    }

    /// Whether the agent still waits for this very call.
    pub fn is_wanted(&self, agent: Option<&super::Agent>) -> bool {
        let Some(agent) = agent.filter(|agent| !agent.is_ended() && agent.attempt == self.agent_attempt) else {
            return false;
        };
        let (task, step) = self.place;
        let same_task = agent.tasks.get(&task).is_some_and(|task| task.attempt == self.task_attempt);
        same_task && agent.step(task, step).is_some_and(|step| step.is_call() && step.attempt == self.attempt)
    }
}

/// Has a call made, or finds the job that makes it.
#[derive(Clone, Debug)]
pub struct CallTool {
    pub org: OrgId,
    pub project: ProjectId,
    pub priority: i32,
    pub tool: TypeName,
    pub errand: Errand,
    /// It may have been made before: somebody else was about to.
    pub again: bool,
    pub effect: Effect,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolCalled {
    /// This job is the call.
    By(JobId),
    /// It may have been made and there is no trace of it, so it must not be made again.
    Unknown,
    /// This node cannot have it made.
    Cannot(String),
    /// Nobody waits for it any more: the agent has gone on, or somebody else has it.
    Unwanted,
}

impl CallTool {
    fn order(&self) -> Enqueue {
        let payload = Json::of(&serde_json::to_value(&self.errand).unwrap_or_default());
        Enqueue {
            priority: Some(self.priority),
            origin: Origin::Engine,
            once: self.effect == Effect::Unsafe,
            ..Enqueue::new(self.org.clone(), self.project.clone(), self.tool.clone(), payload)
        }
    }
}

impl Command for CallTool {
    type Out = ToolCalled;
    type No = Never;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, defs: &Definitions) -> Reads {
        intake::reads(&self.order(), defs).and(Reads::agent(self.errand.agent))
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<ToolCalled, Never> {
        if !self.errand.is_wanted(view.agent(self.errand.agent)) {
            return Decision::Done(ToolCalled::Unwanted, Changes::none());
        }
        let order = self.order();
        let mut intake = Intake::new(*view, cx.defs);
        if self.again && self.effect == Effect::Unsafe {
            let found = intake.stands_for(&order).map_or(ToolCalled::Unknown, ToolCalled::By);
            return Decision::Done(found, Changes::none());
        }
        match intake.take(&order, cx) {
            Ok(taken) => Decision::Done(ToolCalled::By(taken.job.id), intake.finish()),
            Err(no) => Decision::Done(ToolCalled::Cannot(no.to_string()), Changes::none()),
        }
    }
}

/// What came of a call that did not go well, as the step sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFailed {
    pub fault: Fault,
    /// It was never begun.
    pub not_called: bool,
    /// As with a program: a call that failed may have acted, unless it is said that it did not.
    pub may_have_acted: bool,
}

/// What a call came to that has ended: its output, alone in its object or the object itself, or why there is none.
pub fn came_to(job: &Job, ending: Option<Ending>) -> Result<Value, CallFailed> {
    let begun = job.attempts > 0;
    match ending {
        Some(Ending::Result(result)) => Ok(match result.value() {
            Value::Object(mut fields) if fields.len() == 1 && fields.contains_key("output") => {
                fields.remove("output").unwrap_or_default()
            }
            other => other,
        }),
        Some(Ending::Error(failure)) => {
            let may_have_acted = !failure.idle && failure.code != TURNED_AWAY;
            // That workers are lost says nothing against the call.
            let fault = if failure.code == "recovery_attempts_exhausted" {
                Fault::new("worker_lost", &failure.message)
            } else {
                Fault::from(failure)
            };
            Err(CallFailed { fault, not_called: false, may_have_acted })
        }
        Some(Ending::Cancelled(reason)) => {
            let fault = Fault::new("call_cancelled", &format!("the call was cancelled: {reason}"));
            Err(CallFailed { fault, not_called: !begun, may_have_acted: begun })
        }
        None => Err(CallFailed::lost("what came of the call is not kept any more")),
    }
}

impl CallFailed {
    /// Nobody knows what came of it.
    pub fn lost(why: &str) -> Self {
        Self { fault: Fault::new("worker_lost", why), not_called: false, may_have_acted: true }
    }
}

/// Ends a call that nobody waits for any more. While somebody does, it does nothing: another worker may have taken
/// the agent over.
#[derive(Clone, Debug)]
pub struct Withdraw {
    pub org: OrgId,
    pub job: JobId,
    pub errand: Errand,
    /// Whoever asks was the one who waited, and its time is over.
    pub anyhow: bool,
}

/// Why a call was ended.
pub const WITHDRAWN: &str = "call_withdrawn";

impl Command for Withdraw {
    type Out = bool;
    type No = Never;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::job(self.job).and(Reads::agent(self.errand.agent))
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<bool, Never> {
        let ended = view.job(self.job).is_none_or(Job::is_ended);
        if ended || !self.anyhow && self.errand.is_wanted(view.agent(self.errand.agent)) {
            return Decision::Done(false, Changes::none());
        }
        let cancel = cancel::Cancel { org: self.org.clone(), job: self.job, reason: Some(WITHDRAWN.to_owned()) };
        match cancel.decide(view, cx) {
            Decision::Done(_, changes) => Decision::Done(true, changes),
            Decision::Refused(_) => Decision::Done(false, Changes::none()),
            Decision::Need(reads) => Decision::Need(reads),
        }
    }
}
