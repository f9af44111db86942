//! Which way a list is read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// By name, or by time where there is one: `desc` has the newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    Asc,
    Desc,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be asc or desc")]
pub struct BadOrder;

impl Order {
    pub const ALL: [Self; 2] = [Self::Asc, Self::Desc];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Asc => "asc",
            Self::Desc => "desc",
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Order {
    type Err = BadOrder;

    fn from_str(text: &str) -> Result<Self, BadOrder> {
        Self::ALL.into_iter().find(|order| order.as_str() == text).ok_or(BadOrder)
    }
}
