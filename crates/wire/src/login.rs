//! Coming in with a browser.

use crate::access::Key;
use crate::shape::Shape;
use crate::time::Time;
use baton_core::OrgId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A way in for one browser, once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoginLink {
    /// To be opened at this server. What comes after the `#` is a ticket, which is sent to nobody
    /// before the page there hands it in.
    pub path: String,
    /// Until when it works.
    pub expires_at: Time,
}

impl fmt::Debug for LoginLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginLink").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// A ticket that is handed in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object with a ticket")]
pub struct HandIn {
    pub ticket: String,
}

impl fmt::Debug for HandIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandIn").finish_non_exhaustive()
    }
}

/// Who a browser comes in as. Its session is in a cookie that scripts do not see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoggedIn {
    #[schemars(with = "Shape<OrgId>")]
    pub org: OrgId,
    pub key: Key,
    /// When the session ends.
    pub expires_at: Time,
}
