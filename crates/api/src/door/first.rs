//! The first key: made when an installation begins, kept where only its owner can read it; and
//! another one, should it be lost.

use baton_core::access::change::{Act, Change, Found, KeyError, NewKey};
use baton_core::access::{Grant, Role};
use baton_core::command::Actor;
use baton_core::id::{Ids, KeyId, Seed};
use baton_core::{Micros, OrgId};
use baton_store::{CommitError, Entropy, Store, StoreError};
use baton_wire::Token;

/// Draws a key that nobody can guess.
pub fn draw(entropy: &dyn Entropy, now: Micros) -> Token {
    let (high, low) = entropy.words();
    let id = KeyId(Ids::new(Seed { high, low, at: now }).uuid());
    let mut secret = [0; 32];
    for half in secret.chunks_exact_mut(16) {
        let (a, b) = entropy.words();
        half[..8].copy_from_slice(&a.to_be_bytes());
        half[8..].copy_from_slice(&b.to_be_bytes());
    }
    Token::new(id, secret)
}

/// Founds the first org with this as its admin key, unless somebody has before; whether we did.
pub async fn found(store: &Store, token: &Token) -> Result<bool, StoreError> {
    let first = admin("first admin key", token);
    match store.commit(Found { org: OrgId::default(), first }, Actor::Engine).await {
        Ok(_) => Ok(true),
        Err(CommitError::Refused(KeyError::OrgExists(_))) => Ok(false),
        Err(CommitError::Refused(no)) => Err(StoreError::Rejected(no.to_string())),
        Err(CommitError::KeyReused) => Err(StoreError::Rejected("the first key was made under a key".to_owned())),
        Err(CommitError::Store(e)) => Err(e),
    }
}

/// Makes this another admin key of the first org, whoever else has one.
pub async fn another(store: &Store, token: &Token) -> Result<(), StoreError> {
    let act = Act::Create(Box::new(admin("another admin key", token)));
    let change = Change { org: OrgId::default(), id: token.id, act, by: None };
    match store.commit(change, Actor::Engine).await {
        Ok(_) => Ok(()),
        Err(CommitError::Refused(no)) => Err(StoreError::Rejected(no.to_string())),
        Err(CommitError::KeyReused) => Err(StoreError::Rejected("it was made under a key".to_owned())),
        Err(CommitError::Store(e)) => Err(e),
    }
}

/// An admin key that never expires.
pub fn admin(label: &str, token: &Token) -> NewKey {
    let grant = Grant::of(Role::Admin);
    NewKey { id: token.id, label: label.to_owned(), grant, proof: token.proof(), expires_at: None }
}
