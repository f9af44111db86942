//! Answering what jobs ask, as an admin would.

use crate::lab::name;
use baton_core::OrgId;
use baton_core::access::{Grant, Role};
use baton_core::decision::resolve::Resolve;
use baton_core::id::DecisionId;
use baton_core::job::{Job, Status};

/// The decision that a job waits for.
pub fn open_decision(job: &Job) -> Option<DecisionId> {
    match job.status {
        Status::AwaitingUser { due_at: None } => job.decision(),
        _ => None,
    }
}

/// An answer with this as its comment.
pub fn resolve(id: DecisionId, option: &str, comment: &str) -> Resolve {
    Resolve {
        org: OrgId::default(),
        id,
        option: name(option),
        comment: Some(comment.to_owned()),
        data: None,
        grant: Grant::of(Role::Admin),
    }
}
