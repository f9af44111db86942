//! Schedules on the wire.

use crate::Object;
use crate::absent::or_default;
use crate::job::object;
use crate::priority::PriorityNumber;
use crate::shape::Shape;
use crate::time::Time;
use baton_core::canon::Json;
use baton_core::cron::{self, CatchUp, Spec, When, when::CRON_CHARS};
use baton_core::id::DocId;
use baton_core::name::{ScheduleName, SessionId};
use baton_core::{JobId, ProjectId, TypeName};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// What a schedule should make, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object with the fields of a schedule")]
pub struct NewSchedule {
    /// Five fields, or six with seconds first.
    #[schemars(length(min = 1, max = CRON_CHARS))]
    pub cron: String,
    /// A name such as `Europe/Berlin`; `UTC`, unless given.
    #[serde(default = "utc", deserialize_with = "zone")]
    #[schemars(with = "Option<String>")]
    pub time_zone: String,
    #[serde(rename = "type")]
    #[schemars(with = "Shape<TypeName>")]
    pub kind: TypeName,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Object>")]
    pub payload: Object,
    /// The type's own, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<PriorityNumber>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Shape<SessionId>>")]
    pub source_session_id: Option<SessionId>,
    #[serde(default, deserialize_with = "catch_up")]
    #[schemars(with = "Option<Shape<CatchUp>>")]
    pub catch_up: CatchUp,
    /// No new job while the last one has not ended.
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<bool>")]
    pub single_flight: bool,
}

fn zone<'de, D: Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(d)?.unwrap_or_else(utc))
}

fn catch_up<'de, D: Deserializer<'de>>(d: D) -> Result<CatchUp, D::Error> {
    match Option::<String>::deserialize(d)?.as_deref() {
        None | Some("one") => Ok(CatchUp::One),
        Some("skip") => Ok(CatchUp::Skip),
        Some("all") => Ok(CatchUp::All),
        Some(_) => Err(D::Error::custom("must be skip, one or all")),
    }
}

pub const DEFAULT_TIME_ZONE: &str = "UTC";

fn utc() -> String {
    DEFAULT_TIME_ZONE.to_owned()
}

impl From<NewSchedule> for Spec {
    fn from(new: NewSchedule) -> Self {
        Self {
            when: When { cron: new.cron, time_zone: new.time_zone },
            kind: new.kind,
            payload: Value::Object(new.payload),
            priority: new.priority.map(PriorityNumber::get),
            source_session: new.source_session_id,
            catch_up: new.catch_up,
            single_flight: new.single_flight,
        }
    }
}

/// A schedule as it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Schedule {
    #[schemars(with = "Shape<DocId>")]
    pub id: DocId,
    #[schemars(with = "Shape<ProjectId>")]
    pub project_id: ProjectId,
    #[schemars(with = "Shape<ScheduleName>")]
    pub name: ScheduleName,
    pub cron: String,
    pub time_zone: String,
    /// The expression in words.
    pub description: String,
    #[serde(rename = "type")]
    #[schemars(with = "Shape<TypeName>")]
    pub kind: TypeName,
    pub payload: Object,
    /// Null: the type's own.
    pub priority: Option<PriorityNumber>,
    #[schemars(with = "Option<Shape<SessionId>>")]
    pub source_session_id: Option<SessionId>,
    #[schemars(with = "Shape<CatchUp>")]
    pub catch_up: CatchUp,
    pub single_flight: bool,
    pub paused: bool,
    /// Null while it is paused, and if it never comes again.
    pub next_at: Option<Time>,
    pub last_at: Option<Time>,
    #[schemars(with = "Option<Shape<JobId>>")]
    pub last_job_id: Option<JobId>,
    pub jobs_made: u64,
    pub created_at: Time,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleList {
    /// By project and name.
    pub schedules: Vec<Schedule>,
    /// Where the list goes on; null at the end.
    pub next_cursor: Option<String>,
}

impl Schedule {
    pub fn new(id: DocId, schedule: &cron::Schedule, paused: bool) -> Self {
        let spec = &schedule.spec;
        Self {
            id,
            project_id: schedule.project.clone(),
            name: schedule.name.clone(),
            cron: spec.when.cron.clone(),
            time_zone: spec.when.time_zone.clone(),
            description: spec.when.words(),
            kind: spec.kind.clone(),
            payload: object(&Json::of(&spec.payload)),
            priority: spec.priority.map(PriorityNumber::kept),
            source_session_id: spec.source_session.clone(),
            catch_up: spec.catch_up,
            single_flight: spec.single_flight,
            paused,
            next_at: schedule.next_at.map(Time),
            last_at: schedule.last_at.map(Time),
            last_job_id: schedule.last_job,
            jobs_made: schedule.made,
            created_at: Time(schedule.created_at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::Micros;
    use serde_json::json;

    #[test]
    fn a_schedule_is_shown_as_it_was_asked_for() {
        let asked = json!({
            "cron": "0 9 * * 1-5", "timeZone": "Europe/Berlin", "type": "echo", "payload": { "message": "up" },
            "priority": 150, "catchUp": "all", "singleFlight": true,
        });
        let new: NewSchedule = serde_json::from_value(asked.clone()).unwrap();
        let schedule = cron::Schedule {
            project: "shop".parse().unwrap(),
            name: "morning".parse().unwrap(),
            spec: new.into(),
            created_at: Micros(0),
            next_at: Some(Micros(0)),
            last_at: None,
            last_job: None,
            made: 3,
            deleted: false,
        };
        let id: DocId = "doc_018bcfe568007001800000000000002a".parse().unwrap();
        let shown = serde_json::to_value(Schedule::new(id, &schedule, true)).unwrap();
        for (name, value) in asked.as_object().unwrap() {
            assert_eq!(&shown[name], value, "{name}");
        }
        assert_eq!(shown["id"], id.to_string());
        assert_eq!((&shown["projectId"], &shown["name"]), (&json!("shop"), &json!("morning")));
        assert_eq!((&shown["paused"], &shown["jobsMade"]), (&json!(true), &json!(3)));
        assert_eq!(shown["nextAt"], "1970-01-01T00:00:00.000000Z");
        assert!(shown["description"].as_str().unwrap().contains('9'), "{shown}");
        assert_eq!((&shown["lastAt"], &shown["lastJobId"]), (&Value::Null, &Value::Null));
    }

    #[test]
    fn what_is_left_out_has_a_default_and_what_is_unknown_is_refused() {
        let new: NewSchedule = serde_json::from_value(json!({ "cron": "@daily", "type": "noop" })).unwrap();
        assert_eq!((new.time_zone.as_str(), new.catch_up, new.single_flight), ("UTC", CatchUp::One, false));
        for bad in [
            json!({ "cron": "@daily" }),
            json!({ "type": "noop" }),
            json!({ "cron": "@daily", "type": "noop", "catchUp": "some" }),
            json!({ "cron": "@daily", "type": "noop", "timezone": "UTC" }),
            json!({ "cron": "@daily", "type": "noop", "priority": 1000 }),
        ] {
            assert!(serde_json::from_value::<NewSchedule>(bad.clone()).is_err(), "{bad}");
        }
    }
}
