//! The first key of an installation, and another one for those who have lost it.

use crate::fault::Fault;
use crate::local::ADMIN_KEY;
use baton_api::door::first;
use baton_core::access::Key;
use baton_engine::{OsEntropy, node};
use baton_store::{Store, StoreError};
use baton_wire::Token;
use std::fs;
use std::path::Path;

/// Makes the first org and its admin key, if this installation has none. The key is written down
/// before it is made: a crash in between leaves a key that opens nothing, never a door without one.
/// Answers with it if it was made just now.
pub async fn key(store: &Store, data_dir: &Path) -> Result<Option<Token>, Fault> {
    let unusable = |error: &dyn std::fmt::Display| unusable(data_dir, error);
    let draw = || Ok(first::draw(&OsEntropy::default(), store.clock_now()).reveal());
    let text = node::load_secret(data_dir, ADMIN_KEY, draw).map_err(|e| unusable(&e))?;
    let token: Token = text.parse().map_err(|e| unusable(&e))?;
    if first::found(store, &token).await.map_err(|e| no_store(&e))? {
        return Ok(Some(token));
    }
    // Another node made the first key, or it was revoked: what opens nothing is not kept.
    let known = store.key(token.id).await.map_err(|e| no_store(&e))?;
    let opens =
        known.and_then(|(_, doc)| Key::of(&doc)).is_some_and(|key| key.accepts(&token.proof(), store.clock_now()));
    if !opens {
        tracing::warn!(data_dir = %data_dir.display(), "the key kept in {ADMIN_KEY} opens nothing and is removed");
        fs::remove_file(data_dir.join(ADMIN_KEY)).map_err(|e| unusable(&e))?;
    }
    Ok(None)
}

/// Makes another admin key of the first org and keeps it in the place of the first. Whoever can start
/// a server on this directory and database holds everything anyway.
pub async fn another(store: &Store, data_dir: &Path) -> Result<Token, Fault> {
    let token = first::draw(&OsEntropy::default(), store.clock_now());
    // Made before it is kept: what is kept now may still open, and is not given up for nothing.
    first::another(store, &token).await.map_err(|e| no_store(&e))?;
    node::keep_secret(data_dir, ADMIN_KEY, &token.reveal()).map_err(|e| unusable(data_dir, &e))?;
    Ok(token)
}

fn unusable(data_dir: &Path, error: &dyn std::fmt::Display) -> Fault {
    Fault::new("start_failed", format!("the file {ADMIN_KEY} in {}: {error}", data_dir.display()))
}

fn no_store(error: &StoreError) -> Fault {
    Fault::new("start_failed", format!("the admin key cannot be made: {error}"))
}
