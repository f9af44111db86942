//! Readers: a few threads with connections of their own, so that reading never waits for the
//! writer nor blocks the runtime.

use super::{connect, store_error};
use crate::error::StoreError;
use crate::group::panic_text;
use rusqlite::Connection;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

const READERS: usize = 3;
/// Questions that may wait at once.
const READS_MAX: usize = 1_024;

type Question = Box<dyn FnOnce(&mut Connection) + Send>;

pub(super) struct Readers {
    /// `None` once closed.
    ask: Mutex<Option<SyncSender<Question>>>,
}

impl Readers {
    pub fn spawn(path: &Path) -> rusqlite::Result<Self> {
        let (ask, asked) = sync_channel::<Question>(READS_MAX);
        let asked = Arc::new(Mutex::new(asked));
        for n in 0..READERS {
            let mut conn = connect(path)?;
            conn.pragma_update(None, "query_only", true)?;
            let asked = asked.clone();
            let named = std::thread::Builder::new().name(format!("sqlite-read-{n}"));
            if let Err(e) = named.spawn(move || serve(&mut conn, &asked)) {
                tracing::error!(%e, "cannot start a reader thread");
                return Err(rusqlite::Error::InvalidQuery);
            }
        }
        Ok(Self { ask: Mutex::new(Some(ask)) })
    }

    pub async fn run<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, heard) = oneshot::channel();
        let question: Question = Box::new(move |conn| {
            let _ = reply.send(answer(f, conn));
        });
        let sent = match &*self.ask.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(ask) => ask.try_send(question),
            None => return Err(StoreError::Closed),
        };
        match sent {
            Ok(()) => heard.await.map_err(|_| StoreError::Closed)?,
            Err(TrySendError::Full(_)) => Err(StoreError::Overloaded),
            Err(TrySendError::Disconnected(_)) => Err(StoreError::Closed),
        }
    }

    pub fn open_or_closed(&self) -> Result<(), StoreError> {
        let open = self.ask.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if open { Ok(()) } else { Err(StoreError::Closed) }
    }

    /// What was asked is answered; nothing more is.
    pub fn close(&self) {
        self.ask.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Ends when the store is closed or dropped.
fn serve(conn: &mut Connection, asked: &Mutex<Receiver<Question>>) {
    loop {
        let question = asked.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(question) = question else { return };
        question(conn);
    }
}

/// A question that panics is our fault, and told as that; the thread and its connection go on.
fn answer<T>(
    question: impl FnOnce(&mut Connection) -> Result<T, StoreError>,
    conn: &mut Connection,
) -> Result<T, StoreError> {
    let answered = catch_unwind(AssertUnwindSafe(|| question(conn)));
    answered.unwrap_or_else(|panic| Err(StoreError::Panicked(panic_text(&*panic))))
}

/// Ends the query when nobody waits for its answer any more.
struct Interrupt(rusqlite::InterruptHandle);

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.0.interrupt();
    }
}

/// One long question on a thread of its own.
pub(super) async fn apart<T: Send + 'static>(
    path: &Path,
    f: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let path = path.to_owned();
    let (opened, hear_opened) = oneshot::channel();
    let (reply, heard) = oneshot::channel();
    std::thread::Builder::new()
        .name("sqlite-read-apart".to_owned())
        .spawn(move || {
            let conn = connect(&path).and_then(|conn| {
                conn.pragma_update(None, "query_only", true)?;
                // What is sorted may be longer than memory should be.
                conn.pragma_update(None, "temp_store", "FILE")?;
                Ok(conn)
            });
            match conn {
                // Nobody waits any more: then nothing is asked either.
                Ok(mut conn) if opened.send(Interrupt(conn.get_interrupt_handle())).is_ok() => {
                    let _ = reply.send(answer(f, &mut conn));
                }
                Ok(_) => {}
                Err(e) => {
                    let _ = reply.send(Err(store_error(e)));
                }
            }
        })
        .map_err(|e| StoreError::Unavailable(e.to_string()))?;
    let interrupt = hear_opened.await;
    let answer = heard.await.map_err(|_| StoreError::Closed)?;
    drop(interrupt);
    answer
}
