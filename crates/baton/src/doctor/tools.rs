//! Programs that were declared as tools: whether they are there to be started.

use super::finding::{Check, Finding};
use crate::config::Declared;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Nothing is said where nothing was declared.
pub fn look(tools: &[Declared]) -> Vec<Finding> {
    let missing: Vec<_> = tools.iter().filter_map(missing).collect();
    if missing.is_empty() && !tools.is_empty() {
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        return vec![Finding::ok(Check::Tools, format!("every program is there: {}", names.join(", ")))];
    }
    missing
}

fn missing(tool: &Declared) -> Option<Finding> {
    let (name, program, cwd) = (&tool.name, tool.process.program(), tool.process.cwd());
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
