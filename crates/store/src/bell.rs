//! A bell that wakes whoever listens, in the order in which they came to listen.
//!
//! Many receivers of one channel are woken in an order that is drawn anew each time. Several loops
//! of a node wait for the same news, and whoever is first claims first: the same seed would not be
//! the same story again.

use std::sync::{Mutex, PoisonError};
use tokio::sync::watch;

#[derive(Default)]
pub(crate) struct Bell {
    ears: Mutex<Vec<watch::Sender<u64>>>,
}

impl Bell {
    pub fn ring(&self) {
        self.ears.lock().unwrap_or_else(PoisonError::into_inner).retain(|ear| {
            ear.send_modify(|times| *times += 1);
            !ear.is_closed()
        });
    }

    pub fn listen(&self) -> watch::Receiver<u64> {
        let (ear, heard) = watch::channel(0);
        self.ears.lock().unwrap_or_else(PoisonError::into_inner).push(ear);
        heard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_hears_what_rings_after_they_came_and_who_left_is_forgotten() {
        let bell = Bell::default();
        let early = bell.listen();
        bell.ring();
        let late = bell.listen();
        assert!(early.has_changed().unwrap() && !late.has_changed().unwrap());
        drop(early);
        bell.ring();
        assert!(late.has_changed().unwrap());
        assert_eq!(bell.ears.lock().unwrap().len(), 1);
    }
}
