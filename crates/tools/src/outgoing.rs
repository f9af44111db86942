//! The client itself.
//!
//! **Kept connections and moving names.** A name can be pointed elsewhere at any time, so what
//! counts is the address at the moment of connecting, and that is looked at for every new
//! connection. A kept one still leads to the address that was looked at then: names move,
//! connections do not. Kept connections belong to scheme, host and port, so a request for one host
//! never travels on another's. And there are two clients inside: hosts that the operator allows go
//! through one that does not look at addresses, all others through one that does; which of them is
//! decided anew for each request, and neither sees the other's connections.

use crate::allow::Allow;
use crate::headers::Headers;
use crate::limits::{self, Limits};
use crate::request::{Answer, Excess, Request};
use crate::resolve::{Checked, Lookup, System, Unchecked};
use crate::target::Target;
use crate::trust::Trust;
use crate::unsent::{Heart, Unsent, heart};
use http::Method;
use http::header::{self, HeaderName};
use reqwest::redirect;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// What the operator says about reaching out.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Hosts that may be called wherever they are.
    pub allow: Allow,
    /// Nothing goes over the wire in the clear, not even to allowed hosts.
    pub https_only: bool,
    pub trust: Trust,
    /// A part of each call's total.
    pub connect: Duration,
    pub limits: Limits,
}

impl Policy {
    /// The public web, as this machine trusts it, within the usual limits.
    pub fn public() -> Self {
        Self {
            allow: Allow::nobody(),
            https_only: false,
            trust: Trust::system(),
            connect: limits::CONNECT,
            limits: Limits::default(),
        }
    }
}

/// Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Outgoing {
    allow: Allow,
    https_only: bool,
    connect: Duration,
    limits: Limits,
    checked: reqwest::Client,
    unchecked: reqwest::Client,
}

/// There is no client.
#[derive(Debug, thiserror::Error)]
#[error("the client for outgoing requests cannot be made")]
pub struct Unready(#[source] Box<dyn std::error::Error + Send + Sync>);

const USER_AGENT: &str = concat!("baton/", env!("CARGO_PKG_VERSION"));

/// What belongs to the connection, or is worked out from the request.
const OURS: [HeaderName; 11] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::HOST,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::REFERER,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

impl Outgoing {
    pub fn new(policy: Policy) -> Result<Self, Unready> {
        Self::with(policy, Arc::new(System))
    }

    fn with(policy: Policy, lookup: Arc<dyn Lookup>) -> Result<Self, Unready> {
        let Policy { allow, https_only, trust, connect, limits } = policy;
        let tls = trust.client().map_err(|error| Unready(error.into()))?;
        let builder = || {
            reqwest::Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .https_only(https_only)
                .user_agent(USER_AGENT)
                .redirect(redirect::Policy::none())
                .referer(false)
                .no_proxy()
                .retry(reqwest::retry::never())
                .connect_timeout(connect)
                .pool_max_idle_per_host(limits::IDLE)
                .pool_idle_timeout(limits::IDLE_WAIT)
                .http1_max_headers(limits.answer_headers)
        };
        let made = |builder: reqwest::ClientBuilder| builder.build().map_err(|error| Unready(error.into()));
        let checked = made(builder().dns_resolver(Checked(lookup.clone())))?;
        let unchecked = made(builder().dns_resolver(Unchecked(lookup)))?;
        Ok(Self { allow, https_only, connect, limits, checked, unchecked })
    }

    /// Sends once, and waits for the whole answer. Any status is an answer.
    pub async fn send(&self, request: Request) -> Result<Answer, Unsent> {
        let target = Target::parse(&request.url, &self.allow, self.https_only)?;
        let limits = request.limits.within(self.limits);
        check(&request, limits)?;
        let call = Call { origin: target.origin(), connect: self.connect, limits, excess: request.excess };
        match timeout(limits.total, call.run(self.prepared(request, target))).await {
            Ok(ended) => ended,
            Err(_) => Err(Unsent::TimedOut { origin: call.origin, after: limits.total, connected: true }),
        }
    }

    fn prepared(&self, request: Request, target: Target) -> reqwest::RequestBuilder {
        let client = if target.allowed { &self.unchecked } else { &self.checked };
        let Request { method, headers, body, .. } = request;
        client.request(method, target.url).headers(headers.into_map()).body(body)
    }
}

fn check(request: &Request, limits: Limits) -> Result<(), Unsent> {
    // A tunnel is no request, and an echo of what was sent shows what is not to be shown.
    if [Method::CONNECT, Method::TRACE].contains(&request.method) {
        return Err(Unsent::Unsendable(format!("{} is not used here", request.method)));
    }
    if let Some((name, _)) = request.headers.iter().find(|(name, _)| OURS.contains(name)) {
        return Err(Unsent::Unsendable(format!("the header {name} is not the caller's to set")));
    }
    let too_large = |part, limit| Err(Unsent::RequestTooLarge { part, limit });
    if request.headers.count() > limits::REQUEST_HEADERS {
        return too_large("number of headers", limits::REQUEST_HEADERS);
    }
    if request.headers.bytes() > limits::REQUEST_HEAD_BYTES {
        return too_large("head", limits::REQUEST_HEAD_BYTES);
    }
    if request.body.len() > limits.request_bytes {
        return too_large("body", limits.request_bytes);
    }
    Ok(())
}

/// One request on its way.
struct Call {
    origin: String,
    connect: Duration,
    limits: Limits,
    excess: Excess,
}

impl Call {
    async fn run(&self, request: reqwest::RequestBuilder) -> Result<Answer, Unsent> {
        let mut response = request.send().await.map_err(|error| self.unsent(error))?;
        let status = response.status();
        let headers = Headers::from(std::mem::take(response.headers_mut()));
        if headers.count() > self.limits.answer_headers {
            return Err(self.too_large("number of headers", self.limits.answer_headers));
        }
        if headers.bytes() > self.limits.answer_head_bytes {
            return Err(self.too_large("head", self.limits.answer_head_bytes));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.unsent(error))? {
            let room = self.limits.answer_bytes - body.len();
            if chunk.len() > room {
                // Reading no further closes the connection: nobody waits for the rest.
                if self.excess == Excess::Refuse {
                    return Err(self.too_large("body", self.limits.answer_bytes));
                }
                body.extend_from_slice(&chunk[..room]);
                return Ok(Answer { status, headers, body: body.into(), cut: true });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer { status, headers, body: body.into(), cut: false })
    }

    fn too_large(&self, part: &'static str, limit: usize) -> Unsent {
        Unsent::AnswerTooLarge { origin: self.origin.clone(), part, limit }
    }

    fn unsent(&self, error: reqwest::Error) -> Unsent {
        let origin = self.origin.clone();
        let (connecting, late) = (error.is_connect(), error.is_timeout());
        let heart = heart(&error);
        let source = error.without_url().into();
        match heart {
            Heart::Refused(why) => Unsent::AddressRefused { origin, why },
            Heart::Unresolved => Unsent::NameUnresolved { origin, source },
            Heart::Tls if connecting => Unsent::TlsFailed { origin, source },
            Heart::HeadTooLarge => self.too_large("number of headers", self.limits.answer_headers),
            _ if connecting && late => Unsent::TimedOut { origin, after: self.connect, connected: false },
            _ if connecting => Unsent::ConnectFailed { origin, source },
            _ => Unsent::AnswerBroken { origin, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::tests::script;

    fn outgoing(answers: &[&[&str]]) -> Outgoing {
        let policy = Policy { trust: Trust::nobody(), connect: Duration::from_millis(50), ..Policy::public() };
        Outgoing::with(policy, script(answers)).unwrap()
    }

    async fn get(outgoing: &Outgoing, url: &str) -> Unsent {
        outgoing.send(Request::new(Method::GET, url)).await.unwrap_err()
    }

    #[tokio::test]
    async fn a_name_that_points_inside_is_refused_and_says_so_without_its_address() {
        let error = get(&outgoing(&[&["10.1.2.3", "::1"]]), "http://hooks.example/secret?key=secret").await;
        assert_eq!((error.code(), error.is_transient(), error.may_have_arrived()), ("address_refused", false, false));
        assert_eq!(error.to_string(), "http://hooks.example may not be called: its address is private");
        assert!(!format!("{error:?}").contains("secret") && !format!("{error:?}").contains("10.1"), "{error:?}");
    }

    #[tokio::test]
    async fn a_name_that_is_unknown_or_never_found_may_be_known_later() {
        let error = get(&outgoing(&[&[]]), "https://hooks.example/").await;
        assert_eq!((error.code(), error.is_transient(), error.may_have_arrived()), ("name_unresolved", true, false));
        let error = get(&outgoing(&[]), "https://hooks.example/").await;
        assert_eq!((error.code(), error.is_transient(), error.may_have_arrived()), ("timed_out", true, false));
    }

    #[tokio::test]
    async fn what_is_not_the_callers_to_set_is_refused() {
        let outgoing = outgoing(&[&["10.1.2.3"]]);
        for name in OURS {
            let mut request = Request::new(Method::POST, "https://hooks.example/");
            request.headers.append(name.clone(), "x".parse().unwrap());
            assert_eq!(outgoing.send(request).await.unwrap_err().code(), "unsendable", "{name}");
        }
        for method in [Method::CONNECT, Method::TRACE] {
            let request = Request::new(method, "https://hooks.example/");
            assert_eq!(outgoing.send(request).await.unwrap_err().code(), "unsendable");
        }
    }

    #[tokio::test]
    async fn what_is_too_large_is_not_sent() {
        let outgoing = outgoing(&[&["10.1.2.3"]]);
        let request = || Request::new(Method::POST, "https://hooks.example/");
        let limits = Limits { request_bytes: 3, ..Limits::INHERITED };
        let body = Request { body: "four".into(), limits, ..request() };
        assert_eq!(outgoing.send(body).await.unwrap_err().code(), "request_too_large");
        let mut many = request();
        (0..=limits::REQUEST_HEADERS).for_each(|_| many.headers.append(header::ACCEPT, "x".parse().unwrap()));
        assert_eq!(outgoing.send(many).await.unwrap_err().code(), "request_too_large");
        let mut long = request();
        long.headers.append(header::ACCEPT, "x".repeat(limits::REQUEST_HEAD_BYTES).parse().unwrap());
        assert_eq!(outgoing.send(long).await.unwrap_err().code(), "request_too_large");
    }
}
