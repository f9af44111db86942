//! What must hold after every single commit.

use anyhow::{Context, Result, bail, ensure};
use baton_core::event::Recorded;
use baton_core::job::State;
use baton_core::{JobId, Micros};
use baton_store::Disk;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use tokio::sync::watch;

/// No job of a simulation may be begun more often.
pub(super) const MAX_ATTEMPTS: u64 = 4;

pub(super) struct Checker {
    disk: Disk,
    /// Jobs that a client was told exist.
    promised: Mutex<BTreeMap<JobId, ()>>,
    violation: watch::Sender<Option<String>>,
}

impl Checker {
    pub fn new(disk: Disk) -> Self {
        Self { disk, promised: Mutex::default(), violation: watch::Sender::new(None) }
    }

    pub fn promise(&self, job: JobId) {
        self.promised.lock().unwrap_or_else(PoisonError::into_inner).insert(job, ());
    }

    /// Checks, and keeps the first violation for [`Self::violated`].
    pub fn note(&self) {
        if let Err(e) = self.check() {
            self.violate(format!("{e:?}"));
        }
    }

    pub fn violate(&self, text: String) {
        self.violation.send_if_modified(|first| {
            let news = first.is_none();
            if news {
                *first = Some(text);
            }
            news
        });
    }

    /// Resolves when something was violated.
    pub async fn violated(&self) -> String {
        let mut violation = self.violation.subscribe();
        match violation.wait_for(Option::is_some).await {
            Ok(text) => text.clone().unwrap_or_default(),
            // We hold the sender, so it cannot be gone.
            Err(_) => std::future::pending().await,
        }
    }

    pub fn check(&self) -> Result<()> {
        let report = self.disk.audit(None)?;
        ensure!(report.is_clean(), "the audit finds {:?}", report.violations);
        let mut lives: BTreeMap<_, Life> = BTreeMap::new();
        for event in self.disk.history(0)?.0.iter().filter(|e| e.kind.starts_with("job.")) {
            let life = lives.entry(JobId(event.subject)).or_default();
            life.step(event).with_context(|| format!("{} of {}", event.kind, JobId(event.subject)))?;
        }
        for job in self.promised.lock().unwrap_or_else(PoisonError::into_inner).keys() {
            ensure!(lives.contains_key(job), "{job} was promised and is lost");
        }
        Ok(())
    }
}

/// A job's way through its states, as its own events tell it.
struct Life {
    state: State,
    token: i64,
    at: Micros,
}

impl Default for Life {
    fn default() -> Self {
        Self { state: State::Received, token: 0, at: Micros(i64::MIN) }
    }
}

impl Life {
    fn step(&mut self, event: &Recorded) -> Result<()> {
        let data = event.data.value();
        let state = data["state"].as_str().and_then(State::parse).context("an event names the state")?;
        ensure!(!self.state.is_ended(), "it had ended");
        self.state.check(state)?;
        ensure!(event.at >= self.at, "time goes backwards");
        ensure!(data["attempt"].as_u64().is_some_and(|n| n <= MAX_ATTEMPTS), "too many attempts");
        let token = data["token"].as_i64();
        match event.kind.as_str() {
            "job.started" | "job.resumed" => {
                let token = token.context("a start names its token")?;
                ensure!(token > self.token, "the token does not rise");
                self.token = token;
            }
            "job.completed" | "job.parked" | "job.released" => {
                ensure!(token == Some(self.token), "a late worker wrote: {token:?} while {} holds", self.token);
            }
            "job.queued" | "job.failed" | "job.recovered" | "job.woken" => {}
            other => bail!("{other} is not known here"),
        }
        (self.state, self.at) = (state, event.at);
        Ok(())
    }
}
