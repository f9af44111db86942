//! What is asked about jobs.

use crate::Object;
use crate::absent::or_default;
use crate::priority::PriorityNumber;
use crate::shape::Shape;
use crate::time::Time;
use baton_core::limits::{BATCH_JOBS, MESSAGE_ID_CHARS, REASON_CHARS};
use baton_core::name::SessionId;
use baton_core::{JobId, ProjectId, TypeName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A request to enqueue a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object with the fields of a job")]
pub struct NewJob {
    #[serde(rename = "type")]
    #[schemars(with = "Shape<TypeName>")]
    pub kind: TypeName,
    #[schemars(with = "Shape<ProjectId>")]
    pub project_id: ProjectId,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Object>")]
    pub payload: Object,
    /// The type's own, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<PriorityNumber>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Shape<SessionId>>")]
    pub source_session_id: Option<SessionId>,
    /// Not started before this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
    /// Failed if it has not ended by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// The same message again, within a day, is the same job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MESSAGE_ID_CHARS))]
    pub message_id: Option<String>,
}

/// Many jobs at once: all of them or none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with a list of jobs")]
pub struct NewBatch {
    #[schemars(length(min = 1, max = BATCH_JOBS))]
    pub jobs: Vec<NewJob>,
}

/// A request to cancel a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "an object with a reason, or nothing")]
pub struct Cancel {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = REASON_CHARS))]
    pub reason: Option<String>,
}

/// Which dead letters to make anew: those that are named, or those that a filter finds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "an object that says which dead letters")]
pub struct RequeueLetters {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Shape<JobId>>>", length(min = 1, max = BATCH_JOBS))]
    pub job_ids: Option<Vec<JobId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Shape<ProjectId>>")]
    pub project_id: Option<ProjectId>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Shape<TypeName>>")]
    pub kind: Option<TypeName>,
    /// At most so many, the newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = BATCH_JOBS))]
    pub limit: Option<usize>,
    /// Said where nothing else is: those of every project and type are meant.
    #[serde(skip_serializing_if = "std::ops::Not::not", deserialize_with = "or_default")]
    #[schemars(with = "Option<bool>")]
    pub all: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_request_with_an_unknown_field_is_refused() {
        let parse = |value: Value| serde_json::from_value::<NewJob>(value);
        let plain = parse(json!({ "type": "echo", "projectId": "p" })).unwrap();
        assert!(plain.payload.is_empty());
        assert!(parse(json!({ "type": "echo", "projectId": "p", "colour": 1 })).is_err());
        assert!(parse(json!({ "type": "echo", "projectId": "p", "payload": [] })).is_err());
        assert!(parse(json!({ "type": "echo", "projectId": "a/b" })).is_err());
        assert!(parse(json!({ "type": "echo", "projectId": "p", "priority": "high" })).is_err());
        assert!(parse(json!({ "type": "echo", "projectId": "p", "priority": "background" })).is_ok());
        assert!(parse(json!({ "type": "echo", "projectId": "p", "priority": 50, "messageId": "m-1" })).is_ok());
        assert!(serde_json::from_value::<Cancel>(json!({ "why": "x" })).is_err());
        assert!(serde_json::from_value::<RequeueLetters>(json!({ "jobs": [] })).is_err());
    }

    #[test]
    fn what_is_left_out_is_not_said() {
        let new: NewJob = serde_json::from_value(json!({ "type": "echo", "projectId": "p", "priority": 100 })).unwrap();
        let said = serde_json::to_value(&new).unwrap();
        assert_eq!(said, json!({ "type": "echo", "projectId": "p", "payload": {}, "priority": "interactive" }));
    }
}
