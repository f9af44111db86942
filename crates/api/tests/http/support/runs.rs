//! Runs for tests: tools of their own, and helpers to make and follow runs.

use super::{Ask, JSON, Reply, Server, Setup};
use baton_core::credits::Credits;
use baton_core::plan::{self, Doer, Effect};
use baton_core::run::Fault;
use baton_engine::run::{Called, ToolCall, Toolbox};
use baton_wire::{Audit, EventList, Run};
use serde_json::{Value, json};
use std::time::Duration;

/// A server that works on runs: `note` gives its input back, `boom` fails for good, `flaky` fails in a way
/// that may go better next time, `hang` never ends. Each call costs a credit.
pub fn working() -> Setup {
    let mut setup = Setup::default();
    let mut toolbox = Toolbox::default();
    let about =
        plan::Tool { doer: Doer::Tool, effect: Effect::Pure, price: Credits::whole(1), timeout: None, attempts: None };
    let note = |call: ToolCall| -> Called { Box::pin(async move { Ok(call.input) }) };
    let boom = |_: ToolCall| -> Called { Box::pin(async { Err(Fault::fatal("boom", "it broke").into()) }) };
    let flaky = |_: ToolCall| -> Called { Box::pin(async { Err(Fault::new("rate_limited", "not now").into()) }) };
    let hang = |_: ToolCall| -> Called { Box::pin(std::future::pending()) };
    toolbox.add("note".parse().unwrap(), about.clone(), note).unwrap();
    toolbox.add("boom".parse().unwrap(), about.clone(), boom).unwrap();
    toolbox.add("flaky".parse().unwrap(), about.clone(), flaky).unwrap();
    toolbox.add("hang".parse().unwrap(), about, hang).unwrap();
    setup.registry.work(toolbox);
    setup
}

pub fn step(tool: &str, input: Value) -> Value {
    json!({ "tool": tool, "input": input })
}

/// A document with one agent that has one task.
pub fn document(project: &str, steps: &[Value]) -> Value {
    json!({
        "name": "a run", "project": project,
        "plan": { "agents": [{ "name": "one", "tasks": [{ "name": "only", "steps": steps }] }] },
    })
}

impl Server {
    pub async fn grant(&self, amount: &str, key: &str) -> Reply {
        let body = json!({ "amount": amount }).to_string();
        self.post_keyed("/api/v1/credits/grants", &body, key).await
    }

    pub async fn make_run(&self, document: &Value) -> Run {
        let reply = self.post("/api/v1/runs", document).await;
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.parse()
    }

    pub async fn act(&self, run: &Run, act: &str) -> Reply {
        self.post(&format!("/api/v1/runs/{}/{act}", run.id), &json!({})).await
    }

    pub async fn run_of(&self, run: &Run) -> Run {
        self.get(&format!("/api/v1/runs/{}", run.id)).await.ok()
    }

    /// Made and started.
    pub async fn start_run(&self, document: &Value) -> Run {
        let run = self.make_run(document).await;
        self.act(&run, "start").await.ok()
    }

    /// Looks, and looks again after everything that happens, until there is something to see.
    pub async fn until_seen<T>(&self, what: &str, look: impl AsyncFn() -> Option<T>) -> T {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
        let here: EventList = self.get("/api/v1/events?after=tail").await.ok();
        let mut after = here.next;
        while tokio::time::Instant::now() < deadline {
            if let Some(seen) = look().await {
                return seen;
            }
            let news: EventList = self.get(&format!("/api/v1/events?wait_ms=10000&after={after}")).await.ok();
            after = news.next;
        }
        panic!("never seen: {what}");
    }

    /// Waits until a run is in a state.
    pub async fn run_until(&self, run: &Run, status: &str) -> Run {
        let look = async || Some(self.run_of(run).await).filter(|now| now.status.as_str() == status);
        self.until_seen(&format!("{} {status}", run.id), look).await
    }

    /// A list of a run, whole.
    pub async fn part<T: serde::de::DeserializeOwned>(&self, run: &Run, path: &str) -> T {
        self.get(&format!("/api/v1/runs/{}/{path}", run.id)).await.ok()
    }

    /// Waits until a step at hand waits for this.
    pub async fn until_waiting(&self, run: &Run, what: &str) -> Value {
        let look = async || {
            let list: Value = self.part(run, "steps").await;
            list["steps"].as_array().unwrap().iter().find(|step| step["waits_for"]["for"] == what).cloned()
        };
        self.until_seen(&format!("a step of {} that waits for {what}", run.id), look).await
    }

    /// Nothing of the history is wrong.
    pub async fn is_clean(&self) {
        let audit: Audit = self.get("/api/v1/audit").await.ok();
        assert!(audit.clean, "{audit:?}");
    }

    pub async fn send_yaml(&self, text: &str) -> Reply {
        let headers = [("Content-Type", "application/yaml")];
        self.send(Ask { method: "POST", path: "/api/v1/runs", headers: &headers, body: text.as_bytes() }).await
    }

    /// A key that reaches one project only.
    pub async fn narrowed(&self, project: &str, role: &str) -> String {
        let body = json!({ "label": project, "role": role, "projects": [project] });
        self.post("/api/v1/keys", &body).await.parse::<baton_wire::MadeKey>().secret.unwrap()
    }

    pub async fn ask_as(&self, key: &str, method: &str, path: &str, body: &Value) -> Reply {
        let text = body.to_string();
        let body = if method == "POST" { text.as_bytes() } else { b"" };
        self.send_as(key, Ask { method, path, headers: &[JSON], body }).await
    }
}
