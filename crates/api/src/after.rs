//! A command about one job, together with the job as it stands after it.
//!
//! What is answered, and stored under an idempotency key, is what was committed: reading the job
//! afterwards could show what somebody else did to it meanwhile. No rule lives here.

use baton_core::changes::Changes;
use baton_core::command::{Command, Ctx, Decision, Reads};
use baton_core::definition::Definitions;
use baton_core::job::{Change, Cold, Ending, Job};
use baton_core::{JobId, OrgId, View};

pub struct After<C> {
    pub command: C,
    pub job: JobId,
}

/// How a job stands.
#[derive(Clone)]
pub struct Standing {
    pub job: Job,
    pub cold: Cold,
    pub ending: Option<Ending>,
}

impl<C: Command> Command for After<C> {
    type Out = Standing;
    type No = C::No;

    fn org(&self) -> &OrgId {
        self.command.org()
    }

    fn reads(&self, defs: &Definitions) -> Reads {
        let mut reads = self.command.reads(defs);
        reads.records.insert(self.job);
        reads
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Standing, C::No> {
        match self.command.decide(view, cx) {
            Decision::Done(_, changes) => match standing(view, self.job, &changes) {
                Some(standing) => Decision::Done(standing, changes),
                None => Decision::Need(Reads { records: [self.job].into(), ..Reads::none() }),
            },
            Decision::Refused(no) => Decision::Refused(no),
            Decision::Need(reads) => Decision::Need(reads),
        }
    }
}

fn standing(view: &View<'_>, id: JobId, changes: &Changes) -> Option<Standing> {
    let (job, cold, ending) = view.record(id)?;
    let mut standing = Standing { job: job.clone(), cold: cold.clone(), ending: ending.cloned() };
    for change in &changes.jobs {
        match change {
            Change::Put(job) if job.id == id => standing.job = job.clone(),
            Change::End(job, ending) if job.id == id => {
                standing.job = job.clone();
                standing.ending = Some(ending.clone());
            }
            _ => {}
        }
    }
    Some(standing)
}
