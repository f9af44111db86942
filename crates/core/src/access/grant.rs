//! What a key is given: a role, responsibilities, and how far it reaches.

use super::role::{Right, Role};
use crate::limits;
use crate::name::{ProjectId, Responsibility, TypeName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub role: Role,
    /// Whose decisions it may answer. An admin may answer all.
    #[serde(default)]
    pub responsibilities: BTreeSet<Responsibility>,
    /// Projects that it reaches; `None` is all.
    #[serde(default)]
    pub projects: Option<BTreeSet<ProjectId>>,
    /// Job types that it reaches; `None` is all.
    #[serde(default)]
    pub types: Option<BTreeSet<TypeName>>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadGrant {
    #[error("an admin key reaches everything; leave out its {0}")]
    ScopedAdmin(&'static str),
    #[error("a scope of no {0} reaches nothing; leave it out to reach all")]
    Nothing(&'static str),
    #[error("{given} {what} are given; at most {max} are kept")]
    TooMany { what: &'static str, given: usize, max: usize },
}

impl Grant {
    pub const fn of(role: Role) -> Self {
        Self { role, responsibilities: BTreeSet::new(), projects: None, types: None }
    }

    pub fn check(&self) -> Result<(), BadGrant> {
        let scopes = [
            ("projects", self.projects.as_ref().map(BTreeSet::len)),
            ("types", self.types.as_ref().map(BTreeSet::len)),
        ];
        for (what, given) in scopes {
            match given {
                Some(_) if self.role == Role::Admin => return Err(BadGrant::ScopedAdmin(what)),
                Some(0) => return Err(BadGrant::Nothing(what)),
                _ => {}
            }
        }
        let counts = scopes.into_iter().chain([("responsibilities", Some(self.responsibilities.len()))]);
        for (what, given) in counts {
            let given = given.unwrap_or(0);
            if given > limits::GRANT_NAMES {
                return Err(BadGrant::TooMany { what, given, max: limits::GRANT_NAMES });
            }
        }
        Ok(())
    }

    pub fn may(&self, right: Right) -> bool {
        self.role.may(right)
    }

    pub fn reaches_project(&self, project: &ProjectId) -> bool {
        self.projects.as_ref().is_none_or(|projects| projects.contains(project))
    }

    pub fn reaches(&self, project: &ProjectId, kind: &TypeName) -> bool {
        self.reaches_project(project) && self.reaches_type(kind)
    }

    pub fn reaches_type(&self, kind: &TypeName) -> bool {
        self.types.as_ref().is_none_or(|types| types.contains(kind))
    }

    /// Reaches whatever is of this project, or any, and of this type, or any.
    pub fn reaches_all_of(&self, project: Option<&ProjectId>, kind: Option<&TypeName>) -> bool {
        let within = |scope: bool, named: Option<bool>| !scope || named == Some(true);
        within(self.projects.is_some(), project.map(|project| self.reaches_project(project)))
            && within(self.types.is_some(), kind.map(|kind| self.reaches_type(kind)))
    }

    /// Reaches everything of its org.
    pub const fn is_whole(&self) -> bool {
        self.projects.is_none() && self.types.is_none()
    }

    /// What is nobody's in particular is for those who steer work.
    pub fn may_answer_for(&self, responsibility: Option<&Responsibility>) -> bool {
        let its = match responsibility {
            Some(name) => self.role == Role::Admin || self.responsibilities.contains(name),
            None => self.may(Right::Operate),
        };
        its && self.may(Right::Decide)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn projects(names: &[&str]) -> Option<BTreeSet<ProjectId>> {
        Some(names.iter().map(|name| name.parse().unwrap()).collect())
    }

    #[test]
    fn a_scope_names_something_and_never_narrows_an_admin() {
        assert_eq!(Grant::of(Role::Admin).check(), Ok(()));
        let scoped = Grant { projects: projects(&["p"]), ..Grant::of(Role::Admin) };
        assert_eq!(scoped.check(), Err(BadGrant::ScopedAdmin("projects")));
        let empty = Grant { types: Some(BTreeSet::new()), ..Grant::of(Role::Worker) };
        assert_eq!(empty.check(), Err(BadGrant::Nothing("types")));
        let names: Vec<String> = (0..=limits::GRANT_NAMES).map(|n| format!("p{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let many = Grant { projects: projects(&names), ..Grant::of(Role::Viewer) };
        assert!(matches!(many.check(), Err(BadGrant::TooMany { what: "projects", .. })));
    }

    #[test]
    fn a_key_reaches_what_both_scopes_allow() {
        let types = Some(BTreeSet::from(["echo".parse().unwrap()]));
        let grant = Grant { projects: projects(&["p"]), types, ..Grant::of(Role::Operator) };
        let reaches = |project: &str, kind: &str| grant.reaches(&project.parse().unwrap(), &kind.parse().unwrap());
        assert!(reaches("p", "echo"));
        assert!(!reaches("q", "echo") && !reaches("p", "noop"));
        assert!(!grant.is_whole() && Grant::of(Role::Viewer).is_whole());
        let all_of = |grant: &Grant, project: Option<&str>, kind: Option<&str>| {
            let (project, kind) = (project.map(|p| p.parse().unwrap()), kind.map(|k| k.parse().unwrap()));
            grant.reaches_all_of(project.as_ref(), kind.as_ref())
        };
        assert!(all_of(&grant, Some("p"), Some("echo")));
        for (project, kind) in [(None, None), (Some("p"), None), (None, Some("echo")), (Some("q"), Some("echo"))] {
            assert!(!all_of(&grant, project, kind), "{project:?} {kind:?}");
        }
        let one = Grant { types: None, ..grant.clone() };
        assert!(all_of(&one, Some("p"), None) && all_of(&one, Some("p"), Some("noop")) && !all_of(&one, None, None));
        assert!(all_of(&Grant::of(Role::Operator), None, None));
    }

    #[test]
    fn only_the_responsible_and_admins_answer() {
        let name: Responsibility = "development_manager".parse().unwrap();
        let with = |role| Grant { responsibilities: BTreeSet::from([name.clone()]), ..Grant::of(role) };
        assert!(with(Role::Viewer).may_answer_for(Some(&name)));
        assert!(!Grant::of(Role::Operator).may_answer_for(Some(&name)));
        assert!(Grant::of(Role::Operator).may_answer_for(None), "nobody's in particular");
        assert!(!with(Role::Viewer).may_answer_for(None), "a viewer decides what it is responsible for");
        assert!(Grant::of(Role::Admin).may_answer_for(Some(&name)));
        assert!(!with(Role::Worker).may_answer_for(Some(&name)), "a worker decides nothing");
    }
}
