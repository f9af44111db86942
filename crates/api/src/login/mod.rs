//! Coming in with a browser: a link with a ticket, a page that hands it in, a session in a cookie.
//!
//! The ticket stands after the `#` of the link, which browsers send to nobody: it is in no request
//! line and in no log. The page takes it out of the address bar and posts it.
//!
//! Elsewhere: tickets and cookies ([`crate::door`]), what a session is (`baton-core`).

use crate::app::App;
use crate::call::Call;
use crate::door::Caller;
use crate::door::session::{self, Secure};
use crate::door::ticket::{Holder, Ticket};
use crate::limits::TICKET_LIFE;
use crate::problem::Fault;
use crate::query::Params;
use crate::wait;
use axum::Extension;
use axum::Json as Answer;
use axum::extract::State;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, SET_COOKIE};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use baton_core::access::change::{Act, Change};
use baton_core::access::session::Session;
use baton_core::time::Span;
use baton_store::StoreError;
use baton_wire::{HandIn, Key, LoggedIn, LoginLink, Time};

const PAGE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("login.js");

/// Our own script and style, and words with this server; nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Where a ticket is handed in.
pub(crate) fn path(ticket: &Ticket) -> String {
    format!("/login#{}", ticket.reveal())
}

pub async fn page() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, POLICY)], PAGE)
}

pub async fn script() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], SCRIPT)
}

/// A new link, for the holder of a key.
pub async fn link(State(app): State<App>, caller: Caller, call: Call) -> Result<Response, Fault> {
    call.body.expect_nothing()?;
    if caller.session.is_some() {
        return Err(Fault::new("forbidden", "a session opens no other sessions; this takes a key"));
    }
    let ticket = app.tickets().issue(app.entropy(), Holder { key: caller.key, proof: caller.proof })?;
    let life = Span(i64::try_from(TICKET_LIFE.as_micros()).unwrap_or(i64::MAX));
    let link = LoginLink { path: path(&ticket), expires_at: Time(app.store().clock_now().plus(life)) };
    Ok((StatusCode::CREATED, Answer(link)).into_response())
}

/// Takes a ticket in and opens a session.
pub async fn enter(
    State(app): State<App>,
    secure: Option<Extension<Secure>>,
    headers: HeaderMap,
    call: Call,
) -> Result<Response, Fault> {
    let gone = || Fault::new("ticket_gone", "the login link was used, has expired or never was one");
    let HandIn { ticket } = call.body.parse()?;
    let ticket: Ticket = ticket.parse().map_err(|()| gone())?;
    let holder = app.tickets().redeem(&ticket).ok_or_else(gone)?;
    let caller = app.keyring().recall(holder).await?.ok_or_else(gone)?;
    let session = app.sessions().open(caller.key, &caller.proof, app.store().clock_now());
    tracing::info!(key = %caller.key, "a browser came in");
    let key = Key::of(caller.key, &caller.kept);
    let cookie = [(SET_COOKIE, session::cookie(&session, over_tls(&headers, secure)))];
    let answer = Answer(LoggedIn { org: caller.org, key, expires_at: Time(session.until) });
    Ok((StatusCode::CREATED, cookie, answer).into_response())
}

/// Ends a session for good, and makes its browser forget it. One that could not be ended just now is not
/// forgotten: whoever tries again must be able to show it.
pub async fn leave(
    State(app): State<App>,
    secure: Option<Extension<Secure>>,
    headers: HeaderMap,
    params: Params,
) -> Result<Response, Fault> {
    params.allow(&[])?;
    if let Ok(Some(session)) = session::presented(&headers) {
        session::same_origin(&Method::DELETE, &headers)?;
        end(&app, &session).await?;
    }
    let forgotten = [(SET_COOKIE, session::forgotten(over_tls(&headers, secure)))];
    Ok((StatusCode::NO_CONTENT, forgotten).into_response())
}

/// Whether the browser speaks TLS, to us or to something in front of us.
fn over_tls(headers: &HeaderMap, here: Option<Extension<Secure>>) -> Secure {
    session::is_secure(headers, here.map(|Extension(secure)| secure).unwrap_or_default())
}

/// One that is over already needs no end.
async fn end(app: &App, session: &Session) -> Result<(), Fault> {
    let caller = match app.keyring().resume(app.sessions(), session).await {
        Ok(caller) => caller,
        Err(fault) if fault.code() == "unauthenticated" => return Ok(()),
        Err(fault) => return Err(fault),
    };
    let Some(session) = caller.session else { return Ok(()) };
    let actor = caller.actor();
    let leave = Change { org: caller.org, id: caller.key, act: Act::Leave(session), by: None };
    let committed = wait::commit(app.store().commit(leave, actor)).await.ok_or(StoreError::OutcomeUnknown)?;
    app.keyring().forget(caller.key);
    committed?;
    Ok(())
}
