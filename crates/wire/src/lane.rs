//! Lanes on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lane {
    /// Its name, such as `project:shop`.
    pub lane: String,
    /// Jobs that may run at once; null: no limit, or none known because no job stands in it.
    pub limit: Option<u32>,
    /// Jobs that hold a slot: they run, or wait for their tool.
    pub running: u32,
    /// Jobs that want one.
    pub waiting: u32,
    /// Nothing is handed out; what runs goes on.
    pub paused: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LaneList {
    /// By name.
    pub lanes: Vec<Lane>,
    /// Where the list goes on; null at the end.
    pub next_cursor: Option<String>,
}
