//! Hearing what happens: what was missed first, then live, without a gap and without a repetition.
//!
//! A listener is a cursor into the history. It reads on whenever there is more, so whoever is slow
//! costs nobody anything but their own place; what many read at once is read once ([`recent`]).

mod envelope;
mod feed;
pub mod recent;
pub mod socket;
pub mod sse;
mod threads;
mod wanted;

pub use recent::Recent;
pub use threads::Threads;

use feed::Feed;
use wanted::Wanted;
