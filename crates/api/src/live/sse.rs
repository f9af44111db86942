//! `GET /api/v1/events/stream`: the history as server-sent events.

use super::{Closing, Feed, Place, Told, let_in};
use crate::app::App;
use crate::door::Caller;
use crate::limits::{LISTENER_CHUNK, LISTENER_QUEUE, RECONNECT_MS};
use crate::problem::Fault;
use crate::query::Params;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, HeaderMap, HeaderName};
use axum::http::{HeaderValue, Response};
use baton_store::Cursor;
use baton_wire::Event;
use futures_util::stream;
use std::convert::Infallible;
use std::fmt::Write as _;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval, timeout};

/// What a browser sends when it comes back: the id of the last event it saw.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Asks proxies not to wait for more.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

pub async fn stream(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    headers: HeaderMap,
) -> Result<Response<Body>, Fault> {
    // What cannot be read is a cursor that nobody was given.
    let back = headers.get(LAST_EVENT_ID).map(|value| value.to_str().unwrap_or_default());
    let (feed, place) = let_in(app, caller, &params, back).await?;
    let (say, said) = mpsc::channel(LISTENER_QUEUE);
    let (end, ended) = oneshot::channel();
    let teller = Teller { feed, say, _place: place };
    tokio::spawn(async move {
        let Err(why) = teller.tell().await else { return };
        let _ = end.send(why);
    });
    let body = stream::unfold((said, Some(ended)), |(mut said, ended)| async move {
        if let Some(chunk) = said.recv().await {
            return Some((Ok::<Bytes, Infallible>(chunk), (said, ended)));
        }
        // Whatever was on its way is read first, then why it ended.
        let why = ended?.await.ok().flatten()?;
        Some((Ok(why.event().into()), (said, None)))
    });
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    Ok(response)
}

/// One listener at its stream.
struct Teller {
    feed: Feed,
    say: mpsc::Sender<Bytes>,
    _place: Place,
}

/// Why it ends; nothing if the other side is gone.
type End = Option<Closing>;

impl Teller {
    async fn tell(mut self) -> Result<(), End> {
        let app = self.feed.app().clone();
        // It has a place to come back to before anything has happened.
        self.send(format!("retry: {RECONNECT_MS}\n{}", standing(Some(self.feed.place())))).await?;
        let mut beat = interval(app.live().listening.beat);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let heard = tokio::select! {
                biased;
                () = app.stopped() => return Err(Some(Closing::Restart)),
                () = self.say.closed() => return Err(None),
                _ = beat.tick() => {
                    self.feed.check().await?;
                    let standing = standing(self.feed.new_place());
                    self.send(standing).await?;
                    continue;
                }
                heard = self.feed.next() => heard?,
            };
            let mut text = String::new();
            for told in heard {
                write(&mut text, &told)?;
                if text.len() >= LISTENER_CHUNK {
                    self.send(std::mem::take(&mut text)).await?;
                }
            }
            if !text.is_empty() {
                self.send(text).await?;
            }
        }
    }

    async fn send(&self, text: String) -> Result<(), End> {
        let app = self.feed.app();
        tokio::select! {
            biased;
            sent = timeout(app.live().listening.slow, self.say.send(text.into())) => match sent {
                Ok(Ok(())) => Ok(()),
                Ok(Err(_)) => Err(None),
                Err(_) => Err(Some(Closing::Slow)),
            },
            () = app.stopped() => Err(Some(Closing::Restart)),
        }
    }
}

/// A sign of life, and where one stands if that is news. Without data it is no event, but whoever
/// comes back comes back to its id.
fn standing(place: Option<Cursor>) -> String {
    match place {
        Some(place) => format!(": listening\nid: {place}\n\n"),
        None => ": listening\n\n".to_owned(),
    }
}

fn write(text: &mut String, told: &Told) -> Result<(), Closing> {
    let event = Event::new(told.cursor.to_string(), &told.event);
    let data = serde_json::to_string(&event).map_err(Fault::internal)?;
    // Writing to a string cannot fail.
    let _ = write!(text, "id: {}\nevent: {}\ndata: {data}\n\n", event.cursor, event.kind);
    Ok(())
}
