//! The lifecycle of a job as one table, and its outer face.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    Received,
    Queued,
    Executing,
    AwaitingTool,
    AwaitingUserConfirmation,
    Completed,
    Failed,
    Cancelled,
}

use State::{AwaitingTool, AwaitingUserConfirmation, Cancelled, Completed, Executing, Failed, Queued, Received};

pub type Move = (State, &'static [State]);

/// Staying put is always legal and is not listed.
pub const MOVES: [Move; 8] = [
    (Received, &[Queued, Failed, Cancelled]),
    (Queued, &[Executing, Failed, Cancelled]),
    (Executing, &[AwaitingTool, AwaitingUserConfirmation, Completed, Failed, Cancelled]),
    (AwaitingTool, &[Executing, Failed, Cancelled]),
    (AwaitingUserConfirmation, &[Executing, Failed, Cancelled]),
    (Completed, &[]),
    (Failed, &[]),
    (Cancelled, &[]),
];

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it cannot go from {from} to {to}{}", list(*from, allowed))]
pub struct IllegalMove {
    pub from: State,
    pub to: State,
    pub allowed: &'static [State],
}

fn list(from: State, allowed: &[State]) -> String {
    if allowed.is_empty() {
        return format!(": it has ended, and {from} is final");
    }
    let states: Vec<&str> = allowed.iter().map(|s| s.as_str()).collect();
    format!("; from {from} it can go to {}", states.join(", "))
}

impl State {
    pub const ALL: [Self; 8] =
        [Received, Queued, Executing, AwaitingTool, AwaitingUserConfirmation, Completed, Failed, Cancelled];

    pub const fn as_str(self) -> &'static str {
        match self {
            Received => "received",
            Queued => "queued",
            Executing => "executing",
            AwaitingTool => "awaiting_tool",
            AwaitingUserConfirmation => "awaiting_user_confirmation",
            Completed => "completed",
            Failed => "failed",
            Cancelled => "cancelled",
        }
    }

    /// Accepts both spellings of the cancelled state.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "canceled" {
            return Some(Cancelled);
        }
        Self::ALL.into_iter().find(|s| s.as_str() == text)
    }

    pub const fn moves(self) -> &'static [Self] {
        MOVES[self as usize].1
    }

    pub const fn is_ended(self) -> bool {
        matches!(self, Completed | Failed | Cancelled)
    }

    pub fn check(self, to: Self) -> Result<(), IllegalMove> {
        if self == to || self.moves().contains(&to) {
            return Ok(());
        }
        Err(self.illegal(to))
    }

    pub const fn illegal(self, to: Self) -> IllegalMove {
        IllegalMove { from: self, to, allowed: self.moves() }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The three ways to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Completed,
    Failed,
    Cancelled,
}

impl End {
    pub const fn state(self) -> State {
        match self {
            Self::Completed => State::Completed,
            Self::Failed => State::Failed,
            Self::Cancelled => State::Cancelled,
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Completed, Self::Failed, Self::Cancelled].into_iter().find(|e| e.state().as_str() == text)
    }
}

/// How the orchestrator routes name the states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Face {
    Queued,
    Running,
    Completed,
    Failed,
    Canceled,
}

impl Face {
    pub const ALL: [Self; 5] = [Self::Queued, Self::Running, Self::Completed, Self::Failed, Self::Canceled];

    /// A job whose tool runs counts as running; one that waits to be executed again does not.
    pub const fn of(state: State, pause: Option<super::Pause>) -> Self {
        match (state, pause) {
            (Received | Queued | AwaitingUserConfirmation, _) | (AwaitingTool, Some(super::Pause::Retry)) => {
                Self::Queued
            }
            (Executing | AwaitingTool, _) => Self::Running,
            (Completed, _) => Self::Completed,
            (Failed, _) => Self::Failed,
            (Cancelled, _) => Self::Canceled,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        }
    }

    /// Accepts both spellings of the canceled state.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "cancelled" {
            return Some(Self::Canceled);
        }
        Self::ALL.into_iter().find(|f| f.as_str() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Pause;
    use proptest::prelude::*;

    /// Written out a second time, cell by cell, so that a slip in the table is seen.
    /// Rows and columns in the order of `State::ALL`; x is allowed, staying put included.
    const GRID: [&str; 8] = [
        "xx....xx", // received
        ".xx...xx", // queued
        "..xxxxxx", // executing
        "..xx..xx", // awaiting_tool
        "..x.x.xx", // awaiting_user_confirmation
        ".....x..", // completed
        "......x.", // failed
        ".......x", // cancelled
    ];

    #[test]
    fn every_state_to_every_state_is_as_the_matrix_says() {
        for (row, from) in State::ALL.into_iter().enumerate() {
            assert_eq!(MOVES[row].0, from, "the table is in the order of the states");
            for (column, to) in State::ALL.into_iter().enumerate() {
                let allowed = GRID[row].as_bytes()[column] == b'x';
                assert_eq!(from.check(to).is_ok(), allowed, "{from} to {to}");
            }
        }
    }

    #[test]
    fn a_refusal_names_from_to_and_what_is_allowed() {
        let no = Queued.check(Completed).unwrap_err();
        assert_eq!(
            no.to_string(),
            "it cannot go from queued to completed; from queued it can go to executing, failed, cancelled"
        );
        let no = Failed.check(Queued).unwrap_err();
        assert_eq!(no.to_string(), "it cannot go from failed to queued: it has ended, and failed is final");
    }

    #[test]
    fn the_face_of_every_state() {
        let face = |s| Face::of(s, None).as_str();
        assert_eq!(
            State::ALL.map(face),
            ["queued", "queued", "running", "running", "queued", "completed", "failed", "canceled"]
        );
        assert_eq!(Face::of(AwaitingTool, Some(Pause::Retry)), Face::Queued);
        assert_eq!(Face::of(AwaitingTool, Some(Pause::Tool)), Face::Running);
        assert_eq!(Face::parse("cancelled"), Some(Face::Canceled));
        assert_eq!(State::parse("canceled"), Some(Cancelled));
    }

    proptest! {
        #[test]
        fn an_ended_job_never_moves(asked in proptest::collection::vec(0usize..8, 0..64)) {
            let mut state = Received;
            for to in asked {
                let to = State::ALL[to];
                let before = state;
                if state.check(to).is_ok() {
                    state = to;
                }
                prop_assert!(!before.is_ended() || state == before);
            }
        }
    }
}
