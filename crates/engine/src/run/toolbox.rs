//! The tools that steps may call, with the code that calls them.

use baton_core::definition::JobType;
use baton_core::name::ToolName;
use baton_core::plan::{self, Doer, NameTaken, Tools};
use baton_core::run::Fault;
use baton_core::run::remote::{BadRemote, CallFailed, tool_job_type};
use baton_core::time::Span;
use baton_core::{AgentId, RunId};
use serde_json::Value;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// One call of a tool.
#[derive(Clone, Debug)]
pub struct ToolCall {
    pub input: Value,
    /// The same for every call of this step, until its task is begun anew: a tool that remembers keys
    /// does one thing for each.
    pub key: String,
    pub run: RunId,
    pub agent: AgentId,
    /// `task.step`
    pub step: String,
    pub attempt: u32,
    /// `None` is for ever.
    pub timeout: Option<Duration>,
}

/// Why a call came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolFailure {
    pub fault: Fault,
    /// It was not made at all, and costs nothing.
    pub not_called: bool,
    /// It may have done what it does although it failed.
    pub may_have_acted: bool,
    pub retry_after: Option<Span>,
}

impl From<CallFailed> for ToolFailure {
    fn from(failed: CallFailed) -> Self {
        let CallFailed { fault, not_called, may_have_acted } = failed;
        Self { fault, not_called, may_have_acted, retry_after: None }
    }
}

impl From<Fault> for ToolFailure {
    /// Known to have done nothing.
    fn from(fault: Fault) -> Self {
        Self { fault, not_called: false, may_have_acted: false, retry_after: None }
    }
}

pub type Called = Pin<Box<dyn Future<Output = Result<Value, ToolFailure>> + Send>>;

/// Makes calls. One that is not waited for any more is dropped, and must stop then.
pub trait Tool: Send + Sync + 'static {
    fn call(&self, call: ToolCall) -> Called;
}

impl<F> Tool for F
where
    F: Fn(ToolCall) -> Called + Send + Sync + 'static,
{
    fn call(&self, call: ToolCall) -> Called {
        self(call)
    }
}

/// What there is to call: from here, and by workers outside.
#[derive(Clone)]
pub struct Toolbox {
    known: Tools,
    tools: BTreeMap<ToolName, Arc<dyn Tool>>,
    remote: BTreeMap<ToolName, JobType>,
}

/// Why a tool that workers serve cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTool {
    #[error(transparent)]
    Taken(#[from] NameTaken),
    #[error(transparent)]
    Remote(#[from] BadRemote),
}

impl Default for Toolbox {
    /// Waiting and asking need no tool.
    fn default() -> Self {
        Self { known: Tools::builtin(), tools: BTreeMap::new(), remote: BTreeMap::new() }
    }
}

impl Toolbox {
    pub fn add(&mut self, name: ToolName, about: plan::Tool, tool: impl Tool) -> Result<(), NameTaken> {
        self.known.add(name.clone(), about)?;
        self.tools.insert(name, Arc::new(tool));
        Ok(())
    }

    /// A tool whose calls workers outside make, so many at once.
    pub fn add_remote(&mut self, name: ToolName, about: plan::Tool, limit: Option<u32>) -> Result<(), BadTool> {
        let job_type = tool_job_type(&name, limit)?;
        self.known.add(name.clone(), plan::Tool { doer: Doer::Remote, ..about })?;
        self.remote.insert(name, job_type);
        Ok(())
    }

    /// The types of jobs that are calls of theirs.
    pub fn remote(&self) -> impl Iterator<Item = &JobType> {
        self.remote.values()
    }

    pub(super) fn remote_type(&self, name: &ToolName) -> Option<&JobType> {
        self.remote.get(name)
    }

    /// What documents may name.
    pub const fn known(&self) -> &Tools {
        &self.known
    }

    pub(super) fn tool(&self, name: &ToolName) -> Option<Arc<dyn Tool>> {
        self.tools.get(name).cloned()
    }
}
