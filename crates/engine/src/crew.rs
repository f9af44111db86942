//! Crews: who runs which types, and how many jobs at once.
//!
//! What the engine asks of itself runs in a crew of its own: a hundred slow deliveries keep nobody's
//! work from being done, and the other way round. Agents have a crew of their own too.

use crate::held::Held;
use crate::options::Options;
use crate::registry::{Registry, agent_type};
use baton_core::job::Kind;
use std::sync::Arc;
use tokio::sync::Notify;

/// Slots from which the work is shared by two crews.
const HALVED_FROM: usize = 64;

pub(crate) struct Crew {
    pub kinds: Vec<Kind>,
    pub slots: usize,
    /// Whether it rests while the queue is switched off.
    pub switched: bool,
    pub held: Arc<Held>,
    /// Asks for a beat at once: what was claimed just now may be wanted to end already.
    pub beat_again: Notify,
}

impl Crew {
    fn new(kinds: Vec<Kind>, slots: usize, switched: bool) -> Self {
        Self { kinds, slots, switched, held: Arc::default(), beat_again: Notify::new() }
    }

    /// Those that have anything to do.
    pub fn all(registry: &Registry, options: &Options) -> Vec<Arc<Self>> {
        let (internal, work): (Vec<Kind>, _) =
            registry.kinds().into_iter().partition(|kind| registry.is_internal(kind));
        let agents = agent_type().kind();
        let (agents, errands) = internal.into_iter().partition(|kind| *kind == agents);
        // While one half waits for its commit, the other begins and collects.
        let half = if options.slots >= HALVED_FROM { options.slots / 2 } else { 0 };
        let mut crews = vec![
            Self::new(work.clone(), options.slots - half, true),
            Self::new(errands, options.errand_slots, false),
            Self::new(agents, options.agent_slots, false),
        ];
        if half > 0 {
            crews.push(Self::new(work, half, true));
        }
        crews.into_iter().filter(|crew| !crew.kinds.is_empty()).map(Arc::new).collect()
    }
}
