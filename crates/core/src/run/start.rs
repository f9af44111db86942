//! Starting a run: its credits are reserved and a worker is sent for, in one commit.

use super::{IllegalMove, Run, RunError, State, job};
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads};
use crate::credits::Credits;
use crate::definition::Definitions;
use crate::id::RunId;
use crate::ledger::{Account, Entry, Kind, OrgAccount};
use crate::name::OrgId;
use crate::world::View;
use serde_json::json;

#[derive(Clone, Debug)]
pub struct Start {
    pub org: OrgId,
    pub run: RunId,
}

impl Command for Start {
    type Out = Run;
    type No = RunError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::run(self.run).and(OrgAccount::reads())
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Run, RunError> {
        let Some(run) = view.run(self.run).filter(|run| !run.is_deleted()) else {
            return Decision::Refused(RunError::NotFound(self.run));
        };
        // Said before: it has been started since, or even taken.
        if matches!(run.state, State::Pending | State::Running) {
            return Decision::Done(run.clone(), Changes::none());
        }
        let mut run = run.clone();
        if let Err(illegal) = run.moved(State::Pending) {
            return Decision::Refused(RunError::Illegal(illegal));
        }
        // A retried run comes here by its own clock.
        if run.attempt != 0 {
            let illegal = IllegalMove { what: "a run", from: State::Retrying.as_str(), to: State::Pending.as_str() };
            return Decision::Refused(RunError::Illegal(illegal));
        }
        let missing = view.missing(&job::reads(&run, cx.defs));
        if missing != Reads::none() {
            return Decision::Need(missing);
        }
        run.attempt = 1;
        let reserved = match reserve(&mut run, OrgAccount::of(view), cx) {
            Ok(reserved) => reserved,
            Err(short) => return Decision::Refused(short),
        };
        let queued = queue(&mut run, view, cx);
        Decision::Done(run.clone(), reserved.and(queued).run(run))
    }
}

/// Moves the budget from the org to the attempt at hand.
pub(super) fn reserve(run: &mut Run, mut account: OrgAccount, cx: &mut Ctx<'_>) -> Result<Changes, RunError> {
    run.money = super::Money::default();
    if run.budget.is_zero() {
        return Ok(Changes::none());
    }
    let short = RunError::Short { wanted: run.budget, available: account.purse.balance };
    let key = run.account().to_string();
    let entry = Entry { account: Account::Org, kind: Kind::Reserve, key: key.clone(), run: Some(run.id), at: cx.now };
    let Ok(out) = account.purse.post(run.budget, entry) else { return Err(short) };
    let Ok(into) = run.post(Kind::Reserved, run.budget, key, cx.now) else { return Err(short) };
    run.money.reserved = run.budget;
    account.reserved = account.reserved.plus(run.budget).unwrap_or(account.reserved);
    let mut changes = account.put(cx.ids);
    changes.postings.extend(out.into_iter().chain(into));
    Ok(changes)
}

/// The run waits for a worker from here on; its clock runs.
pub(super) fn queue(run: &mut Run, view: &View<'_>, cx: &mut Ctx<'_>) -> Changes {
    let (jobs, changes) = job::enqueue(run, [0], view, cx);
    run.job = jobs.first().copied();
    run.queued_at = Some(cx.now);
    run.started_at = None;
    run.ended_at = None;
    run.error = None;
    run.deadline = Some(cx.now.plus(run.terms.timeout));
    let told = json!({ "job": run.job, "priority": run.priority, "reserved": run.money.reserved });
    changes.event(run.tells("run.pending", told)).timer(run.clock(run.deadline))
}

/// What an attempt beside the first asks an org to have left.
pub(super) const MINIMUM: Credits = Credits::whole(10);
