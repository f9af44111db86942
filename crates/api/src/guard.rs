//! By which names one may ask, and from which pages.
//!
//! A web page that somebody visits can reach what its visitor reaches: loopback, a private network.
//! It cannot choose its `Origin`, and a name of its own that it points at this server, to get around
//! that, shows in `Host`. An address in `Host` was not looked up by anybody, so no name can hide
//! behind it; in `Origin` it proves nothing, because a foreign page can be served from one.

use crate::problem::Fault;
use axum::extract::{Request, State};
use axum::http::header::{HOST, HeaderMap, HeaderName, ORIGIN};
use axum::http::uri::Authority;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// What this server is called. Loopback is always among it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    names: BTreeSet<Host>,
    /// It listens where others reach it, and is called by its addresses too.
    open: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadHostName(String);

impl fmt::Display for BadHostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not the name of a host, such as baton.example.com, without a port", self.0)
    }
}

impl std::error::Error for BadHostName {}

impl Hosts {
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>, open: bool) -> Result<Self, BadHostName> {
        let name = |text: &str| match text.parse() {
            Ok(ip) => Ok(Host::Ip(ip)),
            Err(_) => {
                let portless = |_: &Host| !text.contains(':') || text.ends_with(']');
                host(text).filter(portless).ok_or_else(|| BadHostName(text.to_owned()))
            }
        };
        Ok(Self { names: names.into_iter().map(name).collect::<Result<_, _>>()?, open })
    }

    fn check(&self, target: Option<&Authority>, headers: &HeaderMap) -> Result<(), Fault> {
        let host_named = only(headers, &HOST).ok().flatten().and_then(host).filter(|host| self.is_ours(host));
        // A request may name its host in the request line as well; both must be ours.
        let target_ok = target.is_none_or(|target| host(target.as_str()).is_some_and(|host| self.is_ours(&host)));
        let Some(named) = host_named.filter(|_| target_ok) else {
            let detail =
                "the Host header must be given once, and be loopback or what this server was told it is called";
            return Err(Fault::new("forbidden_host", detail));
        };
        match only(headers, &ORIGIN) {
            Ok(None) => Ok(()),
            Ok(Some(origin)) if self.is_our_page(origin, &named) => Ok(()),
            _ => Err(Fault::new("forbidden_origin", "only pages served from this server may call")),
        }
    }

    fn is_ours(&self, host: &Host) -> bool {
        host.is_loopback() || self.names.contains(host) || (self.open && matches!(host, Host::Ip(_)))
    }

    /// A page of the host that was asked or of one that is called like us; on this machine, any page.
    fn is_our_page(&self, origin: &str, asked: &Host) -> bool {
        let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        rest.and_then(host).is_some_and(|page| {
            page == *asked || self.names.contains(&page) || (page.is_loopback() && asked.is_loopback())
        })
    }
}

pub async fn guard(State(hosts): State<Arc<Hosts>>, request: Request, next: Next) -> Response {
    match hosts.check(request.uri().authority(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(fault) => fault.into_response(),
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

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Host {
    Ip(IpAddr),
    /// In lower case.
    Name(String),
}

impl Host {
    fn is_loopback(&self) -> bool {
        match self {
            Self::Ip(ip) => ip.is_loopback(),
            Self::Name(name) => name == "localhost",
        }
    }
}

/// Of `host` or `host:port`. Strict on purpose: an odd spelling of an address is a name, and not ours.
fn host(text: &str) -> Option<Host> {
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let ip = host.parse::<Ipv6Addr>().ok()?;
        return (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port)).then_some(Host::Ip(ip.into()));
    }
    let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if host.is_empty() || !host.bytes().all(plain) || !port.is_none_or(is_port) {
        return None;
    }
    let ip = host.parse::<Ipv4Addr>().map(|ip| Host::Ip(ip.into()));
    Some(ip.unwrap_or_else(|_| Host::Name(host.to_ascii_lowercase())))
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn is_ours(text: &str) -> bool {
        host(text).is_some_and(|host| Hosts::default().is_ours(&host))
    }

    #[test]
    fn only_plain_loopback_names_pass() {
        for ok in ["localhost", "LocalHost:80", "127.0.0.1", "127.9.9.9:22866", "[::1]", "[::1]:22866"] {
            assert!(is_ours(ok), "{ok}");
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
            assert!(!is_ours(bad), "{bad:?}");
        }
    }

    fn code(headers: &[(&HeaderName, &str)], target: Option<&str>) -> Option<&'static str> {
        code_at(&Hosts::default(), headers, target)
    }

    fn code_at(hosts: &Hosts, headers: &[(&HeaderName, &str)], target: Option<&str>) -> Option<&'static str> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let target = target.map(|target| target.parse::<Authority>().unwrap());
        hosts.check(target.as_ref(), &map).err().map(|fault| fault.code())
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

    #[test]
    fn a_server_goes_by_the_names_it_was_given() {
        let hosts = Hosts::new(["Baton.Example", "10.0.0.7", "fd00::7", "[fd00::9]"], false).unwrap();
        let host = |text| code_at(&hosts, &[(&HOST, text)], None);
        for ok in
            ["baton.example", "BATON.example:8443", "10.0.0.7:1", "[fd00::7]:1", "[fd00::9]", "localhost", "127.0.0.1"]
        {
            assert_eq!(host(ok), None, "{ok}");
        }
        for bad in ["a.baton.example", "example", "baton.example.evil.com", "10.0.0.8", "[fd00::8]", "baton.example."] {
            assert_eq!(host(bad), Some("forbidden_host"), "{bad}");
        }
        for bad in ["", "a:80", "http://a", "a/b", "*.a", "[::1]:80", "a b", "u@a"] {
            assert_eq!(Hosts::new([bad], false), Err(BadHostName(bad.to_owned())), "{bad}");
        }
    }

    #[test]
    fn one_that_others_reach_goes_by_its_addresses_but_by_no_foreign_name() {
        let hosts = Hosts::new(["baton.example"], true).unwrap();
        let host = |text| code_at(&hosts, &[(&HOST, text)], None);
        for ok in ["192.168.1.7:22866", "[fd00::1]", "baton.example", "localhost"] {
            assert_eq!(host(ok), None, "{ok}");
        }
        for bad in ["evil.com", "192.168.1", "0x7f.1", "3232235783"] {
            assert_eq!(host(bad), Some("forbidden_host"), "{bad}");
        }
    }

    #[test]
    fn a_page_must_come_from_the_host_it_asks_or_from_one_of_our_names() {
        let hosts = Hosts::new(["baton.example"], true).unwrap();
        let page = |host, origin| code_at(&hosts, &[(&HOST, host), (&ORIGIN, origin)], None);
        assert_eq!(page("192.168.1.7:1", "http://192.168.1.7:1"), None);
        assert_eq!(page("192.168.1.7:1", "https://baton.example"), None);
        assert_eq!(page("baton.example", "https://baton.example:8443"), None);
        assert_eq!(page("localhost:1", "http://127.0.0.1:5173"), None);
        for (host, origin) in [
            ("192.168.1.7:1", "http://6.6.6.6"),
            ("baton.example", "http://6.6.6.6"),
            ("baton.example", "http://localhost:5173"),
            ("baton.example", "https://evil.com"),
        ] {
            assert_eq!(page(host, origin), Some("forbidden_origin"), "{host} {origin}");
        }
    }
}
