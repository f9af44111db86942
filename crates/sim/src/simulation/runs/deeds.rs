//! What the tools really did, outside of everything that can be rolled back.

use baton_core::RunId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A step that must not happen twice, in whichever attempt of anything: run, agent and `task.step`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place(pub RunId, pub String, pub String);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Deed {
    /// How often it was done.
    pub done: u32,
    /// How often somebody said that it was not, although it was.
    pub lies: u32,
    /// Calls that have not ended.
    pub flying: u32,
}

#[derive(Default)]
pub(super) struct Deeds(Mutex<BTreeMap<Place, Deed>>);

impl Deeds {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Place, Deed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn of(&self, place: &Place) -> Deed {
        self.all().get(place).copied().unwrap_or_default()
    }

    /// A call has begun; it ends with what is handed back, whoever drops it.
    pub fn begin(self: &Arc<Self>, place: Place) -> Flight {
        self.all().entry(place.clone()).or_default().flying += 1;
        Flight { deeds: self.clone(), place }
    }

    /// Somebody is about to say that it was not done.
    pub fn denied(&self, place: &Place) {
        let mut all = self.all();
        let deed = all.entry(place.clone()).or_default();
        deed.lies = deed.lies.max(deed.done);
    }
}

/// A call in flight.
pub(super) struct Flight {
    deeds: Arc<Deeds>,
    place: Place,
}

impl Flight {
    /// It is done. What is wrong with that, if anything.
    pub fn act(&self) -> Option<String> {
        let mut all = self.deeds.all();
        let deed = all.entry(self.place.clone()).or_default();
        deed.done += 1;
        (deed.done > 1 + deed.lies).then(|| format!("{:?} must not happen twice: {deed:?}", self.place))
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if let Some(deed) = self.deeds.all().get_mut(&self.place) {
            deed.flying -= 1;
        }
    }
}
