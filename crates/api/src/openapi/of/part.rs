//! Parts of runs: agents, tasks, steps, attempts, and what happened to them.

use super::super::example;
use super::super::operation::{Operation, Tag};
use super::super::parameter::{self, Param};
use super::super::run_example as runs;
use super::run::{cursor, limit};
use baton_core::limits::PLAN_ATTEMPTS;
use baton_core::run::StepState;
use baton_wire::shape::Shape;
use baton_wire::{Agent, AgentList, AttemptList, EventList, StepList, TaskList};
use schemars::json_schema;
use serde_json::json;

/// Parts belong to one attempt of the run.
fn attempt() -> Param {
    parameter::query_as(
        "attempt",
        "Of this attempt of the run; the current one, unless given.",
        |_| json_schema!({ "type": "integer", "minimum": 1, "maximum": PLAN_ATTEMPTS }),
    )
}

fn agent() -> Param {
    parameter::query_as(
        "agent",
        "Only those of this agent, by its name or its id.",
        |_| json_schema!({ "type": "string" }),
    )
}

pub fn agents() -> Operation {
    let page = json!({ "agents": [runs::agent("running")], "next_cursor": null });
    Operation::new("listAgents", Tag::Runs, "List the agents of a run, in the order of its plan")
        .about("There are none before a worker has taken the run.")
        .takes([parameter::run_id(), attempt(), limit(), cursor()])
        .answers::<AgentList>(200, "A page of them.", page)
        .leads(
            &["pauseAgent", "resumeAgent"],
            &[("runId", "$response.body#/agents/0/run_id"), ("agentId", "$response.body#/agents/0/id")],
        )
        .refuses(&["run_not_found"])
}

fn act(id: &'static str, summary: &'static str, status: &'static str) -> Operation {
    Operation::new(id, Tag::Runs, summary)
        .takes([parameter::run_id(), parameter::agent_id()])
        .bare()
        .answers::<Agent>(200, "The agent as it stands now.", runs::agent(status))
        .refuses(&["run_not_found", "agent_not_found", "invalid_transition"])
}

pub fn pause() -> Operation {
    act("pauseAgent", "Hold one agent of a run", "paused").about("The run goes on, and its clock too.")
}

pub fn resume() -> Operation {
    act("resumeAgent", "Let a paused agent go on", "pending").refuses(&["feature_disabled"])
}

pub fn tasks() -> Operation {
    Operation::new("listTasks", Tag::Runs, "List the tasks of a run")
        .about("Agent by agent: those that have ended, then those that were begun, then those that are still to begin.")
        .takes([parameter::run_id(), agent(), attempt(), limit(), cursor()])
        .answers::<TaskList>(200, "A page of them.", json!({ "tasks": [runs::task()], "next_cursor": null }))
        .refuses(&["run_not_found"])
}

pub fn steps() -> Operation {
    Operation::new("listSteps", Tag::Runs, "List the steps of a run")
        .about("Agent by agent: those that have ended, then those that were begun, then those that are still to begin.")
        .takes([
            parameter::run_id(),
            agent(),
            parameter::query_as(
                "task",
                "Only those of this task, by its name or its place.",
                |_| json_schema!({ "type": "string" }),
            ),
            parameter::query_as("status", "Only those in this state.", |g| g.subschema_for::<Shape<StepState>>()),
            parameter::query_as(
                "results",
                "Whether their results are shown.",
                |_| json_schema!({ "type": "boolean", "default": false }),
            ),
            attempt(),
            limit(),
            cursor(),
        ])
        .answers::<StepList>(200, "A page of them.", json!({ "steps": [runs::step()], "next_cursor": null }))
        .refuses(&["run_not_found"])
}

pub fn attempts() -> Operation {
    Operation::new("listAttempts", Tag::Runs, "List the attempts of a run")
        .takes([parameter::run_id()])
        .answers::<AttemptList>(200, "All of them.", json!({ "attempts": [runs::attempt()] }))
        .refuses(&["run_not_found"])
}

pub fn events() -> Operation {
    let page = json!({ "events": [runs::event()], "next": example::CURSOR });
    let [after, limit] = super::event::read_on();
    Operation::new("listRunEvents", Tag::Runs, "Read what happened to a run and its agents, in order")
        .about("Read on with `after` set to `next`, which is always present.")
        .takes([parameter::run_id(), after, limit])
        .answers::<EventList>(200, "A page of them.", page)
        .refuses(&["run_not_found", "invalid_cursor"])
}
