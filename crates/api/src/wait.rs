//! Waiting for the store, never for ever.

use crate::limits;
use baton_store::StoreError;
use std::time::Duration;

/// An answer to a question. Giving up on it changes nothing.
pub async fn read<T>(asked: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    read_within(limits::STORE_WAIT, asked).await
}

pub async fn read_within<T>(
    limit: Duration,
    asked: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let slow = || Err(StoreError::Unavailable(format!("no answer within {} s", limit.as_secs())));
    tokio::time::timeout(limit, asked).await.unwrap_or_else(|_| slow())
}

/// `None` if it took too long: a commit that nobody waits for any more may still take place.
pub async fn commit<T>(asked: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(limits::STORE_WAIT, asked).await.ok()
}
