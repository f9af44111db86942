//! The document that a run is started with, as a JSON Schema: for editors, and for whoever writes one by program.
//!
//! What it accepts is a little more than what compiles: names that must be known, references and circles are beyond
//! it. What it refuses never compiles.

use baton_core::credits::Credits;
use baton_core::limits;
use baton_core::name::{PlanName, ProjectId, ToolName};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};
use std::borrow::Cow;

/// Stands for a run document where the API is described.
pub struct RunDocument;

impl JsonSchema for RunDocument {
    fn schema_name() -> Cow<'static, str> {
        "RunDocument".into()
    }

    /// The same schema, told where in the description its parts are.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = schema();
        if let Some(fields) = schema.as_object_mut() {
            fields.remove("$schema");
        }
        moved(&mut schema);
        Schema::try_from(schema).unwrap_or_default()
    }
}

fn moved(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(at) if name == "$ref" => {
                        *at = at.replace("#/$defs/", "#/components/schemas/RunDocument/$defs/");
                    }
                    other => moved(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(moved),
        _ => {}
    }
}

/// A document that needs no tools, with something of everything.
pub fn example() -> Value {
    let mut example = whole_example();
    example["budget"] = json!("0");
    example
}

/// JSON Schema, draft 2020-12.
pub fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Run",
        "description": "What a run is going to do: agents, their tasks, the steps of each.",
        "type": "object",
        "additionalProperties": false,
        "required": ["name", "plan"],
        "properties": {
            "name": line("What the run is called.", 1, limits::RUN_NAME_CHARS),
            "task": text("What it is about; inputs name it as `${run.task}`.", limits::RUN_TASK_CHARS),
            "project": {
                "type": "string",
                "description": "The project that it belongs to.",
                "pattern": "^[A-Za-z0-9._:-]+$",
                "maxLength": ProjectId::MAX,
                "not": { "enum": [".", ".."] },
                "default": "default",
            },
            "priority": { "description": "How urgent it is.", "enum": ["high", "normal"], "default": "normal" },
            "budget": credits("What it may spend; without one, what all its steps cost if each is tried as often as it may be."),
            "failure_mode": { "$ref": "#/$defs/failureMode" },
            "max_attempts": number("How often the whole run is attempted.", 1, limits::PLAN_ATTEMPTS, 3),
            "limits": limits_schema(),
            "labels": {
                "type": "object",
                "description": "Words to find it by.",
                "maxProperties": limits::RUN_LABELS,
                "propertyNames": line("The name of a label.", 1, limits::RUN_LABEL_NAME_CHARS),
                "additionalProperties": line("Its value; numbers are put in quotes.", 0, limits::RUN_LABEL_CHARS),
                "examples": [{ "team": "search" }],
            },
            "plan": {
                "type": "object",
                "description": "Who does what.",
                "additionalProperties": false,
                "required": ["agents"],
                "properties": { "agents": list("#/$defs/agent", "Those that work on it, at the same time.", limits::RUN_AGENTS) },
            },
        },
        "$defs": {
            "agent": agent(),
            "task": task(),
            "step": step(),
            "name": {
                "type": "string",
                "description": "A name, unique among its siblings; by default its kind and its place, such as `task-1`.",
                "pattern": "^[A-Za-z0-9_-]+$",
                "maxLength": PlanName::MAX,
            },
            "span": {
                "type": "string",
                "description": "A length of time: numbers with the units d, h, m, s and ms, the larger first, from 1ms to 366d.",
                "pattern": "^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$",
                "minLength": 2,
                "examples": ["30s", "1h30m", "7d"],
            },
            "failureMode": {
                "description": "What a failure of a part does to the whole: it fails too, goes on without, or begins again while its attempts last.",
                "enum": ["fail-fast", "fail_fast", "continue", "retry"],
                "default": "fail-fast",
            },
        },
        "examples": [whole_example()],
    })
}

fn limits_schema() -> Value {
    json!({
        "type": "object",
        "description": "Bounds of the whole run, and what its parts fall back to.",
        "additionalProperties": false,
        "properties": {
            "max_agents": number("Agents at the same time.", 1, limits::PLAN_WIDTH, 10),
            "max_tasks": number("Tasks of an agent at the same time, unless it says otherwise.", 1, limits::PLAN_WIDTH, 5),
            "max_steps": number("Steps of a task at the same time, unless it says otherwise.", 1, limits::PLAN_WIDTH, 3),
            "failure_budget": number("Failures that may be tried again, all together.", 0, limits::FAILURE_BUDGET, 30),
            "run_timeout": span("How long an attempt of the run may take.", Some("24h")),
            "pause_timeout": span("How long the run may stay paused.", Some("7d")),
            "agent_timeout": span("How long an agent may take, unless it says otherwise.", Some("6h")),
            "task_timeout": span("How long a task may take, unless it says otherwise.", Some("1h")),
            "step_timeout": span("How long a step may take, unless it or its tool says otherwise.", Some("30s")),
        },
    })
}

fn agent() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["tasks"],
        "properties": {
            "name": { "$ref": "#/$defs/name" },
            "subtask": text("What this one is about; inputs name it as `${agent.subtask}`.", limits::SUBTASK_CHARS),
            "failure_mode": { "$ref": "#/$defs/failureMode" },
            "attempts": number("How often it is attempted.", 1, limits::PLAN_ATTEMPTS, 3),
            "timeout": span("How long it may take.", None),
            "parallelism": {
                "description": "How its tasks go: one after the other, all at once, or each when those it depends on have ended.",
                "enum": ["sequential", "parallel", "dag"],
                "default": "sequential",
            },
            "max_tasks": width("Tasks at the same time, where they do not go one after the other."),
            "tasks": list("#/$defs/task", "What it does.", limits::AGENT_TASKS),
        },
    })
}

fn task() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["steps"],
        "properties": {
            "name": { "$ref": "#/$defs/name" },
            "depends_on": names("Tasks of the same agent that must have ended before; with `parallelism: dag`."),
            "failure_mode": { "$ref": "#/$defs/failureMode" },
            "attempts": number("How often it is attempted.", 1, limits::PLAN_ATTEMPTS, 3),
            "timeout": span("How long it may take.", None),
            "parallelism": {
                "description": "How its steps go: one after the other, or each when those it depends on have ended.",
                "enum": ["sequential", "parallel"],
                "default": "sequential",
            },
            "max_steps": width("Steps at the same time, where they do not go one after the other."),
            "steps": list("#/$defs/step", "Calls of tools.", limits::TASK_STEPS),
        },
    })
}

fn step() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["tool"],
        "properties": {
            "name": { "$ref": "#/$defs/name" },
            "tool": {
                "type": "string",
                "description": "A tool that the operator declared, or `sleep`, `wait` or `ask`.",
                "pattern": "^[a-z0-9._-]+$",
                "maxLength": ToolName::MAX,
                "not": { "enum": [".", ".."] },
            },
            "input": {
                "description": format!(
                    "What the tool is given: any JSON up to {} bytes and {} deep. Texts may name `${{steps.NAME.path}}`, \
                     `${{tasks.TASK.STEP.path}}`, `${{run.name}}`, `${{run.task}}`, `${{run.id}}`, `${{agent.name}}` and \
                     `${{agent.subtask}}`; `$${{` is a literal `${{`.",
                    limits::INPUT_BYTES, limits::INPUT_DEPTH,
                ),
                "default": {},
                "examples": [{ "url": "https://example.com/${steps.find.items.0.id}" }],
            },
            "effect": {
                "description": "What calling it twice would do; by default what the tool says, and never less.",
                "enum": ["pure", "idempotent", "unsafe"],
            },
            "repeat": {
                "type": "boolean",
                "description": "Whether an unsafe step that completed is done again when its task is.",
                "default": false,
            },
            "timeout": span("How long a call may take.", None),
            "attempts": {
                "type": "integer",
                "description": "How often it is called at most; by default what the tool says, or 3.",
                "minimum": 1,
                "maximum": limits::PLAN_ATTEMPTS,
            },
            "price": credits("What a call costs; by default what the tool says, and never less."),
            "depends_on": names("Steps of the same task that must have ended before."),
        },
    })
}

fn line(about: &str, min: usize, max: usize) -> Value {
    json!({
        "type": "string", "description": about, "minLength": min, "maxLength": max,
        "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]*$",
    })
}

fn text(about: &str, max: usize) -> Value {
    json!({ "type": "string", "description": about, "maxLength": max })
}

fn number(about: &str, min: u32, max: u32, default: u32) -> Value {
    json!({ "type": "integer", "description": about, "minimum": min, "maximum": max, "default": default })
}

fn width(about: &str) -> Value {
    json!({ "type": "integer", "description": about, "minimum": 1, "maximum": limits::PLAN_WIDTH })
}

fn span(about: &str, default: Option<&str>) -> Value {
    let mut span = json!({ "$ref": "#/$defs/span", "description": about });
    if let (Some(fields), Some(default)) = (span.as_object_mut(), default) {
        fields.insert("default".to_owned(), default.into());
    }
    span
}

fn credits(about: &str) -> Value {
    let max = Credits::MAX.micros() / Credits::whole(1).micros();
    json!({
        "description": format!("{about} Credits, with up to six decimals."),
        "oneOf": [
            { "type": "string", "pattern": "^[0-9]{1,12}(\\.[0-9]{1,6})?$" },
            { "type": "number", "minimum": 0, "maximum": max },
        ],
        "examples": ["12.5"],
    })
}

fn names(about: &str) -> Value {
    json!({ "type": "array", "description": about, "items": { "$ref": "#/$defs/name" } })
}

fn list(of: &str, about: &str, max: usize) -> Value {
    json!({ "type": "array", "description": about, "items": { "$ref": of }, "minItems": 1, "maxItems": max })
}

/// Uses only what is there without any tool being declared.
fn whole_example() -> Value {
    json!({
        "name": "Release 1.4",
        "task": "Bring version 1.4 to everybody.",
        "project": "shop",
        "priority": "high",
        "budget": "12.5",
        "failure_mode": "fail-fast",
        "max_attempts": 2,
        "limits": { "max_agents": 4, "max_tasks": 5, "failure_budget": 10, "run_timeout": "12h" },
        "labels": { "team": "search" },
        "plan": { "agents": [example_agent()] },
    })
}

fn example_agent() -> Value {
    json!({
            "name": "release",
            "subtask": "Ask, wait for the build, then let it settle.",
            "attempts": 2,
            "timeout": "8h",
            "parallelism": "dag",
            "max_tasks": 2,
            "tasks": [
                { "name": "approve", "steps": [{
                    "name": "sure",
                    "tool": "ask",
                    "input": { "prompt": "Release ${run.name}?", "responsibility": "release_manager" },
                    "timeout": "4h",
                }] },
                {
                    "name": "build",
                    "depends_on": ["approve"],
                    "failure_mode": "retry",
                    "attempts": 3,
                    "timeout": "2h",
                    "parallelism": "parallel",
                    "max_steps": 2,
                    "steps": [
                        { "name": "built", "tool": "wait", "input": { "signal": "built", "within": "1h" } },
                        {
                            "name": "settle",
                            "tool": "sleep",
                            "input": { "for": "10m" },
                            "effect": "pure",
                            "repeat": false,
                            "attempts": 1,
                            "price": "0",
                            "depends_on": ["built"],
                        },
                    ],
                },
            ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::plan::{AgentDoc, Document, LimitsDoc, PlanDoc, StepDoc, TaskDoc, Tools, check};
    use jsonschema::Validator;
    use std::collections::BTreeSet;

    fn validator() -> Validator {
        jsonschema::draft202012::new(&schema()).unwrap()
    }

    /// Every place in a value, the value itself first.
    fn places(value: &Value, at: &str, found: &mut Vec<String>) {
        found.push(at.to_owned());
        match value {
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(n, item)| places(item, &format!("{at}/{n}"), found))
            }
            Value::Object(fields) => {
                fields.iter().for_each(|(name, field)| places(field, &format!("{at}/{name}"), found))
            }
            _ => {}
        }
    }

    #[test]
    fn the_schema_is_one_and_its_examples_compile() {
        assert!(jsonschema::meta::is_valid(&schema()));
        let tools = Tools::builtin();
        let compiled = check(&whole_example(), &tools).unwrap_or_else(|problems| panic!("{problems:#?}"));
        assert_eq!(compiled.plan.agents[0].tasks[1].after, [0]);
        assert!(validator().is_valid(&whole_example()));
    }

    #[test]
    fn it_knows_the_fields_that_are_read() {
        let schema = schema();
        for (at, fields) in [
            ("", Document::FIELDS),
            ("/properties/limits", LimitsDoc::FIELDS),
            ("/properties/plan", PlanDoc::FIELDS),
            ("/$defs/agent", AgentDoc::FIELDS),
            ("/$defs/task", TaskDoc::FIELDS),
            ("/$defs/step", StepDoc::FIELDS),
        ] {
            let object = schema.pointer(at).unwrap();
            let known: BTreeSet<&str> = object["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(known, fields.iter().copied().collect(), "{at}");
            assert_eq!(object["additionalProperties"], false, "{at}");
        }
    }

    /// Puts all kinds of values everywhere: what the schema refuses must not compile.
    #[test]
    fn what_compiles_is_valid() {
        let values = [
            "null",
            "true",
            "0",
            "1",
            "2.0",
            "2.5",
            "-1",
            "10",
            "11",
            "100",
            "101",
            "1000",
            "1001",
            "1e9",
            "1e10",
            "1e300",
            "[]",
            "{}",
            r#"[""]"#,
            r#"["approve"]"#,
            r#"["built"]"#,
            r#"{"a":"b"}"#,
            r#"{"a":1}"#,
            r#"{"for":"1s"}"#,
            r#""""#,
            r#"".""#,
            r#""a""#,
            r#""a b""#,
            r#""a\nb""#,
            r#""\u0000""#,
            r#""\u0085""#,
            r#""30s""#,
            r#""1h30m""#,
            r#""30m1h""#,
            r#""0s""#,
            r#""367d""#,
            r#""1.5""#,
            r#""1.1234567""#,
            r#""pure""#,
            r#""unsafe""#,
            r#""dag""#,
            r#""parallel""#,
            r#""sequential""#,
            r#""fail_fast""#,
            r#""retry""#,
            r#""high""#,
            r#""sleep""#,
            r#""ask""#,
        ];
        let mut values: Vec<Value> = values.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        values.extend([64, 65, 128, 129, 200, 201, 10_000, 10_001].map(|n| json!("x".repeat(n))));
        let (validator, tools) = (validator(), Tools::builtin());
        let mut at = Vec::new();
        places(&whole_example(), "", &mut at);
        let (mut compiled, mut refused) = (0, 0);
        for place in &at {
            for value in &values {
                let mut document = whole_example();
                *document.pointer_mut(place).unwrap() = value.clone();
                if check(&document, &tools).is_ok() {
                    assert!(validator.is_valid(&document), "{place} {value} compiles and is not valid");
                    compiled += 1;
                } else {
                    refused += 1;
                }
            }
        }
        assert!(compiled > 200 && refused > 1_000, "{compiled} {refused}");
    }

    #[test]
    fn unknown_fields_are_refused_everywhere() {
        let (validator, tools) = (validator(), Tools::builtin());
        let mut at = Vec::new();
        places(&whole_example(), "", &mut at);
        // Labels and inputs have the fields that people give them.
        for place in at.iter().filter(|place| !place.contains("/labels") && !place.contains("/input")) {
            let mut document = whole_example();
            let Some(fields) = document.pointer_mut(place).and_then(Value::as_object_mut) else { continue };
            fields.insert("on_exhausted".to_owned(), json!("pause"));
            assert!(!validator.is_valid(&document), "{place}");
            let problems = check(&document, &tools).unwrap_err();
            assert_eq!(
                (problems[0].code, problems[0].path.as_str()),
                ("unknown_field", &*format!("{place}/on_exhausted"))
            );
        }
    }

    #[test]
    fn problems_have_lines_and_columns() {
        use crate::source::{Format, Place, read};
        let text =
            "name: r\nplan:\n  agents:\n  - tasks:\n    - steps:\n      - tool: slep\n        input: {for: 1s}\n";
        let (value, places) = read(text, Format::Yaml).unwrap();
        let problems = check(&value, &Tools::builtin()).unwrap_err();
        assert_eq!(problems[0].code, "unknown_tool");
        assert_eq!(places.at(&problems[0].path), Place { line: 6, column: 9 });
    }
}
