//! What a run does, by subject.

mod chance;
mod clocks;
mod effects;
mod failures;
mod hold;
mod money;
mod order;
mod states;
mod waits;
