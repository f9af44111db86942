//! Why a command did not succeed: said to people on two lines, to programs as a problem, to
//! shells as an exit code.

use crate::config::Url;
use crate::hint;
use crate::paint;
use baton_wire::Problem;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// Exit codes. Stable; the numbers above 3 are those of sysexits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Ok = 0,
    /// It failed, or was refused.
    Failed = 1,
    /// The command line is not understood.
    Usage = 2,
    /// What was waited for has ended, but not all of it completed.
    NotCompleted = 3,
    /// The run that was waited for was cancelled.
    Cancelled = 4,
    /// What is stored is damaged or does not fit.
    Data = 65,
    /// The server or the database cannot be reached.
    Unavailable = 69,
    /// The configuration cannot be used.
    Config = 78,
    /// Somebody pressed Ctrl-C; as shells say it.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Every code that comes from the command line itself, with how it exits and what it is called.
/// Explained in `docs/errors.md`.
pub const CODES: [(&str, Exit, &str); 19] = [
    ("usage", Exit::Usage, "The command line is not understood"),
    ("config_invalid", Exit::Config, "The configuration cannot be used"),
    ("listen_not_loopback", Exit::Config, "The address can be reached from other machines"),
    ("certificate_unusable", Exit::Config, "A certificate or its key cannot be used"),
    ("address_in_use", Exit::Failed, "Another program listens on the address"),
    ("listen_failed", Exit::Failed, "The address cannot be listened on"),
    ("start_failed", Exit::Failed, "Baton could not start"),
    ("file_unusable", Exit::Failed, "A file cannot be used"),
    ("server_unreachable", Exit::Unavailable, "No Baton answers"),
    ("unexpected_answer", Exit::Unavailable, "The answer is not Baton's"),
    ("job_not_completed", Exit::NotCompleted, "The job did not complete"),
    ("jobs_not_completed", Exit::NotCompleted, "Not every job completed"),
    ("document_invalid", Exit::Failed, "The run document cannot be read"),
    ("run_failed", Exit::NotCompleted, "The run failed"),
    ("run_cancelled", Exit::Cancelled, "The run was cancelled"),
    ("secret_not_shown", Exit::Failed, "The secret cannot be shown again"),
    ("not_delivered", Exit::NotCompleted, "Nothing was delivered"),
    ("unhealthy", Exit::Failed, "The doctor found problems"),
    ("history_violated", Exit::Data, "The history is not as it was written"),
];

/// How the start of the server fails if the database cannot be opened: the store's own codes.
pub const OPEN_CODES: [(&str, Exit); 10] = [
    ("data_dir_in_use", Exit::Failed),
    ("data_dir_unusable", Exit::Config),
    ("schema_too_new", Exit::Data),
    ("schema_too_old", Exit::Data),
    ("schema_edited", Exit::Data),
    ("database_corrupt", Exit::Data),
    ("database_gone", Exit::Data),
    ("no_database", Exit::Config),
    ("database_url", Exit::Config),
    ("database_unavailable", Exit::Unavailable),
];

#[derive(Debug)]
pub enum Fault {
    Told {
        exit: Exit,
        problem: Box<Problem>,
    },
    /// Whoever read our output has read enough (`baton events tail | head`).
    NobodyReads,
    /// Somebody left with Ctrl-C, and was told what they need to know.
    Left,
}

impl Fault {
    pub fn new(code: &str, detail: impl Into<String>) -> Self {
        let row = CODES.iter().find(|(known, ..)| *known == code);
        let (exit, title) = row.map_or((Exit::Failed, code), |(_, exit, title)| (*exit, *title));
        Self::told(exit, code, title, detail.into())
    }

    /// Something was made, but the answer that showed its secret got lost on the way.
    pub fn unshown(what: &str, id: impl std::fmt::Display) -> Self {
        let detail = format!("{id} was made, but the answer that showed its secret got lost");
        Self::new("secret_not_shown", detail).hint(format!("give it another one: baton {what} rotate {id}"))
    }

    pub fn usage(detail: impl Into<String>) -> Self {
        Self::new("usage", detail)
    }

    fn told(exit: Exit, code: &str, title: &str, detail: String) -> Self {
        let problem = Problem {
            kind: Problem::page(code),
            title: title.to_owned(),
            detail,
            code: code.to_owned(),
            ..Problem::default()
        };
        Self::Told { exit, problem: Box::new(problem) }
    }

    /// What a server answered.
    pub fn answered(mut problem: Problem) -> Self {
        problem.hint = hint::about(&problem.code).map(str::to_owned).or(problem.hint);
        let unavailable = matches!(problem.status, Some(408 | 429 | 503 | 504));
        let exit = if unavailable { Exit::Unavailable } else { Exit::Failed };
        Self::Told { exit, problem: Box::new(problem) }
    }

    pub fn open(error: &baton_store::OpenError) -> Self {
        let exit = OPEN_CODES.iter().find(|(code, _)| *code == error.code()).map_or(Exit::Failed, |(_, exit)| *exit);
        Self::told(exit, error.code(), "The database cannot be opened", error.to_string())
    }

    #[must_use]
    pub fn hint(mut self, text: impl Into<String>) -> Self {
        if let Self::Told { problem, .. } = &mut self {
            problem.hint = Some(text.into());
        }
        self
    }

    /// Which request it happened to.
    #[must_use]
    pub fn about(mut self, request_id: &str) -> Self {
        if let Self::Told { problem, .. } = &mut self {
            problem.request_id = Some(request_id.to_owned());
        }
        self
    }

    /// The server counts the jobs of a list from 0, whoever wrote the file counts its lines.
    #[must_use]
    pub fn in_file(mut self, lines: &[usize]) -> Self {
        if let Self::Told { problem, .. } = &mut self
            && let Some(index) = problem.members.index
            && let Some(line) = lines.get(index)
        {
            let detail = problem.detail.strip_prefix(&format!("jobs[{index}]")).unwrap_or(&problem.detail);
            problem.detail = format!("line {line}: {}", detail.trim_start_matches(['.', ':', ' ']));
        }
        self
    }

    /// Without the password, which drivers like to repeat.
    #[must_use]
    pub fn scrubbed(mut self, database: Option<&Url>) -> Self {
        if let (Self::Told { problem, .. }, Some(url)) = (&mut self, database) {
            problem.detail = url.scrub(&problem.detail);
        }
        self
    }

    pub fn is(&self, code: &str) -> bool {
        matches!(self, Self::Told { problem, .. } if problem.code == code)
    }

    pub fn exit(&self) -> Exit {
        match self {
            Self::Told { exit, .. } => *exit,
            Self::NobodyReads => Exit::Ok,
            Self::Left => Exit::Interrupted,
        }
    }

    pub fn report(&self, json: bool) {
        let Self::Told { problem, .. } = self else { return };
        // If even this cannot be written, the exit code has to speak for it.
        let _ = if json { report_json(problem) } else { report_text(problem) };
    }
}

fn report_json(problem: &Problem) -> io::Result<()> {
    let text = serde_json::to_string(problem).map_err(io::Error::other)?;
    writeln!(io::stderr().lock(), "{text}")
}

fn report_text(problem: &Problem) -> io::Result<()> {
    let mut err = anstream::stderr().lock();
    writeln!(err, "{}: {} [{}]", paint::bad("error"), problem.detail, problem.code)?;
    if let Some(hint) = &problem.hint {
        writeln!(err, "{}: {hint}", paint::good("hint"))?;
    }
    if let Some(id) = &problem.request_id {
        writeln!(err, "{}", paint::dim(format_args!("request {id}")))?;
    }
    Ok(())
}

impl From<io::Error> for Fault {
    /// Of writing output: the only IO whose errors are passed on without saying more.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::NobodyReads;
        }
        Self::new("file_unusable", format!("cannot write the output: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn explained(section: &str) -> BTreeSet<&'static str> {
        let text = include_str!("../../../docs/errors.md");
        let start = text.find(&format!("\n## {section}\n")).expect("the section exists") + 4;
        let rest = &text[start..];
        let end = rest.find("\n## ").unwrap_or(rest.len());
        rest[..end].lines().filter_map(|line| line.strip_prefix("### ")).collect()
    }

    #[test]
    fn every_code_of_the_command_line_is_explained_and_the_other_way_round() {
        assert_eq!(CODES.iter().map(|(code, ..)| *code).collect::<BTreeSet<_>>(), explained("Command line"));
        assert_eq!(
            OPEN_CODES.iter().map(|(code, _)| *code).collect::<BTreeSet<_>>(),
            explained("Opening the database")
        );
    }

    #[test]
    fn a_server_that_is_busy_is_told_from_one_that_refuses() {
        let answer = |status| {
            let Fault::Told { problem, .. } = Fault::new("x", "y") else { unreachable!() };
            Fault::answered(Problem { status: Some(status), ..*problem }).exit()
        };
        assert_eq!(answer(503), Exit::Unavailable);
        assert_eq!(answer(422), Exit::Failed);
    }

    #[test]
    fn a_reader_that_left_is_no_failure() {
        let fault = Fault::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(fault.exit(), Exit::Ok);
    }
}
