//! What every route says about itself, by its domain word.

pub mod access;
pub mod credits;
pub mod decision;
pub mod document;
pub mod event;
pub mod installation;
pub mod job;
pub mod job_type;
pub mod lane;
pub mod letter;
pub mod orchestrator;
pub mod part;
pub mod run;
pub mod schedule;
pub mod webhook;
pub mod why;
pub mod worker;
