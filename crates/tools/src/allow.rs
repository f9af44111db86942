//! Hosts that the operator allows by name, wherever they are.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};
use url::Host;

/// Exactly these hosts, each with one port or with any. A name is not its address: who allows
/// `localhost` has not allowed `127.0.0.1`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allow(BTreeSet<(String, Option<u16>)>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a host, nor a host and a port, such as hooks.internal, localhost:8080 or [fd00::1]:443")]
pub struct BadAllow(String);

impl Allow {
    /// Nobody beyond the public.
    pub const fn nobody() -> Self {
        Self(BTreeSet::new())
    }

    pub fn parse<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, BadAllow> {
        entries.into_iter().map(entry).collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn contains(&self, host: &Host<&str>, port: u16) -> bool {
        let name = name(host);
        [Some(port), None].into_iter().any(|port| self.0.contains(&(name.clone(), port)))
    }
}

/// Without the root's dot at the end, as targets are.
fn name<S: AsRef<str>>(host: &Host<S>) -> String {
    match host {
        Host::Domain(name) => name.as_ref().strip_suffix('.').unwrap_or(name.as_ref()).to_owned(),
        Host::Ipv4(ip) => IpAddr::V4(*ip).to_string(),
        Host::Ipv6(ip) => IpAddr::V6(*ip).to_string(),
    }
}

fn entry(text: &str) -> Result<(String, Option<u16>), BadAllow> {
    let bad = || BadAllow(text.to_owned());
    let (host, port) = match text.rsplit_once(':') {
        // The colons of an address, not that of a port.
        _ if text.parse::<Ipv6Addr>().is_ok() || text.ends_with(']') => (text, None),
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let digits = |port: &&str| port.bytes().all(|byte| byte.is_ascii_digit());
    let port =
        port.map(|port| Some(port).filter(digits).and_then(|port| port.parse().ok()).ok_or_else(bad)).transpose()?;
    let host = match host.parse::<Ipv6Addr>() {
        Ok(ip) if port.is_none() => Host::Ipv6(ip),
        _ => Host::parse(host).map_err(|_| bad())?,
    };
    // A pattern would be taken for a name that nobody has.
    let name = name(&host);
    if name.is_empty() || name.contains('*') { Err(bad()) } else { Ok((name, port)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(entry: &str, host: &str, port: u16) -> bool {
        let host = Host::parse(host).unwrap();
        let host = match &host {
            Host::Domain(name) => Host::Domain(name.as_str()),
            Host::Ipv4(ip) => Host::Ipv4(*ip),
            Host::Ipv6(ip) => Host::Ipv6(*ip),
        };
        Allow::parse([entry]).unwrap().contains(&host, port)
    }

    #[test]
    fn a_host_is_allowed_exactly_with_its_port_if_there_is_one() {
        for (entry, host, port, expected) in [
            ("hooks.internal", "hooks.internal", 80, true),
            ("hooks.internal", "hooks.internal", 8443, true),
            ("hooks.internal", "a.hooks.internal", 80, false),
            ("hooks.internal", "internal", 80, false),
            ("localhost:8080", "localhost", 8080, true),
            ("localhost:8080", "localhost", 8081, false),
            ("localhost:8080", "127.0.0.1", 8080, false),
            ("10.0.0.5", "10.0.0.5", 1, true),
            ("10.0.0.5", "10.0.0.6", 1, false),
            ("10.0.0.5:443", "10.0.0.5", 80, false),
            ("[fd00::1]:443", "[fd00::1]", 443, true),
            ("[fd00::1]:443", "[fd00::1]", 80, false),
            ("[fd00::1]", "[fd00:0::0:1]", 80, true),
            ("fd00::1", "[fd00::1]", 80, true),
        ] {
            assert_eq!(allows(entry, host, port), expected, "{entry} {host} {port}");
        }
    }

    #[test]
    fn spelling_does_not_matter_where_it_means_the_same() {
        for (entry, host) in [
            ("Hooks.Internal", "hooks.internal"),
            ("hooks.internal.", "hooks.internal"),
            ("hooks.internal", "HOOKS.internal."),
            ("bücher.example", "xn--bcher-kva.example"),
            ("127.1", "127.0.0.1"),
        ] {
            assert!(allows(entry, host, 80), "{entry} {host}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for bad in [
            "",
            ":80",
            "host:",
            "host:x",
            "host:+1",
            "host:99999",
            "*.internal",
            "a b",
            "http://host",
            "host/path",
            "u@host",
            "[::1",
            ".",
        ] {
            assert_eq!(Allow::parse([bad]), Err(BadAllow(bad.to_owned())), "{bad:?}");
        }
    }
}
