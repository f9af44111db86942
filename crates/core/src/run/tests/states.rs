//! What may be done to a run in which state.

use crate::run::State;
use crate::run::stage::{Stage, agent, broken, plan, step, task};
use crate::time::Span;

#[test]
fn a_run_goes_from_created_to_completed_and_a_completed_one_cannot_be_paused() {
    let mut stage = Stage::new(plan([agent([task([step()])])]));
    assert_eq!(stage.state(), State::Created);
    stage.start().unwrap();
    assert_eq!(stage.state(), State::Pending);
    assert_eq!(stage.get().counts.agents, 0);
    stage.pick_all();
    assert_eq!((stage.state(), stage.get().counts.agents), (State::Running, 1));
    stage.play();
    assert_eq!(stage.state(), State::Completed);
    assert_eq!(stage.pause(), Err("invalid_transition"));
    let kinds: Vec<&str> =
        stage.world.events().iter().map(|e| e.kind.as_str()).filter(|k| k.starts_with("run.")).collect();
    assert_eq!(kinds, ["run.created", "run.pending", "run.running", "run.completed"]);
}

/// A run that is in this state, whatever it takes.
fn in_state(state: State) -> Stage {
    let mut stage = Stage::new(plan([agent([task([step()])])]));
    stage.script(|_| None);
    if state == State::Created {
        return stage;
    }
    stage.start().unwrap();
    match state {
        State::Created | State::Pending => return stage,
        State::Cancelled => {
            stage.cancel().unwrap();
            return stage;
        }
        _ => {}
    }
    stage.pick_all();
    match state {
        State::Paused => drop(stage.pause().unwrap()),
        State::Resuming => {
            stage.pause().unwrap();
            stage.resume().unwrap();
        }
        State::Completed => {
            stage.script(|_| Some(crate::run::stage::done()));
            stage.play();
        }
        State::Skipped => {
            stage = Stage::new(crate::plan::Plan {
                failure_mode: crate::plan::FailureMode::Continue,
                ..plan([agent([task([step()])])])
            });
            stage.script(|_| Some(broken()));
            stage.start().unwrap();
            stage.play();
        }
        State::Failed | State::Retrying => {
            stage.script(|_| Some(broken()));
            stage.play();
            if state == State::Retrying {
                stage.retry().unwrap();
            }
        }
        _ => {}
    }
    stage
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Start,
    Pause,
    Resume,
    Cancel,
    Retry,
    Delete,
}

impl Said {
    const ALL: [Self; 6] = [Self::Start, Self::Pause, Self::Resume, Self::Cancel, Self::Retry, Self::Delete];

    fn to(self, stage: &mut Stage) -> Result<(), &'static str> {
        let run = match self {
            Self::Start => stage.start(),
            Self::Pause => stage.pause(),
            Self::Resume => stage.resume(),
            Self::Cancel => stage.cancel(),
            Self::Retry => stage.retry(),
            Self::Delete => stage.delete(),
        };
        run.map(drop)
    }
}

#[test]
fn every_command_is_allowed_in_its_states_and_refused_in_all_others() {
    use State::{Cancelled, Completed, Created, Failed, Paused, Pending, Resuming, Retrying, Running, Skipped};
    // What becomes of a run; whatever is not listed is refused.
    let table: [(Said, &[(State, State)]); 6] = [
        (Said::Start, &[(Created, Pending), (Pending, Pending), (Running, Running)]),
        (Said::Pause, &[(Running, Paused), (Paused, Paused), (Resuming, Paused)]),
        (Said::Resume, &[(Paused, Resuming), (Resuming, Resuming), (Running, Running)]),
        (
            Said::Cancel,
            &[
                (Created, Cancelled),
                (Pending, Cancelled),
                (Running, Cancelled),
                (Paused, Cancelled),
                (Resuming, Cancelled),
                (Retrying, Cancelled),
                (Cancelled, Cancelled),
            ],
        ),
        (Said::Retry, &[(Failed, Retrying), (Retrying, Retrying)]),
        (
            Said::Delete,
            &[(Created, Created), (Completed, Completed), (Failed, Failed), (Cancelled, Cancelled), (Skipped, Skipped)],
        ),
    ];
    for (said, moves) in table {
        for from in State::ALL {
            let mut stage = in_state(*from);
            assert_eq!(stage.state(), *from);
            let before = stage.written();
            match (said.to(&mut stage), moves.iter().find(|(state, _)| state == from)) {
                (Ok(()), Some((_, to))) => assert_eq!(stage.state(), *to, "{said:?} a run that is {from}"),
                (Err(code), None) => {
                    assert_eq!(code, "invalid_transition", "{said:?} a run that is {from}");
                    assert_eq!(stage.written(), before);
                }
                (said_so, _) => panic!("{said:?} a run that is {from}: {said_so:?}"),
            }
        }
    }
}

#[test]
fn saying_the_same_thing_twice_changes_nothing_more() {
    for from in State::ALL {
        for said in Said::ALL {
            let mut stage = in_state(*from);
            if said.to(&mut stage).is_err() {
                continue;
            }
            let (run, written) = (stage.get().clone(), stage.written());
            let again = said.to(&mut stage);
            assert_eq!(again, Ok(()), "{said:?} again, a run that was {from}");
            assert_eq!((stage.get(), stage.written()), (&run, written), "{said:?} again, a run that was {from}");
        }
    }
}

#[test]
fn a_deleted_run_is_not_there_for_commands_any_more_and_its_history_stays() {
    let mut stage = in_state(State::Failed);
    stage.delete().unwrap();
    for said in [Said::Start, Said::Pause, Said::Resume, Said::Cancel, Said::Retry] {
        assert_eq!(said.to(&mut stage), Err("run_not_found"), "{said:?}");
    }
    assert!(stage.get().is_deleted());
    assert_eq!(stage.steps().len(), 1);
    assert_eq!(stage.told("run.deleted"), 1);
}

#[test]
fn a_retried_run_waits_for_its_clock_and_then_for_a_worker() {
    let mut stage = in_state(State::Retrying);
    assert_eq!((stage.get().attempt, stage.get().counts.agents), (2, 0));
    assert_eq!(stage.start(), Err("invalid_transition"), "its own clock starts it");
    stage.tick().unwrap();
    assert_eq!(stage.state(), State::Pending);
    stage.script(|_| Some(crate::run::stage::done()));
    stage.play();
    assert_eq!(stage.state(), State::Completed);
}

#[test]
fn attempts_run_out() {
    let mut stage = in_state(State::Failed);
    for attempt in 2..=3 {
        assert_eq!(stage.retry().unwrap().attempt, attempt);
        stage.play();
        assert_eq!(stage.state(), State::Failed);
    }
    assert_eq!(stage.retry(), Err("attempts_exhausted"));
    assert_eq!(stage.state(), State::Failed);
}

#[test]
fn a_worker_that_was_given_up_is_not_believed_once_another_took_over() {
    let mut stage = in_state(State::Running);
    let (job, made) = stage.in_flight()[0];
    let dead = stage.hands[&job].clone();
    stage.crash(0);
    stage.pick_all();
    let held = stage.hands.insert(job, dead).unwrap();
    let written = stage.written();
    assert!(stage.report(job, &[(made, crate::run::stage::done())]).is_err());
    assert_eq!(stage.written(), written);
    stage.hands.insert(job, held);
    stage.report(job, &[(made, crate::run::stage::done())]).unwrap();
    assert_eq!(stage.state(), State::Completed);
}

#[test]
fn a_worker_that_comes_twice_or_too_late_finds_nothing_to_do() {
    let mut stage = in_state(State::Running);
    stage.crash(0);
    stage.pick_all();
    assert_eq!((stage.told("agent.spawned"), stage.told("agent.taken_over")), (1, 1));
    let job = *stage.hands.keys().next().unwrap();
    stage.cancel().unwrap();
    assert!(stage.report(job, &[]).is_err(), "fenced");
    stage.wait(Span::secs(60));
    assert!(stage.pick().is_none());
}
