//! Who may wait here at once, for events or for jobs: so many in all, and so many with one key.

use crate::problem::Fault;
use baton_core::id::KeyId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

pub struct Places {
    /// What they do, in the words of a refusal.
    doing: &'static str,
    /// The codes of there being too many, in all and with one key.
    codes: [&'static str; 2],
    all: usize,
    per_key: usize,
    keys: Mutex<BTreeMap<KeyId, usize>>,
    taken: watch::Sender<usize>,
}

/// One's place, until it is dropped.
pub struct Place {
    places: Arc<Places>,
    key: KeyId,
}

impl Places {
    pub fn of_listeners(all: usize, per_key: usize) -> Self {
        Self::new("listening", ["listeners_full", "too_many_listeners"], all, per_key)
    }

    pub fn of_workers(all: usize, per_key: usize) -> Self {
        Self::new("waiting for jobs", ["too_many_waiting"; 2], all, per_key)
    }

    fn new(doing: &'static str, codes: [&'static str; 2], all: usize, per_key: usize) -> Self {
        Self { doing, codes, all, per_key, keys: Mutex::default(), taken: watch::Sender::new(0) }
    }

    pub fn take(self: &Arc<Self>, key: KeyId) -> Result<Place, Fault> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if *self.taken.borrow() >= self.all {
            return Err(Fault::new(self.codes[0], format!("{} are {}, and more cannot", self.all, self.doing)));
        }
        let own = keys.entry(key).or_default();
        if *own >= self.per_key {
            let detail = format!("{own} are {} with this key, and no more than {} can", self.doing, self.per_key);
            return Err(Fault::new(self.codes[1], detail));
        }
        *own += 1;
        self.taken.send_modify(|taken| *taken += 1);
        Ok(Place { places: self.clone(), key })
    }

    pub async fn deserted(&self) {
        // The sender is here, so this cannot end any other way.
        let _ = self.taken.subscribe().wait_for(|taken| *taken == 0).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut keys = self.places.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = keys.get_mut(&self.key) {
            *own -= 1;
            if *own == 0 {
                keys.remove(&self.key);
            }
        }
        self.places.taken.send_modify(|taken| *taken -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[tokio::test]
    async fn places_are_limited_in_all_and_per_key_and_given_back() {
        let places = Arc::new(Places::of_listeners(3, 2));
        let (a, b) = (KeyId(Uuid::from_u128(1)), KeyId(Uuid::from_u128(2)));
        let code = |key| places.take(key).err().map(|fault| fault.code());
        let first = places.take(a).unwrap();
        let _second = places.take(a).unwrap();
        assert_eq!(code(a), Some("too_many_listeners"));
        let third = places.take(b).unwrap();
        assert_eq!(code(b), Some("listeners_full"));
        drop(first);
        let fourth = places.take(a).unwrap();
        assert_eq!(code(a), Some("listeners_full"), "who is refused holds nothing");
        drop((third, fourth, _second));
        places.deserted().await;
        assert!(places.keys.lock().unwrap().is_empty(), "nobody is remembered");
    }
}
