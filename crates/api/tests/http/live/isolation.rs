//! Nobody hears what is not theirs, whatever they ask for: every way to listen, every filter, two orgs
//! in which everything has the same name, keys that reach all of them or a part.

use crate::live::ears::{BOTH, By, Call, Ear, found_org, make_key};
use crate::support::{Ask, JSON, Reply, Server, Setup};
use baton_api::Listening;
use baton_sim::open_lane;
use baton_wire::{DecisionList, Event, EventList, Job, MadeWebhook};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// No lane holds a job up, and there is a place for everybody.
fn open_lanes() -> Setup {
    let quick = crate::live::filters::quick();
    let listening = Listening { places: 1_000, ..quick.listening };
    Setup { registry: open_lane::registry(), listening, ..quick }
}

on_both_databases!(super::open_lanes => whoever_listens_hears_their_own_and_nothing_else);

const START: &str = "after=c10000000000000000";
const UNKNOWN: &str = "0193a1b2c3d47001800000000000002a";

/// What is known of a job beside its events.
struct Order {
    project: &'static str,
    thread: &'static str,
    kind: &'static str,
}

/// An org and what was done in it.
struct Org {
    admin: String,
    jobs: BTreeMap<String, Order>,
    /// Jobs that wait to be cancelled.
    parked: Vec<String>,
    /// A key that waits to be revoked.
    spare: String,
    webhook: String,
    decisions: Vec<String>,
    keys: Vec<(String, Scope)>,
}

#[derive(Clone, Copy, Debug)]
struct Scope {
    projects: Option<&'static str>,
    types: Option<&'static str>,
}

/// All of it, a project, a type, a type in a project.
const SCOPES: [Scope; 4] = [
    Scope { projects: None, types: None },
    Scope { projects: Some("a"), types: None },
    Scope { projects: None, types: Some("noop") },
    Scope { projects: Some("b"), types: Some("echo") },
];

async fn post(server: &Server, key: &str, path: &str, body: &Value) -> Reply {
    let body = body.to_string();
    let ask = Ask { method: "POST", path, headers: &[JSON], body: body.as_bytes() };
    let reply = server.send_as(key, ask).await;
    assert!([200, 201].contains(&reply.status), "{path}: {reply:?}");
    reply
}

async fn events(server: &Server, org: &Org) -> Vec<Event> {
    let path = "/api/v1/events?limit=1000";
    server.send_as(&org.admin, Ask { path, ..Ask::default() }).await.ok::<EventList>().events
}

/// Waits until so many events of a kind are there.
async fn until(server: &Server, org: &Org, kind: &str, count: usize) {
    let mut after = String::new();
    let mut seen = 0;
    while seen < count {
        let path = format!("/api/v1/events?limit=1000&wait_ms=30000{after}");
        let list: EventList = server.send_as(&org.admin, Ask { path: &path, ..Ask::default() }).await.ok();
        assert!(!list.events.is_empty(), "{seen} of {count} {kind}");
        seen += list.events.iter().filter(|event| event.kind == kind).count();
        after = format!("&after={}", list.next);
    }
}

impl Org {
    async fn furnish(server: &Server, admin: String) -> Self {
        let mut keys = Vec::new();
        for scope in SCOPES {
            let mut body = json!({ "label": format!("{scope:?}"), "role": "viewer" });
            let parts = [("projects", scope.projects), ("types", scope.types)];
            for (name, value) in parts.into_iter().filter_map(|(name, value)| Some((name, value?))) {
                body[name] = json!([value]);
            }
            keys.push((make_key(server, &admin, body).await.secret.unwrap(), scope));
        }
        let spare = make_key(server, &admin, json!({ "label": "spare", "role": "viewer" })).await.key.id.to_string();
        let hook = json!({ "label": "x", "url": "https://127.0.0.1:1/", "projects": ["a"] });
        let hook: MadeWebhook = post(server, &admin, "/api/v1/webhooks", &hook).await.parse();
        let webhook = hook.webhook.id.to_string();
        let (jobs, parked, decisions) = Default::default();
        let mut org = Self { admin, jobs, parked, spare, webhook, decisions, keys };
        for (project, thread) in [("a", "s1"), ("b", "s2")] {
            let parked = org.enqueue(server, project, thread, "echo", json!({ "wait": true })).await;
            org.parked.push(parked);
            org.enqueue(server, project, thread, "echo", json!({ "ask": true })).await;
            org.enqueue(server, project, thread, "noop", json!({})).await;
        }
        until(server, &org, "job.parked", 2).await;
        until(server, &org, "job.asked", 2).await;
        until(server, &org, "job.completed", 2).await;
        let open = Ask { path: "/api/v1/decisions?state=open", ..Ask::default() };
        let open: DecisionList = server.send_as(&org.admin, open).await.ok();
        org.decisions = open.decisions.iter().map(|decision| decision.id.to_string()).collect();
        org.happen(server).await;
        org
    }

    async fn enqueue(
        &mut self,
        server: &Server,
        project: &'static str,
        thread: &'static str,
        kind: &'static str,
        payload: Value,
    ) -> String {
        let order = json!({ "type": kind, "projectId": project, "sourceSessionId": thread, "payload": payload });
        let job: Job = post(server, &self.admin, "/api/v1/jobs", &order).await.parse();
        self.jobs.insert(job.id.to_string(), Order { project, thread, kind });
        job.id.to_string()
    }

    /// Something of what can happen to an org as a whole.
    async fn happen(&self, server: &Server) {
        post(server, &self.admin, "/api/v1/lanes/project:a/pause", &json!({})).await;
        post(server, &self.admin, "/api/v1/lanes/project:a/resume", &json!({})).await;
        make_key(server, &self.admin, json!({ "label": "new", "role": "viewer" })).await;
    }

    /// Something happens to everything that there is.
    async fn stir(&mut self, server: &Server) {
        for decision in &self.decisions {
            let path = format!("/api/v1/decisions/{decision}/resolve");
            post(server, &self.admin, &path, &json!({ "option": "confirm" })).await;
        }
        for job in &self.parked {
            post(server, &self.admin, &format!("/api/v1/jobs/{job}/cancel"), &json!({})).await;
        }
        self.happen(server).await;
        self.enqueue(server, "a", "s1", "noop", json!({})).await;
        self.enqueue(server, "b", "s2", "echo", json!({})).await;
        post(server, &self.admin, &format!("/api/v1/keys/{}/revoke", self.spare), &json!({})).await;
        until(server, self, "job.completed", 6).await;
        until(server, self, "job.cancelled", 2).await;
    }

    /// The job that an event is about, itself or by a decision.
    fn order(&self, event: &Event) -> Option<&Order> {
        self.jobs.get(&event.subject).or_else(|| self.jobs.get(event.data["subject"]["job"].as_str()?))
    }

    /// Whether a key of this scope may hear of it. A decision is reached like the job that waits for it.
    fn reaches(&self, scope: Scope, event: &Event) -> bool {
        if scope.projects.is_none() && scope.types.is_none() {
            return true;
        }
        // A lane is for all types of its project.
        if event.kind.starts_with("lane.") {
            return scope.projects.is_none_or(|project| event.data["project"] == project);
        }
        self.order(event).is_some_and(|order| {
            scope.projects.is_none_or(|project| order.project == project)
                && scope.types.is_none_or(|kind| order.kind == kind)
        })
    }
}

type Fits = Box<dyn Fn(&Org, &Event) -> bool>;

/// Every filter, with what it lets through.
fn filters(own: &Org, foreign: &BTreeSet<String>) -> Vec<(String, Fits)> {
    let mut all: Vec<(String, Fits)> = vec![(String::new(), Box::new(|_, _| true))];
    for project in ["a", "b"] {
        let fits = move |_: &Org, event: &Event| event.data["project"] == project;
        all.push((format!("projectId={project}"), Box::new(fits)));
    }
    for thread in ["s1", "s2"] {
        let fits = move |org: &Org, event: &Event| org.order(event).is_some_and(|order| order.thread == thread);
        all.push((format!("threadId={thread}"), Box::new(fits)));
    }
    for subject in own.jobs.keys().chain(&own.decisions).chain([&own.spare, &own.webhook]) {
        let hex = subject.rsplit('_').next().unwrap().to_owned();
        all.push((format!("subject={subject}"), Box::new(move |_, event| event.subject.ends_with(&hex))));
    }
    for word in ["job.", "decision.", "key.", "lane.", "webhook.", "org."] {
        all.push((format!("type={word}"), Box::new(move |_, event| event.kind.starts_with(word))));
    }
    let ended = |_: &Org, event: &Event| event.kind == "job.completed";
    all.push(("type=orchestrator_job_completed".to_owned(), Box::new(ended)));
    // What is somebody else's, by its very name, is as unknown as what was never there.
    for subject in [&format!("job_{UNKNOWN}"), &foreign.iter().cloned().collect::<Vec<_>>().join(",")] {
        all.push((format!("subject={subject}"), Box::new(|_, _| false)));
    }
    all
}

/// Everybody who listens to an org: a key, a filter, a way to listen.
struct Listener {
    ear: Ear,
    by: By,
    scope: Scope,
    filter: usize,
}

/// One of each that is let in.
async fn listen(server: &Server, org: &Org, filters: &[(String, Fits)], after: &str) -> Vec<Listener> {
    let mut listeners = Vec::new();
    for (key, scope) in &org.keys {
        let open = |by: By, filter: usize| async move {
            let query = [after, &filters[filter].0].join("&");
            let asked = filters[filter].0.strip_prefix("projectId=");
            let outside = asked.zip(scope.projects).is_some_and(|(asked, reached)| asked != reached);
            match Ear::open(by, server, Call::new(key, &query)).await {
                Ok(ear) if !outside => Some(Listener { ear, by, scope: *scope, filter }),
                Ok(_) => panic!("{scope:?} was let in for {query}"),
                Err(reply) if outside => {
                    reply.refused(403, "out_of_scope");
                    None
                }
                Err(reply) => panic!("{scope:?} {query}: {reply:?}"),
            }
        };
        for by in BOTH {
            listeners.extend(join_all((0..filters.len()).map(|filter| open(by, filter))).await.into_iter().flatten());
        }
    }
    listeners
}

/// Each has heard exactly what there is for it after this cursor.
async fn check(server: &Server, org: &Org, filters: &[(String, Fits)], listeners: Vec<Listener>, after: Option<&str>) {
    let all = events(server, org).await;
    let all: Vec<_> = all.iter().filter(|event| after.is_none_or(|after| event.cursor.as_str() > after)).collect();
    let last = &all.last().unwrap().cursor;
    let mut heard_of = BTreeSet::new();
    for Listener { mut ear, by, scope, filter } in listeners {
        let (query, fits) = &filters[filter];
        let wanted = all.iter().filter(|event| org.reaches(scope, event) && fits(org, event));
        let wanted: Vec<_> = wanted.map(|event| (&event.cursor, &event.kind)).collect();
        let heard = ear.through(last).await;
        let positions: Vec<_> = heard.iter().map(|(position, ..)| position).collect();
        assert_eq!(
            positions,
            wanted.iter().map(|(cursor, _)| *cursor).collect::<Vec<_>>(),
            "{by:?} {scope:?} {query}: {wanted:?}"
        );
        if !heard.is_empty() {
            heard_of.insert(query);
        }
    }
    // Otherwise nothing would have been shown: every filter lets something through for somebody, but
    // what is not there or not theirs, and orgs are founded once.
    let silent = filters.iter().filter(|(query, _)| !heard_of.contains(query)).count();
    assert!(silent <= SILENT, "{silent} filters let nothing through");
}

/// Filters that nothing can pass: what was never there, what is another's, and, later on, the founding
/// of the org, its webhook, and the jobs that had ended.
const SILENT: usize = 9;

async fn whoever_listens_hears_their_own_and_nothing_else(server: &Server) {
    let other = found_org(server, "acme").await;
    let mut orgs = [Org::furnish(server, server.admin.clone()).await, Org::furnish(server, other).await];
    let mut subjects = Vec::new();
    for org in &orgs {
        let of = events(server, org).await.into_iter().map(|event| event.subject);
        subjects.push(of.collect::<BTreeSet<_>>());
    }
    assert!(subjects[0].is_disjoint(&subjects[1]), "{subjects:?}");
    // What was missed, then what happens, while the same happens in the other org.
    let mut live = Vec::new();
    for (n, org) in orgs.iter().enumerate() {
        let filters = filters(org, &subjects[1 - n]);
        let missed = listen(server, org, &filters, START).await;
        check(server, org, &filters, missed, None).await;
        let place = events(server, org).await.pop().unwrap().cursor;
        live.push((place, listen(server, org, &filters, "after=tail").await, filters));
    }
    for org in &mut orgs {
        org.stir(server).await;
    }
    for (org, (place, listeners, filters)) in orgs.iter().zip(live) {
        check(server, org, &filters, listeners, Some(&place)).await;
    }
}
