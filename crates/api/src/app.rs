//! What every handler has at hand.

use crate::counters;
use crate::door::ticket::{Holder, Tickets};
use crate::door::{Buckets, Keyring, Rate};
use crate::flight::Flights;
use crate::limits;
use crate::live::{Listening, Live};
use crate::login;
use crate::metrics::Recorder;
use crate::places::Places;
use baton_core::access::session::Sessions;
use baton_core::webhook::sign::Signer;
use baton_engine::Engine;
use baton_store::{Entropy, Store};
use baton_wire::Token;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{Semaphore, watch};

/// Cheap to clone; all clones are the same app.
#[derive(Clone)]
pub struct App(Arc<Parts>);

struct Parts {
    engine: Engine,
    entropy: Arc<dyn Entropy>,
    keyring: Keyring,
    buckets: Buckets,
    secrets: Secrets,
    tickets: Tickets,
    flights: Flights,
    live: Live,
    waiting: Arc<Places>,
    recorder: Recorder,
    /// Tells this process's request ids from another's.
    mark: u32,
    requests: AtomicU64,
    stopping: watch::Sender<bool>,
    audits: Semaphore,
    batches: Semaphore,
}

/// What is derived from the key that is kept outside the database.
#[derive(Clone, Debug)]
pub struct Secrets {
    /// Signs what is sent to webhooks.
    pub signer: Signer,
    /// Opens login sessions.
    pub sessions: Sessions,
}

impl App {
    pub fn new(engine: Engine, entropy: Arc<dyn Entropy>, rate: Option<Rate>, secrets: Secrets) -> Self {
        Self::with(engine, entropy, rate, secrets, Listening::default())
    }

    pub fn with(
        engine: Engine,
        entropy: Arc<dyn Entropy>,
        rate: Option<Rate>,
        secrets: Secrets,
        listening: Listening,
    ) -> Self {
        let recorder = crate::metrics::install();
        counters::begin(&engine.store().definitions());
        Self(Arc::new(Parts {
            keyring: Keyring::new(engine.store().clone()),
            buckets: Buckets::new(rate),
            secrets,
            tickets: Tickets::default(),
            flights: Flights::default(),
            live: Live::new(listening),
            waiting: Arc::new(Places::of_workers(limits::WORKERS_WAITING, limits::WORKERS_WAITING_PER_KEY)),
            engine,
            recorder,
            mark: (entropy.words().0 >> 32) as u32,
            requests: AtomicU64::new(0),
            stopping: watch::Sender::new(false),
            audits: Semaphore::new(limits::AUDITS),
            batches: Semaphore::new(limits::BATCHES),
            entropy,
        }))
    }

    /// Ends waits and tells probes to look elsewhere. Requests that are under way go on.
    pub fn stop(&self) {
        self.0.stopping.send_replace(true);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.0.stopping.borrow()
    }

    /// Resolves when the app is told to stop.
    pub(crate) async fn stopped(&self) {
        let mut stopping = self.0.stopping.subscribe();
        // The sender lives in this app, so this cannot end any other way.
        let _ = stopping.wait_for(|stopping| *stopping).await;
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// The places of workers that wait for jobs.
    pub(crate) fn waiting(&self) -> &Arc<Places> {
        &self.0.waiting
    }

    pub(crate) fn store(&self) -> &Store {
        self.0.engine.store()
    }

    pub(crate) fn entropy(&self) -> &dyn Entropy {
        &*self.0.entropy
    }

    pub(crate) fn keyring(&self) -> &Keyring {
        &self.0.keyring
    }

    pub(crate) fn signer(&self) -> &Signer {
        &self.0.secrets.signer
    }

    pub(crate) fn sessions(&self) -> &Sessions {
        &self.0.secrets.sessions
    }

    pub(crate) fn tickets(&self) -> &Tickets {
        &self.0.tickets
    }

    /// Where the holder of this key can come in with a browser, once and soon: a path at this server.
    /// None if too many wait to be used.
    pub fn login_path(&self, token: &Token) -> Option<String> {
        let holder = Holder { key: token.id, proof: token.proof() };
        self.tickets().issue(self.entropy(), holder).ok().map(|ticket| login::path(&ticket))
    }

    pub(crate) fn flights(&self) -> &Flights {
        &self.0.flights
    }

    pub(crate) fn live(&self) -> &Live {
        &self.0.live
    }

    pub(crate) fn buckets(&self) -> &Buckets {
        &self.0.buckets
    }

    pub(crate) fn recorder(&self) -> &Recorder {
        &self.0.recorder
    }

    pub(crate) fn audits(&self) -> &Semaphore {
        &self.0.audits
    }

    pub(crate) fn batches(&self) -> &Semaphore {
        &self.0.batches
    }

    /// The ids of a new trace and of a span.
    pub(crate) fn drawn_trace(&self) -> (u128, u64) {
        let (high, low) = self.0.entropy.words();
        let (span, _) = self.0.entropy.words();
        ((u128::from(high) << 64) | u128::from(low), span)
    }

    pub(crate) fn request_id(&self) -> String {
        format!("req_{:08x}{:08x}", self.0.mark, self.0.requests.fetch_add(1, Ordering::Relaxed))
    }
}
