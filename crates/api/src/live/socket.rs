//! `GET /api/ws`: what happens, over a WebSocket, in envelopes addressed by project and thread.

use super::envelope::envelope;
use super::{Feed, Wanted, wanted};
use crate::app::App;
use crate::door::Caller;
use crate::event;
use crate::limits::{LISTENER_BEAT, LISTENER_MESSAGE, LISTENER_SLOW};
use crate::problem::Fault;
use crate::query::Params;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use tokio::sync::OwnedSemaphorePermit;

/// Why a socket is closed, as its close code.
#[derive(Clone, Copy)]
enum Closing {
    /// Baton stops: come again.
    Restart,
    /// It did not accept what it was sent; it can come again from its last position.
    Slow,
    /// The key was revoked or has expired.
    Unauthenticated,
    /// The database does not answer: come again later.
    Trouble,
}

impl Closing {
    const fn frame(self) -> (u16, &'static str) {
        match self {
            Self::Restart => (1012, "restart"),
            Self::Slow => (4408, "slow_reader"),
            Self::Unauthenticated => (4401, "unauthenticated"),
            Self::Trouble => (1013, "store_unavailable"),
        }
    }
}

pub async fn open(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Fault> {
    params.allow(&wanted::PARAMS)?;
    let wanted = Wanted::read(&params, &caller)?;
    let after = event::after(&app, params.one("after")?.or(Some(baton_wire::TAIL))).await?;
    let upgrade = upgrade.map_err(|error| Fault::new("upgrade_required", error.to_string()))?;
    let place = app.listeners().clone().try_acquire_owned();
    let place = place.map_err(|_| Fault::new("overloaded", "too many are listening"))?;
    let feed = Feed::new(app, caller, wanted, after);
    Ok(upgrade.max_message_size(LISTENER_MESSAGE).on_upgrade(move |socket| talk(socket, feed, place)))
}

async fn talk(mut socket: WebSocket, mut feed: Feed, _place: OwnedSemaphorePermit) {
    let Some(closing) = listen(&mut socket, &mut feed).await else { return };
    let (code, reason) = closing.frame();
    let frame = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
    // Who reads nothing does not read this either.
    let _ = tokio::time::timeout(LISTENER_SLOW, socket.send(frame)).await;
}

/// Until one side has enough; nothing if it was the other one.
async fn listen(socket: &mut WebSocket, feed: &mut Feed) -> Option<Closing> {
    let app = feed.app().clone();
    let mut beat = tokio::time::interval(LISTENER_BEAT);
    loop {
        let heard = tokio::select! {
            biased;
            () = app.stopped() => return Some(Closing::Restart),
            said = socket.recv() => match said {
                // Pings are answered below us; nothing else that it says matters.
                Some(Ok(_)) => continue,
                Some(Err(_)) | None => return None,
            },
            _ = beat.tick() => {
                if app.keyring().still(&feed.caller).await.is_err() {
                    return Some(Closing::Unauthenticated);
                }
                if let Some(closing) = send(socket, Message::Ping(Vec::new().into())).await {
                    return closing;
                }
                continue;
            }
            heard = feed.next() => heard,
        };
        let Ok(heard) = heard else { return Some(Closing::Trouble) };
        for one in heard {
            let Ok(envelope) = envelope(&app, &feed.caller, one).await else { return Some(Closing::Trouble) };
            let text = serde_json::to_string(&envelope).unwrap_or_default();
            if let Some(closing) = send(socket, Message::Text(text.into())).await {
                return closing;
            }
        }
    }
}

/// Nothing if it was accepted; else how the socket ends.
async fn send(socket: &mut WebSocket, message: Message) -> Option<Option<Closing>> {
    match tokio::time::timeout(LISTENER_SLOW, socket.send(message)).await {
        Ok(Ok(())) => None,
        Ok(Err(_)) => Some(None),
        Err(_) => Some(Some(Closing::Slow)),
    }
}
