//! What goes over a socket: one thing that happened, addressed to whom it concerns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    /// Of jobs one of the orchestrator's six types; of everything else the kind of the event.
    #[serde(rename = "type")]
    pub kind: String,
    /// The chat session that it belongs to.
    pub thread_id: Option<String>,
    pub project_id: Option<String>,
    /// Listening goes on after this one with `after`.
    pub position: String,
    pub payload: Value,
}
