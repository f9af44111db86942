//! The one who writes: takes what waits, runs it as a group, answers, and begins again.

use super::ahead::{Ahead, Group};
use super::arrivals::Arriving;
use super::checkpoint::{self, Checkpointer};
use super::commit::{self, Fate};
use super::data_dir::DirLock;
use super::open_agents::OpenAgents;
use super::open_jobs::OpenJobs;
use super::open_lanes::OpenLanes;
use super::query;
use super::ranks::Ranks;
use crate::error::StoreError;
use crate::group::{GROUP_MAX, Message, Work};
use crate::known::Known;
use crate::open::OpenOptions;
use crate::records::ListOrgs;
use crate::signals::Signals;
use crate::stand_by::Idle;
use baton_core::Micros;
use rusqlite::Connection;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// How often the writer looks for more before it sleeps: some fifty microseconds, a quarter of what a commit takes.
const LOOKS: u32 = 1_000;

/// The writing connection with the counters that only its owner may use.
pub struct Inner {
    pub(super) conn: Connection,
    pub(super) next_pos: i64,
    /// Groups that were begun.
    pub(super) groups: u64,
    pub(super) arriving: Arriving,
    pub(super) open_agents: OpenAgents,
    pub(super) open_jobs: OpenJobs,
    pub(super) open_lanes: OpenLanes,
    pub(super) ranks: Ranks,
}

impl Inner {
    /// Positions of sealed events are never given again, even if the events are gone.
    pub(super) fn new(conn: Connection) -> rusqlite::Result<Self> {
        let max = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
        let seals = max("SELECT max(to_pos) FROM seal")?;
        let mut last = seals.unwrap_or(0);
        // The key is led by the org: one step an org instead of a walk over the whole history.
        for org in query::orgs(&conn, &ListOrgs::ALL)? {
            let newest = "SELECT max(pos) FROM event WHERE org = ?1";
            last = last.max(conn.query_row(newest, [org.as_str()], |row| row.get(0))?);
        }
        Ok(Self {
            next_pos: last + 1,
            groups: 0,
            arriving: Arriving::after(&conn)?,
            open_agents: OpenAgents::default(),
            open_jobs: OpenJobs::default(),
            open_lanes: OpenLanes::default(),
            ranks: Ranks::default(),
            conn,
        })
    }

    /// Whatever went wrong: what is read again from the file is right.
    pub(super) fn forget(&mut self) {
        self.open_agents = OpenAgents::default();
        self.open_lanes = OpenLanes::default();
        self.ranks = Ranks::default();
    }
}

pub(super) struct Writer {
    pub options: OpenOptions,
    pub signals: Arc<Signals>,
    pub known: Arc<Known>,
}

pub(super) fn now(options: &OpenOptions) -> Micros {
    options.clock.now()
}

/// Who waits for the writer.
struct Line<'a> {
    options: &'a OpenOptions,
    idle: &'a Idle,
    waiting: mpsc::Receiver<Message>,
    /// Somebody has closed the line; nobody is taken from it any more.
    closing: Option<oneshot::Sender<()>>,
}

impl Line<'_> {
    /// Whoever waits, taken together, behind one who has been taken already.
    fn group(&mut self, first: Option<Message>) -> Vec<Work> {
        let max = group_max(self.options);
        let mut works = Vec::new();
        let mut large = false;
        let mut next = first;
        while let Some(message) = next.take().or_else(|| self.waiting.try_recv().ok()) {
            large |= message.is_large();
            match message {
                Message::Works(more) => works.extend(more),
                Message::Close(done) => self.closing = Some(done),
            }
            // One that is large enough is the last of its group.
            if works.len() >= max || large || self.closing.is_some() {
                break;
            }
        }
        self.idle.join(&mut works);
        works
    }

    /// Those behind the group that was taken last.
    fn more(&mut self) -> Vec<Work> {
        if self.closing.is_some() { Vec::new() } else { self.group(None) }
    }
}

/// Commands that are committed together at most.
fn group_max(options: &OpenOptions) -> usize {
    #[cfg(feature = "faults")]
    if let Some(faults) = &options.faults {
        return faults.group_max();
    }
    let _ = options;
    GROUP_MAX
}

pub(super) fn spawn(
    writer: Writer,
    mut inner: Inner,
    waiting: mpsc::Receiver<Message>,
    mut checkpointer: Checkpointer,
    lock: Arc<DirLock>,
) -> std::io::Result<()> {
    // On a single processor nobody could say anything meanwhile, or decide.
    let alone = !std::thread::available_parallelism().is_ok_and(|n| n.get() > 1);
    let mut ahead = if alone { Ahead::never() } else { Ahead::beside()? };
    std::thread::Builder::new().name("sqlite-write".to_owned()).spawn(move || {
        let looks = if alone { 0 } else { LOOKS };
        let mut line = Line { options: &writer.options, idle: &writer.signals.idle, waiting, closing: None };
        loop {
            let group = match ahead.take() {
                Some(group) => group,
                None => {
                    if let Some(done) = line.closing {
                        turn_away(&mut line.waiting);
                        checkpoint::whole(&inner.conn);
                        drop((inner, lock));
                        let _ = done.send(());
                        return;
                    }
                    match next(&mut line.waiting, looks) {
                        Some(message) => Group::Fresh(line.group(Some(message))),
                        None => break,
                    }
                }
            };
            if commit::run(&writer, &mut inner, group, &mut ahead, &mut || line.more()) == Fate::Dead {
                break;
            }
            checkpointer.after_group(&inner.conn);
        }
        // After a crash, or when every handle is gone.
        line.waiting.close();
        drop((inner, lock));
        writer_gone(&writer.options);
    })?;
    Ok(())
}

/// What comes next. Whoever was answered often has more to say at once: going to sleep for that and being
/// woken again would take longer than looking a few times.
fn next(waiting: &mut mpsc::Receiver<Message>, looks: u32) -> Option<Message> {
    for _ in 0..looks {
        match waiting.try_recv() {
            Ok(message) => return Some(message),
            Err(mpsc::error::TryRecvError::Disconnected) => return None,
            Err(mpsc::error::TryRecvError::Empty) => std::hint::spin_loop(),
        }
    }
    waiting.blocking_recv()
}

/// Those who came too late are told so instead of left waiting.
fn turn_away(waiting: &mut mpsc::Receiver<Message>) {
    waiting.close();
    while let Ok(message) = waiting.try_recv() {
        if let Message::Works(works) = message {
            works.into_iter().for_each(|work| work.fail(StoreError::Closed));
        }
    }
}

fn writer_gone(options: &OpenOptions) {
    #[cfg(feature = "faults")]
    if let Some(faults) = &options.faults {
        faults.crashed();
    }
    let _ = options;
}

/// The writer of a simulated node: a task that runs statements where it stands.
#[cfg(feature = "faults")]
pub(super) async fn inline(writer: Writer, disk: super::Disk, waiting: mpsc::Receiver<Message>) {
    let mut line = Line { options: &writer.options, idle: &writer.signals.idle, waiting, closing: None };
    let mut ahead = Ahead::here();
    loop {
        // Between a group and one that was decided over it nobody else may write, so nothing is awaited.
        let group = match ahead.take() {
            Some(group) => group,
            None if line.closing.is_some() => break,
            None => match line.waiting.recv().await {
                Some(message) => Group::Fresh(line.group(Some(message))),
                None => return,
            },
        };
        let fate = disk.with(|inner| commit::run(&writer, inner, group, &mut ahead, &mut || line.more()));
        if let Some(faults) = &writer.options.faults {
            faults.after_group();
        }
        if fate == Fate::Dead {
            line.waiting.close();
            writer_gone(&writer.options);
            return;
        }
    }
    turn_away(&mut line.waiting);
    if let Some(done) = line.closing {
        let _ = done.send(());
    }
}
