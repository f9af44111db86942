use super::*;
use crate::canon::Json;
use crate::command::Refusal;
use crate::dedupe::Mode;
use crate::definition::JobType;
use crate::job::batch::Batch;
use crate::job::bench_top::{BenchTop, NOW, done, echo_type, enqueue};
use crate::job::settle::Outcome;
use crate::job::{Failure, State};
use crate::lane::Limit;
use crate::name::OrgId;
use crate::time::Span;
use serde_json::json;

fn deduped(mode: Mode) -> BenchTop {
    let rule = dedupe::Rule { mode, key: Some("{project}:{payload.k}".parse().unwrap()) };
    BenchTop::of(JobType { dedupe: rule, ..echo_type() })
}

fn order(key: &str, more: &str) -> Enqueue {
    Enqueue { payload: Json::of(&json!({ "k": key, more: true })), ..enqueue() }
}

/// Brings the job with a key into a state, asks again, and says what became of it.
fn asked_again(mode: Mode, state: &str) -> How {
    let mut top = deduped(mode);
    let job = top.done(&order("a", "first")).job;
    top.track(job.id);
    let held = (state != "queued").then(|| top.claim());
    if let Some(held) = &held {
        match state {
            "retry" => top.settle(held, Outcome::Failed(Failure::transient("x", "x"))),
            "tool" => top.settle(held, Outcome::Park { until: None, seen: 0 }),
            "asked" => top.settle(held, Outcome::Ask(Json::of(&json!({})))),
            "completed" => top.settle(held, done()),
            "failed" => top.settle(held, Outcome::Failed(Failure::fatal("x", "x"))),
            "stopped" => top.settle(held, Outcome::Stopped),
            _ => crate::job::settle::Settled::Now,
        };
    }
    let again = top.done(&order("a", "second"));
    assert_eq!(again.how.is_new(), again.job.id != job.id);
    again.how
}

#[test]
fn every_mode_in_every_state() {
    use How::{AlreadyQueued, Dropped, Enqueued, FollowUp, Merged};
    let states = ["queued", "running", "retry", "tool", "asked", "completed", "failed", "stopped"];
    for (mode, expected) in [
        (Mode::None, [Enqueued; 8]),
        (
            Mode::SingleFlight,
            [AlreadyQueued, AlreadyQueued, AlreadyQueued, AlreadyQueued, AlreadyQueued, Enqueued, Enqueued, Enqueued],
        ),
        (Mode::DropDuplicate, [Dropped, Dropped, Dropped, Dropped, Dropped, Dropped, Enqueued, Enqueued]),
        (Mode::MergeDuplicate, [Merged, FollowUp, Merged, FollowUp, FollowUp, Enqueued, Enqueued, Enqueued]),
    ] {
        for (state, expected) in states.into_iter().zip(expected) {
            assert_eq!(asked_again(mode, state), expected, "{mode:?} {state}");
        }
    }
}

#[test]
fn merging_takes_the_new_payload_in_and_one_follow_up_is_enough() {
    let mut top = deduped(Mode::MergeDuplicate);
    let first = top.done(&order("a", "first"));
    top.track(first.job.id);
    let merged = top.done(&order("a", "second"));
    assert_eq!(merged.cold.payload.value(), json!({ "first": true, "k": "a", "second": true }));
    assert!(top.kinds().contains(&"job.merged"));
    top.claim();
    let next = top.done(&order("a", "third"));
    assert_eq!(next.how, How::FollowUp);
    let more = top.done(&order("a", "fourth"));
    assert_eq!((more.how, more.job.id), (How::Merged, next.job.id));
    assert_eq!(more.cold.payload.value(), json!({ "fourth": true, "k": "a", "third": true }));
    assert_eq!(top.done(&order("b", "other")).how, How::Enqueued);
}

#[test]
fn a_key_that_cannot_be_filled_in_has_no_duplicates() {
    let mut top = deduped(Mode::SingleFlight);
    for _ in 0..2 {
        let made = top.done(&enqueue());
        assert_eq!((made.how, made.job.dedupe), (How::Enqueued, None));
    }
}

#[test]
fn a_message_is_one_job_for_a_day() {
    let mut top = BenchTop::new();
    let said = Enqueue { message_id: Some("m-1".to_owned()), ..enqueue() };
    let first = top.done(&said);
    let again = top.done(&Enqueue { payload: Json::of(&json!({ "other": 1 })), ..said.clone() });
    assert_eq!((again.how, again.job.id), (How::SameMessage, first.job.id));
    top.now = NOW.plus(limits::MESSAGE_KEPT);
    assert_eq!(top.done(&said).how, How::Enqueued);
    for (mode, key) in [(Mode::SingleFlight, "single"), (Mode::DropDuplicate, "drop")] {
        let mut top = deduped(mode);
        let first = top.done(&order(key, "x")).job.id;
        let said = Enqueue { message_id: Some("m-2".to_owned()), ..order(key, "x") };
        assert_eq!(top.done(&said).job.id, first, "it came to a job that was there");
        top.track(first);
        let job = top.claim();
        top.settle(&job, Outcome::Failed(Failure::fatal("x", "x")));
        assert_eq!(top.done(&said).how, How::SameMessage, "and it stays with it");
    }
    for bad in ["", &"x".repeat(256), "a\0b"] {
        let bad = Enqueue { message_id: Some(bad.to_owned()), ..enqueue() };
        assert_eq!(top.refuse(&bad).code(), "invalid_message_id");
    }
}

#[test]
fn a_project_and_the_whole_queue_have_room_for_so_many() {
    let rules = Rules { max_per_project: 2, max_global: 3, ..Rules::default() };
    let mut top = BenchTop::with(Definitions::with([Entry::plain(echo_type())], rules));
    let other = Enqueue { project: "p2".parse().unwrap(), ..enqueue() };
    top.enqueue();
    top.enqueue();
    let full = top.refuse(&enqueue());
    assert_eq!(full, EnqueueError::QueueFull { what: "lane project:p1".to_owned(), limit: 2, waiting: 2, own: 0 });
    top.done(&other);
    assert_eq!(top.refuse(&other).code(), "queue_full", "all projects together");
    let own = Enqueue { origin: Origin::Engine, ..enqueue() };
    for _ in 0..9 {
        top.done(&own);
    }
    top.claim();
    assert_eq!(top.done(&other).how, How::Enqueued, "what runs does not wait");
}

#[test]
fn a_lane_of_its_own_has_its_own_depth() {
    let lane = lane::Rule::Own { key: "k:{payload.k}".parse().unwrap(), limit: Limit::None, depth: Some(1) };
    let mut top = BenchTop::of(JobType { lane, ..echo_type() });
    let job = top.done(&order("a", "x")).job;
    assert_eq!((job.lane.key.as_str(), job.lane.max), ("k:a", None));
    assert_eq!(top.refuse(&order("a", "x")).code(), "queue_full");
    top.done(&order("b", "x"));
    assert_eq!(top.refuse(&enqueue()).code(), "invalid_payload", "the lane has no name");
}

#[test]
fn a_batch_is_taken_whole_or_not_at_all_and_sees_itself() {
    let rules = Rules { max_per_project: 3, ..Rules::default() };
    let rule = dedupe::Rule { mode: Mode::SingleFlight, key: Some("{payload.k}".parse().unwrap()) };
    let kind = JobType { dedupe: rule, ..echo_type() };
    let mut top = BenchTop::with(Definitions::with([Entry::plain(kind)], rules));
    let batch = |keys: &[&str]| Batch { org: OrgId::default(), jobs: keys.iter().map(|key| order(key, "x")).collect() };
    assert_eq!(top.refuse(&batch(&["a", "b", "c", "d"])).code(), "queue_full");
    assert!(top.kinds().is_empty());
    let taken = top.done(&batch(&["a", "b", "a", "c"]));
    assert_eq!(taken[2].how, How::AlreadyQueued);
    assert_eq!(taken[2].job.id, taken[0].job.id);
    assert_eq!(top.kinds().len(), 3);
    assert_eq!(top.refuse(&batch(&[])).code(), "batch_size");
}

#[test]
fn a_queue_that_is_switched_off_takes_nothing() {
    let rules = Rules { enabled: false, ..Rules::default() };
    let mut top = BenchTop::with(Definitions::with([Entry::plain(echo_type())], rules));
    assert_eq!(top.refuse(&enqueue()).code(), "queue_disabled");
}

#[test]
fn lanes_count_who_waits_and_who_runs_whatever_happens() {
    let mut top = BenchTop::new();
    let key = LaneKey::of_project(&"p1".parse().unwrap());
    let counts = |top: &BenchTop| {
        let row = top.world.lane(&OrgId::default(), &key).unwrap();
        (row.waiting, row.running)
    };
    top.enqueue();
    assert_eq!(counts(&top), (1, 0));
    let job = top.claim();
    assert_eq!(counts(&top), (0, 1));
    top.settle(&job, Outcome::Park { until: Some(NOW), seen: 0 });
    assert_eq!(counts(&top), (0, 1), "waiting for its tool it keeps its slot");
    let job = top.claim();
    top.settle(&job, Outcome::Failed(Failure::transient("x", "x")));
    assert_eq!(counts(&top), (1, 0), "waiting to try again it does not");
    top.now = NOW.plus(Span::secs(99));
    let job = top.claim();
    top.settle(&job, Outcome::Ask(Json::of(&json!({}))));
    assert_eq!(counts(&top), (1, 0), "nor waiting for a person");
    top.done(&crate::job::cancel::Cancel { org: OrgId::default(), job: job.id, reason: None });
    assert_eq!(counts(&top), (0, 0));
    assert_eq!(top.latest().status.state(), State::Cancelled);
}
