//! A running server: whether it is ready, of this version, and lets us in.

use super::clock::{self, Other};
use super::finding::{Check, Finding};
use crate::args::ClientArgs;
use crate::client::{Client, Seen};
use crate::config::Listen;
use crate::fault::Fault;
use crate::target::{self, Shown, Target};
use crate::version::VERSION;
use baton_core::Micros;
use baton_core::time::Span;
use baton_engine::SystemClock;
use baton_store::Clock as _;
use baton_wire::{Me, Problem};
use serde::Deserialize;
use std::time::{Duration, UNIX_EPOCH};

/// A server that takes longer to say that it lives is as good as none.
const WAIT: Duration = Duration::from_secs(5);

/// What a Baton says when it is asked whether it lives.
#[derive(Debug, Deserialize)]
pub struct Health {
    pub version: String,
}

impl Health {
    fn of(seen: &Seen) -> Option<Self> {
        if seen.status.is_success() { serde_json::from_slice(&seen.body).ok() } else { None }
    }
}

/// The server that was named; it may be one that cannot be.
pub fn named(args: &ClientArgs) -> Option<Result<Target, Fault>> {
    target::is_named(args).then(|| target::find(args))
}

pub fn none() -> Finding {
    Finding::ok(Check::Server, "none is running here")
}

/// Who answers where we would listen, if it is a Baton.
pub async fn health_at(listen: &Listen) -> Option<Health> {
    let server = listen.url(listen.address).parse().ok()?;
    let client = Client::to(Target { server, key: Shown::Nothing, ca_cert: target::own_cert(listen) }).ok()?;
    Health::of(&client.look("/healthz", WAIT).await.ok()?)
}

pub async fn look(target: Result<Target, Fault>) -> Vec<Finding> {
    let client = target.and_then(|target| Ok((target.key.clone(), target.server.clone(), Client::to(target)?)));
    let (key, url, client) = match client {
        Ok(parts) => parts,
        Err(fault) => return vec![Finding::fault(Check::Server, &fault, "see --server, --context and --key")],
    };
    let before = SystemClock.now();
    let alive = client.look("/healthz", WAIT).await;
    let after = SystemClock.now();
    let seen = match alive {
        Ok(seen) => seen,
        Err(fault) => return vec![Finding::fault(Check::Server, &fault, "start it, or name another with --server")],
    };
    let Some(health) = Health::of(&seen) else {
        let detail = format!("{url} answered with {} and does not seem to be a Baton", seen.status);
        return vec![Finding::problem(Check::Server, detail, "check --server")];
    };
    let mut findings = vec![ready(&client, url.as_str()).await, version(&health)];
    if let Some(says) = seen.date.as_deref().and_then(moment) {
        let other = Other { whose: "the server", says, coarse: Span::secs(1) };
        findings.push(clock::compare(other, before, after));
    }
    findings.push(accepted(&client, &key).await);
    findings
}

fn moment(date: &str) -> Option<Micros> {
    let since = httpdate::parse_http_date(date).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Micros(i64::try_from(since.as_micros()).ok()?))
}

fn detail(seen: &Seen) -> String {
    serde_json::from_slice::<Problem>(&seen.body).map_or_else(|_| seen.status.to_string(), |problem| problem.detail)
}

async fn ready(client: &Client, url: &str) -> Finding {
    match client.look("/readyz", WAIT).await {
        Ok(seen) if seen.status.is_success() => Finding::ok(Check::Server, format!("{url} is ready")),
        Ok(seen) => {
            let detail = format!("{url} is not ready: {}", detail(&seen));
            Finding::problem(Check::Server, detail, "its log says why; if it is starting or stopping, wait")
        }
        Err(fault) => Finding::fault(Check::Server, &fault, "its log may say why"),
    }
}

fn version(health: &Health) -> Finding {
    let theirs = &health.version;
    if theirs == VERSION {
        return Finding::ok(Check::Version, format!("{VERSION}, here and at the server"));
    }
    let detail = format!("this is {VERSION}, the server is {theirs}");
    Finding::warning(Check::Version, detail, "use the same version for both")
}

async fn accepted(client: &Client, key: &Shown) -> Finding {
    let Some(token) = key.token() else {
        let detail = "none is given, and none is kept here";
        return Finding::warning(Check::Key, detail, "give one with --key, BATON_KEY or a context");
    };
    let seen = match client.look("/api/v1/me", WAIT).await {
        Ok(seen) => seen,
        Err(fault) => return Finding::fault(Check::Key, &fault, "its log may say why"),
    };
    match serde_json::from_slice::<Me>(&seen.body) {
        Ok(me) if seen.status.is_success() => {
            Finding::ok(Check::Key, format!("{} is accepted as {} of {}", token.id, me.key.role, me.org))
        }
        _ => {
            let detail = format!("{} is not accepted: {}", token.id, detail(&seen));
            Finding::problem(Check::Key, detail, "give another with --key; keys are made with: baton keys create")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_of_http_is_a_moment() {
        assert_eq!(moment("Thu, 01 Jan 1970 00:00:01 GMT"), Some(Micros(1_000_000)));
        assert_eq!(moment("soon"), None);
    }
}
