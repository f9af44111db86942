//! Two nodes on one PostgreSQL: what one commits is heard at the other, and one can change over.

use crate::live::ears::{BOTH, By, Call, Ear, Heard, make_key, positions};
use crate::support::{Database, Server, Setup};
use futures_util::future::join_all;
use serde_json::json;

async fn two() -> Option<(Server, Server)> {
    let one = Server::start(Database::Postgres).await?;
    let two = one.join(Setup::default()).await;
    Some((one, two))
}

async fn stop(one: Server, two: Server) {
    two.stop().await;
    one.stop().await;
}

const JOBS: usize = 12;

async fn write(server: &Server, project: String) {
    for _ in 0..JOBS {
        server.enqueue(json!({ "type": "noop", "projectId": project })).await;
    }
}

/// Listens until so many jobs have ended.
async fn hear(mut ear: Ear, ends: usize) -> Vec<String> {
    let (mut heard, mut ended) = (Vec::new(), 0);
    while ended < ends {
        let (position, kind, _) = ear.news().await;
        ended += usize::from(kind.ends_with("completed"));
        heard.push(position);
    }
    heard
}

#[tokio::test]
async fn listeners_at_both_nodes_hear_what_both_commit_in_the_same_order() {
    let Some((one, two)) = two().await else { return };
    let begin = positions(&one, None).await.pop().unwrap();
    let query = format!("after={begin}");
    let mut ears = Vec::new();
    for server in [&one, &two] {
        for by in BOTH {
            ears.push(Ear::listen(by, server, &query).await);
        }
    }
    const WRITERS: usize = 4;
    let writers = (0..WRITERS).flat_map(|n| [write(&one, format!("a{n}")), write(&two, format!("b{n}"))]);
    let ends = 2 * WRITERS * JOBS;
    let (_, heard) = tokio::join!(join_all(writers), join_all(ears.into_iter().map(|ear| hear(ear, ends))));
    let all = positions(&one, Some(&begin)).await;
    assert_eq!(all.len(), 3 * ends);
    for heard in heard {
        assert_eq!(heard, all);
    }
    stop(one, two).await;
}

#[tokio::test]
async fn one_can_change_over_at_any_moment() {
    let Some((one, two)) = two().await else { return };
    let begin = positions(&one, None).await.pop().unwrap();
    let ends = 2 * JOBS;
    let (from, nodes) = (&begin, [&one, &two]);
    // From node to node after every few events, while both write.
    let restless = async |by: By, piece: usize| {
        let (mut heard, mut place, mut ended, mut turn) = (Vec::new(), from.clone(), 0, 0);
        while ended < ends {
            let mut ear = Ear::listen(by, nodes[turn % 2], &format!("after={place}")).await;
            turn += 1;
            for _ in 0..piece {
                let (position, kind, _) = ear.news().await;
                ended += usize::from(kind.ends_with("completed"));
                place = position.clone();
                heard.push(position);
                if ended == ends {
                    break;
                }
            }
        }
        heard
    };
    let writers = join_all([write(&one, "a".to_owned()), write(&two, "b".to_owned())]);
    let (_, socket, stream) = tokio::join!(writers, restless(By::Socket, 1), restless(By::Stream, 4));
    let all = positions(&one, Some(&begin)).await;
    assert_eq!((&socket, &stream), (&all, &all));
    stop(one, two).await;
}

#[tokio::test]
async fn a_key_that_is_revoked_at_one_node_is_cut_off_at_the_other() {
    let Some((one, two)) = two().await else { return };
    for by in BOTH {
        let made = make_key(&one, &one.admin, json!({ "label": "x", "role": "viewer" })).await;
        let mut ear =
            Ear::open(by, &two, Call::new(made.secret.as_ref().unwrap(), "type=key.revoked")).await.ok().unwrap();
        let path = format!("/api/v1/keys/{}/revoke", made.key.id);
        assert_eq!(one.post(&path, &json!({})).await.status, 200);
        let number = (by == By::Socket).then_some(4401);
        assert_eq!(ear.over().await, Heard::Over(number, "unauthenticated".to_owned()));
    }
    stop(one, two).await;
}

#[tokio::test]
async fn who_is_told_to_come_again_goes_on_at_the_other_node() {
    let Some((one, two)) = two().await else { return };
    let begin = positions(&one, None).await.pop().unwrap();
    let mut ears = Vec::new();
    for by in BOTH {
        ears.push((by, Ear::listen(by, &two, &format!("after={begin}")).await));
    }
    write(&one, "a".to_owned()).await;
    let leave = async {
        let mut left = Vec::new();
        for (by, mut ear) in ears {
            let (heard, end) = ear.rest().await;
            assert!(matches!(end, Heard::Over(_, code) if code == "service_restart"));
            left.push((by, heard));
        }
        left
    };
    let (left, ()) = tokio::join!(leave, two.stop());
    let ends = std::cell::Cell::new(0);
    one.events_until(|event| {
        ends.set(ends.get() + usize::from(event.kind == "job.completed"));
        ends.get() == JOBS
    })
    .await;
    let all = positions(&one, Some(&begin)).await;
    for (by, mut heard) in left {
        let place = heard.last().unwrap_or(&begin).clone();
        let mut ear = Ear::listen(by, &one, &format!("after={place}")).await;
        if place != *all.last().unwrap() {
            heard.extend(ear.until(all.last().unwrap()).await);
        }
        assert_eq!(heard, all, "{by:?}");
    }
    one.stop().await;
}
