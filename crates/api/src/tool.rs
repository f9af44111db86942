//! The tools that run documents may name.

use crate::app::App;
use crate::door::Caller;
use crate::problem::Fault;
use crate::query::Params;
use axum::Json as Answer;
use axum::extract::State;
use baton_wire::{Tool, ToolList};

/// None where no agents are worked on.
pub async fn list(State(app): State<App>, _: Caller, params: Params) -> Result<Answer<ToolList>, Fault> {
    params.allow(&[])?;
    let known = app.engine().tools();
    let known = known.as_deref();
    let tools =
        known.into_iter().flat_map(|known| known.names().filter_map(|name| Some(Tool::of(name, known.get(name)?))));
    Ok(Answer(ToolList { tools: tools.collect() }))
}
