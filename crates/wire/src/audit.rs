//! The outcome of verifying the whole history.

use crate::shape::Shape;
use baton_core::OrgId;
use baton_core::audit::Report;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Audit {
    pub clean: bool,
    pub chains: u64,
    pub events: u64,
    pub seals: u64,
    /// Seals whose MAC was verified; 0 if the key was not at hand.
    pub macs_checked: u64,
    /// All of them, also those that are not spelled out below.
    pub violations_total: u64,
    pub violations: Vec<Violation>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    /// Stable, such as `chain_broken`.
    pub code: String,
    #[schemars(with = "Shape<OrgId>")]
    pub org: OrgId,
    pub subject: String,
    pub detail: String,
}

impl From<Report> for Audit {
    fn from(report: Report) -> Self {
        let violations = report.violations.iter().map(|v| Violation {
            code: v.code.clone(),
            org: v.org.clone(),
            subject: v.subject.clone(),
            detail: v.detail.clone(),
        });
        Self {
            clean: report.is_clean(),
            chains: report.chains,
            events: report.events,
            seals: report.seals,
            macs_checked: report.macs_checked,
            violations_total: report.violations_total,
            violations: violations.collect(),
        }
    }
}
