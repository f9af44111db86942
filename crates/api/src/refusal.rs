//! What a refusal of a command tells a client besides its code.

use baton_core::access::change::KeyError;
use baton_core::command::{Never, Refusal};
use baton_core::cron::put::PutError;
use baton_core::decision::resolve::ResolveError;
use baton_core::job::batch::BatchError;
use baton_core::job::cancel::CancelError;
use baton_core::job::enqueue::EnqueueError;
use baton_core::job::requeue::RequeueError;
use baton_core::job::state::{IllegalMove, State};
use baton_core::job::wake::WakeError;
use baton_core::webhook::change::WebhookError;
use baton_wire::Members;

pub trait Told: Refusal {
    fn members(&self) -> Members {
        Members::default()
    }
}

impl Told for Never {}
impl Told for KeyError {}
impl Told for PutError {}
impl Told for ResolveError {}

/// What a client can read of a move that the table does not have.
fn of_move(illegal: &IllegalMove) -> Members {
    Members {
        from: Some(illegal.from.to_string()),
        to: Some(illegal.to.to_string()),
        allowed: Some(illegal.allowed.iter().map(ToString::to_string).collect()),
        ..Members::default()
    }
}

impl Told for CancelError {
    fn members(&self) -> Members {
        match self {
            Self::AlreadyEnded { illegal, .. } => of_move(illegal),
            Self::NotFound(_) => Members::default(),
        }
    }
}

impl Told for WakeError {
    fn members(&self) -> Members {
        match self {
            Self::AlreadyEnded { illegal, .. } => of_move(illegal),
            Self::NotFound(_) => Members::default(),
        }
    }
}

impl Told for WebhookError {
    fn members(&self) -> Members {
        Members::default()
    }
}

impl Told for EnqueueError {
    fn members(&self) -> Members {
        match self {
            Self::QueueFull { limit, waiting, .. } => Members {
                limit: Some(*limit),
                waiting: Some(*waiting),
                retry_after_ms: self.retry_after().and_then(|after| u32::try_from(after.to_std().as_millis()).ok()),
                ..Members::default()
            },
            _ => Members::default(),
        }
    }
}

impl Told for BatchError {
    fn members(&self) -> Members {
        match self {
            Self::Job { index, source } => Members { index: Some(*index), ..source.members() },
            Self::Size { .. } => Members::default(),
        }
    }
}

impl Told for RequeueError {
    fn members(&self) -> Members {
        match self {
            Self::Job { source, .. } => source.members(),
            // No move of this job is asked for: another one would be made.
            Self::NotFailed { state, .. } => Members { to: None, ..of_move(&state.illegal(State::Queued)) },
            _ => Members::default(),
        }
    }
}
