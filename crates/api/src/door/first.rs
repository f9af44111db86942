//! The first key: made when an installation begins, kept where only its owner can read it.

use baton_core::access::change::{Found, KeyError, NewKey};
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
    let first = NewKey {
        id: token.id,
        label: "first admin key".to_owned(),
        grant: Grant::of(Role::Admin),
        proof: token.proof(),
        expires_at: None,
    };
    match store.commit(Found { org: OrgId::default(), first }, Actor::Engine).await {
        Ok(_) => Ok(true),
        Err(CommitError::Refused(KeyError::OrgExists(_))) => Ok(false),
        Err(CommitError::Refused(no)) => Err(StoreError::Rejected(no.to_string())),
        Err(CommitError::KeyReused) => Err(StoreError::Rejected("the first key was made under a key".to_owned())),
        Err(CommitError::Store(e)) => Err(e),
    }
}
