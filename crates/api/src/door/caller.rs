//! Whoever asks, once it is known who.

use super::Ask;
use crate::app::App;
use crate::problem::Fault;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use baton_core::access::{Ended, Grant, Key, Proof};
use baton_core::command::Actor;
use baton_core::id::KeyId;
use baton_core::{OrgId, ProjectId, TypeName};
use serde_json::Value;
use std::sync::Arc;

/// The holder of a key. A handler that has one of these has passed the door; the org in it is the
/// only one that it can speak of.
#[derive(Clone, Debug)]
pub struct Caller {
    pub org: OrgId,
    pub key: KeyId,
    pub grant: Arc<Grant>,
    pub kept: Arc<Key>,
    /// Of the secret that was shown, now or when the session was opened.
    pub proof: Proof,
    /// The session that it came with, if it came with one.
    pub session: Option<Ended>,
}

impl Caller {
    pub fn actor(&self) -> Actor {
        Actor::Key(self.key)
    }

    pub fn check(&self, ask: Ask) -> Result<(), Fault> {
        let (right, all) = match ask {
            Ask::Nobody | Ask::Anybody => return Ok(()),
            Ask::Right(right) => (right, false),
            Ask::Installation(right) => (right, true),
        };
        if !self.grant.may(right) {
            let detail = format!("the role {} does not have the right to {right}", self.grant.role);
            return Err(Fault::new("forbidden", detail));
        }
        if all && (self.org != OrgId::default() || !self.grant.is_whole()) {
            let detail = format!("this takes a key of the org {} that reaches all of it", OrgId::default());
            return Err(Fault::new("forbidden", detail));
        }
        Ok(())
    }

    /// Whether the key's scope allows this project at all.
    pub fn reach_project(&self, project: &ProjectId) -> Result<(), Fault> {
        if self.grant.reaches_project(project) {
            return Ok(());
        }
        Err(Fault::new("out_of_scope", format!("this key does not reach the project {project}")))
    }

    /// Whether the key's scope allows jobs of a type in a project.
    pub fn reach(&self, project: &ProjectId, kind: &TypeName) -> Result<(), Fault> {
        self.reach_project(project)?;
        if self.grant.reaches(project, kind) {
            return Ok(());
        }
        Err(Fault::new("out_of_scope", format!("this key does not reach the job type {kind}")))
    }

    /// Whether an event with this data concerns it. A key with a scope hears of its jobs, and of
    /// nothing that does not say whose it is.
    pub fn hears(&self, data: &Value) -> bool {
        if self.grant.is_whole() {
            return true;
        }
        let name = |field: &str| data.get(field).and_then(Value::as_str);
        let project = name("project").and_then(|text| text.parse().ok());
        let kind = name("type").and_then(|text| text.parse().ok());
        match (project, kind) {
            (Some(project), Some(kind)) => self.grant.reaches(&project, &kind),
            (Some(project), None) => self.grant.reaches_project(&project),
            (None, _) => false,
        }
    }

    /// For what belongs to the whole org.
    pub fn reach_all(&self) -> Result<(), Fault> {
        if self.grant.is_whole() {
            return Ok(());
        }
        Err(Fault::new("out_of_scope", "this key reaches a part of the org only, and this is about all of it"))
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Fault> {
        // A route that forgot to ask would be a hole; it is closed instead.
        parts.extensions.get::<Self>().cloned().ok_or_else(|| Fault::internal("a handler without a door before it"))
    }
}
