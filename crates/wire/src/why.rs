//! Why something does not go on, on the wire.

use crate::shape::Shape;
use crate::time::Time;
use baton_core::run::why::{self, Kind, What};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Why {
    /// Tasks and steps are named by their places in the plan.
    pub id: String,
    #[schemars(with = "Shape<Kind>")]
    pub kind: Kind,
    pub status: String,
    /// In this state.
    pub since: Option<Time>,
    /// One sentence.
    pub summary: String,
    pub waits_for: Vec<Wait>,
}

/// One thing that is waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    #[schemars(with = "Shape<What>")]
    pub what: What,
    pub detail: String,
    pub since: Option<Time>,
    pub until: Option<Time>,
    /// What happens then.
    pub next: Option<String>,
    /// Who can change it.
    pub who: Option<String>,
    /// The decision, the lane, the job or the signal.
    pub id: Option<String>,
}

impl From<why::Why> for Why {
    fn from(why: why::Why) -> Self {
        let why::Why { id, kind, status, since, summary, waits_for } = why;
        let wait = |wait: why::Wait| {
            let why::Wait { what, detail, since, until, next, who, id } = wait;
            Wait { what, detail, since: since.map(Time), until: until.map(Time), next, who, id }
        };
        let waits_for = waits_for.into_iter().map(wait).collect();
        Self { id, kind, status, since: since.map(Time), summary, waits_for }
    }
}
