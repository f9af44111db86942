//! Programs of the operator's as tools.

use super::toolbox::{Called, Tool, ToolCall, ToolFailure};
use baton_core::limits;
use baton_core::retry;
use baton_core::run::Fault;
use baton_core::time::Span;
use baton_tools::process::{self, Process, Processes};
use std::time::Duration;

/// How long a call may take that says nothing of it: as long as a run may.
const FOREVER: Duration = Duration::from_secs(366 * 24 * 60 * 60);

pub struct ProcessTool {
    pub processes: Processes,
    pub process: Process,
}

impl Tool for ProcessTool {
    fn call(&self, call: ToolCall) -> Called {
        let (processes, process) = (self.processes.clone(), self.process.clone());
        Box::pin(async move {
            let (run, agent) = (call.run.to_string(), call.agent.to_string());
            let asked = process::Call {
                input: &call.input,
                timeout: call.timeout.unwrap_or(FOREVER),
                run: Some(&run),
                agent: Some(&agent),
                step: Some(&call.step),
                attempt: call.attempt,
                key: Some(&call.key),
            };
            // Whoever loses interest drops the call, which ends the program.
            processes.call(&process, &asked, std::future::pending()).await.map_err(failure)
        })
    }
}

fn failure(failed: process::ToolFailure) -> ToolFailure {
    let class = match failed.class {
        process::Class::Transient => retry::Class::Transient,
        process::Class::Deterministic => retry::Class::Deterministic,
        process::Class::Fatal => retry::Class::Fatal,
    };
    let fault = Fault {
        code: limits::cut(&failed.code, limits::CODE_CHARS),
        message: limits::cut(&failed.message, limits::ERROR_CHARS),
        class,
    };
    let retry_after = failed.retry_after.and_then(|after| i64::try_from(after.as_micros()).ok()).map(Span);
    let not_called = !failed.may_have_acted && failed.code == "not_started";
    ToolFailure { fault, not_called, may_have_acted: failed.may_have_acted, retry_after }
}
