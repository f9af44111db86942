//! Mishaps on request, for the proving ground. Not compiled into the product.

use baton_core::Micros;

/// What shall go wrong with the commit that is about to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    None,
    /// The process dies before the commit: nothing was written, nobody is answered.
    CrashBefore,
    /// The process dies after the commit: it is written, nobody is answered.
    CrashAfter,
    /// The commit happens but its answer is lost. The process lives and must find out.
    AnswerLost,
    /// The commit never reaches the database. The process lives and must find out.
    CommitLost,
    /// The database says that this transaction must be tried again.
    Conflict,
}

/// A committer that is broken on purpose, to show that the harness bites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// Answers before the commit.
    AckEarly,
    /// Commits again what may have been committed.
    RepeatBlindly,
    /// Keeps what was decided over a group that failed.
    KeepAhead,
}

pub trait Faults: Send + Sync + 'static {
    /// Asked once before every commit that writes something.
    fn at_commit(&self) -> Mishap {
        Mishap::None
    }

    /// Called when a crash has been carried out. The store is silent from here on.
    fn crashed(&self) {}

    fn sabotage(&self) -> Option<Sabotage> {
        None
    }

    /// At most this many waiting commands form a group.
    fn group_max(&self) -> usize {
        crate::GROUP_MAX
    }

    /// From so many events on the next group is decided while one is written.
    fn ahead_from(&self, usual: usize) -> usize {
        usual
    }

    /// Called when a command could not be committed even alone: never the command's own refusal.
    fn spoiled(&self, _why: &crate::StoreError) {}

    /// Called after every group on a simulated disk, whatever became of it.
    fn after_group(&self) {}

    /// Added to the database's time on PostgreSQL; elsewhere the clock itself is played with.
    fn time_shift(&self) -> Micros {
        Micros(0)
    }
}
