//! Names for requests and traces that callers bring along.

use crate::support::{Ask, Database, Reply, Server, run};
use serde_json::Value;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

async fn ask(server: &Server, path: &str, headers: &[(&str, &str)]) -> Reply {
    server.send(Ask { path, headers, ..Ask::default() }).await
}

#[tokio::test]
async fn a_request_keeps_the_id_that_it_brings_along_also_where_it_is_refused() {
    run(Database::Sqlite, async |server: &Server| {
        let long = "x".repeat(128);
        for id in ["mine", "A.b:c-d_9", &long] {
            for (path, status, code) in [
                ("/api/v1/me", 200, ""),
                ("/healthz", 200, ""),
                ("/api/v1/me?x=1", 400, "invalid_request"),
                ("/api/v1/jobs/job_0", 404, "job_not_found"),
                ("/nowhere", 404, "not_found"),
            ] {
                let reply = ask(server, path, &[("X-Request-Id", id)]).await;
                assert_eq!((reply.status, reply.header("x-request-id")), (status, Some(id)), "{path}");
                if status != 200 {
                    // Which also looks for the id in the body.
                    reply.refused(status, code);
                }
            }
            let unknown = ask(server, "/api/v1/me", &[("X-Request-Id", id), ("Authorization", "Bearer x")]).await;
            unknown.refused(401, "unauthenticated");
            assert_eq!(unknown.header("x-request-id"), Some(id));
        }
    })
    .await;
}

#[tokio::test]
async fn an_id_that_cannot_be_used_is_replaced_by_one_of_ours() {
    run(Database::Sqlite, async |server: &Server| {
        let over = "x".repeat(129);
        let odd: [&[&str]; 8] = [&[], &[""], &["a b"], &["a/b"], &["a,b"], &["a\"b"], &[&over], &["a", "b"]];
        for values in odd {
            let headers: Vec<_> = values.iter().map(|value| ("X-Request-Id", *value)).collect();
            let reply = ask(server, "/api/v1/me", &headers).await;
            let id = reply.header("x-request-id").unwrap();
            assert!(reply.status == 200 && id.starts_with("req_"), "{values:?}: {reply:?}");
            assert_eq!(reply.headers.iter().filter(|(name, _)| name == "x-request-id").count(), 1);
        }
    })
    .await;
}

#[tokio::test]
async fn a_trace_goes_on_or_begins() {
    run(Database::Sqlite, async |server: &Server| {
        let parts = |reply: &Reply| -> Vec<String> {
            reply.header("traceparent").unwrap().split('-').map(str::to_owned).collect()
        };
        let whole: Vec<_> = PARENT.split('-').collect();
        for path in ["/api/v1/me", "/nowhere", "/healthz", "/api/v1/me?x=1"] {
            let parts = parts(&ask(server, path, &[("traceparent", PARENT)]).await);
            assert_eq!((&*parts[0], &*parts[1], &*parts[3]), (whole[0], whole[1], whole[3]), "{path}");
            assert!(parts[2] != whole[2] && parts[2].len() == 16, "{path}: {parts:?}");
        }
        let upper = PARENT.to_uppercase();
        let odd: [&[&str]; 8] = [
            &[],
            &["x"],
            &[&upper],
            &[PARENT, PARENT],
            &["ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"],
            &["00-00000000000000000000000000000000-00f067aa0ba902b7-01"],
            &["00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"],
            &["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"],
        ];
        let mut drawn = std::collections::BTreeSet::new();
        for values in odd {
            let headers: Vec<_> = values.iter().map(|value| ("traceparent", *value)).collect();
            let reply = ask(server, "/api/v1/me", &headers).await;
            reply.ok::<Value>();
            let parts = parts(&reply);
            assert_eq!((&*parts[0], &*parts[3], parts.len()), ("00", "00", 4), "{values:?}");
            assert!(parts[1].len() == 32 && !parts[1].bytes().all(|b| b == b'0'), "{parts:?}");
            assert!(parts[1] != whole[1] && drawn.insert(parts[1].clone()), "{values:?}: {parts:?}");
        }
    })
    .await;
}
