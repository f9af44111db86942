//! Which states a list is asked for. Both vocabularies are understood on every route.

use super::shown::Shown;
use crate::problem::Fault;
use crate::query::Params;
use baton_core::job::state::Face;
use baton_core::job::{Pause, State, Status};

/// One of Baton's states, or all those that look the same from the orchestrator's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    State(State),
    Face(Face),
}

/// Any of these; none means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct States(Vec<Wanted>);

impl States {
    pub fn read<J: Shown>(params: &Params) -> Result<Self, Fault> {
        let mut states = Vec::new();
        for text in params.all("state") {
            let wanted = Wanted::read::<J>(text)
                .ok_or_else(|| Fault::field("state", format!("must be among {}", words().join(", "))))?;
            if !states.contains(&wanted) {
                states.push(wanted);
            }
        }
        Ok(Self(states))
    }

    pub fn matches(&self, status: &Status) -> bool {
        self.0.is_empty() || self.0.iter().any(|wanted| wanted.matches(status))
    }

    /// The faces that show all of them, which is what the store looks for, and whether they show
    /// nothing else.
    pub fn faces(&self) -> (Vec<Face>, bool) {
        let mut faces = Vec::new();
        for face in self.0.iter().flat_map(|wanted| wanted.faces()) {
            if !faces.contains(&face) {
                faces.push(face);
            }
        }
        let exact = self.0.iter().all(|wanted| match wanted {
            Wanted::State(state) => state.is_ended(),
            Wanted::Face(_) => true,
        });
        (faces, exact)
    }
}

impl Wanted {
    fn read<J: Shown>(word: &str) -> Option<Self> {
        match word {
            "queued" => Some(J::QUEUED),
            _ => State::parse(word).map(Self::State).or_else(|| Face::parse(word).map(Self::Face)),
        }
    }

    fn matches(self, status: &Status) -> bool {
        match self {
            Self::State(state) => status.state() == state,
            Self::Face(face) => status.face() == face,
        }
    }

    /// A state has two of them if it depends on what the job waits for.
    fn faces(self) -> [Face; 2] {
        match self {
            Self::State(state) => [Pause::Tool, Pause::Retry].map(|pause| Face::of(state, Some(pause))),
            Self::Face(face) => [face; 2],
        }
    }
}

/// Every word that is understood, each once.
pub fn words() -> Vec<&'static str> {
    let mut words = State::ALL.map(State::as_str).to_vec();
    words.extend(Face::ALL.map(Face::as_str).into_iter().filter(|word| !words.contains(word)).collect::<Vec<_>>());
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_store::Filter;
    use baton_wire::{Job, OrchestratorJob};

    fn read<J: Shown>(text: &str) -> States {
        States::read::<J>(&Params::of(&[("state", text)])).unwrap()
    }

    #[test]
    fn every_word_is_understood_everywhere_and_only_one_means_two_things() {
        for word in words() {
            let (own, outer) = (read::<Job>(word), read::<OrchestratorJob>(word));
            assert_eq!(own != outer, word == "queued", "{word}");
        }
        assert_eq!(read::<Job>("canceled"), read::<Job>("cancelled"));
        let fault = format!("{:?}", States::read::<Job>(&Params::of(&[("state", "asleep")])).unwrap_err());
        for word in words() {
            assert!(fault.contains(word), "{word} is not in {fault}");
        }
    }

    #[test]
    fn the_store_finds_whatever_is_wanted() {
        let tool = |pause| Status::AwaitingTool { pause, due_at: None };
        let lease = baton_core::job::Lease { worker: "n".parse().unwrap(), until: baton_core::Micros(0) };
        let statuses = [
            Status::Queued { due_at: baton_core::Micros(0) },
            Status::Executing { lease },
            tool(Pause::Tool),
            tool(Pause::Retry),
            Status::AwaitingUser { due_at: None },
        ];
        for word in words() {
            let wanted = read::<Job>(word);
            let (states, exact) = wanted.faces();
            let filter = Filter { states, kind: None };
            for status in &statuses {
                let found = filter.matches(status.face(), "echo");
                assert!(found || !wanted.matches(status), "{word} misses {status:?}");
                assert!(!exact || found == wanted.matches(status), "{word} finds {status:?}");
            }
        }
        assert!(States::default().matches(&statuses[0]) && States::default().faces().1);
    }

    #[test]
    fn words_of_both_sides_are_told_apart() {
        let running = read::<Job>("running");
        let executing = read::<OrchestratorJob>("executing");
        let parked = Status::AwaitingTool { pause: Pause::Tool, due_at: None };
        assert!(running.matches(&parked) && !executing.matches(&parked));
        let asking = Status::AwaitingUser { due_at: None };
        assert!(read::<OrchestratorJob>("queued").matches(&asking) && !read::<Job>("queued").matches(&asking));
        assert_eq!(read::<Job>("executing,awaiting_tool").faces().0, [Face::Running, Face::Queued]);
    }
}
