//! Carrying out mishaps on SQLite.

use super::commit::{Committed, Failed, commit as really};
use super::writer::{Inner, Writer};
use crate::faults::{Mishap, Sabotage};
use crate::group::Work;

pub(super) fn commit(writer: &Writer, inner: &Inner, works: &mut [Work]) -> Committed {
    let Some(faults) = &writer.options.faults else { return really(inner) };
    if faults.sabotage() == Some(Sabotage::AckEarly) {
        for work in works.iter_mut() {
            if let Work::Command(member) = work {
                member.answer_early();
            }
        }
    }
    let again = if faults.sabotage() == Some(Sabotage::RepeatBlindly) {
        |_: &Inner| Committed::No(Failed::Again)
    } else {
        |_: &Inner| Committed::Ask
    };
    match faults.at_commit() {
        Mishap::None => really(inner),
        Mishap::CrashBefore => Committed::No(Failed::Crashed),
        Mishap::CrashAfter => match really(inner) {
            Committed::Yes => Committed::No(Failed::Crashed),
            other => other,
        },
        Mishap::AnswerLost => match really(inner) {
            Committed::Yes => again(inner),
            other => other,
        },
        Mishap::CommitLost => {
            let _ = inner.conn.execute_batch("ROLLBACK");
            again(inner)
        }
        Mishap::Conflict => Committed::No(Failed::Again),
    }
}
