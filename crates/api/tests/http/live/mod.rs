//! Hearing what happens, over sockets and streams, on a real port.

mod ears;
mod ends;
mod filters;
mod isolation;
mod nodes;
mod orchestrator;
mod refusals;
mod resume;
