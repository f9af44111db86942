//! Why things wait, asked over HTTP.

use crate::support::Server;
use crate::support::runs::{document, step};
use baton_core::run::why::What;
use baton_wire::{AgentList, Run, Why};
use serde_json::json;

on_both_databases!(crate::support::runs::working =>
    a_run_says_why_it_waits_in_every_state,
    a_step_says_why_it_waits,
    what_has_not_begun_and_what_has_ended_say_so,
    agents_wait_for_a_place,
    jobs_say_why_they_wait,
    what_is_not_there_is_not_explained,
);

async fn why(server: &Server, id: impl std::fmt::Display) -> Why {
    server.get(&format!("/api/v1/why/{id}")).await.ok()
}

async fn first(server: &Server, id: impl std::fmt::Display) -> (What, String) {
    let why = why(server, id).await;
    let wait = why.waits_for.first().unwrap_or_else(|| panic!("{why:?}"));
    (wait.what, format!("{} {:?} {:?}", wait.detail, wait.next, wait.who))
}

async fn agent(server: &Server, run: &Run) -> String {
    let list: AgentList = server.part(run, "agents").await;
    list.agents[0].id.to_string()
}

async fn a_run_says_why_it_waits_in_every_state(server: &Server) {
    server.grant("3", "g").await;
    let run =
        server.make_run(&document("p", &[step("note", json!({})), step("wait", json!({ "signal": "go" }))])).await;
    assert_eq!(first(server, run.id).await.0, What::Start);
    server.act(&run, "start").await.ok::<Run>();
    server.until_waiting(&run, "signal").await;
    let (what, said) = first(server, run.id).await;
    assert!(
        what == What::Signal && said.contains("agent one: step only.step-2: ") && said.contains("/signals/go"),
        "{said}"
    );
    server.act(&run, "pause").await.ok::<Run>();
    let (what, said) = first(server, run.id).await;
    assert!(what == What::Pause && said.contains("key_") && said.contains("/resume"), "{said}");
    server.act(&run, "cancel").await.ok::<Run>();
    let told = why(server, run.id).await;
    assert_eq!((told.status.as_str(), told.waits_for[0].what), ("cancelled", What::Nothing));
    let dear = document("p", &[step("boom", json!({}))]);
    server.grant("4", "more").await;
    let run = server.start_run(&dear).await;
    server.run_until(&run, "failed").await;
    let told = why(server, run.id).await;
    assert!(told.summary.contains("it broke (boom)"), "{told:?}");
    server.is_clean().await;
}

async fn a_step_says_why_it_waits(server: &Server) {
    server.grant("100", "g").await;
    let ask = json!({ "prompt": "Ship?", "responsibility": "cto", "withinMs": 3_600_000, "onBreach": "cancel" });
    for (tool, input, waits, what, said) in [
        ("sleep", json!({ "for": "1h" }), "time", What::Time, "completes"),
        ("wait", json!({ "signal": "go", "within": "1h" }), "signal", What::Signal, "with or without"),
        ("ask", ask, "answer", What::Answer, "cto"),
        ("hang", json!({}), "call", What::Call, "call 1 of 3 of hang"),
    ] {
        let run = server.start_run(&document("p", &[step(tool, input)])).await;
        server.until_waiting(&run, waits).await;
        let agent = agent(server, &run).await;
        for id in [format!("{agent}.only.step-1"), format!("{agent}.0.0"), format!("{agent}.only"), agent.clone()] {
            let found = first(server, &id).await;
            assert!(found.0 == what && found.1.contains(said), "{tool} {id} {found:?}");
        }
        let told = why(server, format!("{agent}.0.0")).await;
        assert!(told.waits_for[0].since.is_some(), "{told:?}");
        assert!(told.waits_for[0].until.is_some(), "{told:?}");
        server.act(&run, "cancel").await.ok::<Run>();
    }
    server.is_clean().await;
}

async fn what_has_not_begun_and_what_has_ended_say_so(server: &Server) {
    server.grant("100", "g").await;
    let tasks = json!([
        { "name": "done", "steps": [step("note", json!({}))] },
        { "name": "held", "depends_on": ["done"], "steps": [step("wait", json!({ "signal": "go" })), step("note", json!({}))] },
        { "name": "last", "depends_on": ["held"], "steps": [step("note", json!({}))] },
    ]);
    let agents = json!([{ "parallelism": "dag", "tasks": tasks }]);
    let run = server.start_run(&json!({ "name": "r", "project": "p", "plan": { "agents": agents } })).await;
    server.until_waiting(&run, "signal").await;
    let agent = agent(server, &run).await;
    for part in ["done", "done.step-1", "0.0"] {
        let told = why(server, format!("{agent}.{part}")).await;
        assert_eq!((told.status.as_str(), told.waits_for[0].what), ("completed", What::Nothing), "{told:?}");
    }
    for part in ["last", "last.step-1", "held.step-2"] {
        let told = why(server, format!("{agent}.{part}")).await;
        assert_eq!((told.status.as_str(), told.waits_for[0].what), ("pending", What::Dependency), "{told:?}");
    }
    server.is_clean().await;
}

async fn agents_wait_for_a_place(server: &Server) {
    server.grant("100", "g").await;
    let tasks = json!([{ "steps": [step("hang", json!({}))] }]);
    let agents = json!([{ "name": "a", "tasks": tasks }, { "name": "b", "tasks": tasks }]);
    let document = json!({ "name": "r", "project": "p", "limits": { "max_agents": 1 }, "plan": { "agents": agents } });
    let run = server.start_run(&document).await;
    server.until_waiting(&run, "call").await;
    let list: AgentList = server.part(&run, "agents").await;
    let mut found: Vec<What> = Vec::new();
    for agent in &list.agents {
        found.push(first(server, agent.id).await.0);
    }
    found.sort_unstable();
    assert_eq!(found, [What::Call, What::Lane]);
    server.act(&run, "cancel").await.ok::<Run>();
    server.is_clean().await;
}

async fn jobs_say_why_they_wait(server: &Server) {
    let echo = |payload: serde_json::Value| json!({ "type": "echo", "projectId": "p", "payload": payload });
    let asking = server.enqueue(echo(json!({ "ask": { "prompt": "sure?" } }))).await;
    server.until(asking.id, "job.asked").await;
    let (what, said) = first(server, asking.id).await;
    assert!(what == What::Answer && said.contains("sure?"), "{said}");
    let parked = server.enqueue(echo(json!({ "wait": true }))).await;
    server.until(parked.id, "job.parked").await;
    assert_eq!(first(server, parked.id).await.0, What::Signal);
    // A parked job holds its lane's only place.
    let behind = server.enqueue(echo(json!({}))).await;
    assert_eq!(first(server, behind.id).await.0, What::Lane);
    let run = server.start_run(&document("p", &[step("sleep", json!({ "for": "1h" }))])).await;
    server.until_waiting(&run, "time").await;
    let list: AgentList = server.part(&run, "agents").await;
    let told = why(server, list.agents[0].job_id.unwrap()).await;
    assert!(told.summary.contains(&run.id.to_string()), "{told:?}");
    server.is_clean().await;
}

async fn what_is_not_there_is_not_explained(server: &Server) {
    let none = "0".repeat(32);
    for (id, code) in [
        (format!("run_{none}"), "run_not_found"),
        (format!("agt_{none}"), "agent_not_found"),
        (format!("agt_{none}.a.b"), "agent_not_found"),
        (format!("agt_{none}.a.b.c"), "part_not_found"),
        (format!("job_{none}"), "job_not_found"),
        ("nonsense".to_owned(), "part_not_found"),
    ] {
        server.get(&format!("/api/v1/why/{id}")).await.refused(404, code);
    }
    let run = server.start_run(&document("p", &[step("sleep", json!({ "for": "1h" }))])).await;
    server.until_waiting(&run, "time").await;
    let agent = agent(server, &run).await;
    for part in ["nothing", "1", "only.nothing", "only.7"] {
        server.get(&format!("/api/v1/why/{agent}.{part}")).await.refused(404, "part_not_found");
    }
}
