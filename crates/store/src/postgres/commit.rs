//! One group in one transaction: two round trips, and deciding between them. A group that has nothing to see is decided at
//! once, and needs one if it writes with one statement.

use super::Shared;
use super::learn;
use super::link::{self, Backend, Kind, Link};
use super::load::{self, Loaded, load};
use super::onward::{Onward, Shown};
use super::open_jobs::LeftBy;
use super::trusted::Trusted;
use super::write::{Batch, Ends};
use crate::error::StoreError;
use crate::group::{self, Env, NEED_ROUNDS, Plan, Purge, Round, Work};
use crate::known;
use baton_core::definition::Definitions;
use baton_core::{Micros, World};
use futures_util::join;
use std::time::Duration;
use tokio::time::Instant;
use tokio_postgres::Error;

pub(super) enum Failed {
    /// This group cannot be committed as it is; one of its members may be to blame.
    Spoiled(StoreError),
    /// Certainly not committed, through no fault of the group's: try again.
    Again,
    /// The connection went before the commit was sent: not committed, and a new one is needed.
    Gone,
    /// The server cannot do it at the moment; nothing was written.
    Down(StoreError),
    /// The connection went while committing: somebody must ask.
    Lost(Box<Lost>),
    /// The process is to be taken for dead.
    #[cfg(feature = "faults")]
    Crashed,
}

/// A commit whose answer never came.
pub(super) struct Lost {
    /// Not known of a statement that was a transaction by itself.
    pub xid: Option<String>,
    pub backend: Backend,
    pub world: World,
}

impl From<Error> for Failed {
    fn from(e: Error) -> Self {
        match link::kind(&e) {
            Kind::Conflict => Self::Again,
            // Waiting again would keep the others of the group waiting too.
            Kind::Blocked | Kind::Refused => Self::Spoiled(link::store_error(&e)),
            Kind::Gone => Self::Gone,
            Kind::Unable => Self::Down(link::store_error(&e)),
        }
    }
}

/// How long a group waits for a row that somebody else holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    Long,
    /// For a group that holds what others may wait for before it has locked all of its own: see `trusted`.
    Little,
    /// For one of a group that has waited already.
    Short,
}

impl Patience {
    pub fn begin(self) -> String {
        match self {
            Self::Long => "BEGIN".to_owned(),
            Self::Little => format!("BEGIN; SET LOCAL lock_timeout = '{LITTLE_MS}ms'"),
            Self::Short => "BEGIN; SET LOCAL lock_timeout = '500ms'".to_owned(),
        }
    }
}

/// What a group that trusts waits for somebody else's row.
pub(super) const LITTLE_MS: u32 = 100;
/// A commit that takes longer does not tell what time it is now.
const FRESH: Duration = Duration::from_millis(100);

pub(super) async fn attempt(
    shared: &Shared,
    link: &Link,
    works: &mut [Work],
    patience: Patience,
) -> Result<(), Failed> {
    let mut far = Far::default();
    // As many as needs take, one to find who exceeds his share, one to learn, and one without trust.
    for _ in 0..NEED_ROUNDS + 3 {
        match round(shared, link, works, patience, &mut far).await {
            Ok(true) => return Ok(()),
            Ok(false) => far.rollback(link).await?,
            Err(failed @ (Failed::Spoiled(_) | Failed::Again | Failed::Down(_))) => {
                far.rollback(link).await?;
                return Err(failed);
            }
            Err(failed) => return Err(failed),
        }
    }
    Err(Failed::Spoiled(StoreError::Rejected("the group kept asking to see more".to_owned())))
}

/// How far a group has come.
#[derive(Default)]
struct Far {
    /// What others have registered was asked for.
    asked: bool,
    /// A transaction was begun.
    begun: bool,
    /// A job was not as it was left.
    distrusts: bool,
}

impl Far {
    /// Harmless after a commit that was turned into a rollback.
    async fn rollback(&mut self, link: &Link) -> Result<(), Failed> {
        if !std::mem::take(&mut self.begun) {
            return Ok(());
        }
        link.client.batch_execute("ROLLBACK").await.map_err(|_| Failed::Gone)
    }
}

/// Loads, decides, writes and commits; `false` if somebody needs to see more first, or what was trusted has changed.
async fn round(
    shared: &Shared,
    link: &Link,
    works: &mut [Work],
    patience: Patience,
    far: &mut Far,
) -> Result<bool, Failed> {
    let defs = &*shared.known.get();
    let plan = group::plan(works, defs).map_err(Failed::Spoiled)?;
    let trusts = !far.distrusts && patience == Patience::Long;
    let trusted = if trusts { Trusted::of(shared, &plan, defs) } else { Trusted::default() };
    let remembered = || remembered(&trusted, &plan);
    let Loaded { mut world, found, paused, now, xid } = match blind(shared, &plan, works, patience).or_else(remembered)
    {
        Some(loaded) => loaded,
        None => {
            far.begun = true;
            match see(shared, link, &plan, defs, patience, &trusted).await {
                // It has waited a moment only.
                Err(Failed::Spoiled(_)) if !trusted.is_empty() => {
                    far.distrusts = true;
                    return Ok(false);
                }
                seen => seen?,
            }
        }
    };
    // What this node does not understand another may have registered; if nobody has, it is decided without.
    if !far.asked && known::puzzled(&world, plan.reads.iter(), defs) {
        far.asked = true;
        learn::learn(&link.client, &shared.known).await?;
        return Ok(false);
    }
    let mut busy = found.iter().any(|found| found.promoted);
    let env = Env { now, defs, paused: paused.as_ref() };
    match group::decide(works, &mut world, found, &env) {
        Round::Ready => {}
        Round::Again => return Ok(false),
        Round::Spoiled(why) => return Err(Failed::Spoiled(why)),
    }
    if !trusted.are_written(&world) {
        trusted.held(shared, false);
        far.distrusts = true;
        return Ok(false);
    }
    for work in works.iter_mut() {
        if let Work::Purge(seat) = work {
            busy = true;
            let limit = i64::try_from(seat.limit).unwrap_or(i64::MAX);
            let s = &link.statements;
            let gone = match seat.what {
                Purge::Onces => link.client.execute(&s.purge_onces, &[&now.0, &limit]).await?,
                Purge::Messages => link.client.execute(&s.purge_messages, &[&now.0, &limit]).await?,
                Purge::Lanes => link.client.execute(&s.purge_lanes, &[&limit]).await?,
            };
            seat.purged = usize::try_from(gone).unwrap_or(usize::MAX);
        }
    }
    if world.is_clean() && !busy {
        far.rollback(link).await?;
        group::observe(&shared.options, &world);
        return Ok(true);
    }
    let onward = Onward::of(works, &world, &trusted, shared.open_lanes.pays());
    let batch = Batch::of(&link.statements, &world, now, (&trusted, onward.as_ref()));
    let (xid, ends) = match xid {
        Some(xid) => (Some(xid), Ends::Commit),
        // Should its answer be lost, an event must tell whether it took place.
        None if batch.is_one() && !world.events().is_empty() => (None, Ends::Alone),
        None => {
            far.begun = true;
            let patience = if trusted.is_empty() { patience } else { Patience::Little };
            (Some(begin(link, patience).await?), Ends::Commit)
        }
    };
    let sent_at = Instant::now();
    #[cfg(feature = "faults")]
    let sent = super::mishap::send(shared, link, batch, ends, works).await?;
    #[cfg(not(feature = "faults"))]
    let sent = batch.send(link, ends).await;
    match sent {
        Ok(answer) => {
            let shown = onward.filter(|_| !answer.is_empty()).map(|onward| onward.shown(&world, &answer)).transpose();
            let shown = shown.unwrap_or_else(unseen);
            if let Some(shown) = shown.as_ref().filter(|_| sent_at.elapsed() < FRESH) {
                shared.heard.tell(Micros(shown.now));
            }
            trusted.held(shared, true);
            committed(shared, world, xid.as_deref(), shown);
            Ok(true)
        }
        // The commit was sent along, so the server may have carried it out.
        Err(e) if link::kind(&e) == Kind::Gone => {
            Err(Failed::Lost(Box::new(Lost { xid, backend: link.backend.clone(), world })))
        }
        Err(_) if !trusted.is_empty() => {
            trusted.held(shared, false);
            far.distrusts = true;
            Ok(false)
        }
        Err(e) => Err(e.into()),
    }
}

/// Without a word with the server, if there is nothing to be seen and somebody has just heard the time.
fn blind(shared: &Shared, plan: &Plan, works: &[Work], patience: Patience) -> Option<Loaded> {
    let commands = works.iter().all(|work| matches!(work, Work::Command(_)));
    if !commands || !plan.is_blind() || patience == Patience::Short {
        return None;
    }
    let now = Micros(shared.heard.now()?.0 + shared.shift());
    Some(Loaded { world: World::default(), found: Vec::new(), paused: None, now, xid: None })
}

/// The same if this node remembers all that there is to see.
fn remembered(trusted: &Trusted, plan: &Plan) -> Option<Loaded> {
    let now = trusted.whole()?;
    let mut world = World::default();
    trusted.load(&mut world);
    for (org, reads) in &plan.reads {
        world.load_nothing(org, reads);
    }
    Some(Loaded { world, found: trusted.found(&plan.asks), paused: None, now, xid: None })
}

/// What was told along with a commit that stands: it is only remembered, so it can be done without.
fn unseen(why: StoreError) -> Option<Shown> {
    tracing::error!(%why, "what follows a turn cannot be read");
    None
}

/// Begins a transaction that has seen nothing, and tells its id.
async fn begin(link: &Link, patience: Patience) -> Result<String, Failed> {
    let begin = patience.begin();
    let (begun, now) = join!(link.client.batch_execute(&begin), link.client.query_one(&link.statements.now, &[]));
    begun?;
    Ok(now?.try_get(1)?)
}

async fn see(
    shared: &Shared,
    link: &Link,
    plan: &Plan,
    defs: &Definitions,
    patience: Patience,
    trusted: &Trusted,
) -> Result<Loaded, Failed> {
    let shift = shared.shift();
    let loaded = load(link, plan, defs, (patience, shift), trusted).await.map_err(|failed| match failed {
        load::Failed::Sql(e) => e.into(),
        load::Failed::Rows(why) => Failed::Spoiled(why),
    })?;
    shared.heard.tell(Micros(loaded.now.0 - shift));
    Ok(loaded)
}

/// Tells this node and the others.
pub(super) fn committed(shared: &Shared, world: World, xid: Option<&str>, shown: Option<Shown>) {
    shared.known.learn_from(&world);
    let stirred = group::stirred(&world, &shared.known.get());
    shared.signals.stir(stirred);
    shared.signals.tell_calls(world.notes());
    if stirred.events {
        shared.tail.notify_one();
    }
    shared.outbox.post(stirred);
    shared.litter.add(&world);
    group::observe(&shared.options, &world);
    let touched: Vec<_> = world.lane_writes().map(|(org, key, _)| (org.clone(), key.clone())).collect();
    let (told, lanes) = shown.map(|shown| (shown.xid, shown.lanes)).unzip();
    shared.open_lanes.learn(lanes.into_iter().flatten(), touched.iter());
    shared.open_jobs.learn(world, xid.or(told.as_deref()).and_then(LeftBy::transaction));
}
