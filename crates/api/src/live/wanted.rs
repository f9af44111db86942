//! What a listener wants to hear: anything, or what fits every filter that it gives. A filter that is
//! given several times is any of them.

use super::Told;
use crate::door::Caller;
use crate::limits::LISTENER_NAMES;
use crate::problem::Fault;
use crate::query::Params;
use baton_core::event::Subject;
use baton_core::id::{DecisionId, DefinitionId, DocId, KeyId, WebhookId};
use baton_core::name::SessionId;
use baton_core::{AgentId, JobId, ProjectId, RunId};
use baton_wire::JobNews;
use serde_json::Value;
use std::fmt::Display;
use std::str::FromStr;
use uuid::Uuid;

pub const PARAMS: [&str; 5] = ["projectId", "threadId", "subject", "type", "after"];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    projects: Vec<ProjectId>,
    threads: Vec<SessionId>,
    subjects: Vec<SubjectId>,
    types: Vec<Type>,
}

impl Wanted {
    pub fn read(params: &Params, caller: &Caller) -> Result<Self, Fault> {
        let wanted = Self {
            projects: several(params, "projectId")?,
            threads: several(params, "threadId")?,
            subjects: several(params, "subject")?,
            types: several(params, "type")?,
        };
        for project in &wanted.projects {
            caller.reach_project(project)?;
        }
        Ok(wanted)
    }

    /// As far as the event itself says; which thread it belongs to is known elsewhere.
    pub fn matches(&self, told: &Told) -> bool {
        let project = told.data.get("project").and_then(Value::as_str);
        any(&self.projects, |wanted| project == Some(wanted.as_str()))
            && any(&self.subjects, |wanted| wanted.0 == told.event.subject)
            && any(&self.types, |wanted| wanted.is_of(told))
    }

    pub const fn asks_thread(&self) -> bool {
        !self.threads.is_empty()
    }

    pub fn matches_thread(&self, thread: Option<&SessionId>) -> bool {
        any(&self.threads, |wanted| thread == Some(wanted))
    }
}

fn any<T>(wanted: &[T], is: impl Fn(&T) -> bool) -> bool {
    wanted.is_empty() || wanted.iter().any(is)
}

/// An empty filter would be none at all, which is more than anybody meant.
fn several<T: FromStr<Err: Display>>(params: &Params, name: &str) -> Result<Vec<T>, Fault> {
    let all: Vec<&str> = params.all(name).collect();
    if all.is_empty() && params.has(name) {
        return Err(Fault::field(name, "is empty; leave it out to hear of all"));
    }
    if all.len() > LISTENER_NAMES {
        return Err(Fault::field(name, format!("at most {LISTENER_NAMES} can be named")));
    }
    all.into_iter().map(|text| text.parse().map_err(|error| Fault::field(name, error))).collect()
}

/// The id of anything that events are about. What is behind the prefix is never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SubjectId(Uuid);

impl FromStr for SubjectId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let job = || text.parse().map(|JobId(id)| id).ok();
        let decision = || text.parse().map(|DecisionId(id)| id).ok();
        let key = || text.parse().map(|KeyId(id)| id).ok();
        let doc = || text.parse().map(|DocId(id)| id).ok();
        let webhook = || text.parse().map(|WebhookId(id)| id).ok();
        let definition = || text.parse().map(|DefinitionId(id)| id).ok();
        let run = || text.parse().map(|RunId(id)| id).ok();
        let agent = || text.parse().map(|AgentId(id)| id).ok();
        let found = job()
            .or_else(run)
            .or_else(agent)
            .or_else(decision)
            .or_else(key)
            .or_else(doc)
            .or_else(webhook)
            .or_else(definition);
        found.map(Self).ok_or_else(|| "must be an id, such as job_ followed by 32 hexadecimal digits".to_owned())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Type {
    /// What the orchestrator calls it.
    News(JobNews),
    Kind(String),
    /// Everything that begins so, such as `job.`.
    Under(String),
}

impl FromStr for Type {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(news) = JobNews::ALL.into_iter().find(|news| news.as_str() == text) {
            return Ok(Self::News(news));
        }
        let plain =
            text.split_once('.').is_some_and(|(_, verb)| verb.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
        if !plain || Subject::of(text, Uuid::nil()).is_none() {
            let news = JobNews::ALL.map(JobNews::as_str).join(", ");
            return Err(format!(
                "{text:?} is none; use a kind of event such as job.completed, job. for all, or {news}"
            ));
        }
        Ok(if text.ends_with('.') { Self::Under(text.to_owned()) } else { Self::Kind(text.to_owned()) })
    }
}

impl Type {
    fn is_of(&self, told: &Told) -> bool {
        match self {
            Self::News(news) => told.news == Some(*news),
            Self::Kind(kind) => told.event.kind == *kind,
            Self::Under(word) => told.event.kind.starts_with(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_a_kind_or_what_it_begins_with_or_the_orchestrators() {
        let read = |text: &str| text.parse::<Type>();
        assert_eq!(read("job.queued"), Ok(Type::Kind("job.queued".to_owned())));
        assert_eq!(read("decision."), Ok(Type::Under("decision.".to_owned())));
        assert_eq!(read("orchestrator_job_canceled"), Ok(Type::News(JobNews::Canceled)));
        for bad in ["", "job", ".", "moon.full", "orchestrator_job_", "job.Queued", "job.queued.", "job.*"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_subject_is_any_id() {
        let hex = "0193a1b2c3d47001800000000000002a";
        for prefix in ["job", "run", "agt", "dec", "key", "doc", "whk", "def"] {
            assert!(format!("{prefix}_{hex}").parse::<SubjectId>().is_ok(), "{prefix}");
        }
        for bad in ["", hex, "job_", "moon_0193a1b2c3d47001800000000000002a"] {
            assert!(bad.parse::<SubjectId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_filter_is_given_or_not_but_never_empty() {
        let read = |value: &str| several::<ProjectId>(&Params::of(&[("projectId", value)]), "projectId");
        assert_eq!(read("a,b").unwrap().len(), 2);
        assert!(several::<ProjectId>(&Params::of(&[]), "projectId").unwrap().is_empty());
        let many = vec!["p"; LISTENER_NAMES + 1].join(",");
        for bad in ["", ",", "a b", &many] {
            assert_eq!(read(bad).unwrap_err().code(), "invalid_request", "{bad}");
        }
    }
}
