//! Plans, tersely: everything is named by its place, goes one after the other and is tried once, unless said
//! otherwise.

use crate::credits::Credits;
use crate::plan::{AgentPlan, Doer, Effect, FailureMode, Plan, StepOrder, StepPlan, TaskOrder, TaskPlan};
use crate::time::Span;
use serde_json::json;

const HOUR: i64 = 3_600;

pub fn step() -> StepPlan {
    StepPlan {
        name: "s0".parse().unwrap(),
        tool: "tool".parse().unwrap(),
        doer: Doer::Tool,
        input: json!({}),
        effect: Effect::Pure,
        repeat: false,
        timeout: Span::secs(30),
        attempts: 1,
        price: Credits::ZERO,
        after: Vec::new(),
    }
}

pub fn unsafe_step() -> StepPlan {
    StepPlan { effect: Effect::Unsafe, ..step() }
}

/// A step that costs this many credits.
pub fn costs(price: u32, step: StepPlan) -> StepPlan {
    StepPlan { price: Credits::whole(price), ..step }
}

/// A step that is tried this often.
pub fn times(attempts: u32, step: StepPlan) -> StepPlan {
    StepPlan { attempts, ..step }
}

pub fn task(steps: impl IntoIterator<Item = StepPlan>) -> TaskPlan {
    let named = steps.into_iter().enumerate().map(|(n, s)| StepPlan { name: format!("s{n}").parse().unwrap(), ..s });
    TaskPlan {
        name: "t0".parse().unwrap(),
        failure_mode: FailureMode::FailFast,
        attempts: 3,
        timeout: Span::secs(HOUR),
        order: StepOrder::Sequential,
        width: 1,
        after: Vec::new(),
        steps: named.collect(),
    }
}

/// A task whose steps go side by side.
pub fn parallel(width: u32, task: TaskPlan) -> TaskPlan {
    TaskPlan { order: StepOrder::Parallel, width, ..task }
}

pub fn agent(tasks: impl IntoIterator<Item = TaskPlan>) -> AgentPlan {
    let named = tasks.into_iter().enumerate().map(|(n, t)| TaskPlan { name: format!("t{n}").parse().unwrap(), ..t });
    AgentPlan {
        name: "a0".parse().unwrap(),
        subtask: String::new(),
        failure_mode: FailureMode::FailFast,
        attempts: 3,
        timeout: Span::secs(6 * HOUR),
        order: TaskOrder::Sequential,
        width: 1,
        tasks: named.collect(),
    }
}

pub fn plan(agents: impl IntoIterator<Item = AgentPlan>) -> Plan {
    let named = agents.into_iter().enumerate().map(|(n, a)| AgentPlan { name: format!("a{n}").parse().unwrap(), ..a });
    Plan {
        failure_mode: FailureMode::FailFast,
        max_attempts: 3,
        failure_budget: 30,
        max_agents: 10,
        timeout: Span::secs(24 * HOUR),
        paused_for: Span::secs(7 * 24 * HOUR),
        agents: named.collect(),
    }
}
