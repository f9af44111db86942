//! Decisions: what people are asked, and what they answered.

use crate::shape::Shape;
use crate::time::Time;
use baton_core::ProjectId;
use baton_core::decision::{Breach, Case, Choice, ChoiceName, Closed, How, Turn};
use baton_core::id::DecisionId;
use baton_core::name::Responsibility;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecisionState {
    Open,
    Resolved,
    Expired,
    Withdrawn,
}

impl DecisionState {
    pub const ALL: [Self; 4] = [Self::Open, Self::Resolved, Self::Expired, Self::Withdrawn];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Resolved => "resolved",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
        }
    }

    pub const fn of(closed: Option<&Closed>) -> Self {
        match closed {
            None => Self::Open,
            Some(Closed { how: How::Resolved, .. }) => Self::Resolved,
            Some(Closed { how: How::Expired, .. }) => Self::Expired,
            Some(Closed { how: How::Withdrawn, .. }) => Self::Withdrawn,
        }
    }
}

impl fmt::Display for DecisionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    #[schemars(with = "Shape<DecisionId>")]
    pub id: DecisionId,
    pub state: DecisionState,
    pub kind: String,
    /// What waits for it: a job, or a step as `agent.task.step`, by their places in the plan.
    pub subject: String,
    #[schemars(with = "Shape<ProjectId>")]
    pub project_id: ProjectId,
    pub prompt: String,
    /// Whose it is; `null` is anybody's who may decide.
    #[schemars(with = "Option<Shape<Responsibility>>")]
    pub responsibility: Option<Responsibility>,
    #[schemars(with = "Vec<Shape<Choice>>")]
    pub options: Vec<Choice>,
    pub evidence: Value,
    pub opened_at: Time,
    pub deadline_at: Option<Time>,
    #[schemars(with = "Shape<Breach>")]
    pub on_breach: Breach,
    /// Its deadline has come, and it waits on.
    pub overdue: bool,
    pub resolution: Option<Resolution>,
    /// All that happened to it, in order.
    pub history: Vec<DecisionTurn>,
}

/// Something that happened to a decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionTurn {
    pub at: Time,
    /// `opened`, `overdue`, `escalated`, `resolved`, `expired` or `withdrawn`.
    pub what: String,
    /// Who did it; `null` where time did, or the one that asks.
    pub by: Option<String>,
    /// Whose it was from then on.
    #[schemars(with = "Option<Shape<Responsibility>>")]
    pub responsibility: Option<Responsibility>,
}

/// How it was closed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resolution {
    pub at: Time,
    pub by: String,
    #[schemars(with = "Option<Shape<ChoiceName>>")]
    pub option: Option<ChoiceName>,
    pub comment: Option<String>,
    pub data: Option<Value>,
    pub reason: Option<String>,
}

impl Decision {
    pub fn of(id: DecisionId, case: &Case) -> Self {
        Self {
            id,
            state: DecisionState::of(case.closed.as_ref()),
            kind: case.kind.clone(),
            subject: case.subject.to_string(),
            project_id: case.project.clone(),
            prompt: case.prompt.clone(),
            responsibility: case.responsibility.clone(),
            options: case.options.clone(),
            evidence: case.evidence.clone(),
            opened_at: Time(case.opened_at),
            deadline_at: case.deadline_at.map(Time),
            on_breach: case.on_breach.clone(),
            overdue: case.overdue,
            resolution: case.closed.as_ref().map(|closed| Resolution {
                at: Time(closed.at),
                by: closed.by.clone(),
                option: closed.option.clone(),
                comment: closed.comment.clone(),
                data: closed.data.clone(),
                reason: closed.reason.clone(),
            }),
            history: case.history.iter().map(DecisionTurn::of).collect(),
        }
    }
}

impl DecisionTurn {
    fn of(turn: &Turn) -> Self {
        Self {
            at: Time(turn.at),
            what: turn.what.clone(),
            by: turn.by.clone(),
            responsibility: turn.responsibility.clone(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionList {
    pub decisions: Vec<Decision>,
    pub next_cursor: Option<String>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object that names an option")]
pub struct Resolve {
    #[schemars(with = "Shape<ChoiceName>")]
    pub option: ChoiceName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Whatever else the one who waits shall know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}
