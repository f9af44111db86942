//! Recognising keys, without asking the store about every request.

use super::caller::Caller;
use super::session;
use super::ticket::Holder;
use crate::limits::{KEY_TRUST, KEYS_KNOWN, STRANGER_WAIT, STRANGERS};
use crate::problem::Fault;
use crate::wait;
use baton_core::access::session::{Session, Sessions};
use baton_core::access::{Ended, Key, Proof};
use baton_core::id::KeyId;
use baton_core::{Micros, OrgId};
use baton_store::Store;
use baton_wire::Token;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Semaphore, SemaphorePermit};

/// What is remembered of a key. Another node may revoke it meanwhile, so not for long.
#[derive(Clone)]
struct Known {
    org: OrgId,
    key: Arc<Key>,
    at: Micros,
}

impl Known {
    fn caller(self, key: KeyId, proof: Proof, session: Option<Ended>) -> Caller {
        Caller { org: self.org, key, grant: Arc::new(self.key.grant.clone()), kept: self.key, proof, session }
    }
}

pub struct Keyring {
    store: Store,
    known: Mutex<BTreeMap<KeyId, Known>>,
    /// How often something was forgotten: what was read before that may be what was forgotten.
    forgotten: AtomicU64,
    /// Looks for keys that were not seen lately.
    strangers: Semaphore,
}

impl Keyring {
    pub const fn new(store: Store) -> Self {
        Self {
            store,
            known: Mutex::new(BTreeMap::new()),
            forgotten: AtomicU64::new(0),
            strangers: Semaphore::const_new(STRANGERS),
        }
    }

    /// Who shows this key. What is wrong with it is not told: whoever holds the right one knows.
    pub async fn verify(&self, token: &Token) -> Result<Caller, Fault> {
        let no = || Fault::new("unauthenticated", "this key opens nothing: it is unknown, expired or revoked");
        let holder = Holder { key: token.id, proof: token.proof() };
        self.recall(holder).await?.ok_or_else(no)
    }

    /// Who has shown a secret with this proof, if that still opens the door.
    pub async fn recall(&self, Holder { key, proof }: Holder) -> Result<Option<Caller>, Fault> {
        let known = self.find(key).await?;
        let known = known.filter(|known| known.key.accepts(&proof, self.store.clock_now()));
        Ok(known.map(|known| known.caller(key, proof, None)))
    }

    /// Who carries this session.
    pub async fn resume(&self, sessions: &Sessions, session: &Session) -> Result<Caller, Fault> {
        let known = self.find(session.key).await?.ok_or_else(session::over)?;
        let name = session.name();
        if known.key.has_ended(&name) {
            return Err(session::over());
        }
        let now = self.store.clock_now();
        let opened = known.key.proofs(now).find(|proof| sessions.accepts(session, proof, now));
        let proof = opened.ok_or_else(session::over)?;
        Ok(known.caller(session.key, proof, Some(Ended { session: name, until: session.until })))
    }

    /// Whether somebody who came in a while ago still may.
    pub async fn still(&self, caller: &Caller) -> Result<(), Fault> {
        // What it came in with may have been replaced since; that opens nothing after its grace.
        match self.recall(Holder { key: caller.key, proof: caller.proof }).await? {
            Some(now) => match caller.session {
                Some(session) if session.until <= self.store.clock_now() => Err(session::over()),
                Some(session) if now.kept.has_ended(&session.session) => Err(session::over()),
                _ => Ok(()),
            },
            None => Err(Fault::new("unauthenticated", "the key was revoked or rotated, or has expired")),
        }
    }

    async fn find(&self, id: KeyId) -> Result<Option<Known>, Fault> {
        let now = self.store.clock_now();
        // A clock that was set back makes everything stale, and nothing trusted for long.
        let fresh = |known: &&Known| known.at <= now && now.since(known.at) < KEY_TRUST;
        if let Some(known) = self.lock().get(&id).filter(fresh) {
            return Ok(Some(known.clone()));
        }
        // Anybody can make ids up. Whoever does so waits for others who do, and not the store for them.
        let seen = self.lock().contains_key(&id);
        let _turn = if seen { None } else { Some(self.stranger().await?) };
        let before = self.forgotten.load(Ordering::SeqCst);
        let at = self.store.clock_now();
        let Some((org, doc)) = wait::read(self.store.key(id)).await? else { return Ok(None) };
        let Some(key) = Key::of(&doc) else { return Err(Fault::internal(format!("{id} cannot be read"))) };
        let known = Known { org, key: Arc::new(key), at };
        let mut all = self.lock();
        if all.len() >= KEYS_KNOWN {
            all.clear();
        }
        if self.forgotten.load(Ordering::SeqCst) == before {
            all.insert(id, known.clone());
        }
        Ok(Some(known))
    }

    async fn stranger(&self) -> Result<SemaphorePermit<'_>, Fault> {
        match tokio::time::timeout(STRANGER_WAIT, self.strangers.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_)) | Err(_) => Err(Fault::new("overloaded", "too many keys that are not known here are tried")),
        }
    }

    /// Something about this key changed here: look again at once.
    pub fn forget(&self, id: KeyId) {
        let mut all = self.lock();
        self.forgotten.fetch_add(1, Ordering::SeqCst);
        all.remove(&id);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<KeyId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
