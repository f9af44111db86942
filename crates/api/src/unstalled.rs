//! A connection that fails when the other side accepts nothing for too long: whoever does not read
//! would hold its place, and what waits to be sent, for ever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

pub struct Unstalled<T> {
    inner: T,
    limit: Duration,
    /// Since the last byte that was accepted, if another one waits.
    stuck: Option<Pin<Box<Sleep>>>,
}

impl<T> Unstalled<T> {
    pub const fn new(inner: T, limit: Duration) -> Self {
        Self { inner, limit, stuck: None }
    }

    fn watched<R>(&mut self, cx: &mut Context<'_>, polled: Poll<io::Result<R>>) -> Poll<io::Result<R>> {
        if polled.is_ready() {
            self.stuck = None;
            return polled;
        }
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(self.limit)));
        match stuck.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Unstalled<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Unstalled<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.watched(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.watched(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_flush(cx);
        self.watched(cx, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.watched(cx, polled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::{Instant, advance};

    const LIMIT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn who_reads_nothing_is_given_up_on_and_who_reads_slowly_is_not() {
        let (mut reader, stream) = duplex(8);
        let mut stream = Unstalled::new(stream, LIMIT);
        let sent = tokio::spawn(async move {
            let sent = stream.write_all(&[7; 40]).await;
            (sent, Instant::now())
        });
        // Every few bytes are accepted shortly before it would have been too late.
        for _ in 0..3 {
            tokio::task::yield_now().await;
            advance(LIMIT - Duration::from_secs(1)).await;
            reader.read_exact(&mut [0; 8]).await.unwrap();
        }
        let last = Instant::now();
        let (sent, when) = sent.await.unwrap();
        assert_eq!(sent.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(when - last >= LIMIT, "{:?}", when - last);
    }
}
