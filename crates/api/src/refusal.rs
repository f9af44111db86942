//! What a refusal of a command tells a client besides its code.

use baton_core::access::change::KeyError;
use baton_core::command::{Never, Refusal};
use baton_core::cron::put::PutError;
use baton_core::decision::resolve::ResolveError;
use baton_core::definition::PutTypeError;
use baton_core::job::batch::BatchError;
use baton_core::job::cancel::CancelError;
use baton_core::job::enqueue::EnqueueError;
use baton_core::job::report::ReportError;
use baton_core::job::requeue::RequeueError;
use baton_core::job::settle::SettleError;
use baton_core::job::state::{IllegalMove, State};
use baton_core::job::wake::WakeError;
use baton_core::ledger::grant::GrantError;
use baton_core::run::RunError;
use baton_core::run::state::{self as run_state, AgentState, State as RunState};
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
impl Told for GrantError {}
impl Told for PutTypeError {}
impl Told for SettleError {}
impl Told for ReportError {}

/// What a client can read of a move that the table does not have.
fn of_move(illegal: &IllegalMove) -> Members {
    Members {
        from: Some(illegal.from.to_string()),
        to: Some(illegal.to.to_string()),
        allowed: Some(illegal.allowed.iter().map(ToString::to_string).collect()),
        ..Members::default()
    }
}

/// The same of a run or an agent.
fn of_run_move(illegal: &run_state::IllegalMove) -> Members {
    let words = |allowed: Vec<&'static str>| Some(allowed.into_iter().map(str::to_owned).collect());
    let allowed = match illegal.what {
        "a run" => RunState::parse(illegal.from).map(|s| s.targets().iter().map(|to| to.as_str()).collect()),
        "an agent" => AgentState::parse(illegal.from).map(|s| s.targets().iter().map(|to| to.as_str()).collect()),
        _ => None,
    };
    Members {
        from: Some(illegal.from.to_owned()),
        to: Some(illegal.to.to_owned()),
        allowed: allowed.and_then(words),
        ..Members::default()
    }
}

impl Told for RunError {
    fn members(&self) -> Members {
        match self {
            Self::Illegal(illegal) => of_run_move(illegal),
            Self::AtWork(state) => Members { from: Some(state.to_string()), ..Members::default() },
            Self::Short { wanted, available } => {
                Members { needed: Some(*wanted), available: Some(*available), ..Members::default() }
            }
            Self::AttemptsExhausted { max, .. } | Self::TooManySignals { max, .. } => {
                Members { limit: Some(*max), ..Members::default() }
            }
            Self::NotFound(_) | Self::NoAgent(_) => Members::default(),
        }
    }
}

impl Told for CancelError {
    fn members(&self) -> Members {
        match self {
            Self::AlreadyEnded { illegal, .. } => of_move(illegal),
            Self::NotFound(_) | Self::OfRun(_) => Members::default(),
        }
    }
}

impl Told for WakeError {
    fn members(&self) -> Members {
        match self {
            Self::AlreadyEnded { illegal, .. } => of_move(illegal),
            Self::NotFound(_) | Self::OfRun(_) => Members::default(),
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
