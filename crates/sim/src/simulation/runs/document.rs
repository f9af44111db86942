//! What clients want done, drawn from the seed.

use super::super::order::pick;
use super::tools::TOOLS;
use baton_core::plan::Effect;
use baton_core::rng::Rng;
use serde_json::{Value, json};

/// What some steps wait for.
pub(super) const SIGNAL: &str = "go";

const MODES: [&str; 4] = ["fail-fast", "continue", "retry", "retry"];

/// Of small numbers, the smaller ones more often.
fn few(rng: &mut Rng, max: u64) -> u64 {
    let most = 1 + rng.below(max);
    1 + rng.below(most)
}

pub(super) fn draw(n: u64, rng: &mut Rng) -> Value {
    let agents: Vec<Value> = (0..1 + rng.below(4)).map(|n| agent(n, rng)).collect();
    let mut document = json!({
        "name": format!("run {n}"),
        "project": pick(rng, &["p0", "p1"]),
        "failure_mode": pick(rng, &MODES),
        "max_attempts": few(rng, 3),
        "priority": pick(rng, &["high", "normal"]),
        "limits": {
            "max_agents": few(rng, 3),
            "failure_budget": pick(rng, &[0, 2, 30]),
            "run_timeout": pick(rng, &["2m", "1h", "24h"]),
            "pause_timeout": pick(rng, &["30s", "7d"]),
            "agent_timeout": pick(rng, &["90s", "6h"]),
            "task_timeout": pick(rng, &["40s", "1h"]),
        },
        "plan": { "agents": agents },
    });
    // Otherwise as much as it may cost.
    if rng.chance(1, 3) {
        document["budget"] = json!(pick(rng, &["3", "8", "60"]));
    }
    document
}

fn agent(n: u64, rng: &mut Rng) -> Value {
    let order = pick(rng, &["sequential", "parallel", "dag"]);
    let name = format!("a{n}");
    let tasks: Vec<Value> = (0..few(rng, 4)).map(|n| task(n, &name, order, rng)).collect();
    json!({
        "name": name, "parallelism": order, "max_tasks": few(rng, 3),
        "failure_mode": pick(rng, &MODES), "attempts": few(rng, 3), "tasks": tasks,
    })
}

fn task(n: u64, agent: &str, order: &str, rng: &mut Rng) -> Value {
    let wide = rng.chance(1, 3);
    let steps: Vec<Value> = (0..1 + rng.below(4)).map(|at| step((n, at), agent, order == "parallel", rng)).collect();
    let mut task = json!({
        "name": format!("t{n}"), "parallelism": if wide { "parallel" } else { "sequential" },
        "max_steps": few(rng, 3), "failure_mode": pick(rng, &MODES), "attempts": few(rng, 3), "steps": steps,
    });
    if order == "dag" && n > 0 && rng.chance(1, 2) {
        task["depends_on"] = json!([format!("t{}", rng.below(n))]);
    }
    task
}

fn step((task, n): (u64, u64), agent: &str, apart: bool, rng: &mut Rng) -> Value {
    let mut step = match rng.below(12) {
        0 => json!({ "tool": "sleep", "input": { "for": pick(rng, &["1s", "45s"]) } }),
        1 if rng.chance(1, 2) => json!({ "tool": "wait", "input": { "signal": SIGNAL, "within": "50s" } }),
        1 => json!({ "tool": "wait", "input": { "signal": SIGNAL } }),
        2 => json!({ "tool": "ask", "input": question(rng) }),
        _ => call((task, n), agent, apart, rng),
    };
    step["name"] = json!(format!("s{n}"));
    step["attempts"] = json!(few(rng, 3));
    step
}

fn call((task, n): (u64, u64), agent: &str, apart: bool, rng: &mut Rng) -> Value {
    let (tool, effect, _) = pick(rng, &TOOLS);
    let feared = effect != Effect::Unsafe && rng.chance(1, 10);
    let repeat = rng.chance(1, 8);
    let mut input = json!({ "hard": rng.chance(1, 3) });
    if (effect == Effect::Unsafe || feared) && !repeat {
        input["once"] = json!(agent);
    }
    // Results of tools say which step they are of; what waits has results of its own, or none at all.
    if n > 0 && rng.chance(1, 4) {
        input["expects"] = json!(format!("t{task}.s{}", n - 1));
        input["finds"] = json!(format!("${{steps.s{}.step}}", n - 1));
    } else if task > 0 && !apart && rng.chance(1, 4) {
        input["expects"] = json!(format!("t{}.s0", task - 1));
        input["finds"] = json!(format!("${{tasks.t{}.s0.step}}", task - 1));
    }
    let mut step = json!({ "tool": tool, "input": input, "timeout": pick(rng, &["2s", "30s"]), "repeat": repeat });
    if feared {
        step["effect"] = json!("unsafe");
    }
    step
}

fn question(rng: &mut Rng) -> Value {
    let options = json!([{ "name": "yes" }, { "name": "no", "effect": "fail" }]);
    match rng.below(4) {
        0 => json!({ "prompt": "sure?", "options": options, "withinMs": 20_000, "onBreach": "fail" }),
        1 => json!({ "prompt": "sure?", "options": options, "withinMs": 20_000, "onBreach": { "choose": "yes" } }),
        _ => json!({ "prompt": "sure?", "options": options }),
    }
}
