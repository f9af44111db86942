//! What runs cost: reserved once, charged once, refunded once.

use crate::credits::Credits;
use crate::plan::{AgentPlan, FailureMode, Plan, TaskPlan};
use crate::run::advance::{Failed, Outcome};
use crate::run::record::Record;
use crate::run::stage::{Made, Stage, agent, broken, costs, done, flaky, org, parallel, plan, step, task, times};
use crate::run::{RunError, State};

const fn whole(credits: u32) -> Credits {
    Credits::whole(credits)
}

fn one(price: u32, attempts: u32) -> Plan {
    plan([agent([task([times(attempts, costs(price, step()))])])])
}

#[test]
fn a_run_that_cannot_be_paid_is_not_created() {
    let mut stage = Stage::empty(one(5, 1), 0);
    let short = RunError::Short { wanted: whole(5), available: Credits::ZERO };
    assert_eq!(stage.create(whole(5)), Err(short));
    assert_eq!(stage.written(), (0, 0, 0));
    assert!(stage.create(Credits::ZERO).is_ok(), "what costs nothing needs nothing");
}

#[test]
fn starting_reserves_and_ending_refunds_what_was_not_spent() {
    let mut stage = Stage::with(one(5, 3), whole(100), whole(15));
    assert_eq!(stage.balance(), whole(100), "creating takes nothing");
    stage.start().unwrap();
    assert_eq!((stage.balance(), stage.get().money.reserved), (whole(85), whole(15)));
    stage.play();
    let money = stage.get().money;
    assert_eq!((money.charged, money.refunded, stage.balance()), (whole(5), whole(10), whole(95)));
}

#[test]
fn a_run_that_was_created_while_there_was_enough_may_not_start_any_more() {
    let mut stage = Stage::with(one(8, 1), whole(10), whole(8));
    let first = stage.run;
    stage.create(whole(8)).unwrap();
    stage.start().unwrap();
    let second = std::mem::replace(&mut stage.run, first);
    assert_eq!(stage.start(), Err("insufficient_credits"));
    assert_eq!((stage.state(), stage.balance()), (State::Created, whole(2)));
    stage.run = second;
    stage.cancel().unwrap();
    stage.run = first;
    assert!(stage.start().is_ok(), "it was given back");
}

#[test]
fn every_call_that_was_made_is_charged_and_one_that_was_not_is_free() {
    let mut stage = Stage::new(one(5, 3));
    stage.script(|made: &Made| {
        Some(match made.attempt {
            1 => flaky(),
            2 => {
                let Outcome::Failed(failed) = flaky() else { return None };
                Outcome::Failed(Failed { called: false, ..failed })
            }
            _ => done(),
        })
    });
    stage.start().unwrap();
    stage.play();
    assert_eq!(stage.charges(), [whole(5), whole(5)]);
    assert_eq!(stage.steps()[0].more.charged, whole(10));
}

#[test]
fn what_is_told_twice_is_charged_once() {
    let two = plan([agent([task([costs(5, step()), costs(1, step())])])]);
    let mut stage = Stage::new(two);
    stage.start().unwrap();
    stage.pick_all();
    let (job, made) = stage.in_flight()[0];
    stage.report(job, &[(made, done())]).unwrap();
    let balance = stage.agents()[0].purse;
    let turn = stage.report(job, &[(made, done())]).unwrap();
    assert_eq!((turn.agent.purse, stage.charges()), (balance, vec![whole(5)]));
    assert_eq!(turn.calls.len(), 1, "the second step is still at it");
}

#[test]
fn a_call_that_is_made_again_after_a_crash_is_charged_once() {
    let mut stage = Stage::new(one(5, 1));
    stage.script(|_| None);
    stage.start().unwrap();
    stage.play_for(crate::time::Span::secs(1));
    let before = stage.made[0];
    stage.crash(0);
    stage.pick_all();
    assert_eq!(stage.made, [before, before], "the very same call, with the same key");
    stage.reply((0, 0, 0), done()).unwrap();
    assert_eq!((stage.state(), stage.charges()), (State::Completed, vec![whole(5)]));
}

#[test]
fn a_call_during_which_one_worker_after_the_other_is_lost_is_to_blame() {
    let mut stage = Stage::new(one(5, 1));
    stage.start().unwrap();
    for _ in 0..20 {
        stage.pick_all();
        stage.crash(0);
    }
    stage.pick_all();
    assert_eq!((stage.state(), stage.error()), (State::Failed, "worker_lost"));
    assert_eq!(stage.charges(), [whole(5)]);
}

#[test]
fn cancelling_refunds_all_but_what_was_called() {
    let two = plan([agent([task([costs(5, step()), costs(5, step())])]), agent([task([costs(7, step())])])]);
    let mut stage = Stage::with(two, whole(100), whole(17));
    stage.start().unwrap();
    stage.pick_all();
    stage.cancel().unwrap();
    let money = stage.get().money;
    assert_eq!((money.charged, money.refunded, stage.balance()), (whole(12), whole(5), whole(88)));
    assert!(stage.steps().iter().all(|step| step.more.estimated), "nobody knows what they cost");
    let Some((_, Record::Attempt(record))) = stage.world.record_writes().last() else { panic!() };
    assert_eq!((record.charged, record.refunded, record.state), (whole(12), whole(5), State::Cancelled));
}

#[test]
fn skipped_work_is_paid_for() {
    let skips = TaskPlan { failure_mode: FailureMode::Continue, ..task([costs(5, step()), costs(1, step())]) };
    let mut stage = Stage::new(plan([agent([skips])]));
    stage.script(|made| Some(if made.step == 0 { broken() } else { done() }));
    stage.start().unwrap();
    stage.play();
    assert_eq!((stage.state(), stage.get().money.charged), (State::Completed, whole(6)));
}

#[test]
fn a_budget_below_the_estimate_does_as_long_as_it_lasts() {
    let wide = || plan([agent([task([times(3, costs(5, step()))])]), agent([task([times(3, costs(5, step()))])])]);
    let mut stage = Stage::with(wide(), whole(100), whole(10));
    stage.start().unwrap();
    stage.play();
    assert_eq!((stage.state(), stage.get().money.charged), (State::Completed, whole(10)));

    let mut stage = Stage::with(wide(), whole(100), whole(9));
    stage.start().unwrap();
    stage.pick_all();
    stage.play();
    assert_eq!((stage.state(), stage.error()), (State::Failed, "insufficient_credits"));
    assert_eq!(stage.get().money.refunded, whole(4));
}

#[test]
fn where_not_even_the_first_call_can_be_paid_all_agents_end() {
    let wide = plan((0..3).map(|_| agent([task([costs(5, step())])])));
    let mut stage = Stage::with(wide, whole(100), whole(4));
    stage.start().unwrap();
    stage.play();
    assert_eq!((stage.state(), stage.error()), (State::Failed, "insufficient_credits"));
    assert_eq!((stage.made.len(), stage.get().counts.agents, stage.balance()), (0, 3, whole(100)));
    assert!(stage.jobs().all(crate::job::Job::is_ended));
}

#[test]
fn what_an_agent_did_not_need_is_there_for_the_others() {
    let again = TaskPlan { failure_mode: FailureMode::Retry, ..task([costs(5, step())]) };
    let two = Plan { max_agents: 1, ..plan([agent([task([times(3, costs(5, step()))])]), agent([again])]) };
    let mut stage = Stage::with(two, whole(100), whole(20));
    stage.script(|made| Some(if made.agent == 1 && made.task_attempt < 3 { broken() } else { done() }));
    stage.start().unwrap();
    stage.play();
    assert_eq!((stage.state(), stage.get().money.charged), (State::Completed, whole(20)));
}

#[test]
fn retrying_without_credits_is_refused_and_the_run_stays_failed() {
    let mut stage = Stage::with(one(30, 1), whole(50), whole(30));
    stage.script(|_| Some(broken()));
    stage.start().unwrap();
    stage.play();
    let run = stage.get().clone();
    assert_eq!((run.state, stage.balance()), (State::Failed, whole(20)));
    assert_eq!(stage.retry(), Err("insufficient_credits"));
    assert_eq!(*stage.get(), run);
    let more = crate::ledger::grant::Grant { org: org(), amount: whole(10), key: "more".to_owned(), note: None };
    stage.decide(&more).unwrap();
    assert_eq!(stage.retry().unwrap().money.reserved, whole(30));
    assert_eq!(stage.balance(), Credits::ZERO);
}

#[test]
fn an_attempt_beside_the_first_needs_an_org_with_ten_credits() {
    let mut stage = Stage::with(one(3, 1), whole(12), whole(3));
    stage.script(|_| Some(broken()));
    stage.start().unwrap();
    stage.play();
    assert_eq!((stage.balance(), stage.retry()), (whole(9), Err("insufficient_credits")));
}

#[test]
fn a_run_that_retries_by_itself_stops_when_the_credits_do() {
    let again = Plan { failure_mode: FailureMode::Retry, max_attempts: 9, ..one(30, 1) };
    let mut stage = Stage::with(again, whole(70), whole(30));
    stage.script(|_| Some(broken()));
    stage.start().unwrap();
    stage.play();
    assert_eq!((stage.state(), stage.get().attempt, stage.get().failures), (State::Failed, 2, 1));
    assert_eq!(stage.balance(), whole(10));
}

#[test]
fn a_call_that_was_cut_off_by_a_sibling_is_paid_for() {
    let wide = parallel(2, task([costs(5, step()), costs(3, step())]));
    let mut stage = Stage::new(plan([AgentPlan { failure_mode: FailureMode::Retry, ..agent([wide]) }]));
    stage.start().unwrap();
    stage.pick_all();
    stage.reply((0, 0, 0), broken()).unwrap();
    assert_eq!(stage.charges(), [whole(5), whole(3)]);
}
