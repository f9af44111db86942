//! Closing ranges of the history under a key that the database does not hold.

use crate::engine::Shared;
use crate::seal_memory::{self, Heads};
use baton_core::OrgId;
use baton_core::command::Actor;
use baton_core::seal::{Close, Key, Seal, SealHead};
use baton_store::{CommitError, StoreError};
use std::path::Path;
use std::sync::Arc;

/// Events under one seal.
const RANGE_MAX: usize = 10_000;
/// How often somebody else may be faster before the rest is left to him.
const RACES_MAX: u32 = 8;

/// What trying to seal a range came to.
enum Tried {
    Whole,
    /// There may be more to seal.
    More,
    /// Somebody else sealed first.
    Raced,
}

pub(crate) async fn run(shared: Arc<Shared>, key: Key) {
    // At once, not only after the first rest: a key that does not fit is better known early.
    loop {
        if let Err(e) = seal_all(&shared, &key).await {
            shared.trouble(&e);
        }
        if !shared.rest(shared.options.seal_every).await {
            return;
        }
    }
}

/// Also called when the engine stops, so that a quiet history is closed whole.
pub(crate) async fn seal_all(shared: &Shared, key: &Key) -> Result<(), StoreError> {
    let mut memory = shared.options.seal_memory.as_deref().and_then(Memory::load);
    let mut outcome = Ok(());
    for org in shared.store.orgs().await? {
        // What is wrong with one org's history does not leave the others' open.
        if let Err(e) = seal_org(shared, &org, key, memory.as_mut()).await {
            tracing::warn!(%org, %e, "the history of an org could not be sealed");
            outcome = Err(e);
        }
    }
    outcome
}

async fn seal_org(
    shared: &Shared,
    org: &OrgId,
    key: &Key,
    mut memory: Option<&mut Memory<'_>>,
) -> Result<(), StoreError> {
    let mut races = 0;
    while races < RACES_MAX {
        match seal_one(shared, org, key, memory.as_deref_mut()).await? {
            Tried::Whole => return Ok(()),
            Tried::More => {}
            // Another node, or our own seal of before, whose answer nobody heard. It is as good as this one, but
            // it is to be remembered, and it may cover less.
            Tried::Raced => races += 1,
        }
    }
    Ok(())
}

async fn seal_one(
    shared: &Shared,
    org: &OrgId,
    key: &Key,
    mut memory: Option<&mut Memory<'_>>,
) -> Result<Tried, StoreError> {
    let unsealed = shared.store.unsealed(org, RANGE_MAX).await?;
    let last = match &unsealed.last {
        // Seals of two keys in one chain could be verified by nobody.
        Some(last) if last.mac_under(key) != last.mac => {
            tracing::warn!(
                %org, n = last.n,
                "the history is sealed under another key; give all nodes the same one (BATON_SEAL_KEY or seal_key_file)"
            );
            return Ok(Tried::Whole);
        }
        Some(last) => last.head(),
        None => SealHead::NONE,
    };
    if let Some(memory) = memory.as_deref_mut()
        && !memory.agrees(org, last)
    {
        return Ok(Tried::Whole);
    }
    let count = unsealed.root.count;
    if count == 0 {
        return Ok(Tried::Whole);
    }
    let seal = Seal::next(org, last, unsealed.to_pos, unsealed.root, shared.store.now().await?, key);
    match shared.store.commit(Close { seal: seal.clone() }, Actor::Engine).await {
        Ok(()) => {
            metrics::counter!("baton_seals_total").increment(1);
            // In the log too: whoever could rewrite the database cannot rewrite what was shipped.
            tracing::info!(
                %org, n = seal.n, from = seal.from_pos, to = seal.to_pos, count, root = %seal.root, mac = %seal.mac,
                "history sealed"
            );
            if let Some(memory) = memory {
                memory.keep(org, seal.head());
            }
            Ok(if usize::try_from(count) == Ok(RANGE_MAX) { Tried::More } else { Tried::Whole })
        }
        Err(CommitError::Refused(_) | CommitError::KeyReused) => Ok(Tried::Raced),
        Err(CommitError::Store(e)) => Err(e),
    }
}

/// What is remembered outside the database.
struct Memory<'a> {
    path: &'a Path,
    heads: Heads,
}

impl<'a> Memory<'a> {
    /// What cannot be read is left as it is: it may still be mended.
    fn load(path: &'a Path) -> Option<Self> {
        match seal_memory::load(path) {
            Ok(heads) => Some(Self { path, heads }),
            Err(e) => {
                tracing::error!(%e, "the memory of seals cannot be read");
                None
            }
        }
    }

    /// Whether the last seal that was found is no older than the one remembered. A newer one, of
    /// another node or of just before a crash, is remembered from now on: its MAC was verified.
    fn agrees(&mut self, org: &OrgId, found: SealHead) -> bool {
        let remembered = self.heads.get(org).copied().unwrap_or(SealHead::NONE);
        if remembered.n > found.n || remembered.n == found.n && remembered.mac != found.mac {
            tracing::error!(
                %org, remembered = remembered.n, found = found.n,
                "seals are gone; run baton audit. Nothing is sealed"
            );
            return false;
        }
        if remembered.n < found.n {
            self.keep(org, found);
        }
        true
    }

    /// Only after the commit: a memory ahead of the database would cry wolf after a crash.
    fn keep(&mut self, org: &OrgId, head: SealHead) {
        self.heads.insert(org.clone(), head);
        if let Err(e) = seal_memory::save(self.path, &self.heads) {
            tracing::error!(%e, "the memory of seals cannot be written");
        }
    }
}
