//! Decisions: durable questions to people. Whatever waits for one is woken by its answer, in the
//! same commit.
//!
//! Invariants
//! - A decision is open until it is resolved, expires or is withdrawn; each of them once, for good.
//! - It is opened in the commit in which its subject begins to wait, and closed in the one in which
//!   the subject stops waiting.
//!
//! Elsewhere: what an answer does to a job ([`crate::job::answer`]).

pub mod breach;
pub mod question;
pub mod resolve;

use crate::access::Grant;
use crate::canon::Json;
use crate::changes::Changes;
use crate::command::Reads;
use crate::doc::{self, Doc};
use crate::event::{Event, Head};
use crate::id::{AgentId, DecisionId, DocId, JobId, RunId};
use crate::job::Job;
use crate::name::{ProjectId, Responsibility, TypeName};
use crate::time::Micros;
use crate::timer;
use crate::world::View;
pub use question::{BadQuestion, Breach, Choice, ChoiceName, Effect, Question};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;

/// What waits for a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    Job(JobId),
    /// A step of an agent: its task and step by their places in the plan.
    Step {
        run: RunId,
        agent: AgentId,
        task: u32,
        step: u32,
    },
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(job) => job.fmt(f),
            Self::Step { agent, task, step, .. } => write!(f, "{agent}.{task}.{step}"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// Somebody chose.
    Resolved,
    /// Its deadline came, and with it what was to happen then.
    Expired,
    /// Nobody waits for it any more.
    Withdrawn,
}

impl How {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Resolved => "resolved",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// How a decision was closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    pub how: How,
    pub at: Micros,
    /// Who did it, as the history names them.
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<ChoiceName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// Why it was withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Something that happened to a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    pub at: Micros,
    /// What the history of everything calls it, without its first word.
    pub what: String,
    /// Who did it; nobody where time did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Whose it was from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub responsibility: Option<Responsibility>,
}

/// The document of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    pub subject: Subject,
    pub project: ProjectId,
    /// The type of the job that waits.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub of_type: Option<TypeName>,
    /// What sort of decision it is, such as `job.confirmation`.
    pub kind: String,
    pub prompt: String,
    /// Whose it is; `None` is anybody's who may decide.
    #[serde(default)]
    pub responsibility: Option<Responsibility>,
    pub options: Vec<Choice>,
    /// What was asked, whole.
    pub evidence: Value,
    pub opened_at: Micros,
    #[serde(default)]
    pub deadline_at: Option<Micros>,
    pub on_breach: Breach,
    /// Its deadline came, and it waits on.
    #[serde(default)]
    pub overdue: bool,
    #[serde(default)]
    pub closed: Option<Closed>,
    /// All that happened to it, in order. As long as its escalations, at most.
    #[serde(default)]
    pub history: Vec<Turn>,
}

impl Case {
    pub fn at(id: DecisionId) -> doc::Key {
        doc::Key { class: doc::Class::Decision, key: id.to_string() }
    }

    pub fn of(doc: &Doc) -> Option<Self> {
        serde_json::from_str(doc.body.as_str()).ok()
    }

    pub const fn timer(id: DecisionId) -> timer::Key {
        timer::Key { subject: id.0, kind: timer::Kind::Decision }
    }

    /// A job's question.
    pub fn of_job(job: &Job, question: Question, now: Micros) -> Self {
        Self {
            subject: Subject::Job(job.id),
            project: job.project.clone(),
            of_type: Some(job.kind.name.clone()),
            kind: JOB_CONFIRMATION.to_owned(),
            prompt: question.prompt,
            responsibility: question.responsibility,
            options: question.options,
            evidence: question.whole,
            opened_at: now,
            deadline_at: question.within.map(|within| now.plus(within)),
            on_breach: question.on_breach,
            overdue: false,
            closed: None,
            history: Vec::new(),
        }
    }

    /// A step's question, of the kind that is named.
    pub fn of_step(subject: Subject, project: ProjectId, kind: &str, question: Question, now: Micros) -> Self {
        Self {
            subject,
            project,
            of_type: None,
            kind: kind.to_owned(),
            prompt: question.prompt,
            responsibility: question.responsibility,
            options: question.options,
            evidence: question.whole,
            opened_at: now,
            deadline_at: question.within.map(|within| now.plus(within)),
            on_breach: question.on_breach,
            overdue: false,
            closed: None,
            history: Vec::new(),
        }
    }

    /// What the option that was chosen does, or the deadline that came; nothing while it is open.
    pub fn effect(&self) -> Option<Effect> {
        let closed = self.closed.as_ref()?;
        Some(match &closed.option {
            Some(option) => self.option(option).map_or(Effect::Fail, |choice| choice.effect),
            None if self.on_breach == Breach::Cancel => Effect::Cancel,
            None => Effect::Fail,
        })
    }

    /// Whether it is there at all for whoever may do this.
    pub fn reached_by(&self, grant: &Grant) -> bool {
        match &self.of_type {
            Some(kind) => grant.reaches(&self.project, kind),
            None => grant.reaches_project(&self.project),
        }
    }

    pub fn option(&self, name: &ChoiceName) -> Option<&Choice> {
        self.options.iter().find(|choice| choice.name == *name)
    }

    /// Opens it: the row, the event, and the timer of its deadline.
    pub fn opened(&self, id: DecisionId) -> Changes {
        let told = json!({
            "deadline_at": self.deadline_at,
            "kind": self.kind,
            "options": self.options.iter().map(|choice| &choice.name).collect::<Vec<_>>(),
        });
        let changes = self.put(id, Head::NONE, Happens { at: self.opened_at, by: None, kind: "decision.opened" }, told);
        match self.deadline_at {
            Some(at) => changes.timer(timer::Change::Set { key: Self::timer(id), at }),
            None => changes,
        }
    }

    /// Closes it, and with it its timer.
    fn closed(&self, id: DecisionId, head: Head, closed: Closed) -> Changes {
        let kind = match closed.how {
            How::Resolved => "decision.resolved",
            How::Expired => "decision.expired",
            How::Withdrawn => "decision.withdrawn",
        };
        let comment = closed.comment.as_ref().map(|text| Json::of(&Value::from(text.as_str())).digest());
        let told = json!({
            "by": closed.by,
            "comment_sha256": comment,
            "data_sha256": closed.data.as_ref().map(|data| Json::of(data).digest()),
            "option": closed.option,
            "reason": closed.reason,
        });
        let happens = Happens { at: closed.at, by: Some(closed.by.clone()), kind };
        let next = Self { closed: Some(closed), ..self.clone() };
        let changes = next.put(id, head, happens, told);
        match self.deadline_at {
            Some(_) => changes.timer(timer::Change::Clear { key: Self::timer(id) }),
            None => changes,
        }
    }

    /// Writes it and tells of it: what it is about and whose it is, and `more`.
    fn put(&self, id: DecisionId, head: Head, happens: Happens, more: Value) -> Changes {
        let Happens { at, by, kind } = happens;
        let what = kind.trim_start_matches("decision.").to_owned();
        let mut this = self.clone();
        this.history.push(Turn { at, what, by, responsibility: self.responsibility.clone() });
        let mut told = json!({
            "project": self.project,
            "responsibility": self.responsibility,
            "subject": self.subject,
            "type": self.of_type,
        });
        if let (Value::Object(told), Value::Object(more)) = (&mut told, more) {
            told.extend(more);
        }
        // Text keys only, so this cannot fail.
        let body = Json::of(&serde_json::to_value(&this).unwrap_or_default());
        let doc = Doc { id: DocId(id.0), flag: self.closed.is_none(), body, head };
        let event = Event::new(doc::Class::Decision.subject(doc.id), kind, told);
        Changes::none().doc(doc::Change::Put(Self::at(id), doc)).event(event)
    }
}

/// What is about to be told of a decision.
struct Happens {
    at: Micros,
    by: Option<String>,
    kind: &'static str,
}

pub const JOB_CONFIRMATION: &str = "job.confirmation";
/// What a step asks people, because its plan says so.
pub const STEP_QUESTION: &str = "step.question";
/// What came of a call of an unsafe step that was cut off.
pub const STEP_OUTCOME: &str = "step.outcome";

/// What must be seen before a job that may be waiting for a decision is ended from outside.
pub(crate) fn reads_of(job: &Job) -> Reads {
    match job.decision() {
        Some(id) => Reads::doc(Case::at(id)),
        None => Reads::none(),
    }
}

/// Nobody waits for the job's decision any more, if it had one that is open.
pub(crate) fn withdrawn(view: &View<'_>, job: &Job, by: &str, reason: &str, now: Micros) -> Changes {
    job.decision().map_or_else(Changes::none, |id| withdraw(view, id, by, reason, now))
}

/// Nobody waits for this decision any more, if it is open.
pub(crate) fn withdraw(view: &View<'_>, id: DecisionId, by: &str, reason: &str, now: Micros) -> Changes {
    view.doc(&Case::at(id)).map_or_else(Changes::none, |doc| withdraw_doc(doc, by, reason, now))
}

/// The same, of one that may have been opened a moment ago.
pub(crate) fn withdraw_doc(doc: &Doc, by: &str, reason: &str, now: Micros) -> Changes {
    let Some(case) = Case::of(doc) else { return Changes::none() };
    if case.closed.is_some() {
        return Changes::none();
    }
    let closed = Closed {
        how: How::Withdrawn,
        at: now,
        by: by.to_owned(),
        option: None,
        comment: None,
        data: None,
        reason: Some(reason.to_owned()),
    };
    case.closed(DecisionId(doc.id.0), doc.head, closed)
}
