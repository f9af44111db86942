use super::*;
use crate::name::ToolName;
use crate::plan::{Doer, Effect, Tool, problem::CODES};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;

fn tools() -> Tools {
    let mut tools = Tools::builtin();
    for (name, effect, price) in
        [("look", Effect::Pure, 1), ("http.get", Effect::Idempotent, 2), ("pay", Effect::Unsafe, 5)]
    {
        let tool = Tool { doer: Doer::Tool, effect, price: Credits::whole(price), timeout: None, attempts: None };
        tools.add(ToolName::new(name).unwrap(), tool).unwrap();
    }
    tools
}

fn check(value: &Value) -> Result<Compiled, Vec<Problem>> {
    super::check(value, &tools())
}

/// A document with one agent.
fn of_agent(agent: Value) -> Value {
    json!({ "name": "r", "plan": { "agents": [agent] } })
}

fn of_tasks(tasks: Value) -> Value {
    of_agent(json!({ "tasks": tasks }))
}

fn of_steps(steps: Value) -> Value {
    of_tasks(json!([{ "steps": steps }]))
}

fn of_step(step: Value) -> Value {
    of_steps(json!([step]))
}

/// A good document with something changed.
fn with(change: impl Fn(&mut Value)) -> Value {
    let mut document = of_step(json!({ "tool": "look" }));
    change(&mut document);
    document
}

/// What is said about a document, as `code path`.
fn said(value: &Value) -> Vec<String> {
    match check(value) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.into_iter().map(|Problem { path, code, .. }| format!("{code} {path}")).collect(),
    }
}

#[track_caller]
fn plan(value: &Value) -> Plan {
    check(value).unwrap_or_else(|problems| panic!("{problems:#?}")).plan
}

/// Documents with the one thing that is wrong with each.
fn wrong() -> Vec<(Value, &'static str)> {
    let two = |first: Value, second: Value| of_steps(json!([first, second]));
    let look = || json!({ "tool": "look" });
    let input = |input: Value| of_step(json!({ "tool": "look", "input": input }));
    let deep = (0..33).fold(json!(1), |inner, _| json!([inner]));
    vec![
        (json!([]), "wrong_type "),
        (with(|d| d["name"] = json!(1)), "wrong_type /name"),
        (with(|d| d["task"] = Value::Null), "wrong_type /task"),
        (with(|d| d["labels"] = json!({ "a/b": 1 })), "wrong_type /labels/a~1b"),
        (with(|d| d["max_attempts"] = json!(1.5)), "wrong_type /max_attempts"),
        (with(|d| d["plan"]["agents"] = json!({})), "wrong_type /plan/agents"),
        (of_step(json!("look")), "wrong_type /plan/agents/0/tasks/0/steps/0"),
        (of_step(json!({ "tool": "look", "repeat": "yes" })), "wrong_type /plan/agents/0/tasks/0/steps/0/repeat"),
        (with(|d| d["on_exhausted"] = json!("pause")), "unknown_field /on_exhausted"),
        (with(|d| d["limits"] = json!({ "max_agent": 1 })), "unknown_field /limits/max_agent"),
        (with(|d| d["plan"]["tasks"] = json!([])), "unknown_field /plan/tasks"),
        (of_step(json!({ "tool": "look", "inptu": {} })), "unknown_field /plan/agents/0/tasks/0/steps/0/inptu"),
        (json!({ "plan": of_step(look())["plan"] }), "missing_field /name"),
        (json!({ "name": "r" }), "missing_field /plan"),
        (json!({ "name": "r", "plan": {} }), "missing_field /plan/agents"),
        (of_agent(json!({})), "missing_field /plan/agents/0/tasks"),
        (of_tasks(json!([{}])), "missing_field /plan/agents/0/tasks/0/steps"),
        (of_step(json!({})), "missing_field /plan/agents/0/tasks/0/steps/0/tool"),
        (with(|d| d["priority"] = json!("urgent")), "invalid_value /priority"),
        (with(|d| d["project"] = json!("a/b")), "invalid_value /project"),
        (with(|d| d["budget"] = json!("-1")), "invalid_value /budget"),
        (with(|d| d["budget"] = json!(1e-7)), "invalid_value /budget"),
        (with(|d| d["name"] = json!("two\nlines")), "invalid_value /name"),
        (with(|d| d["task"] = json!("\0")), "invalid_value /task"),
        (with(|d| d["limits"] = json!({ "run_timeout": "30" })), "invalid_value /limits/run_timeout"),
        (of_step(json!({ "tool": "Look" })), "invalid_value /plan/agents/0/tasks/0/steps/0/tool"),
        (of_step(json!({ "tool": "look", "name": "a.b" })), "invalid_value /plan/agents/0/tasks/0/steps/0/name"),
        (with(|d| d["max_attempts"] = json!(11)), "over_limit /max_attempts"),
        (with(|d| d["plan"]["agents"] = json!([])), "empty /plan/agents"),
        (of_tasks(json!([])), "empty /plan/agents/0/tasks"),
        (of_steps(json!([])), "empty /plan/agents/0/tasks/0/steps"),
        (
            two(json!({ "tool": "look", "name": "step-2" }), look()),
            "duplicate_name /plan/agents/0/tasks/0/steps/1/name",
        ),
        (of_step(json!({ "tool": "lok" })), "unknown_tool /plan/agents/0/tasks/0/steps/0/tool"),
        (
            of_tasks(json!([{ "steps": [look()], "depends_on": ["nobody"] }])),
            "unknown_task /plan/agents/0/tasks/0/depends_on/0",
        ),
        (input(json!("${tasks.nobody.s}")), "unknown_task /plan/agents/0/tasks/0/steps/0/input"),
        (input(json!("${steps.nobody}")), "unknown_step /plan/agents/0/tasks/0/steps/0/input"),
        (input(json!("${tasks.task-1.nobody}")), "unknown_step /plan/agents/0/tasks/0/steps/0/input"),
        (
            of_step(json!({ "tool": "look", "depends_on": ["nobody"] })),
            "unknown_step /plan/agents/0/tasks/0/steps/0/depends_on/0",
        ),
        (
            of_agent(json!({ "parallelism": "parallel", "tasks": [
                { "steps": [look()] }, { "steps": [look()], "depends_on": ["task-1"] },
            ] })),
            "depends_on_refused /plan/agents/0/tasks/1/depends_on",
        ),
        (input(json!({ "a": ["${steps}"] })), "invalid_reference /plan/agents/0/tasks/0/steps/0/input"),
        (input(json!("${run.id")), "invalid_reference /plan/agents/0/tasks/0/steps/0/input"),
        (input(json!("${agents.other.x}")), "foreign_reference /plan/agents/0/tasks/0/steps/0/input"),
        (input(json!("${steps.step-1}")), "dangling_reference /plan/agents/0/tasks/0/steps/0/input"),
        (
            of_tasks(json!([
                { "steps": [{ "tool": "look", "input": "${tasks.task-2.step-1}" }] },
                { "steps": [look()] },
            ])),
            "dangling_reference /plan/agents/0/tasks/0/steps/0/input",
        ),
        (
            of_tasks(json!([{ "steps": [look()], "depends_on": ["task-2"] }, { "steps": [look()] }])),
            "dangling_reference /plan/agents/0/tasks/0/depends_on/0",
        ),
        (
            of_agent(json!({ "parallelism": "dag", "tasks": [
                { "steps": [look()], "depends_on": ["task-2"] },
                { "steps": [{ "tool": "look", "input": "${tasks.task-1.step-1}" }] },
            ] })),
            "cycle /plan/agents/0/tasks/0",
        ),
        (
            of_tasks(json!([{ "parallelism": "parallel", "steps": [{ "tool": "look", "depends_on": ["step-1"] }] }])),
            "cycle /plan/agents/0/tasks/0/steps/0",
        ),
        (of_step(json!({ "tool": "pay", "effect": "pure" })), "effect_too_soft /plan/agents/0/tasks/0/steps/0/effect"),
        (of_step(json!({ "tool": "pay", "price": "4.9" })), "price_too_low /plan/agents/0/tasks/0/steps/0/price"),
        (of_step(json!({ "tool": "sleep" })), "invalid_input /plan/agents/0/tasks/0/steps/0/input"),
        (
            of_step(json!({ "tool": "wait", "input": { "signal": "$${x}" } })),
            "invalid_input /plan/agents/0/tasks/0/steps/0/input",
        ),
        (of_step(json!({ "tool": "ask", "input": {} })), "invalid_input /plan/agents/0/tasks/0/steps/0/input"),
        (input(json!("x".repeat(limits::INPUT_BYTES))), "input_too_large /plan/agents/0/tasks/0/steps/0/input"),
        (input(deep), "input_too_deep /plan/agents/0/tasks/0/steps/0/input"),
        (
            {
                let mut d = of_step(json!({ "tool": "pay" }));
                d["budget"] = json!(4);
                d
            },
            "budget_too_small /budget",
        ),
        (of_step(json!({ "tool": "pay", "price": "1000000000" })), "cost_overflow /plan"),
    ]
}

#[test]
fn every_problem_is_told_by_its_code_and_its_place() {
    let mut codes = BTreeSet::new();
    for (document, told) in wrong() {
        assert_eq!(said(&document), [told], "{document}");
        codes.insert(told.split(' ').next().unwrap());
    }
    assert_eq!(codes, CODES.into(), "every code is reached");
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let document = json!({
        "name": "", "prority": "high", "budget": true, "limits": { "max_agents": 0 },
        "plan": { "agents": [
            { "name": "a b", "tasks": [{ "steps": [{ "tool": "look", "input": "${steps.x}" }, { "tool": 7 }, 7] }] },
            { "tasks": "none" },
        ] },
    });
    assert_eq!(
        said(&document),
        [
            "unknown_field /prority",
            "wrong_type /budget",
            "invalid_value /plan/agents/0/name",
            "wrong_type /plan/agents/0/tasks/0/steps/1/tool",
            "wrong_type /plan/agents/0/tasks/0/steps/2",
            "wrong_type /plan/agents/1/tasks",
            "over_limit /name",
            "over_limit /limits/max_agents",
            "unknown_step /plan/agents/0/tasks/0/steps/0/input",
        ]
    );
    let many: Vec<Value> = (0..200).map(|_| json!({})).collect();
    assert_eq!(said(&of_steps(json!(many))).len(), limits::PROBLEMS);
}

#[test]
fn what_was_probably_meant_is_said() {
    let message = |value: &Value| check(value).unwrap_err().remove(0).message;
    let told = message(&of_step(json!({ "tool": "htp.get" })));
    assert!(told.contains("did you mean http.get?") && told.contains("ask, http.get, look"), "{told}");
    assert!(message(&with(|d| d["prioriti"] = json!("high"))).contains("did you mean priority?"));
    let circle = of_agent(json!({ "parallelism": "dag", "tasks": [
        { "name": "a", "steps": [{ "tool": "look" }], "depends_on": ["c"] },
        { "name": "b", "steps": [{ "tool": "look" }], "depends_on": ["a"] },
        { "name": "c", "steps": [{ "tool": "look" }], "depends_on": ["b"] },
    ] }));
    assert!(message(&circle).ends_with("a → c → b → a"), "{}", message(&circle));
}

#[test]
fn what_is_left_open_is_filled_in() {
    let Compiled { plan, budget, name, task, project, priority, labels } =
        check(&of_steps(json!([{ "tool": "pay" }, { "tool": "sleep", "input": { "for": "1h" } }]))).unwrap();
    assert_eq!((name.as_str(), task.as_str(), project.as_str()), ("r", "", "default"));
    assert_eq!((priority, labels.len()), (Priority::Normal, 0));
    assert_eq!(budget, Credits::whole(15), "three attempts of one call for five");
    assert_eq!((plan.max_attempts, plan.failure_budget, plan.max_agents), (3, 30, 10));
    assert_eq!((plan.timeout, plan.paused_for), (Span::secs(86_400), Span::secs(604_800)));
    let agent = &plan.agents[0];
    assert_eq!(
        (agent.name.as_str(), agent.attempts, agent.width, agent.timeout),
        ("agent-1", 3, 1, Span::secs(21_600))
    );
    let task = &agent.tasks[0];
    assert_eq!((task.name.as_str(), task.attempts, task.width, task.timeout), ("task-1", 3, 1, Span::secs(3_600)));
    let [pay, sleep] = task.steps.as_slice() else { panic!() };
    assert_eq!((pay.name.as_str(), pay.timeout, pay.attempts), ("step-1", Span::secs(30), 3));
    assert_eq!((pay.effect, &pay.input), (Effect::Unsafe, &json!({})));
    assert_eq!((sleep.doer, sleep.timeout, sleep.attempts), (Doer::Sleep, Span(0), 1), "it waits as long as it says");
}

#[test]
fn what_is_said_counts() {
    let Compiled { plan, budget, project, priority, labels, .. } = check(&json!({
        "name": "r", "task": "t", "project": "shop", "priority": "high", "budget": 12.5, "failure_mode": "fail_fast",
        "max_attempts": 2.0, "labels": { "team": "red" },
        "limits": { "max_tasks": 7, "max_steps": 9, "agent_timeout": "1h", "task_timeout": "2m", "step_timeout": "3s",
                    "failure_budget": 0 },
        "plan": { "agents": [{
            "parallelism": "parallel", "failure_mode": "continue",
            "tasks": [{ "parallelism": "parallel", "max_steps": 4, "failure_mode": "retry", "steps": [
                { "tool": "look", "effect": "unsafe", "repeat": true, "price": 2, "attempts": 1, "timeout": "250ms" },
                { "tool": "look" },
                { "tool": "sleep", "input": { "for": "${run.task}" }, "timeout": "1d" },
            ] }, { "parallelism": "parallel", "steps": [{ "tool": "look" }] }],
        }] },
    }))
    .unwrap();
    assert_eq!((budget.to_string().as_str(), project.as_str(), priority), ("12.5", "shop", Priority::High));
    assert_eq!((labels["team"].as_str(), plan.max_attempts, plan.failure_budget), ("red", 2, 0));
    let agent = &plan.agents[0];
    assert_eq!((agent.width, agent.timeout), (7, Span::secs(3_600)));
    assert_eq!((agent.tasks[0].width, agent.tasks[1].width, agent.tasks[0].timeout), (4, 9, Span::secs(120)));
    let steps = &agent.tasks[0].steps;
    assert_eq!((steps[0].effect, steps[0].repeat, steps[0].attempts), (Effect::Unsafe, true, 1));
    assert_eq!((steps[0].price, steps[0].timeout), (Credits::whole(2), Span::millis(250)));
    assert_eq!((steps[1].timeout, steps[2].timeout), (Span::secs(3), Span::secs(86_400)));
}

#[test]
fn whatever_an_input_names_is_waited_for() {
    let named = json!({ "parallelism": "parallel", "tasks": [
        { "steps": [{ "tool": "look", "input": ["${tasks.task-3.a.x}", "${tasks.task-2.step-1}"] }] },
        { "steps": [{ "tool": "look" }] },
        { "parallelism": "parallel", "steps": [
            { "name": "a", "tool": "look", "input": "${steps.c} ${tasks.task-3.b.y}", "depends_on": ["c"] },
            { "name": "b", "tool": "look" },
            { "name": "c", "tool": "look", "input": "${run.id}" },
        ] },
    ] });
    let tasks = &plan(&of_agent(named)).agents[0].tasks;
    assert_eq!(tasks[0].after, [1, 2]);
    assert_eq!(tasks[2].steps[0].after, [1, 2]);
    assert!(tasks[2].after.is_empty() && tasks[2].steps[2].after.is_empty());
    let in_turn = of_tasks(json!([
        { "steps": [{ "tool": "look" }, { "tool": "look", "input": "${steps.step-1}", "depends_on": ["step-1"] }] },
        { "depends_on": ["task-1"], "steps": [{ "tool": "look", "input": "${tasks.task-1.step-2}" }] },
    ]));
    let tasks = &plan(&in_turn).agents[0].tasks;
    assert!(tasks[1].after.is_empty() && tasks[0].steps[1].after.is_empty(), "their order says it");
}

/// What is fine up to some number, and over its limit from there on.
#[test]
fn every_limit_is_kept_to_the_last_one() {
    let look = || json!({ "tool": "look" });
    let text = |n: usize| json!("ü".repeat(n));
    let numbers = |field: &'static str| move |n: usize| with(|d| d["limits"] = json!({ field: n }));
    let parts = |part: &'static str, field: &'static str| {
        move |n: usize| with(|d| d.pointer_mut(part).unwrap()[field] = json!(n))
    };
    type Case = (usize, Box<dyn Fn(usize) -> Value>, &'static str);
    let cases: Vec<Case> = vec![
        (limits::RUN_NAME_CHARS, Box::new(move |n| with(|d| d["name"] = text(n))), "/name"),
        (limits::RUN_TASK_CHARS, Box::new(move |n| with(|d| d["task"] = text(n))), "/task"),
        (
            limits::SUBTASK_CHARS,
            Box::new(move |n| with(|d| d["plan"]["agents"][0]["subtask"] = text(n))),
            "/plan/agents/0/subtask",
        ),
        (
            limits::RUN_LABELS,
            Box::new(|n| with(|d| d["labels"] = (0..n).map(|n| (n.to_string(), json!(""))).collect())),
            "/labels",
        ),
        (limits::RUN_LABEL_CHARS, Box::new(move |n| with(|d| d["labels"] = json!({ "a": text(n) }))), "/labels/a"),
        (10, Box::new(|n| with(|d| d["max_attempts"] = json!(n))), "/max_attempts"),
        (10, Box::new(parts("/plan/agents/0", "attempts")), "/plan/agents/0/attempts"),
        (100, Box::new(parts("/plan/agents/0", "max_tasks")), "/plan/agents/0/max_tasks"),
        (10, Box::new(parts("/plan/agents/0/tasks/0", "attempts")), "/plan/agents/0/tasks/0/attempts"),
        (100, Box::new(parts("/plan/agents/0/tasks/0", "max_steps")), "/plan/agents/0/tasks/0/max_steps"),
        (10, Box::new(parts("/plan/agents/0/tasks/0/steps/0", "attempts")), "/plan/agents/0/tasks/0/steps/0/attempts"),
        (100, Box::new(numbers("max_agents")), "/limits/max_agents"),
        (100, Box::new(numbers("max_tasks")), "/limits/max_tasks"),
        (100, Box::new(numbers("max_steps")), "/limits/max_steps"),
        (1_000, Box::new(numbers("failure_budget")), "/limits/failure_budget"),
        (
            limits::RUN_AGENTS,
            Box::new(move |n| {
                let agents = vec![json!({ "tasks": [{ "steps": [look()] }] }); n];
                json!({ "name": "r", "plan": { "agents": agents } })
            }),
            "/plan/agents",
        ),
        (
            limits::AGENT_TASKS,
            Box::new(move |n| of_tasks(json!(vec![json!({ "steps": [look()] }); n]))),
            "/plan/agents/0/tasks",
        ),
        (limits::TASK_STEPS, Box::new(move |n| of_steps(json!(vec![look(); n]))), "/plan/agents/0/tasks/0/steps"),
        (
            limits::RUN_STEPS,
            Box::new(move |n| {
                let tasks = [limits::TASK_STEPS, n - limits::TASK_STEPS - 1, 1];
                of_tasks(tasks.map(|n| json!({ "steps": vec![look(); n] })).into())
            }),
            "/plan/agents/0/tasks/2/steps",
        ),
    ];
    for (limit, document, path) in cases {
        assert_eq!(said(&document(limit)), [""; 0], "{path} at its limit");
        assert_eq!(said(&document(limit + 1)), [format!("over_limit {path}")]);
    }
    let label = "x".repeat(limits::RUN_LABEL_NAME_CHARS);
    assert_eq!(said(&with(|d| d["labels"] = json!({ label.as_str(): "" }))), [""; 0]);
    let label = format!("{label}x");
    assert_eq!(said(&with(|d| d["labels"] = json!({ label.as_str(): "" }))), [format!("over_limit /labels/{label}")]);
    for (field, min) in [("max_agents", 1), ("max_tasks", 1), ("max_steps", 1), ("failure_budget", 0)] {
        assert_eq!(said(&with(|d| d["limits"] = json!({ field: min }))), [""; 0]);
        assert_eq!(said(&with(|d| d["limits"] = json!({ field: min - 1 }))), [format!("over_limit /limits/{field}")]);
    }
    for huge in [json!(u64::MAX), json!(1e300), json!(-1)] {
        assert_eq!(said(&with(|d| d["max_attempts"] = huge.clone())), ["over_limit /max_attempts"], "{huge}");
    }
}

#[test]
fn the_budget_pays_for_the_dearest_call_at_least() {
    let with_budget = |budget: Value| {
        let mut document = of_steps(json!([{ "tool": "look" }, { "tool": "pay" }]));
        document["budget"] = budget;
        check(&document).map(|compiled| compiled.budget)
    };
    assert_eq!(with_budget(json!("5")), Ok(Credits::whole(5)));
    assert_eq!(with_budget(json!("4.999999")).unwrap_err()[0].code, "budget_too_small");
    let free = of_step(json!({ "tool": "sleep", "input": { "for": "1s" } }));
    assert_eq!(check(&free).unwrap().budget, Credits::ZERO);
}

#[test]
fn a_document_that_is_written_out_is_read_as_it_was() {
    let value = of_agent(json!({ "name": "a", "timeout": "1h30m", "parallelism": "dag", "failure_mode": "fail-fast",
        "tasks": [{ "depends_on": [], "steps": [{ "tool": "look", "price": "1.5", "effect": "unsafe", "input": null }] }],
    }));
    let document = Document::read(&value).unwrap();
    assert_eq!(serde_json::to_value(&document).unwrap(), value);
    assert_eq!(serde_json::from_value::<Document>(value).unwrap(), document);
    let error = serde_json::from_value::<Document>(json!({ "nmae": "x" })).unwrap_err();
    assert!(error.to_string().starts_with("/nmae: "), "{error}");
}

/// Whether nobody waits for himself, found by following everybody in turn.
fn acyclic(after: &[BTreeSet<usize>]) -> bool {
    (0..after.len()).all(|start| {
        let mut reached = BTreeSet::new();
        let mut ahead: Vec<usize> = after[start].iter().copied().collect();
        while let Some(at) = ahead.pop() {
            if reached.insert(at) {
                ahead.extend(&after[at]);
            }
        }
        !reached.contains(&start)
    })
}

/// Who waits for whom, and whether that is said or follows from an input.
fn graphs() -> impl Strategy<Value = (usize, Vec<(usize, usize, bool)>)> {
    (1..8usize).prop_flat_map(|n| (Just(n), proptest::collection::vec((0..n, 0..n, any::<bool>()), 0..10)))
}

proptest! {
    #[test]
    fn a_plan_compiles_exactly_if_nobody_waits_for_himself((n, edges) in graphs()) {
        let mut after = vec![BTreeSet::new(); n];
        let mut tasks = vec![json!({ "depends_on": [], "steps": [{ "tool": "look", "input": [] }] }); n];
        let mut steps = vec![json!({ "tool": "look", "input": [], "depends_on": [] }); n];
        // A task may name its own steps, so that a circle of one task is said in words.
        for &(from, to, said) in edges.iter().filter(|(from, to, said)| *said || from != to) {
            after[from].insert(to);
            let name = |kind| format!("{kind}-{}", to + 1);
            let add = |list: &mut Value, item: String| list.as_array_mut().unwrap().push(item.into());
            if said {
                add(&mut tasks[from]["depends_on"], name("task"));
                add(&mut steps[from]["depends_on"], name("step"));
            } else {
                add(&mut tasks[from]["steps"][0]["input"], format!("${{tasks.{}.step-1.x}}", name("task")));
                add(&mut steps[from]["input"], format!("n: ${{steps.{}}}", name("step")));
            }
        }
        let free = acyclic(&after);
        let dag = check(&of_agent(json!({ "parallelism": "dag", "tasks": tasks })));
        let parallel = check(&of_tasks(json!([{ "parallelism": "parallel", "steps": steps }])));
        for compiled in [&dag, &parallel] {
            match compiled {
                Ok(_) => prop_assert!(free),
                Err(problems) => prop_assert!(!free && problems.iter().all(|problem| problem.code == "cycle")),
            }
        }
        if let (Ok(dag), Ok(parallel)) = (dag, parallel) {
            let waits = |list: &[u32]| list.iter().map(|&n| n as usize).collect::<BTreeSet<_>>();
            let tasks = &dag.plan.agents[0].tasks;
            let steps = &parallel.plan.agents[0].tasks[0].steps;
            prop_assert_eq!(tasks.iter().map(|task| waits(&task.after)).collect::<Vec<_>>(), after.clone());
            prop_assert_eq!(steps.iter().map(|step| waits(&step.after)).collect::<Vec<_>>(), after);
        }
    }
}
