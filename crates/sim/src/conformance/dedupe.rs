//! Not doing twice what was asked for twice, and not taking in more than there is room for.

use super::steps::{ask, clean, counts, done, record, settle};
use crate::lab::{Lab, Node, name};
use crate::queue_types::{job, keyed, lab_with};
use anyhow::{Context, Result, ensure};
use baton_core::command::{Actor, Refusal};
use baton_core::job::Failure;
use baton_core::job::batch::Batch;
use baton_core::job::enqueue::{Enqueue, EnqueueError, Enqueued, How};
use baton_core::job::requeue::{Requeue, RequeueError, RequeueFound};
use baton_core::job::settle::Outcome;
use baton_core::limits::MESSAGE_KEPT;
use baton_core::rules::Rules;
use baton_core::time::Span;
use baton_core::{JobId, OrgId};
use baton_store::{CommitError, DeadLetters, Leased, Order};
use futures_util::future::join_all;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

fn plain(lab: Lab) -> Lab {
    lab_with(lab, Rules::default())
}

async fn say(node: &Node, order: Enqueue) -> Result<Enqueued> {
    Ok(node.store.commit(order, Actor::Api).await?)
}

async fn claim(lab: &Lab, node: &Node) -> Result<Leased> {
    node.store.claim(ask(lab, node, 1)).await?.leased.pop().context("nothing to claim")
}

pub async fn single_flight_gives_the_one_that_has_not_ended(lab: Lab) -> Result<()> {
    let lab = plain(lab);
    let node = lab.node().await?;
    let first = say(&node, keyed("single", "a", "x")).await?;
    ensure!(first.how == How::Enqueued && first.cold.dedupe_key.as_deref() == Some("a"));
    let again = say(&node, keyed("single", "a", "y")).await?;
    ensure!(again.how == How::AlreadyQueued && again.job.id == first.job.id);
    ensure!(again.cold.payload == first.cold.payload, "the payload is the first one's");
    let leased = claim(&lab, &node).await?;
    node.store.commit(settle(&leased, Outcome::Failed(Failure::transient("x", "x")))?, Actor::Engine).await?;
    ensure!(say(&node, keyed("single", "a", "y")).await?.job.id == first.job.id, "also while it waits to try again");
    lab.advance(Span::secs(600));
    let leased = claim(&lab, &node).await?;
    node.store.commit(done(&leased)?, Actor::Engine).await?;
    ensure!(say(&node, keyed("single", "a", "y")).await?.how == How::Enqueued, "it has ended");
    ensure!(say(&node, keyed("single", "b", "y")).await?.how == How::Enqueued, "another key");
    clean(&node.store).await
}

pub async fn a_dropped_duplicate_is_dropped_while_the_first_is_kept(lab: Lab) -> Result<()> {
    let lab = plain(lab);
    let node = lab.node().await?;
    let first = say(&node, keyed("drop", "a", "x")).await?;
    ensure!(say(&node, keyed("drop", "a", "x")).await?.how == How::Dropped);
    let leased = claim(&lab, &node).await?;
    node.store.commit(done(&leased)?, Actor::Engine).await?;
    let after = say(&node, keyed("drop", "a", "x")).await?;
    ensure!(after.how == How::Dropped && after.job.id == first.job.id && after.ending.is_some());
    // One that failed stands for nothing.
    say(&node, keyed("drop", "b", "x")).await?;
    let leased = claim(&lab, &node).await?;
    node.store.commit(settle(&leased, Outcome::Failed(Failure::fatal("x", "x")))?, Actor::Engine).await?;
    ensure!(say(&node, keyed("drop", "b", "x")).await?.how == How::Enqueued);
    clean(&node.store).await
}

pub async fn a_merged_duplicate_changes_what_waits_and_follows_what_runs(lab: Lab) -> Result<()> {
    let lab = plain(lab);
    let node = lab.node().await?;
    let first = say(&node, keyed("merge", "a", "x")).await?;
    ensure!(say(&node, keyed("merge", "a", "y")).await?.how == How::Merged);
    let stored = record(&node, first.job.id).await?;
    ensure!(stored.cold.payload.value() == json!({ "k": "a", "x": true, "y": true }));
    let leased = claim(&lab, &node).await?;
    ensure!(leased.payload == stored.cold.payload, "it runs with what was merged");
    let next = say(&node, keyed("merge", "a", "z")).await?;
    ensure!(next.how == How::FollowUp && next.job.id != first.job.id);
    let more = say(&node, keyed("merge", "a", "w")).await?;
    ensure!(more.how == How::Merged && more.job.id == next.job.id, "one follow-up is enough");
    node.store.commit(done(&leased)?, Actor::Engine).await?;
    let follow = claim(&lab, &node).await?;
    ensure!(follow.job.id == next.job.id && follow.payload.value() == json!({ "k": "a", "w": true, "z": true }));
    node.store.commit(done(&follow)?, Actor::Engine).await?;
    clean(&node.store).await
}

pub async fn two_nodes_racing_with_one_dedupe_key_make_one_job(lab: Lab) -> Result<()> {
    let lab = plain(lab);
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    for kind in ["single", "drop", "merge"] {
        for round in 0..8 {
            let key = format!("{kind}-{round}");
            let said = (0..8).map(|n| nodes[n % 2].store.commit(keyed(kind, &key, &format!("n{n}")), Actor::Api));
            let mut jobs = BTreeSet::new();
            let mut made = 0;
            for answer in join_all(said).await {
                let answer = answer?;
                made += usize::from(answer.how.is_new());
                jobs.insert(answer.job.id);
            }
            ensure!(jobs.len() == 1 && made == 1, "{key}: {made} made, {jobs:?}");
            if kind == "merge" {
                let id = jobs.into_iter().next().context("one")?;
                let payload = record(&nodes[0], id).await?.cold.payload.value();
                ensure!((0..8).all(|n| payload[format!("n{n}")] == true), "nothing was lost: {payload}");
            }
        }
    }
    clean(&nodes[0].store).await
}

pub async fn a_message_is_one_job_for_a_day_whoever_says_it(lab: Lab) -> Result<()> {
    let lab = plain(lab);
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    let message = |id: &str| Enqueue { message_id: Some(id.to_owned()), ..job("wide", "p1") };
    for round in 0..8 {
        let id = format!("m-{round}");
        let said = (0..6).map(|n| nodes[n % 2].store.commit(message(&id), Actor::Api));
        let jobs: BTreeSet<_> = join_all(said).await.into_iter().map(|a| Ok(a?.job.id)).collect::<Result<_>>()?;
        ensure!(jobs.len() == 1, "{jobs:?}");
    }
    ensure!(nodes[0].store.purge_messages(100).await? == 0);
    lab.advance(MESSAGE_KEPT);
    ensure!(say(&nodes[0], message("m-0")).await?.how == How::Enqueued, "its day is over");
    ensure!(nodes[0].store.purge_messages(100).await? == 7, "all but the one that was said anew");
    clean(&nodes[0].store).await
}

fn full<T: std::fmt::Debug>(answer: Result<T, CommitError<EnqueueError>>) -> bool {
    matches!(answer, Err(CommitError::Refused(no)) if no.code() == "queue_full")
}

pub async fn no_more_wait_than_there_is_room_for_though_two_nodes_take_in(lab: Lab) -> Result<()> {
    let rules = Rules { max_per_project: 10, max_global: 25, ..Rules::default() };
    let lab = lab_with(lab, rules);
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    let said = (0..60).map(|n| nodes[n % 2].store.commit(job("one", &format!("p{}", n % 4)), Actor::Api));
    let (mut taken, mut turned_away) = (0, 0);
    for answer in join_all(said).await {
        match answer {
            Ok(_) => taken += 1,
            no => {
                ensure!(full(no));
                turned_away += 1;
            }
        }
    }
    ensure!((taken, turned_away) == (25, 35), "{taken} taken, {turned_away} turned away");
    counts(&nodes[0].store, "SELECT count(*) FROM live", 25).await?;
    for n in 0..4 {
        let key = name(&format!("project:p{n}"));
        let lane = nodes[0].store.lane(&OrgId::default(), &key).await?.context("it counts")?;
        ensure!(lane.waiting <= 10, "{lane:?}");
    }
    // What runs does not wait: there is room for one more.
    claim(&lab, &nodes[0]).await?;
    let more = (0..4).map(|n| nodes[1].store.commit(job("one", &format!("p{n}")), Actor::Api));
    let taken = join_all(more).await.into_iter().filter(Result::is_ok).count();
    ensure!(taken == 1, "{taken} more");
    clean(&nodes[0].store).await
}

pub async fn the_room_of_all_is_filled_from_nothing_by_two_nodes_and_never_overfilled(lab: Lab) -> Result<()> {
    // Large enough that nodes take in side by side at first.
    const ROOM: usize = 200;
    let lab = lab_with(lab, Rules { max_per_project: 1_000, max_global: ROOM as u32, ..Rules::default() });
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    let taken = AtomicUsize::new(0);
    let caller = |n: usize| {
        let (node, taken) = (&nodes[n % 2], &taken);
        async move {
            for round in 0..40 {
                let size = 1 + (n + round) % 3;
                let jobs = (0..size).map(|k| job("one", &format!("p{}", (n + k) % 5))).collect();
                match node.store.commit(Batch { org: OrgId::default(), jobs }, Actor::Api).await {
                    Ok(made) => taken.fetch_add(made.len(), Ordering::SeqCst),
                    Err(CommitError::Refused(no)) if no.code() == "queue_full" => continue,
                    Err(e) => return Err(anyhow::Error::from(e)),
                };
            }
            Ok(())
        }
    };
    for done in join_all((0..8).map(caller)).await {
        done?;
    }
    let taken = taken.into_inner();
    ensure!(taken == ROOM, "{taken} of {ROOM}");
    counts(&nodes[0].store, "SELECT count(*) FROM live", ROOM as i64).await?;
    clean(&nodes[0].store).await
}

pub async fn a_duplicate_is_dropped_though_the_first_completes_meanwhile(lab: Lab) -> Result<()> {
    let lab = plain(lab);
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    for round in 0..30 {
        let key = format!("k{round}");
        let said = (0..6).map(|n| nodes[n % 2].store.commit(keyed("drop", &key, "x"), Actor::Api));
        let complete = async {
            let leased = loop {
                if let Some(leased) = nodes[0].store.claim(ask(&lab, &nodes[0], 1)).await?.leased.pop() {
                    break leased;
                }
            };
            node_done(&nodes[0], &leased).await
        };
        let (said, completed) = futures_util::future::join(join_all(said), complete).await;
        completed?;
        let jobs: BTreeSet<_> = said.into_iter().map(|a| Ok(a?.job.id)).collect::<Result<_>>()?;
        ensure!(jobs.len() == 1, "round {round}: {jobs:?}");
    }
    clean(&nodes[0].store).await
}

pub async fn a_type_with_a_depth_of_its_own_is_held_to_it(lab: Lab) -> Result<()> {
    let lab = lab_with(lab, Rules { max_per_project: 1, max_global: 1, ..Rules::default() });
    let node = lab.node().await?;
    for _ in 0..3 {
        say(&node, job("deep", "p1")).await?;
    }
    ensure!(full(node.store.commit(job("deep", "p1"), Actor::Api).await));
    say(&node, job("deep", "p2")).await?;
    say(&node, job("one", "p1")).await?;
    ensure!(full(node.store.commit(job("one", "p2"), Actor::Api).await), "the caps are about project lanes");
    clean(&node.store).await
}

pub async fn a_batch_is_taken_whole_or_not_at_all(lab: Lab) -> Result<()> {
    let lab = lab_with(lab, Rules { max_per_project: 500, max_global: 1_000, ..Rules::default() });
    let node = lab.node().await?;
    let batch = |jobs: Vec<Enqueue>| Batch { org: OrgId::default(), jobs };
    let mut jobs: Vec<_> = (0..999).map(|n| job("one", &format!("p{}", n % 4))).collect();
    jobs.push(Enqueue { kind: name("moon"), ..job("one", "p1") });
    let refused = node.store.commit(batch(jobs.clone()), Actor::Api).await;
    ensure!(matches!(refused, Err(CommitError::Refused(no)) if no.code() == "unknown_job_type"));
    counts(&node.store, "SELECT count(*) FROM job", 0).await?;
    jobs.pop();
    jobs.push(job("one", "p1"));
    let taken = node.store.commit(batch(jobs.clone()), Actor::Api).await?;
    ensure!(taken.len() == 1_000 && taken.iter().all(|t| t.how == How::Enqueued));
    let over = node.store.commit(batch(jobs.into_iter().take(1).collect()), Actor::Api).await;
    ensure!(matches!(over, Err(CommitError::Refused(no)) if no.code() == "queue_full"));
    counts(&node.store, "SELECT count(*) FROM live", 1_000).await?;
    clean(&node.store).await
}

async fn fail_one(lab: &Lab, node: &Node, order: Enqueue) -> Result<Enqueued> {
    let made = say(node, order).await?;
    let leased = claim(lab, node).await?;
    ensure!(leased.job.id == made.job.id);
    node.store.commit(settle(&leased, Outcome::Failed(Failure::fatal("broken", "no")))?, Actor::Engine).await?;
    Ok(made)
}

pub async fn a_dead_letter_is_made_anew_once_though_two_nodes_try(lab: Lab) -> Result<()> {
    let lab = plain(lab);
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    for _ in 0..5 {
        let dead = fail_one(&lab, &nodes[0], job("wide", "p1")).await?.job.id;
        let tries =
            (0..4).map(|n| nodes[n % 2].store.commit(Requeue { org: OrgId::default(), jobs: vec![dead] }, Actor::Api));
        let mut made = Vec::new();
        for answer in join_all(tries).await {
            match answer {
                Ok(out) => made.extend(out),
                Err(CommitError::Refused(no)) => ensure!(no.code() == "already_requeued", "{no}"),
                Err(e) => return Err(e.into()),
            }
        }
        ensure!(made.len() == 1, "{} made", made.len());
        let made = made.pop().context("one")?;
        ensure!(record(&nodes[1], dead).await?.requeued_as == Some(made.job.id));
        ensure!(record(&nodes[1], made.job.id).await?.cold.requeued_from == Some(dead));
        let leased = claim(&lab, &nodes[0]).await?;
        node_done(&nodes[0], &leased).await?;
    }
    clean(&nodes[0].store).await
}

async fn node_done(node: &Node, leased: &Leased) -> Result<()> {
    node.store.commit(done(leased)?, Actor::Engine).await?;
    Ok(())
}

pub async fn dead_letters_are_listed_by_project_and_type_until_they_are_made_anew(lab: Lab) -> Result<()> {
    let lab = plain(lab);
    let node = lab.node().await?;
    for (kind, project) in [("wide", "p1"), ("one", "p1"), ("wide", "p2"), ("one", "p2"), ("wide", "p1")] {
        fail_one(&lab, &node, job(kind, project)).await?;
    }
    say(&node, job("wide", "p1")).await?;
    let list = |project: Option<&str>, kind: Option<&str>, limit| DeadLetters {
        org: OrgId::default(),
        project: project.map(name),
        kind: kind.map(name),
        order: Order::Falling,
        after: None,
        limit,
        bytes: usize::MAX,
    };
    for (project, kind, expected) in [
        (None, None, 5),
        (Some("p1"), None, 3),
        (Some("p1"), Some("wide"), 2),
        (None, Some("one"), 2),
        (Some("p3"), None, 0),
    ] {
        let found = node.store.dead_letters(list(project, kind, 100)).await?.items;
        ensure!(found.len() == expected, "{project:?} {kind:?}: {}", found.len());
        ensure!(found.is_sorted_by(|a, b| a.job.id > b.job.id), "newest first");
    }
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = node.store.dead_letters(DeadLetters { after, ..list(None, None, 2) }).await?;
        all.extend(page.items.into_iter().map(|r| r.job.id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    ensure!(all.len() == 5);
    node.store.commit(Requeue { org: OrgId::default(), jobs: all }, Actor::Api).await?;
    ensure!(node.store.dead_letters(list(None, None, 100)).await?.items.is_empty());
    clean(&node.store).await
}

pub async fn what_is_merged_while_it_is_claimed_is_not_lost(lab: Lab) -> Result<()> {
    let lab = plain(lab);
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    for round in 0..40 {
        let key = format!("k{round}");
        let first = say(&nodes[0], keyed("merge", &key, "x")).await?;
        let merge = nodes[round % 2].store.commit(keyed("merge", &key, "y"), Actor::Api);
        let (merged, claimed) = futures_util::future::join(merge, nodes[0].store.claim(ask(&lab, &nodes[0], 1))).await;
        let merged = merged?;
        let leased = match claimed?.leased.pop() {
            Some(leased) => leased,
            None => claim(&lab, &nodes[0]).await?,
        };
        ensure!(leased.job.id == first.job.id);
        let both = leased.payload.value()["y"] == true;
        // Either it was merged, then it runs with it, or it is another job's.
        ensure!(both == (merged.how == How::Merged), "round {round}: {:?} {}", merged.how, leased.payload.as_str());
        node_done(&nodes[0], &leased).await?;
        if !both {
            let follow = claim(&lab, &nodes[0]).await?;
            ensure!(follow.job.id == merged.job.id && merged.how == How::FollowUp);
            node_done(&nodes[0], &follow).await?;
        }
    }
    clean(&nodes[0].store).await
}

pub async fn a_dead_letter_whose_duplicate_is_there_is_not_made_anew(lab: Lab) -> Result<()> {
    let lab = plain(lab);
    let node = lab.node().await?;
    let dead = fail_one(&lab, &node, keyed("single", "a", "x")).await?.job.id;
    let active = say(&node, keyed("single", "a", "x")).await?.job.id;
    let again = node.store.commit(Requeue { org: OrgId::default(), jobs: vec![dead] }, Actor::Api).await;
    match again {
        Err(CommitError::Refused(no)) => {
            ensure!(no.code() == "job_conflict" && no.to_string().contains(&active.to_string()))
        }
        other => anyhow::bail!("{other:?}"),
    }
    ensure!(record(&node, dead).await?.requeued_as.is_none());
    clean(&node.store).await
}

pub async fn of_dead_letters_with_one_key_a_filter_makes_one_anew_and_leaves_the_rest(lab: Lab) -> Result<()> {
    let lab = lab_with(lab, Rules { max_per_project: 4, max_global: 100, ..Rules::default() });
    let node = lab.node().await?;
    let mut dead = Vec::new();
    for _ in 0..2 {
        for kind in ["single", "merge"] {
            dead.push(fail_one(&lab, &node, keyed(kind, "a", "x")).await?.job.id);
        }
    }
    for _ in 0..6 {
        dead.push(fail_one(&lab, &node, job("one", "p1")).await?.job.id);
    }
    let found = |jobs: &[JobId]| RequeueFound { org: OrgId::default(), jobs: jobs.to_vec() };
    let out = node.store.commit(found(&dead), Actor::Api).await?;
    let made: Vec<_> = out.made.iter().map(|(from, _)| *from).collect();
    ensure!(made == [&dead[..2], &dead[4..8]].concat(), "{made:?} of {dead:?}");
    let left: Vec<_> = out.left.iter().map(|no| (no.job(), no.code())).collect();
    let expected = [(2, "job_conflict"), (3, "job_conflict"), (8, "queue_full"), (9, "queue_full")];
    ensure!(left == expected.map(|(n, code)| (Some(dead[n]), code)), "{left:?}");
    let full = node.store.commit(found(&dead[8..]), Actor::Api).await;
    ensure!(
        matches!(full, Err(CommitError::Refused(RequeueError::Job { source, .. })) if source.code() == "queue_full")
    );
    ensure!(node.store.commit(found(&[]), Actor::Api).await?.made.is_empty());
    clean(&node.store).await
}
