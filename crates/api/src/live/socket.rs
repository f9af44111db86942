//! `GET /api/ws`: what happens, over a WebSocket, in envelopes addressed by project and thread.

use super::envelope::{envelope, standing};
use super::{Closing, Feed, Place, let_in};
use crate::app::App;
use crate::door::Caller;
use crate::limits::{LISTENER_FAREWELL, LISTENER_MESSAGE};
use crate::problem::Fault;
use crate::query::Params;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::HeaderValue;
use axum::http::header::UPGRADE;
use axum::response::{IntoResponse, Response};
use baton_wire::Envelope;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval, timeout};

pub async fn open(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Fault> {
    let (feed, place) = let_in(app, caller, &params, None).await?;
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade
            .max_message_size(LISTENER_MESSAGE)
            .max_frame_size(LISTENER_MESSAGE)
            .read_buffer_size(LISTENER_MESSAGE),
        Err(error) => {
            let mut response = Fault::new("upgrade_required", error.body_text()).into_response();
            response.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
            return Ok(response);
        }
    };
    Ok(upgrade.on_upgrade(move |socket| talk(Line { socket, feed, place: Some(place) })))
}

/// One listener at its socket.
struct Line {
    socket: WebSocket,
    feed: Feed,
    place: Option<Place>,
}

/// How it ends: by us, with a reason, or because the other side is gone.
enum End {
    Closed(Closing),
    Gone,
}

impl From<Closing> for End {
    fn from(closing: Closing) -> Self {
        Self::Closed(closing)
    }
}

impl From<Fault> for End {
    fn from(fault: Fault) -> Self {
        Self::Closed(fault.into())
    }
}

async fn talk(mut line: Line) {
    let Err(End::Closed(closing)) = line.listen().await else { return };
    if closing == Closing::Slow {
        // Others need not wait until it reads again.
        line.place = None;
    }
    let farewell = async {
        line.socket.send(closing.frame()).await?;
        while let Some(said) = line.socket.recv().await {
            said?;
        }
        Ok::<_, axum::Error>(())
    };
    let _ = timeout(LISTENER_FAREWELL, farewell).await;
}

impl Line {
    async fn listen(&mut self) -> Result<(), End> {
        let app = self.feed.app().clone();
        self.say(&standing(self.feed.place())).await?;
        let mut beat = interval(app.live().listening.beat);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut silent = 0;
        loop {
            let heard = tokio::select! {
                biased;
                () = app.stopped() => return Err(Closing::Restart.into()),
                _ = beat.tick() => {
                    self.feed.check().await?;
                    if silent > app.live().listening.silent {
                        return Err(End::Gone);
                    }
                    silent += 1;
                    if let Some(place) = self.feed.new_place() {
                        self.say(&standing(place)).await?;
                    }
                    self.send(Message::Ping(Vec::new().into())).await?;
                    continue;
                }
                // Pings are answered below us, and what it says does not matter, but that it lives does.
                said = self.socket.recv() => match said {
                    Some(Ok(_)) => {
                        silent = 0;
                        continue;
                    }
                    Some(Err(_)) | None => return Err(End::Gone),
                },
                heard = self.feed.next() => heard?,
            };
            for told in heard {
                let envelope = envelope(&self.feed, &told).await?;
                self.say(&envelope).await?;
            }
        }
    }

    async fn say(&mut self, envelope: &Envelope) -> Result<(), End> {
        let text = serde_json::to_string(envelope).map_err(Fault::internal)?;
        self.send(Message::Text(text.into())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), End> {
        let app = self.feed.app();
        let slow: Duration = app.live().listening.slow;
        tokio::select! {
            biased;
            sent = timeout(slow, self.socket.send(message)) => match sent {
                Ok(Ok(())) => Ok(()),
                Ok(Err(_)) => Err(End::Gone),
                Err(_) => Err(Closing::Slow.into()),
            },
            () = app.stopped() => Err(Closing::Restart.into()),
        }
    }
}
