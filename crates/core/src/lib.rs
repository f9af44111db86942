//! What is true: commands, state tables, policies, arithmetic.
//!
//! A command names what it must read and decides, as a pure function of what was read, which
//! changes follow, or refuses with a typed reason. Nothing here is async, looks at a clock,
//! draws randomness, touches a file or knows SQL: time, ids and chance come in through
//! [`command::Ctx`].
//!
//! Elsewhere: loading and committing (`baton-store`), acting on what was committed
//! (`baton-engine`).

pub mod access;
pub mod audit;
pub mod by_org;
pub mod canon;
pub mod changes;
pub mod command;
pub mod credits;
pub mod cron;
pub mod decision;
pub mod dedupe;
pub mod definition;
pub mod doc;
pub mod event;
pub mod id;
pub mod job;
pub mod lane;
pub mod ledger;
pub mod limits;
pub mod name;
pub mod once;
pub mod plan;
pub mod retry;
pub mod rng;
pub mod rules;
pub mod run;
pub mod schedule;
pub mod seal;
pub mod sink;
pub mod span;
pub mod template;
pub mod time;
pub mod timer;
pub mod told;
pub mod webhook;
pub mod world;

pub use canon::{Digest, Json};
pub use changes::Changes;
pub use command::{Actor, Command, Ctx, Decision, Reads, Refusal};
pub use credits::Credits;
pub use id::{AgentId, JobId, RunId};
pub use name::{OrgId, ProjectId, TypeName, WorkerId};
pub use time::Micros;
pub use world::{View, World};
