//! Decisions.

use super::super::example;
use super::super::operation::{Operation, Tag};
use super::super::parameter;
use baton_core::name::Responsibility;
use baton_wire::{Decision, DecisionList, DecisionState, Resolve};
use schemars::json_schema;
use serde_json::json;

pub fn list() -> Operation {
    let page = json!({ "decisions": [example::decision()], "nextCursor": null });
    Operation::new("listDecisions", Tag::Decisions, "List decisions, newest first")
        .takes([
            parameter::query_as("state", "Only those in this state.", |g| g.subschema_for::<DecisionState>()),
            parameter::only_project(),
            parameter::query::<Responsibility>("responsibility", "Only those that are theirs.", "development_manager"),
            parameter::query_as(
                "subject",
                "Only those that this waits for, such as a job's id.",
                |_| json_schema!({ "type": "string" }),
            ),
            parameter::order_by_time(),
            parameter::limit_names(),
            parameter::cursor(),
        ])
        .answers::<DecisionList>(200, "A page of them.", page)
        .leads(&["getDecision", "resolveDecision"], &[("decisionId", "$response.body#/decisions/0/id")])
}

pub fn get() -> Operation {
    Operation::new("getDecision", Tag::Decisions, "Show a decision")
        .takes([parameter::decision_id()])
        .answers::<Decision>(200, "The decision.", example::decision())
        .refuses(&["decision_not_found"])
}

pub fn resolve() -> Operation {
    Operation::new("resolveDecision", Tag::Decisions, "Answer a decision")
        .about(
            "Wakes what waits for it, in the same commit. Only a key with the decision's responsibility, or an admin's, \
             may; only the first answer counts.",
        )
        .takes([parameter::decision_id()])
        .body::<Resolve>("an answer", json!({ "option": "confirm", "comment": "go ahead" }))
        .answers::<Decision>(200, "The decision, resolved.", example::resolved())
        .refuses(&["decision_not_found", "decision_closed", "not_responsible", "unknown_option", "answer_too_large"])
}
