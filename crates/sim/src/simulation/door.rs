//! What clients do at the door: keys, and an endpoint that is told things.

use super::client::Client;
use crate::endpoints;
use crate::lab::name;
use anyhow::Result;
use baton_core::access::change::{Act, Change, NewKey};
use baton_core::access::{Ended, Grant, Proof, Role};
use baton_core::command::Actor;
use baton_core::id::{KeyId, WebhookId};
use baton_core::rng::Rng;
use baton_core::time::Span;
use baton_core::webhook::change::{Act as Hook, Spec};
use baton_core::webhook::{self, Filter};
use baton_core::{Digest, Micros, OrgId};
use baton_store::{CommitError, Cursor, Store};
use std::collections::BTreeSet;
use uuid::Uuid;

/// From now on an endpoint is told whatever completes.
pub(super) async fn hook(client: &mut Client<'_>) -> Result<()> {
    let made = |store: Store| {
        let filter = Filter { types: Some(BTreeSet::from([name("job.completed")])), projects: None };
        let spec = Spec { label: "ours".to_owned(), url: endpoints::MOODY.to_owned(), filter };
        let signer = endpoints::signer().fingerprint();
        let act = Hook::Create { spec, place: Cursor::START.to_string(), signer, room: true };
        let create = webhook::change::Change { org: OrgId::default(), id: WebhookId(Uuid::from_u128(1)), act };
        // Refused if it was heard before.
        async move { (!matches!(store.commit(create, Actor::Api).await, Err(CommitError::Store(_)))).then_some(()) }
    };
    client.until_answered(made).await?;
    client.book.hooked = true;
    Ok(())
}

/// Keys come and go; nothing else depends on them here.
pub(super) async fn lock(client: &Client<'_>, rng: &mut Rng) {
    let id = KeyId(Uuid::from_u128(u128::from(100 + rng.below(3))));
    let proof = Proof(Digest([rng.below(9) as u8; 32]));
    let act = match rng.below(5) {
        0 => Act::Revoke,
        1 => Act::Rotate { proof, grace: Span::secs(60) },
        2 => Act::Leave(Ended { session: proof.0, until: Micros(i64::MAX) }),
        _ => {
            let grant = Grant::of(Role::Viewer);
            Act::Create(Box::new(NewKey { id, label: "one".to_owned(), grant, proof, expires_at: None }))
        }
    };
    client.shout(Change { org: OrgId::default(), id, act, by: None }).await;
}
