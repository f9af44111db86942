//! Metrics in the text format of Prometheus.
//!
//! Whoever has something to count does so through the `metrics` facade; the one recorder is
//! installed here. Queue depth is asked of the store at each scrape instead: a gauge that is
//! only ever set would go on showing projects that have long been idle.

use crate::app::App;
use crate::counters::{self, REQUESTS};
use crate::door::Caller;
use crate::limits;
use crate::wait;
use axum::extract::State;
use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use baton_core::access::Right;
use baton_core::job::State as JobState;
use baton_core::{OrgId, ProjectId};
use baton_store::Depth;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::OnceLock;
use std::time::Duration;

/// What was recorded in this process. Empty if another recorder was there first.
#[derive(Clone)]
pub struct Recorder(Option<PrometheusHandle>);

const LATENCY: &str = "baton_http_request_seconds";
const BUCKETS: [f64; 14] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 120.0, 600.0];

/// Installs the recorder, once per process; calling it again gives the same. Metrics that are
/// recorded earlier are lost.
pub fn install() -> Recorder {
    static INSTALLED: OnceLock<Recorder> = OnceLock::new();
    INSTALLED.get_or_init(build).clone()
}

fn build() -> Recorder {
    let timed = Matcher::Suffix("_seconds".to_owned());
    let built = PrometheusBuilder::new().set_buckets_for_metric(timed, &BUCKETS);
    match built.and_then(PrometheusBuilder::install_recorder) {
        Ok(handle) => {
            describe();
            Recorder(Some(handle))
        }
        Err(error) => {
            tracing::warn!(cause = %error, "metrics are not recorded");
            Recorder(None)
        }
    }
}

/// What the engine measures is described here too: who scrapes wants all of it explained.
fn describe() {
    counters::describe();
    for (name, what) in [
        (LATENCY, "Time from a request's head to its answer's, by route"),
        ("baton_job_run_seconds", "Time from the first start of jobs to their end, by type"),
        ("baton_handler_seconds", "Time that handlers ran, without waiting, by type"),
        (
            "baton_aged_background_wait_seconds",
            "How long aged background jobs had waited when they were handed out, by type",
        ),
    ] {
        metrics::describe_histogram!(name, what);
    }
}

impl Recorder {
    fn render(&self) -> String {
        self.0.as_ref().map(PrometheusHandle::render).unwrap_or_default()
    }

    /// Folds samples now and then; without it an unscraped histogram grows.
    pub(crate) async fn upkeep(&self) {
        loop {
            tokio::time::sleep(limits::METRICS_UPKEEP).await;
            if let Some(handle) = &self.0 {
                handle.run_upkeep();
            }
        }
    }
}

pub(crate) fn answered(method: &Method, route: &str, status: u16, elapsed: Duration) {
    // Anybody can invent methods and paths; a label per invention would fill the memory.
    let method = match *method {
        Method::GET | Method::HEAD | Method::POST | Method::PUT | Method::PATCH | Method::DELETE | Method::OPTIONS => {
            method.as_str().to_owned()
        }
        _ => "other".to_owned(),
    };
    let route = route.to_owned();
    metrics::counter!(REQUESTS, "method" => method, "route" => route.clone(), "status" => status.to_string())
        .increment(1);
    metrics::histogram!(LATENCY, "route" => route).record(elapsed.as_secs_f64());
}

pub async fn scrape(State(app): State<App>, caller: Caller) -> impl IntoResponse {
    let mut text = app.recorder().render();
    let depths = wait::read(app.store().depths()).await;
    let _ = writeln!(text, "# HELP baton_store_up Whether the database answered this scrape");
    let _ = writeln!(text, "# TYPE baton_store_up gauge");
    let _ = writeln!(text, "baton_store_up {}", u8::from(depths.is_ok()));
    match depths {
        Ok(depths) => write_depths(&mut text, &depths, |org| caller.grant.may(Right::Orgs) || *org == caller.org),
        Err(error) => tracing::warn!(cause = %error, "queue depth cannot be shown"),
    }
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
}

/// Names are checked where they enter and hold nothing that must be escaped in a label. What others
/// call their projects is told only to those who may know of them.
fn write_depths(text: &mut String, depths: &[Depth], may_name: impl Fn(&OrgId) -> bool) {
    let live = JobState::ALL.into_iter().filter(|state| !state.is_ended() && *state != JobState::Received);
    let mut states: BTreeMap<&str, i64> = live.map(|state| (state.as_str(), 0)).collect();
    let mut projects: BTreeMap<(&OrgId, &ProjectId), (i64, Vec<&Depth>)> = BTreeMap::new();
    for depth in depths {
        *states.entry(depth.state).or_default() += depth.jobs;
        if !may_name(&depth.org) {
            continue;
        }
        let (sum, parts) = projects.entry((&depth.org, &depth.project)).or_default();
        *sum += depth.jobs;
        parts.push(depth);
    }
    let _ = writeln!(text, "# HELP baton_queue_depth Jobs that have not ended, by state");
    let _ = writeln!(text, "# TYPE baton_queue_depth gauge");
    for (state, jobs) in states {
        let _ = writeln!(text, "baton_queue_depth{{state=\"{state}\"}} {jobs}");
    }
    let mut deepest: Vec<_> = projects.into_iter().collect();
    deepest.sort_by_key(|(project, (sum, _))| (std::cmp::Reverse(*sum), *project));
    deepest.truncate(limits::METRIC_PROJECTS);
    let _ = writeln!(text, "# HELP baton_project_queue_depth Jobs that have not ended, by project and state");
    let _ = writeln!(text, "# TYPE baton_project_queue_depth gauge");
    for depth in deepest.into_iter().flat_map(|(_, (_, parts))| parts) {
        let Depth { org, project, state, jobs } = depth;
        let _ =
            writeln!(text, "baton_project_queue_depth{{org=\"{org}\",project=\"{project}\",state=\"{state}\"}} {jobs}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::OrgId;

    fn depth(project: &str, state: &'static str, jobs: i64) -> Depth {
        Depth { org: OrgId::default(), project: project.parse().unwrap(), state, jobs }
    }

    #[test]
    fn depths_are_summed_and_the_deepest_projects_come_first() {
        let mut text = String::new();
        write_depths(
            &mut text,
            &[depth("a", "queued", 2), depth("b", "queued", 3), depth("b", "executing", 1)],
            |_| true,
        );
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            lines,
            [
                r#"baton_queue_depth{state="awaiting_tool"} 0"#,
                r#"baton_queue_depth{state="awaiting_user_confirmation"} 0"#,
                r#"baton_queue_depth{state="executing"} 1"#,
                r#"baton_queue_depth{state="queued"} 5"#,
                r#"baton_project_queue_depth{org="default",project="b",state="queued"} 3"#,
                r#"baton_project_queue_depth{org="default",project="b",state="executing"} 1"#,
                r#"baton_project_queue_depth{org="default",project="a",state="queued"} 2"#,
            ]
        );
    }

    #[test]
    fn more_projects_than_the_limit_are_still_counted_in_the_sum() {
        let many: Vec<_> = (0..limits::METRIC_PROJECTS + 7).map(|n| depth(&format!("p{n}"), "queued", 1)).collect();
        let mut text = String::new();
        write_depths(&mut text, &many, |_| true);
        assert_eq!(text.matches("baton_project_queue_depth{").count(), limits::METRIC_PROJECTS);
        assert!(text.contains(&format!("baton_queue_depth{{state=\"queued\"}} {}\n", many.len())));
    }

    #[test]
    fn projects_of_others_are_counted_and_not_named() {
        let theirs = Depth { org: "acme".parse().unwrap(), ..depth("secret", "queued", 2) };
        let mut text = String::new();
        write_depths(&mut text, &[depth("a", "queued", 1), theirs], |org| *org == OrgId::default());
        assert!(text.contains("baton_queue_depth{state=\"queued\"} 3\n") && text.contains("project=\"a\""));
        assert!(!text.contains("acme") && !text.contains("secret"), "{text}");
    }
}
