//! Who may ask at all, until there are keys: programs on this machine.
//!
//! A web page that somebody visits can reach loopback too. It cannot choose its `Origin`, and
//! a name that was pointed at loopback to get around that shows in `Host`.

use crate::problem::Fault;
use axum::extract::Request;
use axum::http::header::{HOST, HeaderMap, HeaderName, ORIGIN};
use axum::http::uri::Authority;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::{Ipv4Addr, Ipv6Addr};

pub async fn guard(request: Request, next: Next) -> Response {
    match check(request.uri().authority(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(fault) => fault.into_response(),
    }
}

fn check(target: Option<&Authority>, headers: &HeaderMap) -> Result<(), Fault> {
    let host = only(headers, &HOST).ok().flatten().filter(|host| is_loopback(host));
    // A request may name its host in the request line as well; both must be ours.
    let target_ok = target.is_none_or(|target| is_loopback(target.as_str()));
    if host.is_none() || !target_ok {
        let detail = "the Host header must be given once and be localhost, 127.0.0.0/8 or [::1], with any port";
        return Err(Fault::new("forbidden_host", detail));
    }
    match only(headers, &ORIGIN) {
        Ok(None) => Ok(()),
        Ok(Some(origin)) if is_loopback_origin(origin) => Ok(()),
        _ => Err(Fault::new("forbidden_origin", "only pages served from this machine may call")),
    }
}

/// The value of a header that may stand at most once. Two of them, or one that is no text: no.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| ()),
        (Some(_), Some(_)) => Err(()),
    }
}

fn is_loopback_origin(origin: &str) -> bool {
    let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    rest.is_some_and(is_loopback)
}

/// `host` or `host:port`. Strict on purpose: what is not plainly loopback is not.
fn is_loopback(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => {
            let loopback = host.parse::<Ipv6Addr>().is_ok_and(|ip| ip.is_loopback());
            return loopback && (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port));
        }
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let loopback = host.eq_ignore_ascii_case("localhost") || host.parse::<Ipv4Addr>().is_ok_and(|ip| ip.is_loopback());
    loopback && port.is_none_or(is_port)
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn only_plain_loopback_names_pass() {
        for ok in ["localhost", "LocalHost:80", "127.0.0.1", "127.9.9.9:22866", "[::1]", "[::1]:22866"] {
            assert!(is_loopback(ok), "{ok}");
        }
        for bad in [
            "",
            ":80",
            "localhost:",
            "localhost:x",
            "localhost:+1",
            "localhost:99999",
            "localhost.evil.com",
            "evil.com",
            "127.0.0.1.evil.com",
            "127.1",
            "0.0.0.0",
            "[::]",
            "[::1",
            "::1",
            "[::1]x",
            "[::1]:",
            "[::ffff:127.0.0.1]",
            "localhost:80:80",
            "a@localhost",
            "localhost/",
            "localhost ",
            "2130706433",
            "127.0.0.01",
        ] {
            assert!(!is_loopback(bad), "{bad:?}");
        }
    }

    fn code(headers: &[(&HeaderName, &str)], target: Option<&str>) -> Option<&'static str> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let target = target.map(|target| target.parse::<Authority>().unwrap());
        check(target.as_ref(), &map).err().map(|fault| fault.code())
    }

    #[test]
    fn the_host_must_be_there_once_and_be_ours() {
        assert_eq!(code(&[(&HOST, "localhost:1")], None), None);
        assert_eq!(code(&[], None), Some("forbidden_host"));
        assert_eq!(code(&[(&HOST, "evil.com")], None), Some("forbidden_host"));
        assert_eq!(code(&[(&HOST, "localhost"), (&HOST, "localhost")], None), Some("forbidden_host"));
        assert_eq!(code(&[(&HOST, "ü")], None), Some("forbidden_host"));
        assert_eq!(code(&[(&HOST, "localhost")], Some("evil.com")), Some("forbidden_host"));
        assert_eq!(code(&[(&HOST, "localhost")], Some("127.0.0.1:1")), None);
    }

    #[test]
    fn an_origin_if_any_must_be_a_local_page() {
        let origin = |text| code(&[(&HOST, "localhost"), (&ORIGIN, text)], None);
        assert_eq!(origin("http://localhost:5173"), None);
        assert_eq!(origin("https://127.0.0.1"), None);
        for bad in ["null", "", "https://evil.com", "ftp://localhost", "localhost", "http://localhost.evil.com"] {
            assert_eq!(origin(bad), Some("forbidden_origin"), "{bad}");
        }
        let twice = [(&HOST, "localhost"), (&ORIGIN, "http://localhost"), (&ORIGIN, "http://localhost")];
        assert_eq!(code(&twice, None), Some("forbidden_origin"));
    }
}
