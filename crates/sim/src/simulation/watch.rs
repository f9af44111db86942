//! Whoever looks at the disk after every commit, and the first thing that was found wrong.

use baton_core::JobId;
use tokio::sync::watch;

pub(super) trait Watch: Send + Sync {
    /// Something was committed: checks, and keeps the first violation.
    fn note(&self);

    fn violate(&self, text: String);

    /// Something worth counting that is no event.
    fn happened(&self, what: &str, times: u64);

    /// A client was told that this job exists.
    fn promise(&self, job: JobId);
}

/// The first violation; nothing is to be learned from those that follow from it.
pub(super) struct Violation(watch::Sender<Option<String>>);

impl Violation {
    pub fn none() -> Self {
        Self(watch::Sender::new(None))
    }

    pub fn set(&self, text: String) {
        self.0.send_if_modified(|first| {
            let news = first.is_none();
            if news {
                *first = Some(text);
            }
            news
        });
    }

    /// Resolves when something was violated.
    pub async fn found(&self) -> String {
        let mut violation = self.0.subscribe();
        match violation.wait_for(Option::is_some).await {
            Ok(text) => text.clone().unwrap_or_default(),
            // We hold the sender, so it cannot be gone.
            Err(_) => std::future::pending().await,
        }
    }
}
