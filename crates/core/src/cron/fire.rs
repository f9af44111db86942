//! A schedule's moment has come.

use super::{CATCH_UP_MAX, CatchUp, ON_TIME, Schedule};
use crate::canon::Json;
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::definition::Definitions;
use crate::doc::{self, Doc};
use crate::event::Event;
use crate::id::{DocId, JobId};
use crate::job::enqueue::{Enqueue, Origin};
use crate::job::intake::{self, Intake};
use crate::name::OrgId;
use crate::time::{Micros, Span};
use crate::timer;
use crate::world::View;
use serde_json::json;

/// Issued by the timer; several nodes may issue it, one of them finds the timer.
#[derive(Clone, Debug)]
pub struct Fire {
    pub org: OrgId,
    pub id: DocId,
    /// Where the schedule's document is.
    pub key: doc::Key,
    /// The moment the timer stood for when it was found due.
    pub at: Micros,
}

/// When a node does not know the type of the jobs.
const LOOK_AGAIN: Span = Span::secs(5);
/// When the next moment cannot be told.
const TROUBLE: Span = Span::secs(60);

/// A schedule whose moment has come, and the moment after that.
struct Due {
    schedule: Schedule,
    next: Micros,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FireError {
    #[error("the timer was fired, moved or cleared since it was found due")]
    TimerGone,
}

impl Refusal for FireError {
    fn code(&self) -> &'static str {
        "timer_gone"
    }
}

impl Command for Fire {
    /// The jobs that were made.
    type Out = Vec<JobId>;
    type No = FireError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::doc(self.key.clone()).and_timer(Schedule::timer(self.id))
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Vec<JobId>, FireError> {
        let timer = Schedule::timer(self.id);
        if view.timer(&timer) != Some(self.at) || self.at > cx.now {
            return Decision::Refused(FireError::TimerGone);
        }
        let cleared = || Changes::none().timer(timer::Change::Clear { key: timer });
        let doc = view.doc(&self.key).filter(|doc| doc.id == self.id && !doc.flag);
        let Some((doc, schedule)) = doc.and_then(|doc| Some((doc, Schedule::of(doc)?))) else {
            return Decision::Done(Vec::new(), cleared());
        };
        if cx.defs.newest(&self.org, &schedule.spec.kind).is_none() || !cx.defs.rules.enabled {
            // Another node may know the type, or the queue be switched on again: then its moments
            // are caught up with. Until then somebody looks again soon.
            let at = cx.now.plus(LOOK_AGAIN);
            return Decision::Done(Vec::new(), Changes::none().timer(timer::Change::Set { key: timer, at }));
        }
        // A zone may be unknown to this node only: the moments wait for one that knows it.
        let Ok(next) = schedule.spec.when.next_after(cx.now) else {
            return Decision::Done(Vec::new(), self.in_trouble(doc, &schedule, cx.now));
        };
        let order = self.order(&schedule);
        let mut reads = intake::reads(&order, cx.defs);
        if schedule.spec.single_flight {
            reads.jobs.extend(schedule.last_job);
        }
        if view.missing(&reads) != Reads::none() {
            return Decision::Need(reads);
        }
        let (out, changes) = self.fired(view, doc, Due { schedule, next }, &order, cx);
        Decision::Done(out, changes)
    }
}

impl Fire {
    /// Its moments cannot be told here. That is said once, and looked at again and again.
    fn in_trouble(&self, doc: &Doc, schedule: &Schedule, now: Micros) -> Changes {
        let timer = timer::Change::Set { key: Schedule::timer(self.id), at: now.plus(TROUBLE) };
        let again = schedule.next_at != Some(self.at);
        if again {
            return Changes::none().timer(timer);
        }
        let told = json!({
            "jobs": 0, "last_job": null, "moments": 1, "project": schedule.project, "reason": "invalid_schedule",
            "type": schedule.spec.kind,
        });
        let event = Event::new(doc::Class::Schedule.subject(self.id), "schedule.skipped", told);
        Changes::none().timer(timer).doc(doc::Change::Put(self.key.clone(), doc.clone())).event(event)
    }

    fn order(&self, schedule: &Schedule) -> Enqueue {
        let spec = &schedule.spec;
        Enqueue {
            priority: spec.priority,
            source_session: spec.source_session.clone(),
            origin: Origin::Schedule(self.id),
            ..Enqueue::new(self.org.clone(), schedule.project.clone(), spec.kind.clone(), Json::of(&spec.payload))
        }
    }

    fn fired(
        &self,
        view: &View<'_>,
        doc: &Doc,
        Due { mut schedule, next }: Due,
        order: &Enqueue,
        cx: &mut Ctx<'_>,
    ) -> (Vec<JobId>, Changes) {
        // The timer may stand for a second look at an earlier moment.
        let from = schedule.next_at.unwrap_or(self.at);
        let moments = missed(&schedule, from, cx.now);
        let last = schedule.spec.when.last_until(cx.now).map_or(from, |last| last.max(from));
        let wanted = match schedule.spec.catch_up {
            CatchUp::All => moments,
            CatchUp::One => 1,
            // The last one may be only just over.
            CatchUp::Skip => usize::from(cx.now.since(last) <= ON_TIME),
        };
        let mut busy = schedule.spec.single_flight
            && schedule.last_job.and_then(|id| view.job(id)).is_some_and(|job| !job.is_ended());
        let mut intake = Intake::new(*view, cx.defs);
        let (mut made, mut refused, mut duplicate) = (Vec::new(), None, false);
        for _ in 0..wanted {
            if busy {
                break;
            }
            match intake.take(order, cx) {
                Ok(out) if out.how.is_new() => {
                    made.push(out.job.id);
                    busy = schedule.spec.single_flight;
                }
                Ok(_) => duplicate = true,
                Err(no) => {
                    refused = Some(no);
                    break;
                }
            }
        }
        schedule.last_at = Some(last);
        schedule.last_job = made.last().copied().or(schedule.last_job);
        schedule.made += made.len() as u64;
        let reason = match refused.as_ref() {
            Some(no) => Some(no.code()),
            _ if !made.is_empty() => None,
            _ if busy => Some("still_running"),
            _ if duplicate => Some("duplicate"),
            _ => Some("missed"),
        };
        schedule.next_at = Some(next);
        let told = json!({
            "jobs": made.len(),
            "last_job": made.last(),
            "moments": moments,
            "project": schedule.project,
            "reason": reason,
            "type": schedule.spec.kind,
        });
        let kind = if made.is_empty() { "schedule.skipped" } else { "schedule.fired" };
        let timer = timer::Change::Set { key: Schedule::timer(self.id), at: next };
        let doc = Doc { body: schedule.body(), ..doc.clone() };
        let changes = intake.finish().timer(timer).doc(doc::Change::Put(self.key.clone(), doc)).event(Event::new(
            doc::Class::Schedule.subject(self.id),
            kind,
            told,
        ));
        (made, changes)
    }
}

/// How many moments there were from this one until now, at most [`CATCH_UP_MAX`].
fn missed(schedule: &Schedule, from: Micros, now: Micros) -> usize {
    let (mut moments, mut at) = (1, from);
    while moments < CATCH_UP_MAX {
        match schedule.spec.when.next_after(at) {
            Ok(next) if next <= now && next > at => {
                moments += 1;
                at = next;
            }
            _ => break,
        }
    }
    moments
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cron::put::{Act, Put};
    use crate::cron::{Spec, When};
    use crate::job::bench_top::{BenchTop, NOW, done};
    use crate::time::Span;

    const MINUTE: Span = Span::secs(60);

    fn spec(catch_up: CatchUp, single_flight: bool) -> Spec {
        Spec {
            when: When { cron: "* * * * *".to_owned(), time_zone: "UTC".to_owned() },
            kind: "echo".parse().unwrap(),
            payload: json!({ "tick": true }),
            priority: None,
            source_session: None,
            catch_up,
            single_flight,
        }
    }

    fn put(act: Act) -> Put {
        Put { org: OrgId::default(), project: "p1".parse().unwrap(), name: "tick".parse().unwrap(), act }
    }

    fn made(top: &mut BenchTop, spec: Spec) -> Fire {
        let kept = top.done(&put(Act::Put(Box::new(spec))));
        let key = Schedule::key(&kept.schedule.project, &kept.schedule.name);
        Fire { org: OrgId::default(), id: kept.id, key, at: kept.schedule.next_at.unwrap() }
    }

    #[test]
    fn firing_makes_a_job_and_sets_the_next_moment_once() {
        let mut top = BenchTop::new();
        let fire = made(&mut top, spec(CatchUp::One, false));
        assert_eq!(top.refuse(&fire), FireError::TimerGone, "not yet due");
        top.now = fire.at;
        assert_eq!(top.done(&fire).len(), 1);
        assert_eq!(top.refuse(&fire), FireError::TimerGone, "its timer stands for the next moment");
        let next = Fire { at: fire.at.plus(MINUTE), ..fire };
        top.now = next.at;
        assert_eq!(top.done(&next).len(), 1);
    }

    #[test]
    fn missed_moments_are_caught_up_with_as_the_schedule_says() {
        for (catch_up, late, jobs) in [
            (CatchUp::One, Span::secs(600), 1),
            (CatchUp::All, Span::secs(600), 11),
            (CatchUp::All, Span::secs(60 * 1_000), CATCH_UP_MAX),
            (CatchUp::Skip, Span::secs(30), 1),
            // Its last moment is this very one, or long over.
            (CatchUp::Skip, Span::secs(60 * 1_000), 1),
        ] {
            let mut top = BenchTop::new();
            let fire = made(&mut top, spec(catch_up, false));
            top.now = fire.at.plus(late);
            assert_eq!(top.done(&fire).len(), jobs, "{catch_up:?} {late:?}");
        }
    }

    #[test]
    fn a_moment_long_over_is_skipped_and_the_last_one_told() {
        let mut top = BenchTop::new();
        let hourly = Spec {
            when: When { cron: "0 * * * *".to_owned(), ..spec(CatchUp::Skip, false).when },
            ..spec(CatchUp::Skip, false)
        };
        let fire = made(&mut top, hourly);
        top.now = fire.at.plus(Span::secs(200 * 3_600 + 600));
        let last = Micros(fire.at.0 + Span::secs(200 * 3_600).0);
        assert!(top.done(&fire).is_empty());
        assert!(top.texts().contains("missed"));
        let doc = top.world.doc_writes().next().unwrap().2;
        assert_eq!(Schedule::of(doc).unwrap().last_at, Some(last), "more moments lie between than are counted");
    }

    #[test]
    fn a_schedule_whose_moments_cannot_be_told_says_so_once_and_waits() {
        let mut top = BenchTop::new();
        let fire = made(&mut top, spec(CatchUp::One, false));
        // As if this node did not know the zone that another one took in.
        let (_, key, doc) = top.world.doc_writes().next().unwrap();
        let lost = doc.body.as_str().replace("UTC", "Mars");
        let (key, doc) = (key.clone(), Doc { body: Json::stored(lost), ..doc.clone() });
        let changes = Changes::none().doc(doc::Change::Put(key, doc));
        top.world.apply(&OrgId::default(), &crate::command::Actor::Engine, top.now, changes);
        top.now = fire.at;
        assert!(top.done(&fire).is_empty());
        let said = |top: &BenchTop| top.texts().matches("invalid_schedule").count();
        assert_eq!(said(&top), 1);
        let again = Fire { at: fire.at.plus(TROUBLE), ..fire };
        top.now = again.at;
        assert!(top.done(&again).is_empty());
        assert_eq!(said(&top), 1);
    }

    #[test]
    fn said_again_it_still_owes_the_moment_that_has_come() {
        let mut top = BenchTop::new();
        let fire = made(&mut top, spec(CatchUp::All, false));
        top.now = fire.at.plus(Span::secs(600));
        let kept = top.done(&put(Act::Put(Box::new(spec(CatchUp::All, false)))));
        assert_eq!(kept.schedule.next_at, Some(fire.at));
        assert_eq!(top.done(&fire).len(), 11);
        let mut other = spec(CatchUp::All, false);
        other.when.cron = "*/7 * * * *".to_owned();
        let kept = top.done(&put(Act::Put(Box::new(other))));
        assert!(kept.schedule.next_at.is_some_and(|at| at > top.now), "other moments begin anew");
    }

    #[test]
    fn a_single_flight_waits_for_its_last_job_to_end() {
        let mut top = BenchTop::new();
        let fire = made(&mut top, spec(CatchUp::All, true));
        top.now = fire.at;
        let first = top.done(&fire);
        top.track(first[0]);
        let again = Fire { at: fire.at.plus(MINUTE), ..fire.clone() };
        top.now = again.at;
        assert!(top.done(&again).is_empty());
        assert!(top.texts().contains("still_running"));
        let job = top.claim();
        top.settle(&job, done());
        let third = Fire { at: again.at.plus(MINUTE), ..fire };
        top.now = third.at;
        assert_eq!(top.done(&third).len(), 1);
    }

    #[test]
    fn a_paused_or_deleted_schedule_has_no_moments_and_a_resumed_one_does_not_look_back() {
        let mut top = BenchTop::new();
        let fire = made(&mut top, spec(CatchUp::All, false));
        assert!(top.done(&put(Act::Pause)).paused);
        top.now = fire.at.plus(Span::secs(600));
        assert_eq!(top.refuse(&fire), FireError::TimerGone);
        let resumed = top.done(&put(Act::Resume));
        assert!(resumed.schedule.next_at.unwrap() > top.now);
        top.done(&put(Act::Delete));
        assert_eq!(top.refuse(&put(Act::Pause)).code(), "schedule_not_found");
        let anew = top.done(&put(Act::Put(Box::new(spec(CatchUp::One, false)))));
        assert!(anew.made && anew.id == fire.id, "the name has one history");
    }

    #[test]
    fn what_cannot_be_scheduled_is_said_so() {
        let mut top = BenchTop::new();
        let bad = |change: &dyn Fn(&mut Spec)| {
            let mut spec = spec(CatchUp::One, false);
            change(&mut spec);
            put(Act::Put(Box::new(spec)))
        };
        for (put, code) in [
            (bad(&|s| s.when.cron = "nonsense".to_owned()), "invalid_schedule"),
            (bad(&|s| s.when.cron = "*/70 * * * *".to_owned()), "invalid_schedule"),
            (bad(&|s| s.when.time_zone = "Mars".to_owned()), "invalid_schedule"),
            (bad(&|s| s.kind = "moon".parse().unwrap()), "unknown_job_type"),
            (bad(&|s| s.payload = json!("x".repeat(300_000))), "payload_too_large"),
        ] {
            assert_eq!(top.refuse(&put).code(), code);
        }
        assert_eq!(NOW, top.now);
    }
}
