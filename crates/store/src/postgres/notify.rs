//! Wake-ups between nodes: sent after the commit from a connection of their own, coalesced.
//!
//! A wake-up is a hint. Whoever waits also looks by himself now and then, so a lost one costs
//! a moment and nothing else.
//!
//! A node that is alone tells nobody: each message is a transaction, and has the server write its log once more, beside our
//! commits. So nodes greet when they come and say now and then that they are there, and whoever hears of another for the
//! first time wakes it for all that was not told meanwhile.

use super::link;
use super::{OPEN_WAIT, Shared};
use crate::group::Stirred;
use futures_util::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout};
use tokio_postgres::{AsyncMessage, Client, Error, NoTls};

const RECONNECT: Duration = Duration::from_secs(1);
/// Between two messages to the others: what is committed meanwhile is told with one.
const PACE: Duration = Duration::from_millis(2);
/// A node says at least this often that it is there.
const SAY_EVERY: Duration = Duration::from_secs(3);
/// A node that was not heard for so long is taken for gone.
const PRESENT_FOR: Duration = Duration::from_secs(10);
/// Whoever is there answers a greeting sooner; later answers are heard all the same.
const ANSWER_WAIT: Duration = Duration::from_millis(250);
/// Wake-ups heard and not yet passed on; more than these say nothing new.
const HEARD_MAX: usize = 64;

const JOBS: u8 = 1;
const TIMERS: u8 = 2;
const EVENTS: u8 = 4;
const LEASES: u8 = 8;
const DEFINITIONS: u8 = 16;
const OUTSIDE: u8 = 32;
/// A greeting: whoever hears it answers.
const HELLO: u8 = 64;
/// Only that somebody is there.
const HERE: u8 = 0;
const ALL: u8 = JOBS | TIMERS | EVENTS | LEASES | DEFINITIONS | OUTSIDE;

/// What there is to tell the others. Many commits may be told with one message.
#[derive(Default)]
pub(super) struct Outbox {
    bits: AtomicU8,
    posted: Notify,
    /// There is nobody to tell.
    alone: AtomicBool,
}

impl Outbox {
    pub fn post(&self, stirred: Stirred) {
        // Another node may serve what only workers serve here.
        let bits = if stirred.jobs || stirred.outside { JOBS | OUTSIDE } else { 0 }
            | if stirred.timers { TIMERS } else { 0 }
            | if stirred.events { EVENTS } else { 0 }
            | if stirred.leases { LEASES } else { 0 }
            | if stirred.definitions { DEFINITIONS } else { 0 };
        // Who is heard of just now is told everything.
        if bits != 0 && !self.alone.load(Ordering::Acquire) {
            self.say(bits);
        }
    }

    fn say(&self, bits: u8) {
        self.bits.fetch_or(bits, Ordering::AcqRel);
        self.posted.notify_one();
    }

    /// Another node was heard. Whatever it could not be told until now, it is told.
    fn heard(&self, bits: u8) {
        if self.alone.swap(false, Ordering::AcqRel) || bits & HELLO != 0 {
            self.say(ALL);
        }
    }
}

/// Channels belong to the whole database, so each schema has its own.
pub(super) fn channel(schema: &str) -> String {
    let digest = baton_core::Digest::of(&[schema.as_bytes()]).to_string();
    format!("baton_{}", &digest[..16])
}

pub(super) async fn run(shared: Arc<Shared>, channel: String) {
    loop {
        if let Err(e) = connected(&shared, &channel).await {
            tracing::warn!(error = link::text(&e), "wake-ups between nodes are interrupted; polling goes on");
        }
        tokio::time::sleep(RECONNECT).await;
    }
}

async fn connected(shared: &Shared, channel: &str) -> Result<(), Error> {
    let Ok(opened) = timeout(OPEN_WAIT, shared.config.connect(NoTls)).await else {
        tracing::warn!("the database does not answer; polling goes on");
        return Ok(());
    };
    let (client, mut connection) = opened?;
    let (tell, mut heard) = mpsc::channel(HEARD_MAX);
    let driver = tokio::spawn(async move {
        while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
            match message {
                Ok(AsyncMessage::Notification(note)) => {
                    // Full: those who would be woken have been woken already.
                    let _ = tell.try_send((note.process_id(), note.payload().to_owned()));
                }
                Ok(_) => {}
                Err(e) => {
                    tracing::debug!(%e, "the wake-up connection ended");
                    return;
                }
            }
        }
    });
    let result = exchange(shared, channel, &client, &mut heard).await;
    driver.abort();
    result
}

async fn exchange(
    shared: &Shared,
    channel: &str,
    client: &Client,
    heard: &mut mpsc::Receiver<(i32, String)>,
) -> Result<(), Error> {
    // The channel's name is made of hexadecimal digits, so it needs no quoting.
    client.batch_execute(&format!("LISTEN {channel}")).await?;
    let own: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await?.get(0);
    let send = client.prepare("SELECT pg_notify($1, $2)").await?;
    // Whatever was said while nobody listened.
    hear(shared, ALL);
    shared.outbox.alone.store(false, Ordering::Release);
    client.query(&send, &[&channel, &HELLO.to_string()]).await?;
    let mut next = Instant::now();
    let mut company = next + ANSWER_WAIT;
    let mut said = next;
    loop {
        let posted = async {
            tokio::time::sleep_until(next).await;
            shared.outbox.posted.notified().await;
        };
        tokio::select! {
            biased;
            message = heard.recv() => match message {
                Some((from, payload)) if from != own => {
                    let bits = payload.parse().unwrap_or(ALL);
                    company = Instant::now() + PRESENT_FOR;
                    shared.outbox.heard(bits);
                    hear(shared, bits);
                }
                Some(_) => {}
                None => return Ok(()),
            },
            () = posted => {
                let bits = shared.outbox.bits.swap(0, Ordering::AcqRel);
                if bits != 0 {
                    client.query(&send, &[&channel, &bits.to_string()]).await?;
                    said = Instant::now();
                    next = said + PACE;
                }
            }
            () = tokio::time::sleep_until(said + SAY_EVERY) => {
                client.query(&send, &[&channel, &HERE.to_string()]).await?;
                said = Instant::now();
            }
            () = tokio::time::sleep_until(company), if !shared.outbox.alone.load(Ordering::Acquire) => {
                shared.outbox.alone.store(true, Ordering::Release);
            }
        }
    }
}

fn hear(shared: &Shared, bits: u8) {
    shared.signals.stir(Stirred {
        jobs: bits & JOBS != 0,
        outside: bits & OUTSIDE != 0,
        timers: bits & TIMERS != 0,
        leases: bits & LEASES != 0,
        events: false,
        definitions: false,
    });
    if bits & DEFINITIONS != 0 {
        shared.news.notify_one();
    }
    if bits & EVENTS != 0 {
        shared.tail.notify_one();
    }
}
