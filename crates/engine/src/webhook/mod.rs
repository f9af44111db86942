//! Telling webhooks what happens: reading the history for them ([`courier`]) and sending
//! ([`Deliver`]).

pub(crate) mod courier;
mod deliver;
mod post;

pub use deliver::{Carried, Carrier, Deliver, Parcel, Undelivered};
pub use post::Post;
