//! Credits for whoever starts: enough to try things out, given once.

use crate::fault::Fault;
use baton_core::OrgId;
use baton_core::command::Actor;
use baton_core::credits::Credits;
use baton_core::ledger::grant::Grant;
use baton_store::Store;

pub const AMOUNT: Credits = Credits::whole(1_000);
/// The same key again gives nothing more.
const KEY: &str = "welcome";

/// Gives the first org its first credits, unless it got them before. What was given, if it was just now.
pub async fn grant(store: &Store) -> Result<Option<Credits>, Fault> {
    let note = Some("to try things out".to_owned());
    let grant = Grant { org: OrgId::default(), amount: AMOUNT, key: KEY.to_owned(), note };
    match store.commit(grant, Actor::Engine).await {
        Ok(granted) => Ok(granted.posting.map(|_| AMOUNT)),
        Err(error) => Err(Fault::new("start_failed", format!("the first credits cannot be given: {error}"))),
    }
}
