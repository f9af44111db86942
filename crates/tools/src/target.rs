//! Where a URL points, and whether anything may be sent there.

use crate::address;
use crate::allow::Allow;
use crate::limits;
use crate::unsent::Unsent;
use std::net::IpAddr;
use url::{Host, Url};

#[derive(Debug)]
pub struct Target {
    pub url: Url,
    /// By the operator, by name: its address is not looked at.
    pub allowed: bool,
}

impl Target {
    /// Understands odd spellings of hosts as a browser does, and as the client does after us: what
    /// is looked at here is what will be connected to. Names are looked at when connecting.
    pub fn parse(text: &str, allow: &Allow, https_only: bool) -> Result<Self, Unsent> {
        if text.len() > limits::URL_BYTES {
            return Err(Unsent::RequestTooLarge { part: "URL", limit: limits::URL_BYTES });
        }
        let mut url = Url::parse(text).map_err(|_| Unsent::InvalidUrl("it is not understood"))?;
        match url.scheme() {
            "https" => {}
            "http" if !https_only => {}
            "http" => return Err(Unsent::InvalidUrl("only https is allowed")),
            _ => return Err(Unsent::InvalidUrl("only http and https are spoken")),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Unsent::InvalidUrl("a user or password has no place in it"));
        }
        url.set_fragment(None);
        undot(&mut url)?;
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return Err(Unsent::InvalidUrl("it names no host"));
        };
        let allowed = allow.contains(&host, port);
        let literal = match host {
            Host::Domain(_) => None,
            Host::Ipv4(ip) => Some(IpAddr::V4(ip)),
            Host::Ipv6(ip) => Some(IpAddr::V6(ip)),
        };
        if let Some(why) = literal.filter(|_| !allowed).and_then(address::refused) {
            return Err(Unsent::AddressRefused { origin: origin(&url), why });
        }
        Ok(Self { url, allowed })
    }

    pub fn origin(&self) -> String {
        origin(&self.url)
    }
}

/// The root's dot at the end of a name means the same host; certificates and lists are without it.
fn undot(url: &mut Url) -> Result<(), Unsent> {
    let Some(name) = url.domain().map(|name| name.strip_suffix('.').unwrap_or(name).to_owned()) else { return Ok(()) };
    let gap = name.split('.').any(str::is_empty);
    if gap || url.set_host(Some(&name)).is_err() { Err(Unsent::InvalidUrl("it names no host")) } else { Ok(()) }
}

/// Scheme, host and port: what of a URL may be shown.
fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str) -> Result<String, &'static str> {
        Target::parse(url, &Allow::nobody(), false).map(|target| target.origin()).map_err(|error| error.code())
    }

    #[test]
    fn odd_spellings_of_refused_addresses_are_refused() {
        for url in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.1/",
            "http://017700000001/",
            "http://0177.0.0.1/",
            "http://127.0.0.1./",
            "http://0/",
            "http://%31%32%37.0.0.1/",
            "http://１２７.0.0.1/",
            "http://127。0。0。1/",
            "http:127.0.0.1/",
            "http:\\\\127.0.0.1\\",
            "HTTP://127.0.0.1:80/",
            " http://127.0.0.1/ ",
            "http://127.0\t.0.1/",
            "http://[::1]/",
            "http://[0:0::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::FFFF:7f00:1]/",
            "http://[64:ff9b::a00:1]/",
            "http://[fe80::1]:8080/",
            "https://169.254.169.254/latest/meta-data",
        ] {
            assert_eq!(check(url), Err("address_refused"), "{url}");
        }
    }

    #[test]
    fn what_is_no_plain_web_address_is_invalid() {
        for url in [
            "",
            "/path",
            "example.com",
            "http://",
            "http:///",
            "http://?",
            "ftp://example.com/",
            "file:///etc/passwd",
            "gopher://example.com/",
            "data:text/plain,x",
            "http://user@example.com/",
            "http://user:pass@example.com/",
            "http://:pass@example.com/",
            "http://example.com:99999/",
            "http://example.com:x/",
            "http://256.0.0.1/",
            "http://1.2.3.4.5/",
            "http://a b/",
            "http://[fe80::1%25eth0]/",
            "http://[::1",
            "http://./",
            "http://example.com../",
            "http://example..com/",
        ] {
            assert_eq!(check(url), Err("invalid_url"), "{url}");
        }
        assert_eq!(check(&format!("http://example.com/{}", "x".repeat(limits::URL_BYTES))), Err("request_too_large"));
    }

    #[test]
    fn names_are_normalised_and_shown_without_the_rest() {
        for (url, origin) in [
            ("https://Example.COM/secret?token=secret#secret", "https://example.com"),
            ("http://EXAMPLE.com.:8080/", "http://example.com:8080"),
            ("https://bücher.example/", "https://xn--bcher-kva.example"),
            ("http://8.8.8.8:53/", "http://8.8.8.8:53"),
            ("http://[2A00:0::1]/", "http://[2a00::1]"),
        ] {
            assert_eq!(check(url).as_deref(), Ok(origin), "{url}");
        }
    }

    #[test]
    fn an_allowed_literal_passes_and_only_that() {
        let allow = Allow::parse(["127.0.0.1:8080"]).unwrap();
        assert!(Target::parse("http://127.1:8080/", &allow, false).unwrap().allowed);
        assert_eq!(Target::parse("http://127.0.0.1/", &allow, false).unwrap_err().code(), "address_refused");
        assert_eq!(Target::parse("http://127.0.0.1:8080/", &allow, true).unwrap_err().code(), "invalid_url");
        assert!(!Target::parse("https://8.8.8.8/", &allow, true).unwrap().allowed);
    }
}
