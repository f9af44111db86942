//! What steps may call, on the wire.

use crate::shape::Shape;
use baton_core::credits::Credits;
use baton_core::name::ToolName;
use baton_core::plan::{self, Doer, Effect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    #[schemars(with = "Shape<ToolName>")]
    pub name: ToolName,
    #[schemars(with = "Shape<Doer>")]
    pub doer: Doer,
    #[schemars(with = "Shape<Effect>")]
    pub effect: Effect,
    /// Of each call.
    #[schemars(with = "Shape<Credits>")]
    pub price: Credits,
    /// How long a call may take: 0 is for ever, null what the run says.
    pub timeout_ms: Option<u64>,
    /// How often a step calls it at most; null is what the run says.
    pub attempts: Option<u32>,
}

impl Tool {
    pub fn of(name: &ToolName, tool: &plan::Tool) -> Self {
        Self {
            name: name.clone(),
            doer: tool.doer,
            effect: tool.effect,
            price: tool.price,
            timeout_ms: tool.timeout.map(|span| u64::try_from(span.0 / 1_000).unwrap_or(0)),
            attempts: tool.attempts,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolList {
    /// By name.
    pub tools: Vec<Tool>,
}
