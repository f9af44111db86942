//! How listening ends: by us, with a code, so that one can come back; and who may begin.

use crate::live::ears::{BOTH, By, Call, Ear, Heard, make_key, positions};
use crate::support::{Ask, Database, PATIENCE, SESSIONS, Server, Setup};
use baton_api::Listening;
use baton_core::access::session::Sessions;
use baton_core::time::Span;
use baton_wire::{MadeKey, Time, Token};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::time::{Instant, timeout};

const START: &str = "after=c10000000000000000";

fn over(by: By, number: u16, code: &str) -> Heard {
    Heard::Over((by == By::Socket).then_some(number), code.to_owned())
}

async fn open(by: By, server: &Server, key: &str, query: &str) -> Ear {
    Ear::open(by, server, Call::new(key, query)).await.unwrap_or_else(|reply| panic!("{reply:?}"))
}

async fn viewer(server: &Server, more: Value) -> MadeKey {
    let mut body = json!({ "label": "listener", "role": "viewer" });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let made = make_key(server, &server.admin, body).await;
    // Whoever listens from now on must not hear of it any more.
    let id = made.key.id.to_string();
    server.events_until(|event| event.subject == id).await;
    made
}

mod stopping {
    use super::*;

    async fn everybody_is_told_to_come_again(database: Database) {
        let Some(server) = Server::start(database).await else { return };
        let mut ears = Vec::new();
        for by in BOTH {
            let mut ear = Ear::listen(by, &server, "").await;
            assert!(matches!(ear.next().await, Heard::Standing(_)));
            ears.push((by, ear));
        }
        // One that has stopped reading cannot hold anybody up.
        for n in 0..100 {
            let order =
                json!({ "type": "echo", "projectId": "p", "payload": { "message": "x".repeat(60_000), "n": n } });
            server.enqueue(order).await;
        }
        let deaf = Call { narrow: true, ..Call::new(&server.admin, START) };
        let _deaf = [Ear::open(By::Socket, &server, deaf).await, Ear::open(By::Stream, &server, deaf).await];
        let began = Instant::now();
        let hear = async {
            for (by, ear) in &mut ears {
                let (_, end) = ear.rest().await;
                assert_eq!(end, over(*by, 1012, "service_restart"), "{by:?}");
                assert_eq!(ear.next().await, Heard::Cut);
            }
        };
        let ((), ()) = tokio::join!(hear, server.stop());
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn everybody_is_told_to_come_again_on_sqlite() {
        everybody_is_told_to_come_again(Database::Sqlite).await;
    }

    #[tokio::test]
    async fn everybody_is_told_to_come_again_on_postgres() {
        everybody_is_told_to_come_again(Database::Postgres).await;
    }
}

mod keys {
    use super::*;

    // The beat is far away: whoever listens hears of the key's end by itself.
    on_both_databases!(
        a_revoked_key_is_cut_off_at_once,
        a_rotated_key_is_cut_off_when_its_grace_is_over,
        a_session_that_is_left_is_cut_off_at_once,
    );
    mod expiring {
        use super::*;
        on_both_databases!(crate::live::filters::quick => an_expired_key_is_cut_off_by_the_beat);
    }

    async fn a_revoked_key_is_cut_off_at_once(server: &Server) {
        for by in BOTH {
            let made = viewer(server, json!({})).await;
            let mut ear = open(by, server, made.secret.as_ref().unwrap(), "type=key.").await;
            let mut other = Ear::listen(by, server, "type=key.").await;
            let path = format!("/api/v1/keys/{}/revoke", made.key.id);
            assert_eq!(server.post(&path, &json!({})).await.status, 200);
            assert_eq!(ear.over().await, over(by, 4401, "unauthenticated"));
            assert_eq!(other.news().await.1, "key.revoked", "nobody else is");
        }
    }

    async fn a_rotated_key_is_cut_off_when_its_grace_is_over(server: &Server) {
        for by in BOTH {
            let made = viewer(server, json!({})).await;
            let mut ear = open(by, server, made.secret.as_ref().unwrap(), "type=key.rotated,job.queued").await;
            let path = format!("/api/v1/keys/{}/rotate", made.key.id);
            let lenient: MadeKey = server.post(&path, &json!({ "graceMs": 600_000 })).await.ok();
            assert_eq!(ear.news().await.1, "key.rotated", "it still has time");
            let mut new = open(by, server, lenient.secret.as_ref().unwrap(), "type=job.queued").await;
            assert!(matches!(new.next().await, Heard::Standing(_)));
            let _: MadeKey = server.post(&path, &json!({})).await.ok();
            assert_eq!(ear.over().await, over(by, 4401, "unauthenticated"));
            assert_eq!(new.over().await, over(by, 4401, "unauthenticated"));
        }
    }

    async fn a_session_that_is_left_is_cut_off_at_once(server: &Server) {
        let key: Token = server.admin.parse().unwrap();
        let now = server.engine.store().clock_now();
        for (n, by) in BOTH.into_iter().enumerate() {
            let opened = |ms| Sessions::new(SESSIONS).open(key.id, &key.proof(), now.plus(Span::millis(ms))).reveal();
            let [left, kept] = [0, 100].map(|more| format!("baton_session={}", opened(more + n as i64)));
            let mut ear = open(by, server, &left, "type=key.").await;
            let mut other = open(by, server, &kept, "type=key.").await;
            let headers = [("Cookie", left.as_str()), ("Origin", "http://localhost"), ("Host", "localhost")];
            let leave = Ask { method: "DELETE", path: "/api/v1/session", headers: &headers, body: b"" };
            assert_eq!(server.send_as("", leave).await.status, 204);
            assert_eq!(ear.over().await, over(by, 4401, "unauthenticated"));
            assert_eq!(other.news().await.1, "key.session_ended", "nobody else is");
        }
    }

    async fn an_expired_key_is_cut_off_by_the_beat(server: &Server) {
        let at = Time(server.engine.store().clock_now().plus(Span::millis(700)));
        let made = viewer(server, json!({ "expiresAt": at })).await;
        for by in BOTH {
            match Ear::open(by, server, Call::new(made.secret.as_ref().unwrap(), "")).await {
                Ok(mut ear) => assert_eq!(ear.rest().await.1, over(by, 4401, "unauthenticated")),
                Err(reply) => drop(reply.refused(401, "unauthenticated")),
            }
        }
    }
}

mod slow {
    use super::*;

    /// One listener a key, and little patience with it.
    fn impatient() -> Setup {
        let listening = Listening { per_key: 1, slow: Duration::from_millis(300), ..Listening::default() };
        Setup { listening, narrow: true, ..Setup::default() }
    }

    on_both_databases!(super::impatient => who_does_not_read_is_cut_off_and_comes_back_without_a_gap);

    /// More than fits on the way to somebody who does not read.
    async fn plenty(server: &Server, by: By) {
        match by {
            By::Socket => {
                for _ in 0..20 {
                    let payload = json!({ "message": "x".repeat(60_000) });
                    let job = server.enqueue(json!({ "type": "echo", "projectId": "p", "payload": payload })).await;
                    server.until(job.id, "job.completed").await;
                }
            }
            By::Stream => {
                const JOBS: usize = 480;
                let jobs: Vec<_> =
                    (0..JOBS).map(|n| json!({ "type": "noop", "projectId": format!("s{}", n % 8) })).collect();
                // One ear for both: the place of one that has gone is free a moment later.
                let mut ends = Ear::listen(By::Stream, server, "type=job.completed").await;
                for _ in 0..2 {
                    let reply = server.post("/api/v1/jobs/batch", &json!({ "jobs": jobs })).await;
                    assert_eq!(reply.status, 201, "{reply:?}");
                    for _ in 0..JOBS {
                        ends.news().await;
                    }
                }
            }
        }
    }

    async fn who_does_not_read_is_cut_off_and_comes_back_without_a_gap(server: &Server) {
        for by in BOTH {
            let from = positions(server, None).await.pop().unwrap();
            plenty(server, by).await;
            let all = positions(server, Some(&from)).await;
            let made = viewer(server, json!({})).await;
            let key = made.secret.as_ref().unwrap();
            let query = format!("after={from}");
            let call = Call { narrow: true, ..Call::new(key, &query) };
            let mut deaf = Ear::open(by, server, call).await.unwrap_or_else(|reply| panic!("{reply:?}"));
            // Its place is free again as soon as it was given up on.
            let given_up = async {
                while let Err(reply) = Ear::open(by, server, Call::new(key, "")).await {
                    reply.refused(429, "too_many_listeners");
                    tokio::task::yield_now().await;
                }
            };
            timeout(PATIENCE, given_up).await.expect("to be given up on");
            let (mut heard, end) = deaf.rest().await;
            assert_eq!(end, over(by, 4408, "slow_reader"), "{by:?} after {} of {}", heard.len(), all.len());
            assert!(heard.len() < all.len() && !heard.is_empty(), "{} of {}", heard.len(), all.len());
            let mut again = Ear::listen(by, server, &format!("after={}", heard.last().unwrap())).await;
            heard.extend(again.until(all.last().unwrap()).await);
            assert_eq!(heard, all);
        }
    }
}

mod places {
    use super::*;

    fn few() -> Setup {
        let listening = Listening { places: 3, per_key: 2, ..Listening::default() };
        Setup { listening, ..Setup::default() }
    }

    on_both_databases!(super::few => only_so_many_can_listen_at_once);

    async fn only_so_many_can_listen_at_once(server: &Server) {
        let other = viewer(server, json!({})).await.secret.unwrap();
        let socket = open(By::Socket, server, &server.admin, "").await;
        let _stream = open(By::Stream, server, &server.admin, "").await;
        for by in BOTH {
            let no = Ear::open(by, server, Call::new(&server.admin, "")).await.err().expect("two are enough");
            no.refused(429, "too_many_listeners");
        }
        let _third = open(By::Stream, server, &other, "").await;
        for by in BOTH {
            let no = Ear::open(by, server, Call::new(&other, "")).await.err().expect("the house is full");
            no.refused(503, "listeners_full");
        }
        // Who asks wrongly takes no place, and who leaves gives it back.
        drop(socket);
        let back = async {
            while let Err(reply) = Ear::open(By::Socket, server, Call::new(&other, "")).await {
                reply.refused(503, "listeners_full");
            }
        };
        timeout(PATIENCE, back).await.expect("a place");
    }
}

mod beats {
    use super::*;

    fn strict() -> Setup {
        let listening = Listening { beat: Duration::from_millis(50), silent: 2, ..Listening::default() };
        Setup { listening, ..Setup::default() }
    }

    on_both_databases!(super::strict => who_listens_to_silence_is_told_so, a_socket_that_never_answers_is_let_go);

    async fn who_listens_to_silence_is_told_so(server: &Server) {
        for by in BOTH {
            let mut ear = Ear::listen(by, server, "").await;
            let mut beats = 0;
            while beats < 8 {
                match ear.next().await {
                    Heard::Beat => beats += 1,
                    Heard::Standing(_) | Heard::News(..) => {}
                    over => panic!("{by:?} {over:?}"),
                }
            }
        }
    }

    async fn a_socket_that_never_answers_is_let_go(server: &Server) {
        let Ear::Socket(mut socket) = Ear::listen(By::Socket, server, "").await else { panic!("no socket") };
        let mut bytes = Vec::new();
        let read = timeout(PATIENCE, socket.get_mut().read_to_end(&mut bytes)).await;
        assert!(read.is_ok(), "it was kept for ever");
    }
}
