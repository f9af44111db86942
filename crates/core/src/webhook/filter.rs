//! Which events an endpoint is told of.

use super::DELIVER;
use crate::limits;
use crate::name::ProjectId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Kinds of events: one, such as `job.completed`, or all that begin alike, such as `job.*`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event type is written like job.completed or job.*, in at most {} characters", Pattern::MAX)]
pub struct BadPattern;

impl Pattern {
    pub const MAX: usize = 64;

    fn matches(&self, kind: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(begin) => kind.starts_with(begin),
            None => kind == self.0,
        }
    }
}

impl FromStr for Pattern {
    type Err = BadPattern;

    fn from_str(text: &str) -> Result<Self, BadPattern> {
        let word = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        let mut parts = text.split('.').collect::<Vec<_>>();
        if parts.len() > 1 && parts.last() == Some(&"*") {
            parts.pop();
        }
        if text.len() > Self::MAX || !parts.into_iter().all(word) {
            return Err(BadPattern);
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for Pattern {
    type Error = BadPattern;

    fn try_from(text: String) -> Result<Self, BadPattern> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.0
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is not restricted is everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types: Option<BTreeSet<Pattern>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projects: Option<BTreeSet<ProjectId>>,
}

impl Filter {
    /// Whether anything can pass, and not more is named than can be kept.
    pub fn fits(&self) -> bool {
        let fits = |many: Option<usize>| many.is_none_or(|many| (1..=limits::GRANT_NAMES).contains(&many));
        fits(self.types.as_ref().map(BTreeSet::len)) && fits(self.projects.as_ref().map(BTreeSet::len))
    }

    pub fn wants(&self, kind: &str, data: &Value) -> bool {
        // What happens to a delivery would be another delivery, without end.
        if data["type"] == DELIVER {
            return false;
        }
        let of_type = self.types.as_ref().is_none_or(|types| types.iter().any(|pattern| pattern.matches(kind)));
        let in_project = |projects: &BTreeSet<ProjectId>| {
            data["project"].as_str().is_some_and(|name| projects.iter().any(|project| project.as_str() == name))
        };
        of_type && self.projects.as_ref().is_none_or(in_project)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn filter(types: &[&str], projects: &[&str]) -> Filter {
        let some = |names: &[&str]| (!names.is_empty()).then_some(()).is_some();
        Filter {
            types: some(types).then(|| types.iter().map(|text| text.parse().unwrap()).collect()),
            projects: some(projects).then(|| projects.iter().map(|text| text.parse().unwrap()).collect()),
        }
    }

    #[test]
    fn types_and_projects_are_both_asked() {
        let data = json!({ "project": "shop", "type": "echo" });
        for (types, projects, wanted) in [
            (&[][..], &[][..], true),
            (&["job.*"], &[], true),
            (&["job.completed"], &["shop"], true),
            (&["lane.paused", "job.completed"], &["other", "shop"], true),
            (&["job.failed"], &[], false),
            (&["lane.*"], &[], false),
            (&[], &["other"], false),
        ] {
            assert_eq!(filter(types, projects).wants("job.completed", &data), wanted, "{types:?} {projects:?}");
        }
        assert!(!filter(&[], &["shop"]).wants("org.founded", &json!({})), "it is in no project");
    }

    #[test]
    fn deliveries_are_never_delivered() {
        let data = json!({ "project": "webhook-1", "type": DELIVER });
        assert!(!filter(&[], &[]).wants("job.completed", &data));
    }

    #[test]
    fn patterns_are_words_with_dots_and_a_star_at_the_end() {
        for good in ["job.completed", "job.*", "job.retry_scheduled", "a.b.*"] {
            assert!(good.parse::<Pattern>().is_ok(), "{good}");
        }
        for bad in ["", "*", "job.", ".job", "job*", "j*.x", "Job.x", "job.* ", "job..x", &"x".repeat(65)] {
            assert_eq!(bad.parse::<Pattern>(), Err(BadPattern), "{bad}");
        }
    }

    #[test]
    fn a_filter_names_something_and_not_too_much() {
        assert!(filter(&[], &[]).fits() && filter(&["job.*"], &["p"]).fits());
        assert!(!Filter { types: Some(BTreeSet::new()), projects: None }.fits());
        let many = (0..=limits::GRANT_NAMES).map(|n| format!("p{n}").parse().unwrap()).collect();
        assert!(!Filter { types: None, projects: Some(many) }.fits());
    }
}
