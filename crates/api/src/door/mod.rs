//! The door: who comes in, and what they may do. Every route says which right it asks for; nothing
//! behind it looks at keys again, only at the [`Caller`].

mod caller;
pub mod first;
mod keyring;
mod rate;
pub(crate) mod session;
pub(crate) mod ticket;

pub use caller::Caller;
pub use keyring::Keyring;
pub use rate::{Buckets, Rate};

use crate::app::App;
use crate::problem::Fault;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::http::header::{AUTHORIZATION, HeaderMap};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use baton_core::access::Right;
use baton_wire::Token;

/// What a route asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Nothing: probes, documents.
    Nobody,
    /// A key, whatever it may do.
    Anybody,
    Right(Right),
    /// The same, from a key of the first org that reaches all of it: this is about everybody.
    Installation(Right),
}

/// What stands between a route and its handler.
#[derive(Clone)]
pub struct Gate {
    pub app: App,
    pub ask: Ask,
}

pub async fn pass(State(gate): State<Gate>, mut request: Request, next: Next) -> Response {
    let Gate { app, ask } = gate;
    if ask == Ask::Nobody {
        return next.run(request).await;
    }
    let caller = match recognise(&app, request.method(), request.headers()).await {
        Ok(caller) => caller,
        Err(fault) => return fault.into_response(),
    };
    let pace = match app.buckets().take(caller.key) {
        Ok(pace) => pace,
        Err(pace) => return pace.refused(),
    };
    if let Err(fault) = caller.check(ask) {
        return pace.told(fault.into_response());
    }
    let span = tracing::Span::current();
    span.record("key", tracing::field::display(caller.key));
    span.record("org", tracing::field::display(&caller.org));
    request.extensions_mut().insert(caller);
    pace.told(next.run(request).await)
}

/// By its key, or else by its session.
async fn recognise(app: &App, method: &Method, headers: &HeaderMap) -> Result<Caller, Fault> {
    if let Some(token) = presented(headers)? {
        return app.keyring().verify(&token).await;
    }
    let Some(session) = session::presented(headers)? else {
        return Err(Fault::new("unauthenticated", "no key was given: send Authorization: Bearer bk_…"));
    };
    session::same_origin(method, headers)?;
    app.keyring().resume(app.sessions(), &session).await
}

/// The key that a request carries, if any.
fn presented(headers: &HeaderMap) -> Result<Option<Token>, Fault> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Ok(None),
        (Some(value), None) => value,
        (Some(_), Some(_)) => return Err(Fault::new("unauthenticated", "Authorization is given more than once")),
    };
    let bearer = value.to_str().ok().and_then(|text| {
        let (scheme, rest) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(rest.trim())
    });
    let token = bearer.and_then(|text| text.parse().ok());
    token
        .map(Some)
        .ok_or_else(|| Fault::new("unauthenticated", "Authorization must be Bearer and a key, as it was shown"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use baton_core::id::KeyId;

    fn read(values: &[&str]) -> Result<Option<Token>, Fault> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        presented(&headers)
    }

    #[test]
    fn a_key_comes_once_as_a_bearer() {
        let text = Token::new(KeyId(uuid::Uuid::from_u128(1)), [7; 32]).reveal();
        assert!(read(&[]).unwrap().is_none());
        assert_eq!(read(&[&format!("Bearer {text}")]).unwrap().unwrap().reveal(), text);
        assert!(read(&[&format!("bearer  {text}")]).unwrap().is_some());
        let bearer = format!("Bearer {text}");
        for bad in [&[text.as_str()][..], &["Bearer"], &["Basic x"], &[""], &["Bearer ü"], &[&bearer, &bearer]] {
            assert_eq!(read(bad).unwrap_err().code(), "unauthenticated", "{bad:?}");
        }
    }
}
