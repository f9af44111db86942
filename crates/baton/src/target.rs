//! Which server a command talks to, and with which key.
//!
//! What is typed wins over what is set in the environment, and a server that is named is meant
//! alone: the key of a context is shown to the server of that context and to no other.

use crate::args::{ClientArgs, DEFAULT_DATA_DIR, DEFAULT_SERVER};
use crate::config::{Listen, Settings};
use crate::contexts::{Context, Contexts};
use crate::fault::Fault;
use crate::local;
use baton_wire::{BadToken, Token};
use reqwest::Url;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

pub const SERVER: &str = "BATON_SERVER";
pub const KEY: &str = "BATON_KEY";
pub const CONTEXT: &str = "BATON_CONTEXT";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub server: Url,
    pub key: Shown,
    /// Whom to believe besides this machine's own authorities.
    pub ca_cert: Option<PathBuf>,
}

/// What is shown at the door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    Given(Token),
    /// That of a server on this machine, looked up when it is needed: it may be starting just now.
    Local {
        address: SocketAddr,
        data_dir: PathBuf,
    },
    Nothing,
}

impl Shown {
    pub fn token(&self) -> Option<Token> {
        match self {
            Self::Given(token) => Some(token.clone()),
            Self::Local { address, data_dir } => local::key(*address, data_dir),
            Self::Nothing => None,
        }
    }
}

/// What was said about it, by flags or by the environment; empty is not said.
#[derive(Clone, Debug, Default)]
struct Said {
    server: Option<String>,
    context: Option<String>,
    key: Option<String>,
}

impl Said {
    fn new(server: Option<String>, context: Option<String>, key: Option<String>) -> Self {
        let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        Self { server: given(server), context: given(context), key: given(key) }
    }

    fn names_a_server(&self) -> bool {
        self.server.is_some() || self.context.is_some()
    }
}

fn environment() -> Said {
    let set = |name| std::env::var(name).ok();
    Said::new(set(SERVER), set(CONTEXT), set(KEY))
}

/// Whether a server was named, typed or set.
pub fn is_named(args: &ClientArgs) -> bool {
    Said::new(args.server.clone(), args.context.clone(), None).names_a_server() || environment().names_a_server()
}

pub fn find(args: &ClientArgs) -> Result<Target, Fault> {
    let typed = Said::new(args.server.clone(), args.context.clone(), args.key.clone());
    let target = choose(&typed, &environment(), &Contexts::read()?)?;
    Ok(Target { ca_cert: args.ca_cert.clone(), ..target })
}

/// The server of this data directory, with the key that was given or that is kept there.
pub fn here(settings: &Settings, address: SocketAddr, args: &ClientArgs) -> Result<Target, Fault> {
    let ca_cert = args.ca_cert.clone().or_else(|| own_cert(&settings.listen));
    let server = Some(settings.listen.url(address));
    let target = find(&ClientArgs { server, context: None, ca_cert, ..args.clone() })?;
    match (&target.key, local::read(&settings.store.data_dir).ok().flatten()) {
        (Shown::Local { .. } | Shown::Nothing, Some(token)) => Ok(Target { key: Shown::Given(token), ..target }),
        _ => Ok(target),
    }
}

/// What it shows itself may be all that vouches for it.
pub fn own_cert(listen: &Listen) -> Option<PathBuf> {
    listen.tls.as_ref().map(|files| files.cert.clone())
}

fn choose(typed: &Said, set: &Said, contexts: &Contexts) -> Result<Target, Fault> {
    let named = if typed.names_a_server() { typed } else { set };
    let context = match (&named.server, &named.context) {
        (Some(_), Some(_)) => {
            return Err(Fault::usage(format!("{SERVER} and {CONTEXT} are both set, and they name one server each"))
                .hint("unset one of them, or name the server with --server or --context"));
        }
        (Some(_), None) => None,
        (None, name) => contexts.find(name.as_deref())?,
    };
    let text = named.server.clone().or_else(|| context.map(|context| context.server.clone()));
    let server = plain(url(&text.unwrap_or_else(|| DEFAULT_SERVER.to_owned()))?);
    let kept = context.and_then(|context: &Context| context.key.clone());
    // A context that was typed brings its own key; one that merely stands there does not outdo what
    // is set.
    let other = if typed.context.is_some() { kept.or(set.key.clone()) } else { set.key.clone().or(kept) };
    let key = match typed.key.clone().or(other) {
        Some(text) => {
            Shown::Given(text.trim().parse().map_err(|error: BadToken| Fault::usage(format!("--key: {error}")))?)
        }
        None => local(&server),
    };
    Ok(Target { server, key, ca_cert: None })
}

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Baton listens on the number that `localhost` stands for. Somebody else may listen on another one that
/// it stands for too, and nothing but a certificate would tell them apart.
fn plain(mut server: Url) -> Url {
    if server.scheme() == "http" && server.host_str() == Some("localhost") {
        let _ = server.set_ip_host(LOCALHOST);
    }
    server
}

pub fn url(text: &str) -> Result<Url, Fault> {
    let plain = |url: &Url| ["http", "https"].contains(&url.scheme()) && url.has_host() && url.path() == "/";
    Url::parse(text).ok().filter(plain).ok_or_else(|| {
        Fault::usage(format!("--server: {text:?} is not the address of a server"))
            .hint("it looks like http://127.0.0.1:22866")
    })
}

/// The key to a server on this machine; whoever may read its file may use it.
fn local(server: &Url) -> Shown {
    let host = server.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let ip = if host == "localhost" { Some(LOCALHOST) } else { host.parse().ok().filter(IpAddr::is_loopback) };
    let data_dir = std::env::var_os("BATON_DATA_DIR").filter(|dir| !dir.is_empty());
    let data_dir = data_dir.map_or_else(|| PathBuf::from(DEFAULT_DATA_DIR), PathBuf::from);
    match ip.zip(server.port_or_known_default()) {
        Some((ip, port)) => Shown::Local { address: SocketAddr::new(ip, port), data_dir },
        None => Shown::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::id::KeyId;

    fn key(n: u8) -> String {
        let id = "key_018bcfe568007001800000000000002a".parse::<KeyId>().unwrap();
        Token::new(id, [n; 32]).reveal()
    }

    fn contexts() -> Contexts {
        let text = format!(
            "current = \"here\"\n[contexts.here]\nserver = \"http://here.test\"\nkey = \"{}\"\n\
             [contexts.there]\nserver = \"https://there.test\"\nkey = \"{}\"\n",
            key(1),
            key(2)
        );
        toml::from_str(&text).unwrap()
    }

    fn said(server: &str, context: &str, key: &str) -> Said {
        let some = |text: &str| Some(text.to_owned());
        Said::new(some(server), some(context), some(key))
    }

    /// The server, and which key is shown to it.
    fn chosen(typed: &Said, set: &Said) -> (String, Option<u8>) {
        let target = choose(typed, set, &contexts()).unwrap();
        let shown = (1..9).find(|n| matches!(&target.key, Shown::Given(token) if token.reveal() == key(*n)));
        (target.server.host_str().unwrap().to_owned(), shown)
    }

    #[test]
    fn what_is_typed_wins_and_a_contexts_key_stays_with_its_server() {
        let (nothing, typed, set) = (Said::default(), "http://typed.test", "http://set.test");
        let cases = [
            (nothing.clone(), nothing.clone(), "here.test", Some(1)),
            (nothing.clone(), said("", "", &key(3)), "here.test", Some(3)),
            (said("", "there", ""), nothing.clone(), "there.test", Some(2)),
            (said("", "there", ""), said("", "", &key(3)), "there.test", Some(2)),
            (said("", "there", ""), said(set, "", &key(3)), "there.test", Some(2)),
            (said("", "there", &key(4)), said("", "", &key(3)), "there.test", Some(4)),
            (nothing.clone(), said("", "there", &key(3)), "there.test", Some(3)),
            (said(typed, "", ""), nothing.clone(), "typed.test", None),
            (said(typed, "", ""), said("", "there", &key(3)), "typed.test", Some(3)),
            (nothing.clone(), said(set, "", ""), "set.test", None),
            (said("", "", &key(4)), said(set, "", &key(3)), "set.test", Some(4)),
        ];
        for (typed, set, server, shown) in cases {
            assert_eq!(chosen(&typed, &set), (server.to_owned(), shown), "{typed:?} {set:?}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_without_repeating_keys() {
        let no = |typed: &Said, set: &Said| match choose(typed, set, &contexts()).unwrap_err() {
            Fault::Told { problem, .. } => problem.detail,
            Fault::NobodyReads | Fault::Left => String::new(),
        };
        assert!(no(&Said::default(), &said("http://a.test", "there", "")).contains("both set"));
        assert!(no(&said("", "nowhere", ""), &Said::default()).contains("nowhere"));
        for bad in ["nonsense", "ftp://x", "http://x/path", "unix:/x"] {
            assert!(no(&said(bad, "", ""), &Said::default()).contains("not the address"), "{bad}");
        }
        let short = no(&said("", "", "bk_secret"), &Said::default());
        assert!(short.contains("--key") && !short.contains("secret"), "{short}");
    }

    #[test]
    fn the_local_key_is_for_this_machine_only() {
        let local = |text: &str| matches!(local(&Url::parse(text).unwrap()), Shown::Local { .. });
        assert!(local("http://127.0.0.1:1") && local("http://localhost") && local("http://[::1]:1"));
        assert!(!local("http://10.0.0.1:1") && !local("http://localhost.evil.test"));
    }
}
