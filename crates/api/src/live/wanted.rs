//! What a listener wants to hear.

use crate::door::Caller;
use crate::problem::Fault;
use crate::query::Params;
use baton_core::ProjectId;
use baton_core::event::Recorded;
use baton_core::name::SessionId;
use serde_json::Value;

pub const PARAMS: [&str; 5] = ["projectId", "threadId", "subject", "type", "after"];

/// Types that one listener may name.
const TYPES_MAX: usize = 50;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    project: Option<ProjectId>,
    pub thread: Option<SessionId>,
    subject: Option<String>,
    /// Kinds, or what they begin with, such as `job.`; all if there are none.
    types: Vec<String>,
}

impl Wanted {
    pub fn read(params: &Params, caller: &Caller) -> Result<Self, Fault> {
        let project: Option<ProjectId> = params.parsed("projectId")?;
        if let Some(project) = &project {
            caller.reach_project(project)?;
        }
        let types: Vec<String> = params.all("type").map(str::to_owned).collect();
        if types.len() > TYPES_MAX {
            return Err(Fault::field("type", format!("at most {TYPES_MAX} can be named")));
        }
        Ok(Self {
            project,
            thread: params.parsed("threadId")?,
            subject: params.one("subject")?.map(str::to_owned),
            types,
        })
    }

    /// As far as the event itself says; which thread it belongs to is known elsewhere.
    pub fn matches(&self, event: &Recorded, shown: &str, data: &Value) -> bool {
        let project = || data.get("project").and_then(Value::as_str);
        self.project.as_ref().is_none_or(|wanted| project() == Some(wanted.as_str()))
            && self.subject.as_ref().is_none_or(|wanted| shown == wanted)
            && (self.types.is_empty() || self.types.iter().any(|wanted| is_of(&event.kind, wanted)))
    }
}

/// A name that ends with a dot means everything that begins so.
fn is_of(kind: &str, wanted: &str) -> bool {
    if wanted.ends_with('.') { kind.starts_with(wanted) } else { kind == wanted }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_a_kind_or_what_it_begins_with() {
        assert!(is_of("job.queued", "job.queued") && is_of("job.queued", "job."));
        assert!(!is_of("job.queued", "job") && !is_of("job.queued", "decision."));
    }
}
