//! Programs that were declared as tools: whether they are there to be started.

use super::finding::{Check, Finding};
use crate::config::Declared;
use baton_core::name::ToolName;
use baton_tools::process::Process;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Nothing is said where nothing was declared.
pub fn look(tools: &[Declared]) -> Vec<Finding> {
    let programs: Vec<_> = tools.iter().filter_map(|tool| Some((&tool.name, tool.program()?))).collect();
    let missing: Vec<_> = programs.iter().filter_map(|(name, process)| missing(name, process)).collect();
    if missing.is_empty() && !programs.is_empty() {
        let names: Vec<_> = programs.iter().map(|(name, _)| name.as_str()).collect();
        return vec![Finding::ok(Check::Tools, format!("every program is there: {}", names.join(", ")))];
    }
    missing
}

fn missing(name: &ToolName, process: &Process) -> Option<Finding> {
    let (program, cwd) = (process.program(), process.cwd());
    let problem = |detail: String| {
        let advice = format!("install it, or mend argv and cwd of [tools.{name}] in the configuration");
        Some(Finding::problem(Check::Tools, detail, advice))
    };
    if !cwd.is_dir() {
        return problem(format!("{name} is to be started in {}, which is no directory", cwd.display()));
    }
    if !can_be_started(program) {
        return problem(format!("{name} is {}, which is no program that can be started", program.display()));
    }
    None
}

fn can_be_started(program: &Path) -> bool {
    program.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}
