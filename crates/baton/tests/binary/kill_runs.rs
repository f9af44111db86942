//! SIGKILL in the middle of a run, again and again: the next server goes on where the last one was. What
//! tools did stands outside, in a file: nothing unsafe is done twice, everything is done once, and the run
//! costs what it would have cost.

use crate::support::{Schema, Server, run};
use baton_core::rng::Rng;
use baton_sim::seed::seed;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

const AGENTS: usize = 3;
const TASKS: usize = 3;
/// Steps of a task: a pure one, an unsafe one, a pure one.
const STEPS: usize = 3;
/// Looks at how the run stands, each a command of its own, before it is said to hang.
const LOOKS: usize = 3_000;

#[test]
fn a_killed_server_goes_on_with_its_runs_on_sqlite() {
    check(None);
}

#[test]
fn a_killed_server_goes_on_with_its_runs_on_postgresql() {
    let Some(schema) = Schema::create() else { return };
    check(Some(schema.url()));
    schema.remove();
}

fn kills() -> u64 {
    std::env::var("BATON_KILLS").map_or(3, |text| text.parse().expect("BATON_KILLS is a number"))
}

/// Each unsafe step writes its own name; `tee` answers with what it was given.
fn document() -> Value {
    let steps = |agent: usize, task: usize| {
        let mark = format!("a{agent}t{task}");
        json!([
            { "name": "before", "tool": "look", "input": { "n": 1 } },
            { "name": "act", "tool": "act", "input": { "mark": mark } },
            { "name": "after", "tool": "look", "input": { "mark": "${steps.act.mark}" } },
        ])
    };
    let tasks = |agent: usize| {
        (0..TASKS).map(|task| json!({ "name": format!("t{task}"), "steps": steps(agent, task) })).collect::<Vec<_>>()
    };
    let agents: Vec<Value> = (0..AGENTS)
        .map(|agent| json!({ "name": format!("a{agent}"), "parallelism": "parallel", "tasks": tasks(agent) }))
        .collect();
    json!({ "name": "killed", "plan": { "agents": agents } })
}

fn check(database: Option<&str>) {
    let dir = tempfile::tempdir().unwrap();
    let mut rng = Rng::new(seed());
    let deeds = dir.path().join("deeds");
    std::fs::write(&deeds, "").unwrap();
    let config = dir.path().join("baton.toml");
    let tools = format!(
        "[tools.look]\nkind = 'process'\nargv = ['cat']\neffect = 'pure'\nprice = '1'\n\n\
         [tools.act]\nkind = 'process'\nargv = ['tee', '-a', {deeds:?}]\nprice = '1'\n"
    );
    std::fs::write(&config, tools).unwrap();
    let data = dir.path().join("data");
    let database: Vec<_> = database.into_iter().flat_map(|url| ["--database", url]).collect();
    let settings = [&["--config", config.to_str().unwrap()][..], &database].concat();
    let file = dir.path().join("run.json");
    std::fs::write(&file, document().to_string()).unwrap();

    let mut server = Server::serve(&data, &settings);
    server.ask(&["credits", "grant", "1000"]).ok();
    let id = server.ask(&["run", file.to_str().unwrap(), "--detach", "--json"]).ok().json()["id"].clone();
    let id = id.as_str().unwrap().to_owned();
    let all = (AGENTS * TASKS * STEPS) as u64;
    let kills = kills().min(all / 4);
    for kill in 1..=kills {
        // Somewhere in the next part of the work.
        let goal = (kill - 1) * all / (kills + 1) + rng.below(all / (kills + 1));
        until(&server, &id, &deeds, |run| run["step_count"].as_u64() >= Some(goal));
        server.kill();
        server = Server::serve(&data, &settings);
    }
    let ended = until(&server, &id, &deeds, |run| run["status"] == "completed");
    eprintln!("{kills} kills");
    assert_eq!(ended["credits_charged"], json!(all.to_string()), "{ended}");
    let expected: BTreeMap<String, u32> =
        (0..AGENTS).flat_map(|a| (0..TASKS).map(move |t| (format!("a{a}t{t}"), 1))).collect();
    assert_eq!(done(&deeds), expected);
    let balance = server.ask(&["credits", "balance", "--json"]).ok().json();
    assert_eq!(balance["available"], json!((1_000 - all).to_string()), "{balance}");
    let audit = server.ask(&["audit", "--json"]).ok().json();
    assert_eq!(audit["clean"], true, "{audit}");
    server.stop();
    run(&[&["audit", "--offline", "--data-dir", data.to_str().unwrap()], &database[..]].concat()).ok();
}

/// What was done, as the file says.
fn done(deeds: &Path) -> BTreeMap<String, u32> {
    let mut all = BTreeMap::new();
    let text = std::fs::read_to_string(deeds).unwrap();
    for deed in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
        // The last one may have been cut off in the middle.
        let Ok(deed) = deed else { break };
        *all.entry(deed["mark"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    all
}

/// Answers what the server asks, by looking at what was done.
fn until(server: &Server, id: &str, deeds: &Path, enough: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..LOOKS {
        let run = server.ask(&["runs", "show", id, "--json"]).ok().json();
        let run = if run["run"].is_object() { run["run"].clone() } else { run };
        if enough(&run) || run["status"] == "completed" {
            return run;
        }
        assert!(!["failed", "cancelled"].contains(&run["status"].as_str().unwrap()), "{run}");
        for decision in server.ask(&["decisions", "list", "--json"]).ok().json()["decisions"].as_array().unwrap() {
            answer(server, decision, deeds);
        }
    }
    panic!("{id} hangs: {}", server.ask(&["why", id]).out)
}

fn answer(server: &Server, decision: &Value, deeds: &Path) {
    if decision["state"] != "open" {
        return;
    }
    let mark = mark_of(server, &decision["evidence"]);
    let was_done = done(deeds).contains_key(&mark);
    let decision = decision["id"].as_str().unwrap();
    let data = json!({ "mark": mark }).to_string();
    let mut args = vec!["decisions", "resolve", decision, if was_done { "done" } else { "not_done" }];
    if was_done {
        args.extend(["--data", &data]);
    }
    // It may have been withdrawn meanwhile.
    let _ = server.ask(&args);
}

/// Which deed the decision is about: agents and tasks have the names that it is made of.
fn mark_of(server: &Server, evidence: &Value) -> String {
    let run = evidence["run"].as_str().unwrap();
    let agent = evidence["agent"].as_str().unwrap();
    let agents = crate::support::get::<Value>(&server.door(), &format!("/api/v1/runs/{run}/agents"));
    let found = agents["agents"].as_array().unwrap().iter().find(|known| known["id"] == agent).unwrap().clone();
    format!("{}{}", found["name"].as_str().unwrap(), evidence["task"].as_str().unwrap())
}
