//! What many calls leave behind: nothing. Alone in its process, because it counts what that has.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "this is a test")]

use baton_tools::process::{Call, Declaration, Options, Process, Processes};
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use tokio::task::JoinSet;

const CALLS: usize = 200;

fn files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn children() -> String {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).unwrap()).collect()
}

#[tokio::test]
async fn two_hundred_calls_leave_no_file_and_no_process() {
    let here = std::env::current_exe().unwrap();
    let keeper = here.parent().and_then(Path::parent).unwrap().join("examples/process");
    let processes = Processes::new(Options { keeper, ..Options::default() });
    let declared = |script| {
        let fields = json!({"argv": ["/bin/sh", "-c", script]});
        serde_json::from_value::<Declaration>(fields).unwrap().check().unwrap()
    };
    let kinds = [
        (declared("cat"), 60, "ok"),
        (declared("exit 3"), 60, "tool_crashed"),
        (declared("sleep 60"), 1, "timeout"),
        (declared("yes"), 60, "output_too_large"),
    ];
    let one = async |processes: Processes, process: Process, timeout_s| {
        let (input, timeout) = (json!({"x": "y".repeat(100_000)}), Duration::from_secs(timeout_s));
        let call = Call { input: &input, timeout, run: None, agent: None, step: None, attempt: 1, key: None };
        processes.call(&process, &call, std::future::pending()).await.map_err(|failure| failure.code)
    };
    assert!(one(processes.clone(), kinds[0].0.clone(), 60).await.is_ok(), "what is made once is made now");
    let before = files();
    let mut all = JoinSet::new();
    for (process, timeout_s, ends) in kinds.iter().cycle().take(CALLS).cloned() {
        let ended = one(processes.clone(), process, timeout_s);
        all.spawn(async move { assert_eq!(ended.await.map(|_| "ok".into()).unwrap_or_else(|code| code), ends) });
    }
    while let Some(ended) = all.join_next().await {
        ended.unwrap();
    }
    assert_eq!((files(), children()), (before, String::new()));
}
