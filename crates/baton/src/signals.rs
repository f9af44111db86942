//! Being told to stop: the first time nicely, the second time at once.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// The news that the process was told to stop.
pub struct Told(watch::Receiver<bool>);

impl Told {
    /// Whoever has the sender tells.
    pub fn by() -> (watch::Sender<bool>, Self) {
        let (tell, told) = watch::channel(false);
        (tell, Self(told))
    }

    /// For a start that has to be undone.
    pub fn already() -> Self {
        Self(watch::channel(true).1)
    }

    pub async fn stopped(mut self) {
        // If nobody can tell any more, nobody should wait for it.
        let _ = self.0.wait_for(|told| *told).await;
    }
}

/// From here on signals are ours. Must be called before anybody is told that we are up.
pub fn listen() -> io::Result<Told> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (tell, told) = watch::channel(false);
    tokio::spawn(async move {
        let name = next(&mut interrupt, &mut terminate).await.0;
        tracing::info!(signal = name, "stopping; a second signal ends it at once");
        tell.send_replace(true);
        let (name, code) = next(&mut interrupt, &mut terminate).await;
        tracing::warn!(signal = name, "ended at once");
        std::process::exit(code);
    });
    Ok(Told(told))
}

/// With the exit code that shells expect for it.
async fn next(interrupt: &mut Signal, terminate: &mut Signal) -> (&'static str, i32) {
    tokio::select! {
        biased;
        _ = interrupt.recv() => ("SIGINT", 130),
        _ = terminate.recv() => ("SIGTERM", 143),
    }
}
