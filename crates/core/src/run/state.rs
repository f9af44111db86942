//! The lifecycles of runs, agents, tasks and steps, each as one table.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! machine {
    ($(#[$doc:meta])* $name:ident, $word:literal, [$($state:ident = $text:literal),+ $(,)?]) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name {
            $($state),+
        }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$state),+];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$state => $text),+
                }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|state| state.as_str() == text)
            }

            /// Where it may go from here; staying put is always legal and is not among them.
            pub fn targets(self) -> &'static [Self] {
                Self::MOVES.iter().find(|(from, _)| *from == self).map_or(&[], |(_, to)| to)
            }

            /// It never moves again, whatever is asked.
            pub fn is_final(self) -> bool {
                self.targets().is_empty()
            }

            pub fn check(self, to: Self) -> Result<(), IllegalMove> {
                if self == to || self.targets().contains(&to) {
                    return Ok(());
                }
                Err(IllegalMove { what: $word, from: self.as_str(), to: to.as_str() })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

/// A move that the table does not list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} that is {from} cannot become {to}")]
pub struct IllegalMove {
    pub what: &'static str,
    pub from: &'static str,
    pub to: &'static str,
}

machine!(
    /// Of a run.
    State, "a run", [
        Created = "created",
        Pending = "pending",
        Running = "running",
        Paused = "paused",
        Resuming = "resuming",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
        Retrying = "retrying",
        Skipped = "skipped",
    ]
);

impl State {
    /// A failed run moves again if it is retried; all others that ended do not.
    pub const MOVES: [(Self, &'static [Self]); 10] = [
        (Self::Created, &[Self::Pending, Self::Cancelled]),
        (Self::Pending, &[Self::Running, Self::Cancelled, Self::Failed]),
        (Self::Running, &[Self::Completed, Self::Failed, Self::Paused, Self::Cancelled, Self::Skipped]),
        (Self::Paused, &[Self::Resuming, Self::Cancelled]),
        (Self::Resuming, &[Self::Running, Self::Failed]),
        (Self::Completed, &[]),
        (Self::Failed, &[Self::Retrying]),
        (Self::Cancelled, &[]),
        (Self::Retrying, &[Self::Pending, Self::Failed]),
        (Self::Skipped, &[]),
    ];

    /// Nothing happens to it by itself any more: its attempt is over and its credits are settled.
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Skipped)
    }

    /// Agents of it may exist that have not ended.
    pub const fn is_at_work(self) -> bool {
        matches!(self, Self::Running | Self::Paused | Self::Resuming)
    }
}

machine!(
    /// Of an agent.
    AgentState, "an agent", [
        Pending = "pending",
        Running = "running",
        Paused = "paused",
        Completed = "completed",
        Failed = "failed",
        Skipped = "skipped",
        Cancelled = "cancelled",
    ]
);

impl AgentState {
    pub const MOVES: [(Self, &'static [Self]); 7] = [
        (Self::Pending, &[Self::Running, Self::Paused, Self::Cancelled]),
        (Self::Running, &[Self::Completed, Self::Failed, Self::Skipped, Self::Cancelled, Self::Paused, Self::Pending]),
        (Self::Paused, &[Self::Pending, Self::Cancelled]),
        (Self::Completed, &[]),
        (Self::Failed, &[]),
        (Self::Skipped, &[]),
        (Self::Cancelled, &[]),
    ];
}

machine!(
    /// Of a task.
    TaskState, "a task", [
        Pending = "pending",
        Running = "running",
        Paused = "paused",
        Completed = "completed",
        Failed = "failed",
        Skipped = "skipped",
        Cancelled = "cancelled",
    ]
);

impl TaskState {
    pub const MOVES: [(Self, &'static [Self]); 7] = [
        (Self::Pending, &[Self::Running, Self::Paused, Self::Cancelled]),
        (Self::Running, &[Self::Completed, Self::Failed, Self::Skipped, Self::Cancelled, Self::Paused, Self::Pending]),
        (Self::Paused, &[Self::Pending, Self::Cancelled]),
        (Self::Completed, &[]),
        (Self::Failed, &[]),
        (Self::Skipped, &[]),
        (Self::Cancelled, &[]),
    ];
}

machine!(
    /// Of a step.
    StepState, "a step", [
        Pending = "pending",
        Running = "running",
        Completed = "completed",
        Failed = "failed",
        Skipped = "skipped",
        Cancelled = "cancelled",
    ]
);

impl StepState {
    pub const MOVES: [(Self, &'static [Self]); 6] = [
        (Self::Pending, &[Self::Running, Self::Cancelled]),
        (Self::Running, &[Self::Completed, Self::Failed, Self::Skipped, Self::Cancelled, Self::Pending]),
        (Self::Completed, &[]),
        (Self::Failed, &[]),
        (Self::Skipped, &[]),
        (Self::Cancelled, &[]),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert, proptest};

    /// Every state against every target, by hand: what is not named here must be refused.
    #[test]
    fn every_state_of_a_run_allows_exactly_its_moves() {
        use State::{Cancelled, Completed, Created, Failed, Paused, Pending, Resuming, Retrying, Running, Skipped};
        let legal = [
            (Created, Pending),
            (Created, Cancelled),
            (Pending, Running),
            (Pending, Cancelled),
            (Pending, Failed),
            (Running, Completed),
            (Running, Failed),
            (Running, Paused),
            (Running, Cancelled),
            (Running, Skipped),
            (Paused, Resuming),
            (Paused, Cancelled),
            (Resuming, Running),
            (Resuming, Failed),
            (Failed, Retrying),
            (Retrying, Pending),
            (Retrying, Failed),
        ];
        for from in State::ALL {
            for to in State::ALL {
                let expected = from == to || legal.contains(&(*from, *to));
                assert_eq!(from.check(*to).is_ok(), expected, "{from} to {to}");
            }
        }
        assert!(State::ALL.iter().all(|s| State::parse(s.as_str()) == Some(*s)));
    }

    #[test]
    fn every_state_of_an_agent_and_a_task_allows_exactly_its_moves() {
        use AgentState::{Cancelled, Completed, Failed, Paused, Pending, Running, Skipped};
        let legal = [
            (Pending, Running),
            (Pending, Paused),
            (Pending, Cancelled),
            (Running, Completed),
            (Running, Failed),
            (Running, Skipped),
            (Running, Cancelled),
            (Running, Paused),
            (Running, Pending),
            (Paused, Pending),
            (Paused, Cancelled),
        ];
        for from in AgentState::ALL {
            for to in AgentState::ALL {
                let expected = from == to || legal.contains(&(*from, *to));
                assert_eq!(from.check(*to).is_ok(), expected, "{from} to {to}");
                let (from, to) = (TaskState::parse(from.as_str()).unwrap(), TaskState::parse(to.as_str()).unwrap());
                assert_eq!(from.check(to).is_ok(), expected, "task: {from} to {to}");
            }
        }
    }

    #[test]
    fn every_state_of_a_step_allows_exactly_its_moves() {
        use StepState::{Cancelled, Completed, Failed, Pending, Running, Skipped};
        let legal = [
            (Pending, Running),
            (Pending, Cancelled),
            (Running, Completed),
            (Running, Failed),
            (Running, Skipped),
            (Running, Cancelled),
            (Running, Pending),
        ];
        for from in StepState::ALL {
            for to in StepState::ALL {
                let expected = from == to || legal.contains(&(*from, *to));
                assert_eq!(from.check(*to).is_ok(), expected, "{from} to {to}");
            }
        }
    }

    proptest! {
        #[test]
        fn whatever_has_ended_for_good_never_moves(asked in vec(any::<proptest::sample::Index>(), 0..64)) {
            let mut state = State::Created;
            for to in asked {
                let (before, to) = (state, *to.get(State::ALL));
                state = if state.check(to).is_ok() { to } else { state };
                prop_assert!(!before.is_final() || state == before);
            }
        }
    }
}
