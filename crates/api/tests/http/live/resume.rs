//! What was missed first, then live: no gap and no repetition, wherever one comes back.

use crate::live::ears::{BOTH, By, Call, Ear, Heard, listed, positions};
use crate::support::{Server, Setup};
use baton_api::Listening;
use serde_json::json;

on_both_databases!(
    every_position_can_be_come_back_to,
    pieces_put_together_are_the_whole,
    who_listens_before_anything_happens_has_a_place_to_come_back_to,
    the_last_event_id_counts_more_than_the_address,
    writers_and_listeners_at_once_miss_nothing,
);

mod crowded {
    use super::*;

    /// Little is kept in memory, so that listeners fall behind it all the time.
    fn forgetful() -> Setup {
        let listening = Listening { recent_bytes: 4_000, ..Listening::default() };
        Setup { listening, ..Setup::default() }
    }

    on_both_databases!(super::forgetful => writers_and_listeners_at_once_miss_nothing);
}

mod quiet {
    on_both_databases!(crate::live::filters::quick => who_wants_little_is_told_how_far_it_has_come);
    use super::who_wants_little_is_told_how_far_it_has_come;
}

/// Some fifty events; the list of them.
async fn fifty(server: &Server) -> Vec<String> {
    let jobs: Vec<_> = (0..16).map(|n| json!({ "type": "noop", "projectId": format!("p{}", n % 3) })).collect();
    let reply = server.post("/api/v1/jobs/batch", &json!({ "jobs": jobs })).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let done = std::cell::Cell::new(0);
    server
        .events_until(|event| {
            done.set(done.get() + usize::from(event.kind == "job.completed"));
            done.get() == 16
        })
        .await;
    positions(server, None).await
}

async fn every_position_can_be_come_back_to(server: &Server) {
    let all = fifty(server).await;
    assert!(all.len() >= 48, "{}", all.len());
    let last = all.last().unwrap();
    for by in BOTH {
        for (n, from) in all.iter().enumerate().take(all.len() - 1) {
            let mut ear = Ear::listen(by, server, &format!("after={from}")).await;
            assert_eq!(ear.next().await, Heard::Standing(from.clone()));
            assert_eq!(ear.until(last).await, all[n + 1..], "{by:?} after {from}");
        }
    }
}

async fn pieces_put_together_are_the_whole(server: &Server) {
    let all = fifty(server).await;
    let start = "c10000000000000000";
    for by in BOTH {
        for piece in [1, 2, 7, 20] {
            let (mut heard, mut from) = (Vec::new(), start.to_owned());
            while heard.len() < all.len() {
                let mut ear = Ear::listen(by, server, &format!("after={from}")).await;
                for _ in 0..piece.min(all.len() - heard.len()) {
                    from = ear.news().await.0;
                    heard.push(from.clone());
                }
            }
            assert_eq!(heard, all, "{by:?} in pieces of {piece}");
        }
    }
}

async fn who_listens_before_anything_happens_has_a_place_to_come_back_to(server: &Server) {
    for by in BOTH {
        let mut ear = Ear::listen(by, server, "").await;
        let Heard::Standing(place) = ear.next().await else { panic!("no place") };
        drop(ear);
        let job = server.enqueue(json!({ "type": "noop", "projectId": "p" })).await;
        server.until(job.id, "job.completed").await;
        let missed = positions(server, Some(&place)).await;
        assert_eq!(missed.len(), 3);
        let mut ear = Ear::listen(by, server, &format!("after={place}")).await;
        assert_eq!(ear.until(missed.last().unwrap()).await, missed);
        let job = server.enqueue(json!({ "type": "noop", "projectId": "p" })).await;
        let (position, ..) = ear.news().await;
        assert!(!missed.contains(&position), "live after what was missed");
        server.until(job.id, "job.completed").await;
    }
}

async fn the_last_event_id_counts_more_than_the_address(server: &Server) {
    let all = fifty(server).await;
    for query in ["", "after=tail", &format!("after={}", all[3])] {
        let call = Call { back: Some(&all[40]), ..Call::new(&server.admin, query) };
        let mut ear = Ear::open(By::Stream, server, call).await.unwrap_or_else(|reply| panic!("{reply:?}"));
        assert_eq!(ear.until(all.last().unwrap()).await, all[41..], "{query}");
    }
}

async fn who_wants_little_is_told_how_far_it_has_come(server: &Server) {
    for by in BOTH {
        let mut ear = Ear::listen(by, server, "projectId=nobodys").await;
        let Heard::Standing(first) = ear.next().await else { panic!("no place") };
        let job = server.enqueue(json!({ "type": "noop", "projectId": "p" })).await;
        server.until(job.id, "job.completed").await;
        let last = positions(server, None).await.pop().unwrap();
        let mut place = first;
        while place != last {
            match ear.next().await {
                Heard::Standing(next) => {
                    assert!(next > place, "{next} after {place}");
                    place = next;
                }
                Heard::Beat => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Writers on many connections; listeners that stay, and some that come and go.
async fn writers_and_listeners_at_once_miss_nothing(server: &Server) {
    const WRITERS: usize = 6;
    const EACH: usize = 12;
    // A job's end is the last thing written so far; what is older can be read when it can.
    let first = server.enqueue(json!({ "type": "noop", "projectId": "first" })).await;
    server.until(first.id, "job.completed").await;
    let begin = positions(server, None).await.pop().unwrap();
    let from = format!("after={begin}");
    let stay: Vec<_> = [By::Socket, By::Stream, By::Socket, By::Stream].map(|by| Ear::listen(by, server, &from)).into();
    let mut stay = futures_util::future::join_all(stay).await;
    let writer = async |n: usize| {
        for i in 0..EACH {
            let project = format!("w{n}");
            let kind = if i % 2 == 0 { "noop" } else { "echo" };
            server.enqueue(json!({ "type": kind, "projectId": project })).await;
        }
    };
    let writing = futures_util::future::join_all((0..WRITERS).map(writer));
    // Comes and goes after every few, until it has heard of every end.
    let restless = async |by: By, piece: usize| {
        let (mut heard, mut place, mut ended) = (Vec::new(), begin.clone(), 0);
        while ended < WRITERS * EACH {
            let mut ear = Ear::listen(by, server, &format!("after={place}")).await;
            for _ in 0..piece {
                let (position, kind, _) = ear.news().await;
                ended += usize::from(kind.ends_with("completed"));
                place = position.clone();
                heard.push(position);
                if ended == WRITERS * EACH {
                    break;
                }
            }
        }
        heard
    };
    let (_, a, b, c) =
        tokio::join!(writing, restless(By::Socket, 1), restless(By::Stream, 5), restless(By::Socket, 17));
    let all: Vec<_> = listed(server, Some(&begin)).await.into_iter().map(|event| event.cursor).collect();
    assert_eq!(all.len(), WRITERS * EACH * 3);
    for heard in [a, b, c] {
        assert_eq!(heard, all);
    }
    for ear in &mut stay {
        assert_eq!(ear.until(all.last().unwrap()).await, all);
    }
}
