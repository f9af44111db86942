//! Talking to a running server.
//!
//! Every request may be repeated: those that change something carry an idempotency key, so an
//! answer that got lost is asked for again instead of being feared.

use crate::args::ClientArgs;
use crate::fault::Fault;
use crate::patience::{RESTART, Tries};
use crate::target::{self, Shown, Target};
use crate::tls;
use baton_engine::OsEntropy;
use baton_store::Entropy as _;
use baton_wire::{Problem, header, limit};
use reqwest::header::{DATE, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Write as _;
use std::time::Duration;

const CONNECT: Duration = Duration::from_secs(5);
/// Longer than the longest wait that the server grants.
const ANSWER: Duration = Duration::from_millis(limit::WAIT_MS + 30_000);

#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    server: Url,
    key: Shown,
    /// How long the server may be away.
    patience: Duration,
}

/// Runs a command that talks to a server: one thread is plenty.
pub fn block_on(command: impl Future<Output = Result<(), Fault>>) -> Result<(), Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fault::new("start_failed", format!("the runtime cannot be started: {error}")))?;
    runtime.block_on(command)
}

/// A key that nobody else will think of.
pub fn fresh_key() -> String {
    let (high, low) = OsEntropy::default().words();
    format!("cli-{high:016x}{low:016x}")
}

impl Client {
    pub fn new(args: &ClientArgs) -> Result<Self, Fault> {
        Self::to(target::find(args)?)
    }

    pub fn to(Target { server, key, ca_cert }: Target) -> Result<Self, Fault> {
        // A proxy has nothing to do with a server on this machine.
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls::client(&server, ca_cert.as_deref())?)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT)
            .timeout(ANSWER)
            .build()
            .map_err(|error| Fault::new("start_failed", format!("no HTTP client: {error}")))?;
        Ok(Self { http, server, key, patience: Duration::ZERO })
    }

    /// From here on the server may be restarted meanwhile.
    pub const fn be_patient(&mut self) {
        self.patience = RESTART;
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, String)]) -> Result<T, Fault> {
        Ok(self.ask(|| self.request(Method::GET, path).query(query)).await?.value)
    }

    /// Putting the same thing there twice is putting it there once.
    pub async fn put<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Fault> {
        Ok(self.ask(|| self.request(Method::PUT, path).json(body)).await?.value)
    }

    pub async fn delete(&self, path: &str) -> Result<(), Fault> {
        self.send(|| self.request(Method::DELETE, path)).await.map(|_| ())
    }

    /// Removing the same thing twice is removing it once; answers with what it was.
    pub async fn remove<T: DeserializeOwned>(&self, path: &str) -> Result<T, Fault> {
        Ok(self.ask(|| self.request(Method::DELETE, path)).await?.value)
    }

    /// The key makes it safe to send this more than once.
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        key: &str,
    ) -> Result<Said<T>, Fault> {
        if !key.bytes().all(|b| (b' '..=b'~').contains(&b)) {
            return Err(Fault::usage("--idempotency-key must be printable ASCII"));
        }
        self.ask(|| self.request(Method::POST, path).header(header::IDEMPOTENCY_KEY, key).json(body)).await
    }

    /// A place at the server as a browser is told it.
    pub fn link(&self, path: &str) -> Result<String, Fault> {
        let place = self.server.join(path).ok().filter(|place| place.origin() == self.server.origin());
        place
            .map(String::from)
            .ok_or_else(|| Fault::new("unexpected_answer", "the server answered with no place of its own"))
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let mut url = self.server.clone();
        url.set_path(path);
        let request = self.http.request(method, url);
        match self.key.token() {
            Some(key) => request.bearer_auth(key.reveal()),
            None => request,
        }
    }

    /// One question, asked once: what was answered, whatever it is.
    pub async fn look(&self, path: &str, wait: Duration) -> Result<Seen, Fault> {
        let request = self.request(Method::GET, path).timeout(wait);
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let date = response.headers().get(DATE).and_then(|date| date.to_str().ok()).map(str::to_owned);
        let status = response.status();
        let body = response.bytes().await.map_err(|error| self.unreachable(&error))?.to_vec();
        Ok(Seen { status, date, body })
    }

    async fn ask<T: DeserializeOwned>(&self, request: impl Fn() -> RequestBuilder) -> Result<Said<T>, Fault> {
        let Said { value, replayed } = self.send(request).await?;
        Ok(Said { value: understand(&value)?, replayed })
    }

    /// Sends until there is an answer, a bounded number of times; the answer is not yet understood.
    async fn send(&self, request: impl Fn() -> RequestBuilder) -> Result<Said<Vec<u8>>, Fault> {
        let mut tries = Tries::new(self.patience);
        loop {
            let fault = match self.once(request()).await {
                Ok(Answer::Said { body, replayed }) => {
                    // Ours was the first if an earlier try got through without our hearing of it.
                    return Ok(Said { value: body, replayed: replayed && tries.is_first() });
                }
                Ok(Answer::Refused(fault)) => return Err(fault),
                Ok(Answer::Busy(fault)) | Err(fault) => fault,
            };
            if !tries.again().await? {
                return Err(fault);
            }
        }
    }

    async fn once(&self, request: RequestBuilder) -> Result<Answer, Fault> {
        // Drawn here, so that it is known also if no answer comes.
        let id = fresh_key();
        let gone = |error: reqwest::Error| {
            let fault = self.unreachable(&error);
            // A server that was not reached has nothing in its log.
            if error.is_connect() { fault } else { fault.about(&id) }
        };
        let response = request.header(header::REQUEST_ID, &id).send().await.map_err(gone)?;
        let status = response.status();
        let replayed = response.headers().contains_key(header::IDEMPOTENCY_REPLAYED);
        let again_soon = response.headers().contains_key(RETRY_AFTER);
        // An answer that breaks off is no answer.
        let body = response.bytes().await.map_err(gone)?;
        if status.is_success() {
            return Ok(Answer::Said { body: body.to_vec(), replayed });
        }
        let mut in_flight = false;
        let fault = match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => {
                // The same request, sent before, is still being worked on.
                in_flight = problem.code == "idempotency_in_flight";
                Fault::answered(problem)
            }
            Err(_) => Fault::new("unexpected_answer", format!("{} answered with {status} and no reason", self.server))
                .hint("is that really Baton? check --server")
                .about(&id),
        };
        // A full queue says when to come again too, but emptying it takes longer than we would wait.
        let busy = (status == StatusCode::SERVICE_UNAVAILABLE && again_soon)
            || status == StatusCode::REQUEST_TIMEOUT
            || in_flight;
        Ok(if busy { Answer::Busy(fault) } else { Answer::Refused(fault) })
    }

    fn unreachable(&self, error: &reqwest::Error) -> Fault {
        // The library's own words repeat the URL; its innermost cause says what happened.
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        let fault = Fault::new("server_unreachable", format!("no answer from {}: {cause}", self.server));
        if baton_tools::is_untrusted(error) {
            return fault.hint("is it the right server? a private authority's certificate is given with --ca-cert");
        }
        fault.hint("start one with `baton up`, or name it with --server")
    }
}

/// A name as one segment of a path, whatever it contains.
pub fn segment(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// What the server said.
pub struct Said<T> {
    pub value: T,
    /// The key was used before: nothing was done, and this is the answer of then.
    pub replayed: bool,
}

/// An answer as it came.
pub struct Seen {
    pub status: StatusCode,
    /// When it was given, by the server's clock.
    pub date: Option<String>,
    pub body: Vec<u8>,
}

enum Answer {
    Said {
        body: Vec<u8>,
        replayed: bool,
    },
    /// Asking again does not change it.
    Refused(Fault),
    /// Asking again may.
    Busy(Fault),
}

fn understand<T: DeserializeOwned>(body: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(body).map_err(|error| {
        Fault::new("unexpected_answer", format!("the answer cannot be understood: {error}"))
            .hint("are the server and this program of the same version?")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_segment_of_a_path() {
        for (name, text) in [("project:demo", "project:demo"), ("a/b?c#d%", "a%2Fb%3Fc%23d%25"), ("ü x", "%C3%BC%20x")]
        {
            assert_eq!(segment(name), text);
            let mut url = Url::parse("http://localhost").unwrap();
            url.set_path(&format!("/api/v1/lanes/{text}/pause"));
            assert_eq!(url.path(), format!("/api/v1/lanes/{text}/pause"), "it is not encoded twice");
        }
    }
}
