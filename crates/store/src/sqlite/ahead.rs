//! Deciding ahead: while a group is being written, the next one is decided beside it.
//!
//! Deciding needs no database, only what was loaded. So when a group has written all that a later one may look at, the next
//! is loaded in the same transaction, and decided on a thread of its own while the writer goes on with what nobody looks at
//! (how jobs have ended, the history) and with the commit.
//!
//! Invariants
//! - Whatever a group was decided over is committed before it: the next group is written behind the one before.
//! - What was decided over a group that failed is forgotten, and decided anew. Nobody is answered in between.
//!
//! Elsewhere: when it is worth it, and writing (`commit`).

use super::arrivals::Arrivals;
use crate::group::{self, Env, Round, Work};
use crate::hand_out::Found;
use baton_core::definition::Definitions;
use baton_core::schedule::LaneId;
use baton_core::{Micros, World};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SendError, SyncSender, TryRecvError, sync_channel};

/// How often the writer looks for what was decided before it sleeps.
const LOOKS: u32 = 4_000;

/// All that a group must see.
pub(super) struct Seen {
    /// The group in whose transaction it was loaded.
    pub after: u64,
    pub world: World,
    pub arrivals: Arrivals,
    pub found: Vec<Found>,
    /// For those who stand by.
    pub paused: Option<BTreeSet<LaneId>>,
    pub now: Micros,
    pub defs: Arc<Definitions>,
}

/// What deciding a group came to.
pub(super) struct Decided {
    /// It rests on what this group has written, and holds as long as nobody else has written since.
    pub after: u64,
    pub world: World,
    pub arrivals: Arrivals,
    pub now: Micros,
    pub round: Round,
    /// Something was written that the world does not know of.
    pub busy: bool,
}

impl Seen {
    pub fn decide(self, works: &mut [Work]) -> Decided {
        let Self { after, mut world, arrivals, found, paused, now, defs } = self;
        let busy = found.iter().any(|found| found.promoted);
        let round = group::decide(works, &mut world, found, &Env { now, defs: &defs, paused: paused.as_ref() });
        Decided { after, world, arrivals, now, round, busy }
    }
}

/// A group that comes after another.
pub(super) enum Group {
    Fresh(Vec<Work>),
    /// Decided over what the one before it has written.
    Decided(Vec<Work>, Box<Decided>),
}

enum Asked {
    Decide(Vec<Work>, Seen),
    /// What it decided some time ago: its memory goes back where it came from, and not in the writer's time.
    PutAway(World),
}
type Told = (Vec<Work>, Box<Decided>);

enum Decider {
    Nobody,
    /// Where the writer stands, for simulations.
    #[cfg(feature = "faults")]
    Here(Option<Told>),
    Beside(SyncSender<Asked>, Receiver<Told>),
}

#[derive(Default)]
enum Next {
    #[default]
    Nobody,
    BeingDecided,
    /// To be decided anew.
    Waits(Vec<Work>),
}

/// The group that comes next, if it is known already.
pub(super) struct Ahead {
    decider: Decider,
    next: Next,
}

impl Ahead {
    /// Where nobody could do it beside the writer.
    pub const fn never() -> Self {
        Self { decider: Decider::Nobody, next: Next::Nobody }
    }

    #[cfg(feature = "faults")]
    pub const fn here() -> Self {
        Self { decider: Decider::Here(None), next: Next::Nobody }
    }

    pub fn beside() -> std::io::Result<Self> {
        let (give, given) = sync_channel::<Asked>(1);
        let (tell, told) = sync_channel::<Told>(1);
        std::thread::Builder::new().name("sqlite-decide".to_owned()).spawn(move || {
            while let Ok(asked) = given.recv() {
                let (mut works, seen) = match asked {
                    Asked::Decide(works, seen) => (works, seen),
                    Asked::PutAway(world) => {
                        drop(world);
                        continue;
                    }
                };
                let decided = Box::new(seen.decide(&mut works));
                if tell.send((works, decided)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { decider: Decider::Beside(give, told), next: Next::Nobody })
    }

    /// Whether a group may be begun ahead.
    pub const fn is_free(&self) -> bool {
        matches!(self.next, Next::Nobody) && !matches!(self.decider, Decider::Nobody)
    }

    /// Has this group decided.
    pub fn begin(&mut self, works: Vec<Work>, seen: Seen) {
        match &mut self.decider {
            Decider::Nobody => self.next = Next::Waits(works),
            #[cfg(feature = "faults")]
            Decider::Here(told) => {
                let mut works = works;
                let decided = Box::new(seen.decide(&mut works));
                *told = Some((works, decided));
                self.next = Next::BeingDecided;
            }
            Decider::Beside(give, _) => match give.send(Asked::Decide(works, seen)) {
                Ok(()) => self.next = Next::BeingDecided,
                Err(SendError(asked)) => {
                    tracing::error!("nobody decides ahead any more");
                    self.decider = Decider::Nobody;
                    if let Asked::Decide(works, _) = asked {
                        self.next = Next::Waits(works);
                    }
                }
            },
        }
    }

    /// A world that was written, and is no longer wanted.
    pub fn put_away(&self, world: World) {
        if let Decider::Beside(give, _) = &self.decider {
            // Whoever is busy need not; then it is put away here.
            drop(give.try_send(Asked::PutAway(world)));
        }
    }

    /// These could not be loaded ahead.
    pub fn wait(&mut self, works: Vec<Work>) {
        self.next = Next::Waits(works);
    }

    /// What was decided rests on what has failed.
    pub fn give_up(&mut self) {
        if let Next::BeingDecided = self.next {
            self.next = self.told().map_or(Next::Nobody, |(works, _)| Next::Waits(works));
        }
    }

    pub fn take(&mut self) -> Option<Group> {
        match std::mem::take(&mut self.next) {
            Next::Nobody => None,
            Next::BeingDecided => self.told().map(|(works, decided)| Group::Decided(works, decided)),
            Next::Waits(works) => Some(Group::Fresh(works)),
        }
    }

    /// Those that come next, whatever was decided.
    pub fn works(&mut self) -> Vec<Work> {
        match self.take() {
            Some(Group::Fresh(works) | Group::Decided(works, _)) => works,
            None => Vec::new(),
        }
    }

    /// Who was decided is awaited with open eyes first: as a rule it is nearly done.
    fn told(&mut self) -> Option<Told> {
        let told = match &mut self.decider {
            Decider::Nobody => return None,
            #[cfg(feature = "faults")]
            Decider::Here(told) => return told.take(),
            Decider::Beside(_, told) => told,
        };
        for _ in 0..LOOKS {
            match told.try_recv() {
                Ok(told) => return Some(told),
                Err(TryRecvError::Empty) => std::hint::spin_loop(),
                Err(TryRecvError::Disconnected) => return None,
            }
        }
        told.recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::{Purge, PurgeSeat};
    use tokio::sync::oneshot;

    fn works() -> Vec<Work> {
        let (reply, _) = oneshot::channel();
        vec![Work::Purge(PurgeSeat { what: Purge::Onces, limit: 1, purged: 0, reply })]
    }

    fn seen() -> Seen {
        let (world, arrivals, found) = (World::default(), Arrivals::default(), Vec::new());
        Seen { after: 7, world, arrivals, found, paused: None, now: Micros(0), defs: Arc::default() }
    }

    #[test]
    fn who_was_decided_comes_next_once() {
        let mut ahead = Ahead::beside().unwrap();
        assert!(ahead.is_free() && ahead.take().is_none());
        ahead.begin(works(), seen());
        assert!(!ahead.is_free());
        let Some(Group::Decided(works, decided)) = ahead.take() else { panic!("it was decided") };
        assert!(works.len() == 1 && decided.after == 7 && matches!(decided.round, Round::Ready));
        assert!(ahead.is_free() && ahead.take().is_none());
    }

    #[test]
    fn who_was_decided_in_vain_waits_for_another_time() {
        let mut ahead = Ahead::beside().unwrap();
        ahead.begin(works(), seen());
        ahead.give_up();
        assert!(!ahead.is_free());
        assert!(matches!(ahead.take(), Some(Group::Fresh(works)) if works.len() == 1));
        ahead.wait(works());
        ahead.give_up();
        assert_eq!(ahead.works().len(), 1);
    }

    #[test]
    fn nobody_is_lost_where_nobody_decides() {
        let (give, given) = sync_channel(1);
        let (_, told) = sync_channel(1);
        drop(given);
        let mut ahead = Ahead { decider: Decider::Beside(give, told), next: Next::Nobody };
        ahead.begin(works(), seen());
        assert_eq!(ahead.works().len(), 1);
        assert!(!ahead.is_free(), "nobody is asked again");
    }
}
