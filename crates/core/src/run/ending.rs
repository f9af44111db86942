//! How an attempt ends: its agents end, what was not spent goes back, a record is left; and perhaps another
//! attempt follows.

use super::record::{AttemptRecord, Record};
use super::state::AgentState;
use super::{Agent, Fault, Run, State, job, start};
use crate::changes::Changes;
use crate::command::{Ctx, Reads, Unseen};
use crate::id::AgentId;
use crate::job::cancel::at_once;
use crate::ledger::{Account, Entry, Kind, OrgAccount};
use crate::plan::FailureMode;
use crate::retry::Class;
use crate::world::View;
use serde_json::json;

/// What must be seen before the attempt ends: the agents, the jobs that work on them, what they ask, and
/// the org's account.
pub(super) fn see(run: &Run, except: Option<AgentId>, view: &View<'_>) -> Result<Vec<Agent>, Unseen> {
    let others: Vec<AgentId> = run.agents.iter().copied().filter(|id| Some(*id) != except).collect();
    let mut reads = Reads { agents: others.iter().copied().collect(), ..OrgAccount::reads() };
    reads.jobs.extend(run.job);
    view.see(reads)?;
    let live: Vec<Agent> = others.iter().filter_map(|id| view.agent(*id)).filter(|a| !a.is_ended()).cloned().collect();
    let reads = job::reads_of(live.iter());
    view.see(reads)?;
    Ok(live)
}

/// Takes back what an agent did not spend and counts how it ended.
pub(super) fn settle_agent(
    run: &mut Run,
    agent: &mut Agent,
    state: AgentState,
    error: Option<Fault>,
    cx: &Ctx<'_>,
) -> Changes {
    let left = agent.ended(state, error, cx.now);
    let mut changes = Changes::none();
    let key = agent.id.to_string();
    if let (Ok(out), Ok(into)) =
        (agent.post(Kind::GiveBack, left, key.clone(), cx.now), run.post(Kind::Returned, left, key, cx.now))
    {
        changes.postings.extend(out.into_iter().chain(into));
    }
    run.money.charged = run.money.charged.plus(agent.charged).unwrap_or(run.money.charged);
    run.counts.tasks += agent.task_count;
    run.counts.steps += agent.step_count;
    match state {
        AgentState::Completed => run.counts.completed += 1,
        AgentState::Failed => run.counts.failed += 1,
        AgentState::Skipped => run.counts.skipped += 1,
        AgentState::Cancelled | AgentState::Pending | AgentState::Running | AgentState::Paused => {
            run.counts.cancelled += 1;
        }
    }
    changes
}

/// Ends agents that have not ended by themselves.
pub(super) fn cancel_agents(run: &mut Run, live: Vec<Agent>, reason: &str, view: &View<'_>, cx: &Ctx<'_>) -> Changes {
    let mut changes = Changes::none();
    for mut agent in live {
        let cut = agent.steps().count();
        changes = changes.and(agent.cut_all(reason, view, cx));
        if let Some(job) = agent.job.and_then(|job| view.job(job)).filter(|job| !job.is_ended()) {
            changes = changes.and(at_once(job, cx, reason));
        }
        changes = changes.and(settle_agent(run, &mut agent, AgentState::Cancelled, None, cx));
        let told = json!({ "charged": agent.charged, "cut": cut, "reason": reason, "state": agent.state });
        changes = changes.event(agent.tells("agent.cancelled", told));
        changes.agents.push(agent);
    }
    changes
}

/// The attempt is over: what is left goes back to the org, and a record says how it went.
pub(super) fn finish(run: &mut Run, to: State, view: &View<'_>, cx: &mut Ctx<'_>) -> Changes {
    // Every caller has looked at the state.
    let _ = run.moved(to);
    run.ended_at = Some(cx.now.max(run.created_at));
    run.paused_at = None;
    run.paused_by = None;
    run.deadline = None;
    run.job = None;
    let mut changes = Changes::none();
    let left = run.money.purse.balance;
    if !run.money.reserved.is_zero() {
        let mut account = OrgAccount::of(view);
        account.reserved = account.reserved.minus(run.money.reserved).unwrap_or_default();
        let key = run.account().to_string();
        let entry =
            Entry { account: Account::Org, kind: Kind::Refund, key: key.clone(), run: Some(run.id), at: cx.now };
        // It came from there, and nobody is given more than leaves room for it.
        if let (Ok(out), Ok(into)) = (run.post(Kind::Release, left, key, cx.now), account.purse.post(left, entry)) {
            changes.postings.extend(out.into_iter().chain(into));
            run.money.refunded = left;
        }
        changes = changes.and(account.put(cx.ids));
    }
    if run.attempt > 0 {
        changes.records.push(Record::Attempt(AttemptRecord {
            run: run.id,
            attempt: run.attempt,
            state: to,
            queued_at: run.queued_at,
            started_at: run.started_at,
            ended_at: run.ended_at.unwrap_or(cx.now),
            reserved: run.money.reserved,
            charged: run.money.charged,
            refunded: run.money.refunded,
            counts: run.counts,
            error: run.error.clone(),
        }));
    }
    let kind = match to {
        State::Completed => "run.completed",
        State::Failed => "run.failed",
        State::Skipped => "run.skipped",
        _ => "run.cancelled",
    };
    let told = json!({
        "charged": run.money.charged,
        "reason": run.error.as_ref().map(|error| error.code.as_str()).or(run.reason.as_deref()),
        "refunded": run.money.refunded,
    });
    changes.event(run.tells(kind, told)).timer(run.clock(None))
}

/// The attempt failed. Another one follows if the run's mode says so and nothing speaks against it.
pub(super) fn fail(run: &mut Run, fault: Fault, view: &View<'_>, cx: &mut Ctx<'_>) -> Changes {
    let again = run.terms.failure_mode == FailureMode::Retry && fault.class != Class::Fatal && run.has_patience();
    run.error = Some(fault);
    let mut changes = finish(run, State::Failed, view, cx);
    if !again || run.attempt >= run.terms.max_attempts {
        return changes;
    }
    // The account as it is after what was just given back.
    let balance =
        changes.docs.iter().rev().find_map(|crate::doc::Change::Put(key, doc)| {
            (key.class == crate::doc::Class::Account).then(|| doc.clone())
        });
    let delay = super::backoff(run.attempt, cx.rng);
    run.failures += 1;
    match again_from(run, balance, delay, view, cx) {
        Ok(more) => changes = changes.and(more),
        Err(_) => run.failures -= 1,
    }
    changes
}

/// Reserves anew and waits for the clock; nothing if there is not enough.
pub(super) fn again_from(
    run: &mut Run,
    account: Option<crate::doc::Doc>,
    delay: crate::time::Span,
    view: &View<'_>,
    cx: &mut Ctx<'_>,
) -> Result<Changes, super::RunError> {
    let account = account.map_or_else(|| OrgAccount::of(view), OrgAccount::from_doc);
    let available = account.purse.balance;
    let wanted = if run.budget.is_zero() { run.budget } else { run.budget.max(start::MINIMUM) };
    if available < wanted {
        return Err(super::RunError::Short { wanted, available });
    }
    let mut next = run.clone();
    next.moved(State::Retrying).map_err(super::RunError::Illegal)?;
    next.attempt += 1;
    // An attempt that nobody took leaves nothing; what the one before it left still stands.
    if !next.agents.is_empty() {
        next.before = std::mem::take(&mut next.agents);
    }
    next.counts = super::Counts::default();
    next.ended_at = None;
    next.started_at = None;
    next.queued_at = None;
    let reserved = start::reserve(&mut next, account, cx)?;
    let at = cx.now.plus(delay);
    let told = json!({ "at": at, "reserved": next.money.reserved });
    let changes = reserved.event(next.tells("run.retrying", told)).timer(next.clock(Some(at)));
    *run = next;
    Ok(changes)
}
