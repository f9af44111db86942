//! Lanes: how many of a kind run at once, and whose turn it is.

use super::steps::{ask, clean, done, settle};
use crate::lab::{Lab, Node, name};
use crate::queue_types::{job, lab_with};
use anyhow::{Context, Result, ensure};
use baton_core::command::Actor;
use baton_core::definition::{Definitions, Entry, JobType};
use baton_core::job::batch::Batch;
use baton_core::job::enqueue::Enqueue;
use baton_core::job::settle::{Outcome, Settle};
use baton_core::job::{BACKGROUND, Failure, INTERACTIVE, Job};
use baton_core::lane::{LaneKey, Pause};
use baton_core::rules::Rules;
use baton_core::schedule::Turns;
use baton_core::time::Span;
use baton_core::{JobId, Json, OrgId};
use baton_store::faults::Mishap;
use baton_store::{Ask, LaneRecord, Leased, ListLanes, Order, Turn};
use futures_util::future::try_join_all;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Room for everybody: these cases are not about caps.
pub(super) fn roomy(lab: Lab) -> Lab {
    lab_with(lab, Rules { max_per_project: 100_000, max_global: 1_000_000, ..Rules::default() })
}

pub(super) async fn enqueue(node: &Node, kind: &str, project: &str, priority: i32) -> Result<Job> {
    let order = Enqueue { priority: Some(priority), ..job(kind, project) };
    Ok(node.store.commit(order, Actor::Api).await?.job)
}

async fn lane(node: &Node, key: &str) -> Result<LaneRecord> {
    node.store.lane(&OrgId::default(), &name(key)).await?.with_context(|| format!("no lane {key}"))
}

async fn claim(lab: &Lab, node: &Node, slots: usize) -> Result<Vec<Leased>> {
    Ok(node.store.claim(ask(lab, node, slots)).await?.leased)
}

fn by_lane(leased: &[Leased]) -> BTreeMap<String, usize> {
    let mut lanes = BTreeMap::new();
    for l in leased {
        *lanes.entry(l.job.lane.key.to_string()).or_default() += 1;
    }
    lanes
}

/// Settles everything and asks for so many more, as a pool does.
async fn go_on(lab: &Lab, node: &Node, held: &[Leased], slots: usize, turns: &mut Turns) -> Result<Vec<Leased>> {
    let settles = held.iter().map(|l| Ok((done(l)?, Actor::Engine))).collect::<Result<_>>()?;
    let ask = Ask { turns: turns.clone(), ..ask(lab, node, slots) };
    let turn = node.store.turn(settles, Some(ask)).await?;
    for settled in turn.settled {
        settled?;
    }
    *turns = turn.turns;
    Ok(turn.leased)
}

/// The priorities of so many jobs in the order they are handed out, and which of them is this one.
async fn one_by_one(lab: &Lab, node: &Node, jobs: usize, this: JobId) -> Result<Vec<(i32, bool)>> {
    let (mut turns, mut held, mut order) = (Turns::default(), Vec::new(), Vec::new());
    for _ in 0..jobs {
        held = go_on(lab, node, &held, 1, &mut turns).await?;
        let job = &held.first().context("there is more")?.job;
        order.push((job.priority, job.id == this));
    }
    Ok(order)
}

pub async fn a_lane_gives_no_more_than_its_limit(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    for kind in ["one", "pair", "wide"] {
        for _ in 0..5 {
            enqueue(&node, kind, "p1", BACKGROUND).await?;
        }
    }
    let leased = claim(&lab, &node, 50).await?;
    let expected = [("pair:p1", 2), ("project:p1", 1), ("wide:p1", 5)].map(|(lane, n)| (lane.to_owned(), n));
    ensure!(by_lane(&leased) == BTreeMap::from(expected), "{:?}", by_lane(&leased));
    ensure!(claim(&lab, &node, 50).await?.is_empty());
    let pair = lane(&node, "pair:p1").await?;
    ensure!((pair.max, pair.running, pair.waiting) == (Some(2), 2, 3), "{pair:?}");
    clean(&node.store).await
}

pub async fn settling_hands_the_slot_to_the_lanes_next_in_the_same_commit(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    let mut jobs = Vec::new();
    for _ in 0..4 {
        jobs.push(enqueue(&node, "one", "p1", BACKGROUND).await?.id);
    }
    let mut held = claim(&lab, &node, 1).await?;
    let mut turns = Turns::default();
    for expected in jobs.into_iter().skip(1) {
        let before = node.script.commits();
        held = go_on(&lab, &node, &held, 2, &mut turns).await?;
        ensure!(node.script.commits() == before + 1, "one commit for both");
        ensure!(held.iter().map(|l| l.job.id).eq([expected]), "the next, and no other");
    }
    clean(&node.store).await
}

pub async fn waiting_for_a_tool_keeps_the_slot_and_other_waiting_gives_it_back(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    let ask = Outcome::Ask(Json::of(&json!({ "sure": "?" })));
    let retry = Outcome::Failed(Failure::transient("flaky", "once more"));
    let park = Outcome::Park { until: None, seen: 0 };
    for (project, outcome, next) in [("ask", ask, 1), ("retry", retry, 1), ("tool", park, 0)] {
        enqueue(&node, "one", project, BACKGROUND).await?;
        enqueue(&node, "one", project, BACKGROUND).await?;
        let leased = claim(&lab, &node, 9).await?;
        ensure!(leased.len() == 1, "{project}");
        let first = leased.first().context("one")?;
        node.store.commit(settle(first, outcome)?, Actor::Engine).await?;
        let after = claim(&lab, &node, 9).await?;
        ensure!(after.len() == next, "{project}: {} more", after.len());
        for leased in &after {
            node.store.commit(done(leased)?, Actor::Engine).await?;
        }
    }
    // Woken, it goes on in the slot that it kept.
    let tool = lane(&node, "project:tool").await?;
    ensure!((tool.running, tool.waiting) == (1, 1));
    clean(&node.store).await
}

pub async fn a_job_that_goes_on_needs_no_free_slot(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    let first = enqueue(&node, "one", "p1", BACKGROUND).await?;
    enqueue(&node, "one", "p1", INTERACTIVE).await?;
    // The interactive one goes first and pauses for its tool; then it is woken.
    let leased = claim(&lab, &node, 1).await?;
    let held = leased.first().context("one")?;
    node.store.commit(settle(held, Outcome::Park { until: None, seen: 0 })?, Actor::Engine).await?;
    ensure!(claim(&lab, &node, 9).await?.is_empty(), "the lane is taken");
    let wake = baton_core::job::wake::Wake { org: OrgId::default(), job: held.job.id };
    node.store.commit(wake, Actor::Api).await?;
    let again = claim(&lab, &node, 9).await?;
    ensure!(again.iter().map(|l| l.job.id).eq([held.job.id]), "it, and nobody beside it");
    node.store.commit(done(again.first().context("one")?)?, Actor::Engine).await?;
    ensure!(claim(&lab, &node, 9).await?.iter().map(|l| l.job.id).eq([first.id]));
    clean(&node.store).await
}

pub async fn types_with_and_without_a_limit_share_a_lane_and_only_those_with_one_are_counted(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    for kind in ["pair", "guest"] {
        for _ in 0..3 {
            enqueue(&node, kind, "p1", BACKGROUND).await?;
        }
    }
    let kinds = |leased: &[Leased]| {
        let of = |kind: &str| leased.iter().filter(|l| l.job.kind.name.as_str() == kind).count();
        (of("pair"), of("guest"))
    };
    let first = claim(&lab, &node, 9).await?;
    ensure!(kinds(&first) == (2, 3), "{:?}", kinds(&first));
    // One of each waits for its tool. The slot of the one that is counted stays taken.
    let parked: Vec<&Leased> =
        ["pair", "guest"].iter().filter_map(|kind| first.iter().find(|l| l.job.kind.name.as_str() == *kind)).collect();
    for leased in &parked {
        node.store.commit(settle(leased, Outcome::Park { until: None, seen: 0 })?, Actor::Engine).await?;
    }
    ensure!(claim(&lab, &node, 9).await?.is_empty(), "the lane is full");
    enqueue(&node, "guest", "p1", BACKGROUND).await?;
    for leased in &parked {
        let wake = baton_core::job::wake::Wake { org: OrgId::default(), job: leased.job.id };
        node.store.commit(wake, Actor::Api).await?;
    }
    // Both go on although the lane is full, and a guest never minds; the third of the pair still waits.
    let again = claim(&lab, &node, 9).await?;
    ensure!(kinds(&again) == (1, 2), "{:?}", kinds(&again));
    let record = lane(&node, "pair:p1").await?;
    ensure!((record.max, record.running, record.waiting) == (Some(2), 2, 1), "{record:?}");
    // Its turn comes when one that is counted ends, in the same commit.
    let held: Vec<Leased> = again.into_iter().filter(|l| l.job.kind.name.as_str() == "pair").collect();
    let next = go_on(&lab, &node, &held, 9, &mut Turns::default()).await?;
    ensure!(kinds(&next) == (1, 0), "{:?}", kinds(&next));
    clean(&node.store).await
}

pub async fn a_flooding_project_delays_another_by_one_job_a_turn(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    for n in 0..60 {
        enqueue(&node, "wide", "flood", BACKGROUND).await?;
        if n % 10 == 0 {
            enqueue(&node, "wide", "calm", BACKGROUND).await?;
        }
    }
    let (mut turns, mut order, mut held) = (Turns::default(), Vec::new(), Vec::new());
    loop {
        held = go_on(&lab, &node, &held, 1, &mut turns).await?;
        let Some(leased) = held.first() else { break };
        order.push(leased.job.project.to_string());
    }
    let calm: Vec<usize> = order.iter().enumerate().filter(|(_, p)| *p == "calm").map(|(i, _)| i).collect();
    ensure!(calm.len() == 6 && order.len() == 66);
    ensure!(calm.windows(2).all(|w| w[1] - w[0] <= 2), "every other job is the calm project's: {calm:?}");
    clean(&node.store).await
}

pub async fn interactive_goes_first_until_background_has_waited_too_long(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    for _ in 0..3 {
        enqueue(&node, "one", "p1", BACKGROUND).await?;
    }
    for _ in 0..12 {
        enqueue(&node, "one", "p1", INTERACTIVE).await?;
    }
    let (mut turns, mut held, mut order) = (Turns::default(), Vec::new(), Vec::new());
    for n in 0..15 {
        if n == 4 {
            lab.advance(Span::secs(16));
        }
        held = go_on(&lab, &node, &held, 1, &mut turns).await?;
        order.push(held.first().context("there is more")?.job.priority);
    }
    let (i, b) = (INTERACTIVE, BACKGROUND);
    ensure!(order == [i, i, i, i, b, i, i, i, b, i, i, i, b, i, i], "{order:?}");
    clean(&node.store).await
}

pub async fn an_aged_job_of_a_high_number_is_seen_behind_fresh_ones(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    let old = enqueue(&node, "one", "p1", 300).await?;
    lab.advance(Span::secs(16));
    for _ in 0..3 {
        enqueue(&node, "one", "p1", BACKGROUND).await?;
    }
    for _ in 0..4 {
        enqueue(&node, "one", "p1", INTERACTIVE).await?;
    }
    let order = one_by_one(&lab, &node, 8, old.id).await?;
    let (i, b) = ((INTERACTIVE, false), (BACKGROUND, false));
    ensure!(order == [i, i, i, (300, true), i, b, b, b], "{order:?}");
    clean(&node.store).await
}

pub async fn an_aged_job_is_seen_behind_delayed_ones_that_are_due_now(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    let due = node.store.now().await?.plus(Span::secs(60));
    for _ in 0..3 {
        let late = Enqueue { not_before: Some(due), ..job("one", "p1") };
        node.store.commit(late, Actor::Api).await?;
    }
    let old = enqueue(&node, "one", "p1", BACKGROUND).await?;
    lab.advance(Span::secs(61));
    for _ in 0..4 {
        enqueue(&node, "one", "p1", INTERACTIVE).await?;
    }
    let order = one_by_one(&lab, &node, 8, old.id).await?;
    let (i, b) = ((INTERACTIVE, false), (BACKGROUND, false));
    ensure!(order == [i, i, i, (BACKGROUND, true), i, b, b, b], "{order:?}");
    clean(&node.store).await
}

pub async fn an_aged_job_that_needs_no_slot_is_seen_in_a_full_lane(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    for _ in 0..3 {
        enqueue(&node, "pair", "p1", BACKGROUND).await?;
    }
    ensure!(claim(&lab, &node, 9).await?.len() == 2, "the lane is full");
    // Older than the guest, and of no use in a full lane.
    let due = node.store.now().await?.plus(Span::secs(1));
    node.store.commit(Enqueue { not_before: Some(due), ..job("pair", "p1") }, Actor::Api).await?;
    lab.advance(Span::secs(2));
    let old = enqueue(&node, "guest", "p1", 300).await?;
    lab.advance(Span::secs(16));
    for _ in 0..3 {
        enqueue(&node, "guest", "p1", BACKGROUND).await?;
    }
    for _ in 0..4 {
        enqueue(&node, "guest", "p1", INTERACTIVE).await?;
    }
    let order = one_by_one(&lab, &node, 8, old.id).await?;
    let (i, b) = ((INTERACTIVE, false), (BACKGROUND, false));
    ensure!(order == [i, i, i, (300, true), i, b, b, b], "{order:?}");
    clean(&node.store).await
}

/// Jobs of another type that wait in the same lane: more than anybody would read through.
const AHEAD: usize = 3_000;

pub async fn whoever_asks_for_one_type_does_not_wait_behind_thousands_of_another(mut lab: Lab) -> Result<()> {
    let rules = Rules { max_per_project: 100_000, max_global: 1_000_000, ..Rules::default() };
    let open = |kind: &str| JobType { lane: crate::open_lane::rule(), ..JobType::new(name(kind), 1, "") };
    let narrow = |kind: &str| JobType::new(name(kind), 1, "");
    let types = [open("many"), open("rare"), narrow("more"), narrow("less")];
    lab.definitions = Arc::new(Definitions::with(types.into_iter().map(Entry::plain), rules));
    let node = lab.node().await?;
    for (ahead, wanted) in [("many", "rare"), ("more", "less")] {
        for _ in 0..AHEAD / 500 {
            let jobs = vec![Enqueue { priority: Some(INTERACTIVE), ..job(ahead, "p1") }; 500];
            node.store.commit(Batch { org: OrgId::default(), jobs }, Actor::Api).await?;
        }
        let mut behind = Vec::new();
        for priority in [BACKGROUND, INTERACTIVE] {
            behind.push(enqueue(&node, wanted, "p1", priority).await?);
        }
        let kinds = behind.iter().map(|job| job.kind.clone()).take(1).collect();
        let mut turns = Turns::default();
        while let Some(next) = behind.pop() {
            let ask = Ask { kinds: Vec::clone(&kinds), turns, ..ask(&lab, &node, 1) };
            let turn = node.store.claim(ask).await?;
            ensure!(turn.leased.iter().map(|l| l.job.id).eq([next.id]), "{wanted}: {:?}", turn.leased);
            for leased in &turn.leased {
                node.store.commit(settle(leased, Outcome::Done(Json::of(&json!({}))))?, Actor::Engine).await?;
            }
            turns = turn.turns;
        }
    }
    clean(&node.store).await
}

pub async fn one_claim_sees_as_many_aged_jobs_as_it_can_take(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    for _ in 0..2 {
        enqueue(&node, "wide", "p1", 300).await?;
    }
    lab.advance(Span::secs(16));
    for _ in 0..8 {
        enqueue(&node, "wide", "p1", BACKGROUND).await?;
    }
    for _ in 0..10 {
        enqueue(&node, "wide", "p1", INTERACTIVE).await?;
    }
    let order: Vec<i32> = claim(&lab, &node, 8).await?.iter().map(|l| l.job.priority).collect();
    let i = INTERACTIVE;
    ensure!(order == [i, i, i, 300, i, i, i, 300], "{order:?}");
    clean(&node.store).await
}

pub async fn a_paused_lane_gives_nothing_until_it_is_resumed(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    for kind in ["one", "wide"] {
        enqueue(&node, kind, "p1", BACKGROUND).await?;
    }
    enqueue(&node, "one", "p2", BACKGROUND).await?;
    let pause = |lane: &str, paused| Pause { org: OrgId::default(), lane: name(lane), paused };
    for lane in ["project:p1", "wide:p1"] {
        ensure!(node.store.commit(pause(lane, true), Actor::Api).await?.changed);
        ensure!(!node.store.commit(pause(lane, true), Actor::Api).await?.changed, "it was so already");
    }
    ensure!(lane(&node, "wide:p1").await?.paused);
    let others = claim(&lab, &node, 9).await?;
    ensure!(by_lane(&others).into_keys().eq(["project:p2".to_owned()]), "{:?}", by_lane(&others));
    let mut heard = node.store.watch_jobs();
    heard.mark_unchanged();
    for lane in ["project:p1", "wide:p1"] {
        node.store.commit(pause(lane, false), Actor::Api).await?;
    }
    ensure!(heard.has_changed()?, "whoever waits for jobs is told");
    ensure!(claim(&lab, &node, 9).await?.len() == 2);
    clean(&node.store).await
}

pub async fn two_nodes_never_fill_a_lane_beyond_its_limit(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    const JOBS: usize = 120;
    for n in 0..JOBS {
        enqueue(&nodes[n % 2], ["pair", "one"][n % 2], "hot", BACKGROUND).await?;
    }
    let running: BTreeMap<&str, AtomicUsize> = ["pair:hot", "project:hot"].map(|l| (l, AtomicUsize::new(0))).into();
    let ended = AtomicUsize::new(0);
    let worker = |n: usize| {
        let (lab, node, running, ended) = (&lab, &nodes[n % 2], &running, &ended);
        async move {
            let mut turns = Turns::default();
            while ended.load(Ordering::SeqCst) < JOBS {
                let ask = Ask { turns: turns.clone(), ..ask(lab, node, 3) };
                let turn: Turn = node.store.claim(ask).await?;
                turns = turn.turns;
                for leased in &turn.leased {
                    let lane = leased.job.lane.key.as_str();
                    let counter = running.get(lane).context("a lane of ours")?;
                    let limit = leased.job.lane.max.unwrap_or(0) as usize;
                    ensure!(counter.fetch_add(1, Ordering::SeqCst) < limit, "{lane} has more than {limit}");
                }
                tokio::task::yield_now().await;
                for leased in &turn.leased {
                    // It may be claimed again the moment this is committed, so it is let go before.
                    running.get(leased.job.lane.key.as_str()).context("a lane of ours")?.fetch_sub(1, Ordering::SeqCst);
                    node.store.commit(done(leased)?, Actor::Engine).await?;
                    ended.fetch_add(1, Ordering::SeqCst);
                }
            }
            anyhow::Ok(())
        }
    };
    try_join_all((0..6).map(worker)).await?;
    for key in ["pair:hot", "project:hot"] {
        let row = lane(&nodes[0], key).await?;
        ensure!((row.running, row.waiting) == (0, 0), "{row:?}");
    }
    clean(&nodes[0].store).await
}

pub async fn many_lanes_that_are_full_do_not_hide_one_that_is_not(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    const FULL: usize = 1_100;
    let jobs: Vec<Enqueue> =
        (0..FULL).flat_map(|n| [job("one", &format!("full-{n:04}")), job("one", &format!("full-{n:04}"))]).collect();
    for chunk in jobs.chunks(1_000) {
        let batch = baton_core::job::batch::Batch { org: OrgId::default(), jobs: chunk.to_vec() };
        node.store.commit(batch, Actor::Api).await?;
    }
    let mut turns = Turns::default();
    let mut running = 0;
    while running < FULL {
        let turn = node.store.claim(Ask { turns: turns.clone(), ..ask(&lab, &node, 200) }).await?;
        ensure!(!turn.leased.is_empty() || turn.more, "{running} run, and no more are found");
        running += turn.leased.len();
        turns = turn.turns;
    }
    let free = enqueue(&node, "one", "zzz", BACKGROUND).await?;
    for look in 0.. {
        ensure!(look < 4, "it is not found");
        let turn = node.store.claim(Ask { turns: turns.clone(), ..ask(&lab, &node, 2) }).await?;
        turns = turn.turns;
        if let Some(leased) = turn.leased.first() {
            ensure!(leased.job.id == free.id);
            break;
        }
        ensure!(turn.more, "it said that there was no more");
    }
    Ok(())
}

pub async fn lanes_that_have_emptied_do_not_hide_one_that_has_not(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    const EMPTIED: usize = 2_200;
    let jobs: Vec<Enqueue> = (0..EMPTIED).map(|n| job("one", &format!("gone-{n:04}"))).collect();
    for chunk in jobs.chunks(1_000) {
        node.store.commit(Batch { org: OrgId::default(), jobs: chunk.to_vec() }, Actor::Api).await?;
    }
    let mut running = 0;
    while running < EMPTIED {
        let leased = claim(&lab, &node, 1_000).await?;
        ensure!(!leased.is_empty(), "{running} run, and no more are found");
        running += leased.len();
    }
    // Found with the first look, though nobody has looked at any of the others since.
    let last = enqueue(&node, "one", "zzz", BACKGROUND).await?;
    let found = claim(&lab, &node, 2).await?;
    ensure!(found.iter().map(|l| l.job.id).eq([last.id]), "{found:?}");
    Ok(())
}

/// More than the embedded database remembers by itself.
pub async fn however_many_lanes_wait_each_has_its_turn(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    const LANES: usize = 17_000;
    let jobs: Vec<Enqueue> = (0..LANES).map(|n| job("one", &format!("lane-{n:05}"))).collect();
    for chunk in jobs.chunks(1_000) {
        node.store.commit(Batch { org: OrgId::default(), jobs: chunk.to_vec() }, Actor::Api).await?;
    }
    let mut turns = Turns::default();
    let mut ran = BTreeSet::new();
    while ran.len() < LANES {
        let turn = node.store.claim(Ask { turns, ..ask(&lab, &node, 1_000) }).await?;
        ensure!(!turn.leased.is_empty() || turn.more, "{} run, and no more are found", ran.len());
        ensure!(turn.leased.iter().all(|leased| ran.insert(leased.job.id)), "one ran twice");
        turns = turn.turns;
    }
    Ok(())
}

/// A place that is free again may be given to another lane.
pub async fn who_comes_back_to_a_lane_that_was_forgotten_is_found(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    for round in 0..3 {
        let first = enqueue(&node, "wide", &format!("first-{round}"), BACKGROUND).await?;
        let leased = claim(&lab, &node, 1).await?;
        node.store.purge_lanes(100).await?;
        // It takes the place of the first one's rank.
        node.script.at(1, Mishap::Conflict);
        let second = enqueue(&node, "wide", &format!("second-{round}"), BACKGROUND).await?;
        node.store.commit(settle(leased.first().context("the first")?, Outcome::Release)?, Actor::Engine).await?;
        clean(&node.store).await?;
        let mut found = claim(&lab, &node, 3).await?;
        found.sort_by_key(|leased| leased.job.id != first.id);
        ensure!(found.iter().map(|leased| leased.job.id).eq([first.id, second.id]), "{found:?}");
        for leased in &found {
            node.store.commit(done(leased)?, Actor::Engine).await?;
        }
    }
    clean(&node.store).await
}

fn lanes_of(org: OrgId, after: Option<LaneKey>) -> ListLanes {
    ListLanes { org, order: Order::Rising, after, limit: 10 }
}

pub async fn lanes_that_count_nothing_are_forgotten(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    for project in ["p1", "p2"] {
        enqueue(&node, "one", project, BACKGROUND).await?;
    }
    let leased = claim(&lab, &node, 1).await?;
    let ended = leased.first().context("one")?;
    node.store.commit(done(ended)?, Actor::Engine).await?;
    ensure!(node.store.purge_lanes(10).await? == 1);
    let left = node.store.lanes(lanes_of(OrgId::default(), None)).await?.items;
    ensure!(left.len() == 1 && left.iter().all(|lane| lane.key != ended.job.lane.key));
    enqueue(&node, "one", ended.job.project.as_str(), BACKGROUND).await?;
    ensure!(claim(&lab, &node, 9).await?.len() == 2, "it comes back when it is needed");
    clean(&node.store).await
}

pub async fn lanes_are_listed_page_by_page(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    for n in 0..25 {
        enqueue(&node, "one", &format!("p{n:02}"), BACKGROUND).await?;
    }
    let pause = Pause { org: OrgId::default(), lane: name("wide:quiet"), paused: true };
    node.store.commit(pause, Actor::Api).await?;
    let (mut seen, mut after): (BTreeSet<LaneKey>, Option<LaneKey>) = (BTreeSet::new(), None);
    loop {
        let page = node.store.lanes(lanes_of(OrgId::default(), after)).await?;
        for lane in page.items {
            ensure!(lane.paused == (lane.key.as_str() == "wide:quiet"));
            ensure!(seen.insert(lane.key));
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    ensure!(seen.len() == 26, "{}", seen.len());
    ensure!(node.store.lanes(lanes_of(name("acme"), None)).await?.items.is_empty(), "nobody else's");
    Ok(())
}

pub async fn a_late_worker_does_not_free_a_slot_twice(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    for _ in 0..3 {
        enqueue(&node, "one", "p1", BACKGROUND).await?;
    }
    let leased = claim(&lab, &node, 1).await?;
    let late: Settle = done(leased.first().context("one")?)?;
    let cancel = baton_core::job::cancel::Cancel { org: OrgId::default(), job: late.fence.job, reason: None };
    node.store.commit(cancel, Actor::Api).await?;
    ensure!(node.store.commit(late, Actor::Engine).await.is_err());
    let row = lane(&node, "project:p1").await?;
    ensure!((row.running, row.waiting) == (0, 2), "{row:?}");
    ensure!(claim(&lab, &node, 9).await?.len() == 1);
    clean(&node.store).await
}

pub async fn lanes_of_other_kinds_do_not_hide_ours(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    for n in 0..60 {
        enqueue(&node, "one", &format!("p{n:02}"), BACKGROUND).await?;
    }
    let ours = enqueue(&node, "wide", "zzz", BACKGROUND).await?;
    let kinds = vec![ours.kind.clone()];
    let turn = node.store.claim(Ask { kinds, ..ask(&lab, &node, 1) }).await?;
    ensure!(turn.leased.iter().map(|l| l.job.id).eq([ours.id]), "it is found at the first look");
    clean(&node.store).await
}
