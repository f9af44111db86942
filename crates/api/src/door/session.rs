//! Sessions as browsers carry them: in a cookie.
//!
//! A browser sends a cookie along with whatever any page asks it to, so a cookie alone does not say
//! that its owner wants something. Whoever wants to change something with one, or to listen, must show
//! that it is a page of this very server: same host, same port.

use crate::problem::Fault;
use axum::http::header::{COOKIE, HOST, HeaderMap, HeaderValue, ORIGIN, UPGRADE};
use axum::http::{HeaderName, Method};
use baton_core::access::session::{LIFE, Session};

pub const NAME: &str = "baton_session";

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Whether what is said goes over TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Secure(pub bool);

/// The session that a request carries, if any.
pub fn presented(headers: &HeaderMap) -> Result<Option<Session>, Fault> {
    let pairs = headers.get_all(COOKIE).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
    let mut ours = pairs.filter_map(|pair| {
        let (name, value) = std::str::from_utf8(pair).ok()?.split_once('=')?;
        (name.trim() == NAME).then_some(value.trim())
    });
    match (ours.next(), ours.next()) {
        (None, _) => Ok(None),
        (Some(text), None) => text.parse().map(Some).map_err(|_| over()),
        (Some(_), Some(_)) => Err(Fault::new("unauthenticated", "there is more than one session")),
    }
}

/// What is wrong with it is not told: whoever holds the right one knows.
pub fn over() -> Fault {
    Fault::new("unauthenticated", "this session is over; `baton login` gives a link to a new one")
}

/// What a browser is told to carry.
pub fn cookie(session: &Session, secure: Secure) -> HeaderValue {
    made(&session.reveal(), LIFE.0 / 1_000_000, secure)
}

/// What makes it forget.
pub fn forgotten(secure: Secure) -> HeaderValue {
    made("", 0, secure)
}

fn made(value: &str, seconds: i64, Secure(secure): Secure) -> HeaderValue {
    let secure = if secure { "; Secure" } else { "" };
    let text = format!("{NAME}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    // Digits and letters only, so this cannot fail; a browser would not take an empty one.
    let mut cookie = HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""));
    cookie.set_sensitive(true);
    cookie
}

/// Lets a session be used by pages of this server only, where that matters: another page cannot read
/// what it makes a browser fetch, but it could act, and it could read from a socket.
pub fn same_origin(method: &Method, headers: &HeaderMap) -> Result<(), Fault> {
    let looks = [Method::GET, Method::HEAD].contains(method) && !headers.contains_key(UPGRADE);
    if looks || is_own_page(headers) {
        return Ok(());
    }
    let detail = "with a session only this server's own pages may do this: their Origin must be the Host that is asked";
    Err(Fault::new("forbidden_origin", detail))
}

fn is_own_page(headers: &HeaderMap) -> bool {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    match (text(&ORIGIN), headers.contains_key(ORIGIN)) {
        (Some(origin), _) => {
            let page = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            page.is_some_and(|page| text(&HOST).is_some_and(|host| page.eq_ignore_ascii_case(host)))
        }
        (None, true) => false,
        (None, false) => text(&SEC_FETCH_SITE) == Some("same-origin"),
    }
}

/// Whether a page is shown over TLS, here or by something in front of it.
pub fn is_secure(headers: &HeaderMap, here: Secure) -> Secure {
    let page = headers.get(ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"));
    Secure(here.0 || page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::Micros;
    use baton_core::access::Proof;
    use baton_core::access::session::Sessions;
    use baton_core::canon::Digest;
    use baton_core::id::KeyId;

    fn session() -> Session {
        Sessions::new([1; 32]).open(KeyId(uuid::Uuid::from_u128(1)), &Proof(Digest::ZERO), Micros(0))
    }

    fn headers(all: &[(HeaderName, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in all {
            map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        map
    }

    #[test]
    fn a_session_is_found_among_other_cookies() {
        let text = session().reveal();
        let read = |all: &[&str]| {
            let all: Vec<_> = all.iter().map(|value| (COOKIE, *value)).collect();
            presented(&headers(&all))
        };
        let ours = format!("{NAME}={text}");
        assert_eq!(read(&[]).unwrap(), None);
        assert_eq!(read(&["a=b; c", "ü=ü"]).unwrap(), None);
        assert_eq!(read(&[&format!("a=b; {ours};c=d")]).unwrap(), Some(session()));
        assert_eq!(read(&["a=b", &ours]).unwrap(), Some(session()));
        for bad in [&[&format!("{ours}; {ours}")[..]][..], &[&ours, &ours], &["baton_session="], &["baton_session=x"]] {
            assert_eq!(read(bad).unwrap_err().code(), "unauthenticated", "{bad:?}");
        }
    }

    #[test]
    fn a_cookie_is_for_this_server_and_no_script() {
        let text = cookie(&session(), Secure(false)).to_str().unwrap().to_owned();
        let rest = text.strip_prefix(&format!("{NAME}={}", session().reveal())).unwrap();
        assert_eq!(rest, "; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict");
        assert!(cookie(&session(), Secure(true)).to_str().unwrap().ends_with("; SameSite=Strict; Secure"));
        assert!(forgotten(Secure(false)).to_str().unwrap().starts_with("baton_session=; Path=/; Max-Age=0;"));
        assert!(!format!("{:?}", cookie(&session(), Secure(true))).contains("bs_"), "it is not logged");
    }

    #[test]
    fn only_our_own_pages_act_with_a_session() {
        let check = |method: Method, more: &[(HeaderName, &str)]| {
            let host = [(HOST, "localhost:22866")];
            same_origin(&method, &headers(&[&host, more].concat())).is_ok()
        };
        let origin = |text| [(ORIGIN, text)];
        assert!(check(Method::GET, &[]) && check(Method::GET, &origin("http://localhost:5173")));
        assert!(check(Method::POST, &origin("http://localhost:22866")));
        assert!(check(Method::DELETE, &origin("https://LocalHost:22866")));
        assert!(check(Method::POST, &[(SEC_FETCH_SITE, "same-origin")]));
        for bad in [
            &[][..],
            &origin("http://localhost:5173"),
            &origin("http://localhost"),
            &origin("null"),
            &origin("http://127.0.0.1:22866"),
            &[(SEC_FETCH_SITE, "same-site")],
            &[(SEC_FETCH_SITE, "same-origin"), (ORIGIN, "http://localhost:5173")],
            &[(SEC_FETCH_SITE, "same-origin"), (ORIGIN, "ü")],
        ] {
            assert!(!check(Method::POST, bad), "{bad:?}");
            assert!(
                !check(Method::GET, &[bad, &[(UPGRADE, "websocket")]].concat()),
                "a socket can be read from: {bad:?}"
            );
        }
    }
}
