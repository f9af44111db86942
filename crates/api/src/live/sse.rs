//! `GET /api/v1/events/stream`: the history as server-sent events.

use super::{Feed, Wanted, wanted};
use crate::app::App;
use crate::door::Caller;
use crate::event;
use crate::limits::{LISTENER_BEAT, LISTENER_QUEUE, LISTENER_SLOW};
use crate::problem::Fault;
use crate::query::Params;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, HeaderMap};
use axum::http::{HeaderValue, Response};
use baton_wire::Event;
use futures_util::stream;
use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// What a browser sends when it comes back: the id of the last event it saw.
const LAST_EVENT_ID: &str = "last-event-id";

pub async fn stream(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    headers: HeaderMap,
) -> Result<Response<Body>, Fault> {
    params.allow(&wanted::PARAMS)?;
    let wanted = Wanted::read(&params, &caller)?;
    let back = headers.get(LAST_EVENT_ID).and_then(|value| value.to_str().ok());
    let after = event::after(&app, back.or(params.one("after")?)).await?;
    let place = app.listeners().clone().try_acquire_owned();
    let place = place.map_err(|_| Fault::new("overloaded", "too many are listening"))?;
    let (say, said) = mpsc::channel(LISTENER_QUEUE);
    let end = Arc::new(OnceLock::new());
    let feed = Feed::new(app, caller, wanted, after);
    tokio::spawn(tell(feed, Teller { say, end: end.clone(), _place: place }));
    let body = stream::unfold((said, end, false), |(mut said, end, over)| async move {
        if over {
            return None;
        }
        match said.recv().await {
            Some(chunk) => Some((Ok::<Bytes, Infallible>(chunk), (said, end, false))),
            // Whatever was on its way is read first, then why it ended.
            None => {
                Some((Ok(Bytes::from_static(end.get().copied().unwrap_or(RECONNECT).as_bytes())), (said, end, true)))
            }
        }
    });
    let mut response = Response::new(Body::from_stream(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    Ok(response)
}

/// Said last: come again, from where you are.
const RECONNECT: &str = "event: reconnect\ndata: {\"reason\":\"stopping\"}\n\n";
const SLOW: &str = "event: reconnect\ndata: {\"reason\":\"slow_reader\"}\n\n";
const REVOKED: &str = "event: closed\ndata: {\"reason\":\"unauthenticated\"}\n\n";
const TROUBLE: &str = "event: reconnect\ndata: {\"reason\":\"store_unavailable\"}\n\n";

struct Teller {
    say: mpsc::Sender<Bytes>,
    end: Arc<OnceLock<&'static str>>,
    _place: OwnedSemaphorePermit,
}

impl Teller {
    /// Whether it was accepted in time.
    async fn tell(&self, text: String) -> bool {
        match tokio::time::timeout(LISTENER_SLOW, self.say.send(text.into())).await {
            Ok(sent) => sent.is_ok(),
            Err(_) => {
                let _ = self.end.set(SLOW);
                false
            }
        }
    }
}

async fn tell(mut feed: Feed, teller: Teller) {
    let app = feed.app().clone();
    let mut beat = tokio::time::interval(LISTENER_BEAT);
    loop {
        let heard = tokio::select! {
            biased;
            () = app.stopped() => return,
            () = teller.say.closed() => return,
            _ = beat.tick() => {
                if app.keyring().still(&feed.caller).await.is_err() {
                    let _ = teller.end.set(REVOKED);
                    return;
                }
                if !teller.tell(": nothing new\n\n".to_owned()).await {
                    return;
                }
                continue;
            }
            heard = feed.next() => heard,
        };
        let Ok(heard) = heard else {
            let _ = teller.end.set(TROUBLE);
            return;
        };
        let mut text = String::new();
        for one in heard {
            let event = Event::new(one.row.cursor.to_string(), &one.row.event);
            let data = serde_json::to_string(&event).unwrap_or_default();
            text.push_str(&format!("id: {}\nevent: {}\ndata: {data}\n\n", event.cursor, event.kind));
        }
        if !text.is_empty() && !teller.tell(text).await {
            return;
        }
    }
}
