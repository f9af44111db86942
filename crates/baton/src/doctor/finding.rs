//! What the doctor found, one line each, and what to do about it.

use crate::fault::Fault;
use crate::print;
use comfy_table::{Color, Row};
use serde::Serialize;

/// What is looked at. The names are a promise to programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    Configuration,
    Contexts,
    DataDirectory,
    Disk,
    Secrets,
    Database,
    Clock,
    Port,
    Server,
    Version,
    Key,
    Tools,
}

impl Check {
    const fn name(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Contexts => "contexts",
            Self::DataDirectory => "data directory",
            Self::Disk => "disk",
            Self::Secrets => "secrets",
            Self::Database => "database",
            Self::Clock => "clock",
            Self::Port => "port",
            Self::Server => "server",
            Self::Version => "version",
            Self::Key => "key",
            Self::Tools => "tools",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Ok,
    Warning,
    Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub check: Check,
    pub verdict: Verdict,
    pub detail: String,
    /// What to do, where something should be done.
    pub advice: Option<String>,
}

impl Finding {
    pub fn ok(check: Check, detail: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Ok, detail: detail.into(), advice: None }
    }

    pub fn warning(check: Check, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Warning, detail: detail.into(), advice: Some(advice.into()) }
    }

    pub fn problem(check: Check, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Problem, detail: detail.into(), advice: Some(advice.into()) }
    }

    /// A problem as another command would report it.
    pub fn fault(check: Check, fault: &Fault, otherwise: &str) -> Self {
        match fault {
            Fault::Told { problem, .. } => {
                Self::problem(check, &problem.detail, problem.hint.as_deref().unwrap_or(otherwise))
            }
            Fault::NobodyReads | Fault::Left => Self::problem(check, "nobody reads", otherwise),
        }
    }

    fn rows(&self) -> impl Iterator<Item = Row> {
        let (word, colour) = match self.verdict {
            Verdict::Ok => ("ok", Color::Green),
            Verdict::Warning => ("warning", Color::Yellow),
            Verdict::Problem => ("problem", Color::Red),
        };
        let told =
            Row::from(vec![print::text(word).fg(colour), print::text(self.check.name()), print::text(&self.detail)]);
        let advice = self
            .advice
            .as_ref()
            .map(|advice| Row::from(vec![print::text(""), print::text(""), print::text(format_args!("→ {advice}"))]));
        [told].into_iter().chain(advice)
    }
}

/// Everything that was found.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Whether there is no problem; warnings do not count.
    pub healthy: bool,
    pub findings: Vec<Finding>,
}

impl Report {
    pub fn new(findings: Vec<Finding>) -> Self {
        let healthy = findings.iter().all(|finding| finding.verdict != Verdict::Problem);
        Self { healthy, findings }
    }

    pub fn say(&self, json: bool) -> Result<(), Fault> {
        if json { print::json(self) } else { print::table(&[], self.findings.iter().flat_map(Finding::rows)) }
    }

    pub fn problems(&self) -> usize {
        self.findings.iter().filter(|finding| finding.verdict == Verdict::Problem).count()
    }
}
