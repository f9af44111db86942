//! A run document, as people write it: what is not said is not filled in yet.
//!
//! Elsewhere: reading one and saying where it is wrong (`read`), what it means (`compile`).

use super::problem::Problem;
use super::read;
use super::{Effect, FailureMode, StepOrder, TaskOrder};
use crate::credits::Credits;
use crate::name::{PlanName, ProjectId, ToolName};
use crate::span::SpanText;
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;
use std::collections::BTreeMap;

/// How urgent a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    High,
    #[default]
    Normal,
}

impl Priority {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Normal => "normal",
        }
    }

    /// As jobs count it.
    pub const fn number(self) -> i32 {
        match self {
            Self::High => crate::job::INTERACTIVE,
            Self::Normal => crate::job::BACKGROUND,
        }
    }
}

macro_rules! documents {
    ($($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $field:ident: $type:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        pub struct $name {
            $(
                $(#[$about])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $field: Option<$type>,
            )*
        }

        impl $name {
            /// All that can be said in it.
            pub const FIELDS: &'static [&'static str] = &[$(stringify!($field)),*];
        }
    )*};
}

documents! {
    Document {
        name: String,
        /// What it is about.
        task: String,
        project: ProjectId,
        priority: Priority,
        budget: Credits,
        failure_mode: FailureMode,
        max_attempts: i64,
        limits: LimitsDoc,
        labels: BTreeMap<String, String>,
        plan: PlanDoc,
    }

    /// Numbers out of their bounds are kept as they are: what they mean is said when all is looked at.
    LimitsDoc {
        max_agents: i64,
        max_tasks: i64,
        max_steps: i64,
        failure_budget: i64,
        run_timeout: SpanText,
        pause_timeout: SpanText,
        agent_timeout: SpanText,
        task_timeout: SpanText,
        step_timeout: SpanText,
    }

    PlanDoc {
        agents: Vec<AgentDoc>,
    }

    AgentDoc {
        name: PlanName,
        subtask: String,
        failure_mode: FailureMode,
        attempts: i64,
        timeout: SpanText,
        parallelism: TaskOrder,
        max_tasks: i64,
        tasks: Vec<TaskDoc>,
    }

    TaskDoc {
        name: PlanName,
        depends_on: Vec<PlanName>,
        failure_mode: FailureMode,
        attempts: i64,
        timeout: SpanText,
        parallelism: StepOrder,
        max_steps: i64,
        steps: Vec<StepDoc>,
    }

    StepDoc {
        name: PlanName,
        tool: ToolName,
        input: Value,
        effect: Effect,
        repeat: bool,
        timeout: SpanText,
        attempts: i64,
        price: Credits,
        depends_on: Vec<PlanName>,
    }
}

impl Document {
    /// Reads what was parsed as JSON or YAML. What is merely wrong in itself is told here.
    pub fn read(value: &Value) -> Result<Self, Vec<Problem>> {
        let (document, problems) = read::document(value);
        if problems.is_empty() { Ok(document) } else { Err(problems.into_vec()) }
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Self::read(&Value::deserialize(d)?).map_err(|problems| match problems.first() {
            Some(Problem { path, message, .. }) if !path.is_empty() => de::Error::custom(format!("{path}: {message}")),
            first => de::Error::custom(first.map_or("", |problem| &problem.message)),
        })
    }
}
