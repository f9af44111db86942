//! Recognising keys, without asking the store about every request.

use super::caller::Caller;
use crate::limits::{KEY_TRUST, KEYS_KNOWN};
use crate::problem::Fault;
use crate::wait;
use baton_core::OrgId;
use baton_core::access::Key;
use baton_core::id::KeyId;
use baton_store::Store;
use baton_wire::Token;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::Instant;

/// What is remembered of a key. Another node may revoke it meanwhile, so not for long.
#[derive(Clone)]
struct Known {
    org: OrgId,
    key: Arc<Key>,
    at: Instant,
}

pub struct Keyring {
    store: Store,
    known: Mutex<BTreeMap<KeyId, Known>>,
}

impl Keyring {
    pub const fn new(store: Store) -> Self {
        Self { store, known: Mutex::new(BTreeMap::new()) }
    }

    /// Who shows this key. What is wrong with it is not told: whoever holds the right one knows.
    pub async fn verify(&self, token: &Token) -> Result<Caller, Fault> {
        let no = || Fault::new("unauthenticated", "this key opens nothing: it is unknown, expired or revoked");
        let known = self.find(token.id).await?.ok_or_else(no)?;
        if !known.key.accepts(&token.proof(), self.store.clock_now()) {
            return Err(no());
        }
        let grant = Arc::new(known.key.grant.clone());
        Ok(Caller { org: known.org, key: token.id, grant, kept: known.key })
    }

    /// Whether somebody who came in a while ago still may.
    pub async fn still(&self, caller: &Caller) -> Result<(), Fault> {
        let now = self.store.clock_now();
        // What it came in with may have been replaced since; that opens nothing after its grace.
        let same =
            |key: &Key| key.rotated_at == caller.kept.rotated_at || key.replaced.is_some_and(|old| now < old.until);
        match self.find(caller.key).await?.filter(|known| known.key.is_alive(now) && same(&known.key)) {
            Some(_) => Ok(()),
            None => Err(Fault::new("unauthenticated", "the key was revoked or rotated, or has expired")),
        }
    }

    async fn find(&self, id: KeyId) -> Result<Option<Known>, Fault> {
        let fresh = |known: &&Known| known.at.elapsed() < KEY_TRUST;
        if let Some(known) = self.lock().get(&id).filter(fresh) {
            return Ok(Some(known.clone()));
        }
        let at = Instant::now();
        let Some((org, doc)) = wait::read(self.store.key(id)).await? else { return Ok(None) };
        let Some(key) = Key::of(&doc) else { return Err(Fault::internal(format!("{id} cannot be read"))) };
        let known = Known { org, key: Arc::new(key), at };
        let mut all = self.lock();
        if all.len() >= KEYS_KNOWN {
            all.clear();
        }
        all.insert(id, known.clone());
        Ok(Some(known))
    }

    /// Something about this key changed here: look again at once.
    pub fn forget(&self, id: KeyId) {
        self.lock().remove(&id);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<KeyId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
