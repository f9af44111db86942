//! Where a server listens, under which names, and whether it speaks TLS.

use super::{given, invalid};
use crate::args::{DEFAULT_LISTEN, ListenArgs};
use crate::fault::Fault;
use baton_api::Hosts;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

/// What the file says about it.
#[derive(Default)]
pub struct Keys {
    pub listen: Option<String>,
    pub tls_cert: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    pub insecure_plaintext: Option<bool>,
    pub host_names: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Listen {
    pub address: SocketAddr,
    pub tls: Option<TlsFiles>,
    pub hosts: Hosts,
    /// The first name it was given: the one to show.
    pub name: Option<String>,
}

/// A certificate, with those that vouch for it, and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

pub fn listen(args: &ListenArgs, file: &Keys) -> Result<Listen, Fault> {
    let text = given(args.listen.clone()).or(given(file.listen.clone())).unwrap_or_else(|| DEFAULT_LISTEN.to_owned());
    let address = address(&text)?;
    let tls = tls(args, file)?;
    let plaintext = plaintext(args.insecure_plaintext.clone(), file.insecure_plaintext)?;
    if !address.ip().is_loopback() && tls.is_none() && !plaintext {
        let detail = format!(
            "{address} can be reached from other machines, and without TLS keys and data could be read on the way"
        );
        return Err(Fault::new("listen_not_loopback", detail).hint(
            "give --tls-cert and --tls-key, or listen on 127.0.0.1; if something in front of it speaks TLS, say --insecure-plaintext",
        ));
    }
    let names = args.host_name.iter().map(|name| name.trim()).filter(|name| !name.is_empty()).map(str::to_owned);
    let mut names: Vec<String> = names.collect();
    if names.is_empty() {
        names.clone_from(&file.host_names);
    }
    let hosts = Hosts::new(names.iter().map(String::as_str), !address.ip().is_loopback()).map_err(|error| {
        invalid(error.to_string()).hint("it is set by --host-name, by BATON_HOST_NAME, or in host_names in the file")
    })?;
    Ok(Listen { address, tls, hosts, name: names.into_iter().next() })
}

impl Listen {
    /// Where others find it, once it is known which port it has.
    pub fn url(&self, bound: SocketAddr) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        if let Some(name) = &self.name {
            let name = if name.parse::<Ipv6Addr>().is_ok() { format!("[{name}]") } else { name.clone() };
            return format!("{scheme}://{name}:{}", bound.port());
        }
        // Everywhere is no place to go to.
        let ip = match bound.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            ip => ip,
        };
        format!("{scheme}://{}", SocketAddr::new(ip, bound.port()))
    }
}

fn address(text: &str) -> Result<SocketAddr, Fault> {
    let numeric = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    numeric.as_deref().unwrap_or(text).parse().map_err(|_| {
        invalid(format!("{text:?} is not an address to listen on"))
            .hint("give an IP address and a port, such as 127.0.0.1:22866; port 0 chooses a free one")
    })
}

fn tls(args: &ListenArgs, file: &Keys) -> Result<Option<TlsFiles>, Fault> {
    let path = |args: &Option<PathBuf>, file: &Option<PathBuf>| {
        let given = |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
        given(args).or_else(|| given(file))
    };
    match (path(&args.tls_cert, &file.tls_cert), path(&args.tls_key, &file.tls_key)) {
        (Some(cert), Some(key)) => Ok(Some(TlsFiles { cert, key })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(invalid("there is a TLS certificate, but no key".to_owned())
            .hint("it is set by --tls-key, by BATON_TLS_KEY, or as tls_key in the file")),
        (None, Some(_)) => Err(invalid("there is a TLS key, but no certificate".to_owned())
            .hint("it is set by --tls-cert, by BATON_TLS_CERT, or as tls_cert in the file")),
    }
}

fn plaintext(text: Option<String>, file: Option<bool>) -> Result<bool, Fault> {
    let Some(text) = given(text) else { return Ok(file.unwrap_or(false)) };
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(invalid(format!("insecure_plaintext must be true or false, or 1 or 0, not {text:?}")).hint(
            "it is set by --insecure-plaintext, by BATON_INSECURE_PLAINTEXT, or as insecure_plaintext in the file",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::code;
    use crate::fault::Exit;

    fn at(text: &str) -> ListenArgs {
        ListenArgs { listen: Some(text.to_owned()), ..ListenArgs::default() }
    }

    fn listened(args: &ListenArgs) -> Result<Listen, Fault> {
        listen(args, &Keys::default())
    }

    #[test]
    fn loopback_is_listened_on_plainly() {
        for (text, expected) in [
            ("127.0.0.1:22866", "127.0.0.1:22866"),
            ("127.8.8.8:1", "127.8.8.8:1"),
            ("[::1]:0", "[::1]:0"),
            ("localhost:80", "127.0.0.1:80"),
        ] {
            assert_eq!(listened(&at(text)).unwrap().address.to_string(), expected);
        }
        for bad in ["22866", "127.0.0.1", "host:80", "127.0.0.1:99999"] {
            assert_eq!(code(&listened(&at(bad)).unwrap_err()), "config_invalid", "{bad}");
        }
        assert_eq!(listened(&at("")).unwrap().address.to_string(), DEFAULT_LISTEN, "empty means not given");
    }

    #[test]
    fn what_others_reach_needs_tls_or_somebody_who_says_otherwise() {
        for open in ["0.0.0.0:22866", "[::]:22866", "192.168.1.7:80", "[::ffff:127.0.0.1]:80"] {
            let fault = listened(&at(open)).unwrap_err();
            assert_eq!((code(&fault), fault.exit()), ("listen_not_loopback", Exit::Config), "{open}");
            let refused = ListenArgs { insecure_plaintext: Some("false".to_owned()), ..at(open) };
            assert_eq!(code(&listened(&refused).unwrap_err()), "listen_not_loopback");
            let told = ListenArgs { insecure_plaintext: Some("true".to_owned()), ..at(open) };
            assert_eq!(listened(&told).unwrap().tls, None);
            let (cert, key) = (Some(PathBuf::from("c.pem")), Some(PathBuf::from("k.pem")));
            let tls = ListenArgs { tls_cert: cert, tls_key: key, ..at(open) };
            assert_eq!(listened(&tls).unwrap().tls, Some(TlsFiles { cert: "c.pem".into(), key: "k.pem".into() }));
        }
        let odd = ListenArgs { insecure_plaintext: Some("perhaps".to_owned()), ..at("127.0.0.1:1") };
        assert_eq!(code(&listened(&odd).unwrap_err()), "config_invalid");
    }

    #[test]
    fn half_a_certificate_is_none() {
        let cert = ListenArgs { tls_cert: Some("c.pem".into()), ..ListenArgs::default() };
        assert_eq!(code(&listened(&cert).unwrap_err()), "config_invalid");
        let key = ListenArgs { tls_key: Some("k.pem".into()), tls_cert: Some("".into()), ..ListenArgs::default() };
        assert_eq!(code(&listened(&key).unwrap_err()), "config_invalid", "empty means not given");
        let rest = Keys { tls_key: Some("k.pem".into()), ..Keys::default() };
        assert!(listen(&cert, &rest).unwrap().tls.is_some(), "the rest may stand in the file");
    }

    #[test]
    fn the_names_typed_win_over_those_in_the_file() {
        let file = Keys { host_names: vec!["filed.example".to_owned()], ..Keys::default() };
        let typed = |name: &str| ListenArgs { host_name: vec![name.to_owned()], ..ListenArgs::default() };
        assert_eq!(listen(&typed("typed.example"), &file).unwrap().name.as_deref(), Some("typed.example"));
        assert_eq!(listen(&typed(""), &file).unwrap().name.as_deref(), Some("filed.example"));
        assert_eq!(code(&listen(&typed("a:80"), &file).unwrap_err()), "config_invalid");
    }

    #[test]
    fn it_is_shown_where_it_can_be_reached() {
        let url = |args: &ListenArgs, bound: &str| listened(args).unwrap().url(bound.parse().unwrap());
        let open = ListenArgs { insecure_plaintext: Some("1".to_owned()), ..at("0.0.0.0:0") };
        assert_eq!(url(&open, "0.0.0.0:9"), "http://127.0.0.1:9");
        assert_eq!(url(&open, "[::]:9"), "http://[::1]:9");
        assert_eq!(url(&at("127.0.0.1:0"), "127.0.0.1:9"), "http://127.0.0.1:9");
        let named = ListenArgs { host_name: vec!["a.example".to_owned()], ..open };
        let (cert, key) = (Some(PathBuf::from("c.pem")), Some(PathBuf::from("k.pem")));
        let named = ListenArgs { tls_cert: cert, tls_key: key, ..named };
        assert_eq!(url(&named, "0.0.0.0:9"), "https://a.example:9");
    }
}
