//! What is said: HTTP.
//!
//! A request passes, from outside in: [`serve()`] (connections and their limits), [`envelope`]
//! (request id, panics, headers, metrics), [`guard`] (from where one may ask), [`door`] (who may do
//! what), and then its handler, named after its domain word.
//!
//! Invariants
//! - Every error is `application/problem+json` with a code from the one table in [`code`].
//! - What a request asks to be done is one command, committed before it is answered.
//! - Nothing here waits without a limit that has a name ([`limits`]).
//!
//! Elsewhere: the shapes of bodies (`baton-wire`), every rule (`baton-core`).

mod access;
mod after;
mod app;
mod audit;
mod body;
mod call;
mod code;
mod counters;
mod credits;
mod cursor;
mod decision;
mod docs;
pub mod door;
mod envelope;
mod event;
mod flight;
mod guard;
mod health;
mod idempotency;
mod job;
mod job_type;
mod lane;
mod letter;
pub mod limits;
mod live;
mod login;
pub mod metrics;
mod openapi;
mod places;
pub mod problem;
mod query;
mod refusal;
mod router;
mod run;
mod schedule;
mod serve;
mod tool;
mod trace;
mod unstalled;
mod wait;
mod webhook;
mod why;
mod worker;

pub use app::{App, Secrets};
pub use guard::{BadHostName, Hosts};
pub use live::Listening;
pub use openapi::document;
pub use router::{Route, router, routes};
pub use serve::{Entrance, serve};
