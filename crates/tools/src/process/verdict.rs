//! What the end of a program means: a result, or which failure. Pure.

use super::failure::{self, Class, ToolFailure};
use super::limits;
use super::order::How;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

/// A program that ended by itself, and what it left.
pub struct Left<'a> {
    pub how: How,
    pub output: &'a [u8],
    /// The end of its stderr.
    pub said: &'a [u8],
}

/// "Temporary failure; the user is invited to try again later."
const EX_TEMPFAIL: i32 = 75;
/// What shells, and those who imitate them, exit with.
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;
const SIGKILL: i32 = 9;
const SIGXFSZ: i32 = 25;

/// What the last line of stderr begins with if a part of a Python program is missing.
const MISSING: [&str; 2] = ["ModuleNotFoundError", "ImportError"];
/// The same if there was not enough memory.
const NO_MEMORY: &str = "MemoryError";
/// What runtimes write anywhere before they abort for want of memory.
const NO_MEMORY_ABORTS: [&str; 4] =
    ["memory allocation of ", "std::bad_alloc", "heap out of memory", "runtime: out of memory"];
/// A program that ignores the signal is told by an error instead.
const FILE_TOO_LARGE: &str = "File too large";

pub fn verdict(left: &Left<'_>) -> Result<Value, ToolFailure> {
    let said = readable(left.said);
    match left.how {
        How::Exit(0) => result(left.output),
        How::Exit(code) => Err(told(left.output).unwrap_or_else(|| exited(code, &said))),
        How::Signal(signal) => Err(signalled(signal, &said)),
        How::Unknown => Err(failed(failure::TOOL_CRASHED, Class::Deterministic, "it does not end", &said)),
    }
}

fn result(output: &[u8]) -> Result<Value, ToolFailure> {
    if let Some(told) = told(output).filter(|told| told.code == failure::RATE_LIMITED) {
        return Err(told);
    }
    serde_json::from_slice(output).map_err(|error| {
        let message = match output.is_empty() {
            true => "the program ended well and wrote nothing to its stdout".to_owned(),
            false => format!("what the program wrote to its stdout is not JSON: {error}"),
        };
        ToolFailure::ran(failure::INVALID_OUTPUT, Class::Deterministic, message)
    })
}

fn exited(code: i32, said: &str) -> ToolFailure {
    let how = format!("exit code {code}");
    let last = last_line(said);
    if code == EX_TEMPFAIL {
        return rate_limited(failed(failure::RATE_LIMITED, Class::Transient, &how, said));
    }
    if [NOT_EXECUTABLE, NOT_FOUND].contains(&code) || MISSING.iter().any(|missing| last.starts_with(missing)) {
        return failed(failure::DEPENDENCY_MISSING, Class::Deterministic, &how, said);
    }
    if last.starts_with(NO_MEMORY) || aborted_for_memory(said) {
        return failed(failure::OUT_OF_MEMORY, Class::Transient, &how, said);
    }
    if last.contains(FILE_TOO_LARGE) {
        return failed(failure::FILE_TOO_LARGE, Class::Deterministic, &how, said);
    }
    failed(failure::TOOL_CRASHED, Class::Deterministic, &how, said)
}

/// Nobody here has killed it; whoever kills what is not theirs is mostly the system, for memory.
fn signalled(signal: i32, said: &str) -> ToolFailure {
    let how = format!("signal {signal}");
    let (code, class) = match signal {
        SIGKILL => (failure::OUT_OF_MEMORY, Class::Transient),
        SIGXFSZ => (failure::FILE_TOO_LARGE, Class::Deterministic),
        _ if aborted_for_memory(said) => (failure::OUT_OF_MEMORY, Class::Transient),
        _ => (failure::TOOL_CRASHED, Class::Deterministic),
    };
    failed(code, class, &how, said)
}

fn aborted_for_memory(said: &str) -> bool {
    NO_MEMORY_ABORTS.iter().any(|text| said.contains(text))
}

fn failed(code: &'static str, class: Class, how: &str, said: &str) -> ToolFailure {
    let message = match said.is_empty() {
        true => format!("the program failed: {how}"),
        false => format!("the program failed: {how}; it said: {said}"),
    };
    ToolFailure::ran(code, class, message)
}

/// Who is told to come again later has not been served.
fn rate_limited(failure: ToolFailure) -> ToolFailure {
    ToolFailure { may_have_acted: false, ..failure }
}

#[derive(Deserialize)]
struct Told {
    error: Fault,
}

#[derive(Deserialize)]
struct Fault {
    code: String,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    class: Option<Class>,
    #[serde(default)]
    retry_after_ms: Option<u64>,
    /// Whether it may have done what it does; a program that does not say may have.
    #[serde(default)]
    acted: Option<bool>,
}

/// What the program says about its failure, if it says it in the way that is understood.
fn told(output: &[u8]) -> Option<ToolFailure> {
    let Told { error } = serde_json::from_slice(output).ok()?;
    // Whether a call was cancelled is not for the program to say.
    if !is_code(&error.code) || error.code == failure::CANCELLED {
        return None;
    }
    let limited = error.code == failure::RATE_LIMITED;
    let class = error.class.unwrap_or(if limited { Class::Transient } else { Class::Deterministic });
    let message = error.message.as_deref().map(|message| readable(head(message).as_bytes()));
    let told = ToolFailure {
        message: message.unwrap_or_else(|| format!("the program says: {}", error.code)),
        class,
        may_have_acted: error.acted.unwrap_or(true),
        retry_after: error.retry_after_ms.map(|ms| Duration::from_millis(ms).min(limits::RETRY_AFTER)),
        code: error.code.into(),
    };
    Some(if limited { rate_limited(told) } else { told })
}

fn is_code(code: &str) -> bool {
    (1..=limits::CODE_BYTES).contains(&code.len())
        && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

fn head(message: &str) -> &str {
    &message[..message.floor_char_boundary(limits::MESSAGE_BYTES)]
}

/// Text that can be stored and shown: no databases choke on zero bytes, no terminal is steered.
fn readable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.trim().chars().map(|one| if one.is_control() && one != '\n' && one != '\t' { ' ' } else { one }).collect()
}

fn last_line(said: &str) -> &str {
    said.lines().next_back().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(how: How, output: &str, said: &str) -> Result<Value, ToolFailure> {
        verdict(&Left { how, output: output.as_bytes(), said: said.as_bytes() })
    }

    #[test]
    fn every_end_has_its_meaning() {
        use Class::{Deterministic, Fatal, Transient};
        use How::{Exit, Signal};
        let told = r#"{"error":{"code":"no_such_order","message":"order 7","class":"fatal","retry_after_ms":5}}"#;
        let limited = r#"{"error":{"code":"rate_limited","retry_after_ms":1500}}"#;
        let table = [
            (Exit(0), "", "", "invalid_output", Deterministic, true),
            (Exit(0), "hello", "", "invalid_output", Deterministic, true),
            (Exit(0), "{} {}", "", "invalid_output", Deterministic, true),
            (Exit(0), limited, "", "rate_limited", Transient, false),
            (Exit(1), limited, "", "rate_limited", Transient, false),
            (Exit(75), "", "slow down", "rate_limited", Transient, false),
            (Exit(1), told, "", "no_such_order", Fatal, true),
            (Exit(1), "{}", "", "tool_crashed", Deterministic, true),
            (Exit(1), r#"{"error":{"code":"Bad Code"}}"#, "", "tool_crashed", Deterministic, true),
            (Exit(1), r#"{"error":{"code":"cancelled"}}"#, "", "tool_crashed", Deterministic, true),
            (Exit(1), "", "Traceback\nValueError: MemoryError", "tool_crashed", Deterministic, true),
            (Signal(11), "", "", "tool_crashed", Deterministic, true),
            (Signal(6), told, "", "tool_crashed", Deterministic, true),
            (Exit(126), "", "", "dependency_missing", Deterministic, true),
            (Exit(127), "", "sh: jq: not found", "dependency_missing", Deterministic, true),
            (
                Exit(1),
                "",
                "Traceback\nModuleNotFoundError: No module named 'x'\n",
                "dependency_missing",
                Deterministic,
                true,
            ),
            (Exit(1), "", "ImportError: x", "dependency_missing", Deterministic, true),
            (Signal(9), "", "", "out_of_memory", Transient, true),
            (Exit(1), "", "Traceback\nMemoryError\n", "out_of_memory", Transient, true),
            (Signal(6), "", "memory allocation of 9 bytes failed\n", "out_of_memory", Transient, true),
            (Signal(25), "", "", "file_too_large", Deterministic, true),
            (Exit(1), "", "OSError: [Errno 27] File too large", "file_too_large", Deterministic, true),
        ];
        for (how, output, said, code, class, acted) in table {
            let failure = of(how, output, said).unwrap_err();
            let got = (failure.code.as_ref(), failure.class, failure.may_have_acted);
            assert_eq!(got, (code, class, acted), "{how:?} {output} {said}");
        }
    }

    #[test]
    fn any_json_is_a_result_even_one_with_an_error_in_it() {
        for output in ["null", " {\"a\": 1}\n", "[]", r#"{"error":{"code":"other"}}"#, r#"{"error":"rate_limited"}"#] {
            assert!(of(How::Exit(0), output, "noise").is_ok(), "{output}");
        }
    }

    #[test]
    fn a_pause_that_is_asked_for_is_kept_within_reason() {
        let ask = |ms: u64| {
            let output = format!(r#"{{"error":{{"code":"rate_limited","retry_after_ms":{ms}}}}}"#);
            of(How::Exit(1), &output, "").unwrap_err().retry_after
        };
        assert_eq!(ask(1500), Some(Duration::from_millis(1500)));
        assert_eq!(ask(u64::MAX), Some(limits::RETRY_AFTER));
    }

    #[test]
    fn a_message_is_text_of_a_limited_length_that_steers_nothing() {
        let failure = of(How::Exit(3), "", "a\0b\x1b[31m\tc\nd").unwrap_err();
        assert_eq!(failure.message, "the program failed: exit code 3; it said: a b [31m\tc\nd");
        let output = format!(r#"{{"error":{{"code":"x","message":"{}"}}}}"#, "é".repeat(5_000));
        assert!(of(How::Exit(1), &output, "").unwrap_err().message.len() <= limits::MESSAGE_BYTES);
        assert!(verdict(&Left { how: How::Exit(1), output: b"\xff", said: b"\xff" }).is_err());
    }
}
