//! Letting others go first.

use std::future::poll_fn;
use std::task::Poll;

/// Goes on behind whoever could go on now. Unlike tokio's own way, which waits until this thread has nothing else to do,
/// another thread may take it over: whoever is let first may block this one.
pub async fn step_back() {
    let mut stepped = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut stepped, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
