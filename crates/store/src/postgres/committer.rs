//! Committers: each takes what waits, commits it as a group on its own connection, answers,
//! and begins again.
//!
//! Two at work would only get in each other's way: they want the same rows (an org's account, a lane), each
//! would get half of what waits, and a statement for many rows costs little more than one for few. So the first
//! does everything, and the others step in while it is held up, by a row that another node holds for instance, or by
//! a submission that is large enough to be a group of its own, such as a turn of a pool with many slots.

use super::commit::{Failed, Lost, Patience, attempt, committed};
use super::gather::{Gather, WINDOW};
use super::link::{self, Link};
use super::resolve::{Became, resolve};
use super::{OPEN_WAIT, Shared};
use crate::error::StoreError;
use crate::group::{CONFLICT_TRIES, GROUP_MAX, Message, Work, alone};
use crate::step_back::step_back;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, Notify, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How often a group looks for a new connection before its members are told that there is none.
const CONNECT_TRIES: u32 = 6;

/// How long the members of a spoiled group are run one by one; the rest is turned away, because
/// others wait behind them.
const SINGLY_FOR: Duration = Duration::from_secs(15);

/// A group that takes longer than this holds the others up.
const HELD_UP: Duration = Duration::from_millis(20);

/// How often a committer steps back for others who are about to submit something, before it begins a group.
const GATHER_MAX: u32 = 3;

/// Who is waited for before a group is begun.
struct Awaited {
    wanted: usize,
    there: usize,
    since: Instant,
}

struct Line {
    waiting: Mutex<mpsc::Receiver<Message>>,
    first: First,
    /// One permit per committer at work; closing waits for all of them.
    busy: Semaphore,
    committers: usize,
    /// Set when somebody closes the line, so that whoever waits at its head lets go of it.
    closing: watch::Sender<bool>,
}

/// What the first committer is doing.
#[derive(Default)]
struct First {
    /// Counts the beginnings and the ends of its groups, so it is odd while it is at one.
    turns: AtomicU64,
    /// It is at a large group.
    at_large: AtomicBool,
    large: Notify,
    /// The others are not watching; the next group wakes them.
    unwatched: AtomicBool,
    watch: Notify,
    /// Told at the end of each group.
    free: Notify,
}

impl First {
    fn begins(&self, large: bool) {
        self.at_large.store(large, Ordering::SeqCst);
        self.turns.fetch_add(1, Ordering::SeqCst);
        if large {
            self.large.notify_waiters();
        }
        if self.unwatched.swap(false, Ordering::SeqCst) {
            self.watch.notify_waiters();
        }
    }

    fn ends(&self) {
        self.turns.fetch_add(1, Ordering::SeqCst);
        // Nobody listens as a rule, and then it costs nothing.
        self.free.notify_waiters();
    }

    /// Until it has been at one group for too long, or is at one that will take long.
    async fn held_up(&self) -> u64 {
        loop {
            let mut large = pin!(self.large.notified());
            large.as_mut().enable();
            let turns = self.turns.load(Ordering::SeqCst);
            if turns % 2 == 1 && self.at_large.load(Ordering::SeqCst) {
                return turns;
            }
            tokio::select! {
                biased;
                () = large => continue,
                () = tokio::time::sleep(HELD_UP) => {}
            }
            if self.turns.load(Ordering::SeqCst) != turns {
                continue;
            }
            if turns % 2 == 1 {
                return turns;
            }
            // Nothing happens: no need to look until something does.
            let mut woken = pin!(self.watch.notified());
            woken.as_mut().enable();
            self.unwatched.store(true, Ordering::SeqCst);
            if self.turns.load(Ordering::SeqCst) == turns {
                woken.await;
            }
        }
    }

    /// Until it has ended that group.
    async fn goes_on(&self, turns: u64) {
        let mut freed = pin!(self.free.notified());
        freed.as_mut().enable();
        if self.turns.load(Ordering::SeqCst) == turns {
            freed.await;
        }
    }
}

pub(super) fn spawn(shared: &Arc<Shared>, waiting: mpsc::Receiver<Message>, committers: usize) -> Vec<JoinHandle<()>> {
    let line = Arc::new(Line {
        waiting: Mutex::new(waiting),
        first: First::default(),
        busy: Semaphore::new(committers),
        committers,
        closing: watch::Sender::new(false),
    });
    (0..committers).map(|n| tokio::spawn(run(shared.clone(), line.clone(), n == 0))).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Alive,
    #[cfg(feature = "faults")]
    Dead,
}

async fn run(shared: Arc<Shared>, line: Arc<Line>, first: bool) {
    let mut link = None;
    if !first {
        // Ready when it is needed; without one, it is looked for then.
        link = tokio::time::timeout(OPEN_WAIT, Link::open(&shared.config)).await.ok().and_then(Result::ok);
    }
    let mut closed = line.closing.subscribe();
    // The group of the first that is helped out with.
    let mut helping = None;
    let mut gather = Gather::default();
    loop {
        let group_of_first = match helping {
            None if !first => {
                let held_up = tokio::select! {
                    biased;
                    _ = closed.wait_for(|closed| *closed) => return,
                    held_up = line.first.held_up() => held_up,
                };
                *helping.insert(held_up)
            }
            helped => helped.unwrap_or_default(),
        };
        let mut works = Vec::new();
        let mut closing = None;
        let mut large;
        let mut messages;
        let permit = {
            let mut waiting = line.waiting.lock().await;
            let message = tokio::select! {
                biased;
                _ = closed.wait_for(|closed| *closed) => return,
                () = line.first.goes_on(group_of_first), if !first => {
                    helping = None;
                    continue;
                }
                message = waiting.recv() => message,
            };
            let Some(message) = message else { return };
            large = message.is_large();
            take(message, &mut works, &mut closing);
            messages = 1;
            let max = group_max(&shared);
            let mut awaited: Option<Awaited> = None;
            for round in 0.. {
                let before = works.len();
                while works.len() < max
                    && !large
                    && closing.is_none()
                    && let Ok(message) = waiting.try_recv()
                {
                    large = message.is_large();
                    take(message, &mut works, &mut closing);
                    messages += 1;
                }
                if large || closing.is_some() || works.len() >= max {
                    break;
                }
                match &awaited {
                    Some(awaited) if messages < awaited.wanted && awaited.since.elapsed() < WINDOW => {}
                    Some(_) => break,
                    None if round < GATHER_MAX && (round == 0 || works.len() > before) => {}
                    None => match gather.worth(messages) {
                        Some(wanted) => {
                            awaited = Some(Awaited { wanted, there: messages, since: Instant::now() });
                        }
                        None => break,
                    },
                }
                // Those who were answered together come again together, if they are let.
                step_back().await;
            }
            if let Some(awaited) = awaited {
                gather.waited(awaited.there, messages);
            }
            line.busy.acquire().await
        };
        if first {
            line.first.begins(large);
        }
        shared.signals.idle.join(&mut works);
        // What a purge removes must not be what the commands beside it have just loaded.
        let (purges, works): (Vec<_>, Vec<_>) = works.into_iter().partition(|work| matches!(work, Work::Purge(_)));
        let told = || gather.answers(messages, line.waiting.try_lock().map_or(0, |waiting| waiting.len()));
        let mut fate = group(&shared, &mut link, works, told).await;
        if fate == Fate::Alive {
            fate = group(&shared, &mut link, purges, || {}).await;
        }
        drop(permit);
        if first {
            line.first.ends();
        }
        if fate != Fate::Alive {
            crash(&shared, &line).await;
            return;
        }
        if let Some(done) = closing {
            close(&line).await;
            let _ = done.send(());
            return;
        }
    }
}

fn take(message: Message, works: &mut Vec<Work>, closing: &mut Option<oneshot::Sender<()>>) {
    match message {
        Message::Works(more) => works.extend(more),
        Message::Close(done) => *closing = Some(done),
    }
}

fn group_max(shared: &Shared) -> usize {
    #[cfg(feature = "faults")]
    if let Some(faults) = &shared.options.faults {
        return faults.group_max();
    }
    let _ = shared;
    GROUP_MAX
}

async fn close(line: &Line) {
    line.closing.send_replace(true);
    let mut waiting = line.waiting.lock().await;
    waiting.close();
    while let Some(message) = waiting.recv().await {
        if let Message::Works(works) = message {
            works.into_iter().for_each(|work| work.fail(StoreError::Closed));
        }
    }
    // The other committers finish what they have begun.
    let _ = line.busy.acquire_many(u32::try_from(line.committers).unwrap_or(1)).await;
}

async fn crash(shared: &Shared, line: &Line) {
    line.closing.send_replace(true);
    line.waiting.lock().await.close();
    #[cfg(feature = "faults")]
    if let Some(faults) = &shared.options.faults {
        faults.crashed();
    }
    let _ = shared;
}

/// Runs a group, and its members one by one if the group as a whole fails. `told` is called before those of a whole group
/// are answered.
async fn group(shared: &Shared, link: &mut Option<Link>, mut works: Vec<Work>, told: impl FnOnce()) -> Fate {
    if works.is_empty() {
        return Fate::Alive;
    }
    match tries(shared, link, &mut works, Patience::Long).await {
        Ok(()) => {
            told();
            works.into_iter().for_each(Work::answer);
        }
        Err(Ended::Spoiled(why)) => {
            let until = Instant::now() + SINGLY_FOR;
            for work in alone(works) {
                let mut alone = vec![work];
                if Instant::now() > until {
                    fail(alone, &StoreError::Unavailable(why.to_string()));
                    continue;
                }
                match tries(shared, link, &mut alone, Patience::Short).await {
                    Ok(()) => alone.into_iter().for_each(Work::answer),
                    Err(Ended::Spoiled(why) | Ended::Failed(why)) => fail(alone, &why),
                    #[cfg(feature = "faults")]
                    Err(Ended::Dead) => return dead(alone),
                }
            }
        }
        Err(Ended::Failed(why)) => fail(works, &why),
        #[cfg(feature = "faults")]
        Err(Ended::Dead) => return dead(works),
    }
    Fate::Alive
}

fn fail(works: Vec<Work>, why: &StoreError) {
    tracing::error!(%why, "commands could not be committed");
    works.into_iter().for_each(|work| work.fail(why.clone()));
}

/// A dead process answers nobody, not even by hanging up.
#[cfg(feature = "faults")]
fn dead(works: Vec<Work>) -> Fate {
    std::mem::forget(works);
    Fate::Dead
}

enum Ended {
    Spoiled(StoreError),
    Failed(StoreError),
    /// Nobody is left to answer.
    #[cfg(feature = "faults")]
    Dead,
}

/// Tries until it is committed, refused by the database, or there has been enough trying.
async fn tries(shared: &Shared, link: &mut Option<Link>, works: &mut [Work], patience: Patience) -> Result<(), Ended> {
    let mut connects = 0;
    let mut conflicts = 0;
    loop {
        let Some(open) = link else {
            let opened = tokio::time::timeout(OPEN_WAIT, Link::open(&shared.config)).await;
            let why = match opened {
                Ok(Ok(fresh)) => {
                    *link = Some(fresh);
                    continue;
                }
                Ok(Err(e)) => link::text(&e),
                Err(_) => "it does not answer".to_owned(),
            };
            if connects == CONNECT_TRIES {
                return Err(Ended::Failed(StoreError::Unavailable(why)));
            }
            tracing::warn!(why, "cannot connect to the database; trying again");
            tokio::time::sleep(Duration::from_millis(50 << connects)).await;
            connects += 1;
            continue;
        };
        let outcome = open.carrying(attempt(shared, open, works, patience)).await;
        let in_the_way = matches!(outcome, Err(Failed::Again));
        match outcome {
            Ok(()) => return Ok(()),
            Err(Failed::Spoiled(why)) => return Err(Ended::Spoiled(why)),
            Err(Failed::Down(why)) => return Err(Ended::Failed(why)),
            Err(Failed::Again) => {}
            Err(Failed::Gone) => {
                *link = None;
                shared.forget();
            }
            Err(Failed::Lost(lost)) => {
                *link = None;
                shared.forget();
                if !repeats_blindly(shared) {
                    match resolve(shared, &lost).await {
                        Became::Committed => {
                            let Lost { xid, world, .. } = *lost;
                            committed(shared, world, xid.as_deref(), None);
                            return Ok(());
                        }
                        Became::Aborted => {}
                        Became::Unknown => return Err(Ended::Failed(StoreError::OutcomeUnknown)),
                    }
                }
            }
            #[cfg(feature = "faults")]
            Err(Failed::Crashed) => {
                *link = None;
                return Err(Ended::Dead);
            }
        }
        conflicts += 1;
        if conflicts >= CONFLICT_TRIES {
            let why = StoreError::Unavailable("the commit did not go through, repeatedly".to_owned());
            // One member may be what the whole group stumbles over.
            return Err(if in_the_way { Ended::Spoiled(why) } else { Ended::Failed(why) });
        }
        // Spread out those who got in each other's way.
        let (chance, _) = shared.options.entropy.words();
        tokio::time::sleep(Duration::from_micros((500 << conflicts) + chance % 1_000)).await;
    }
}

fn repeats_blindly(shared: &Shared) -> bool {
    #[cfg(feature = "faults")]
    if let Some(faults) = &shared.options.faults {
        return faults.sabotage() == Some(crate::faults::Sabotage::RepeatBlindly);
    }
    let _ = shared;
    false
}
