//! What a decision asks to be written: a struct of per-domain parts, each applied by its own
//! code in each store, never one enum of everything.

use crate::event::Event;
use crate::{definition, job, seal, timer};

#[derive(Clone, Debug, Default)]
pub struct Changes {
    pub events: Vec<Event>,
    pub jobs: Vec<job::Change>,
    pub timers: Vec<timer::Change>,
    pub definitions: Vec<definition::Change>,
    pub seals: Vec<seal::Seal>,
}

impl Changes {
    pub fn none() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn event(mut self, event: Event) -> Self {
        self.events.push(event);
        self
    }

    #[must_use]
    pub fn job(mut self, change: job::Change) -> Self {
        self.jobs.push(change);
        self
    }

    #[must_use]
    pub fn timer(mut self, change: timer::Change) -> Self {
        self.timers.push(change);
        self
    }
}
