//! Events of a run in words.

use super::line::Line;
use crate::jobs::seconds;
use crate::paint;
use anstyle::Style;
use baton_core::{Micros, RunId};
use baton_wire::{Event, Time};
use serde_json::Value;

/// Whether an event belongs to a run: it is the run's own, one of its agents', or names it.
pub fn concerns(event: &Event, run: RunId) -> bool {
    let id = run.to_string();
    event.subject == id || event.data["run"] == id.as_str()
}

/// A line for people: when, who, what. Each begun step has one of its own.
pub fn lines(event: &Event) -> Vec<Line> {
    let data = &event.data;
    let who = data["agent"].as_str().filter(|_| !event.kind.starts_with("run."));
    let line = |style: Style, text: &str| {
        let line = Line::new().dim(seconds(event.at)).plain("  ").styled(paint::BOLD, who.unwrap_or("run"));
        line.plain("  ").styled(style, text)
    };
    let mut all = Vec::new();
    if event.kind != "step.started" {
        let (style, text) = what(&event.kind, data);
        all.push(line(style, &text));
    }
    let begun = data["begun"].as_array().into_iter().flatten().filter_map(Value::as_str);
    all.extend(begun.map(|step| line(paint::BUSY, &format!("{step} is called"))));
    all
}

fn what(kind: &str, data: &Value) -> (Style, String) {
    let text = |name: &str| data[name].as_str().unwrap_or_default();
    let reason = match text("reason") {
        "" => String::new(),
        reason => format!(": {reason}"),
    };
    let charged = match text("charged") {
        "" | "0" => String::new(),
        credits => format!(", {credits} credits"),
    };
    let part = match (text("task"), text("step")) {
        ("", _) => String::new(),
        (task, "") => format!("task {task} "),
        (task, step) => format!("{task}.{step} "),
    };
    let again = || format!("{part}is tried again {}{reason}", moment(&data["until"]).unwrap_or_default());
    let (_, verb) = kind.split_once('.').unwrap_or(("", kind));
    match (kind, verb) {
        ("run.created", _) => (paint::BUSY, "was created".to_owned()),
        ("run.pending", _) => (paint::BUSY, "waits for a worker".to_owned()),
        ("run.running", _) if data["resumed"] == true => (paint::BUSY, "goes on".to_owned()),
        ("run.running", _) => (paint::BUSY, format!("is running with {} agents", data["agents"])),
        ("run.resuming", _) => (paint::BUSY, "is resumed".to_owned()),
        ("run.retrying", _) => {
            let at = moment(&data["at"]).unwrap_or_default();
            (paint::WARN, format!("begins again {at}, attempt {}", data["attempt"]))
        }
        ("run.completed" | "run.skipped" | "run.failed" | "run.cancelled", verb) => {
            let style = ended(verb);
            let verb = if verb == "skipped" || verb == "cancelled" { format!("was {verb}") } else { verb.to_owned() };
            let (charged, refunded) = (text("charged"), text("refunded"));
            (style, format!("{verb}{reason}; {charged} credits charged, {refunded} given back"))
        }
        ("agent.spawned", _) => (paint::DIM, "waits for a worker".to_owned()),
        ("agent.woken", _) => (paint::BUSY, "goes on".to_owned()),
        ("agent.taken_over", _) => {
            (paint::WARN, format!("goes on with another worker; {} calls were cut off", data["left"]))
        }
        ("step.waiting", _) => (paint::WARN, format!("{part}{}", waits(data))),
        ("signal.given", _) => (paint::BUSY, format!("got the signal {}", text("name"))),
        (_, "retrying") => (paint::WARN, again()),
        (_, "completed" | "failed") => (ended(verb), format!("{part}{verb}{reason}{charged}")),
        (_, "skipped" | "cancelled" | "paused" | "resumed" | "deleted") => {
            (ended(verb), format!("{part}was {verb}{reason}{charged}"))
        }
        (_, "running") => (paint::BUSY, "is at work".to_owned()),
        _ => (paint::DIM, kind.to_owned()),
    }
}

fn ended(verb: &str) -> Style {
    match verb {
        "completed" => paint::GOOD,
        "failed" => paint::BAD,
        "resumed" => paint::BUSY,
        _ => paint::WARN,
    }
}

fn waits(data: &Value) -> String {
    let by = moment(&data["until"]).map(|until| format!(" {until}")).unwrap_or_default();
    match data["for"].as_str() {
        Some("time") => format!("sleeps until{}", by.strip_prefix(" at").unwrap_or(&by)),
        Some("signal") => {
            let limit = by.strip_prefix(" at").map(|by| format!(", at most until{by}")).unwrap_or_default();
            format!("waits for the signal {}{limit}", data["signal"].as_str().unwrap_or_default())
        }
        Some(what) => {
            let id = data["decision"].as_str().unwrap_or_default();
            let why = if what == "answer" { "asks" } else { "asks whether it was done" };
            format!("{why}: baton decisions show {id}")
        }
        None => "waits".to_owned(),
    }
}

/// Moments stand as numbers in the history.
fn moment(value: &Value) -> Option<String> {
    value.as_i64().map(|micros| format!("at {}", seconds(Time(Micros(micros)))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(kind: &str, data: Value) -> Vec<String> {
        let event: Event = serde_json::from_value(json!({
            "cursor": "c1", "subject": "agt_018bcfe568007001800000000000002a", "n": 1, "kind": kind,
            "at": "2026-01-31T09:30:00.123456Z", "actor": "engine", "data": data, "hash": "0".repeat(64),
        }))
        .unwrap();
        let strip = |line: Line| anstream::adapter::strip_str(&line.to_string()).to_string();
        lines(&event).into_iter().map(strip).collect()
    }

    #[test]
    fn events_are_told_in_words() {
        let at = "2026-01-31T09:30:00Z  ";
        let cases = [
            ("run.running", json!({ "agents": 2 }), vec!["run  is running with 2 agents"]),
            (
                "run.failed",
                json!({ "charged": "1.5", "refunded": "8", "reason": "tool_crashed" }),
                vec!["run  failed: tool_crashed; 1.5 credits charged, 8 given back"],
            ),
            (
                "step.completed",
                json!({ "agent": "a", "task": "t", "step": "s", "charged": "2", "begun": ["t.next"] }),
                vec!["a  t.s completed, 2 credits", "a  t.next is called"],
            ),
            ("step.started", json!({ "agent": "a", "begun": ["t.s"] }), vec!["a  t.s is called"]),
            (
                "step.waiting",
                json!({ "agent": "a", "task": "t", "step": "s", "for": "signal", "signal": "go", "until": null }),
                vec!["a  t.s waits for the signal go"],
            ),
            (
                "step.waiting",
                json!({ "agent": "a", "task": "t", "step": "s", "for": "time", "until": 1_769_851_800_000_000_i64 }),
                vec!["a  t.s sleeps until 2026-01-31T09:30:00Z"],
            ),
            (
                "step.retrying",
                json!({ "agent": "a", "task": "t", "step": "s", "reason": "timeout", "until": 1_769_851_800_000_000_i64 }),
                vec!["a  t.s is tried again at 2026-01-31T09:30:00Z: timeout"],
            ),
            ("task.skipped", json!({ "agent": "a", "task": "t", "reason": "x" }), vec!["a  task t was skipped: x"]),
            ("agent.woken", json!({ "agent": "a", "left": 0 }), vec!["a  goes on"]),
            (
                "agent.taken_over",
                json!({ "agent": "a", "left": 2 }),
                vec!["a  goes on with another worker; 2 calls were cut off"],
            ),
            ("agent.completed", json!({ "agent": "a", "charged": "0" }), vec!["a  completed"]),
        ];
        for (kind, data, lines) in cases {
            let expected: Vec<_> = lines.into_iter().map(|line| format!("{at}{line}")).collect();
            assert_eq!(said(kind, data), expected, "{kind}");
        }
    }
}
