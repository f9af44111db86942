//! Who runs when, and what is a duplicate.

use super::*;

on_both! {
    scheduler_jobs_of_one_project_run_one_after_another
    scheduler_background_runs_under_an_endless_interactive_stream
    dedupe_a_second_click_gives_the_job_that_runs
    dedupe_duplicates_are_dropped_or_merged_as_configured
}

async fn scheduler_jobs_of_one_project_run_one_after_another(lab: Lab) -> Result<()> {
    let (probe, _) = Probe::new();
    let mut registry = Registry::empty();
    let inside = probe.clone();
    registry.add(kind("work"), move |cx: JobCx, _: Json| {
        let probe = inside.clone();
        async move {
            let _stay = probe.enter(&cx.job);
            // Long enough for another to begin beside it, if that could be.
            for _ in 0..200 {
                tokio::task::yield_now().await;
            }
            Outcome::Done(Json::of(&json!({})))
        }
    });
    let lab = knowing(lab, &registry, Rules::default());
    let engine = engine(&lab, registry, 4).await?;
    let mut jobs = Vec::new();
    for n in 0..18 {
        jobs.push(enqueue(engine.store(), order("work", &format!("p{}", n % 3))).await?);
    }
    for id in jobs {
        until(engine.store(), id, is(Face::Completed)).await?;
    }
    let most = probe.most();
    ensure!(most.len() == 3 && most.values().all(|n| *n == 1), "{most:?}");
    clean(engine.store()).await
}

async fn scheduler_background_runs_under_an_endless_interactive_stream(lab: Lab) -> Result<()> {
    let (probe, mut began) = Probe::new();
    let (registry, gate) = gated(kind("work"), &probe);
    let lab = knowing(lab, &registry, Rules::default());
    let engine = engine(&lab, registry, 1).await?;
    let at = |priority| Enqueue { priority: Some(priority), ..order("work", "p1") };
    let background = enqueue(engine.store(), at(BACKGROUND)).await?;
    // It may begin at once, before anything else is there: then it is not what waits.
    ensure!(began.recv().await == Some(background));
    let waiting = enqueue(engine.store(), at(BACKGROUND)).await?;
    for _ in 0..4 {
        enqueue(engine.store(), at(INTERACTIVE)).await?;
    }
    lab.advance(Span::secs(16));
    let mut interactive = 0;
    loop {
        enqueue(engine.store(), at(INTERACTIVE)).await?;
        gate.add_permits(1);
        if began.recv().await == Some(waiting) {
            break;
        }
        interactive += 1;
        ensure!(interactive <= 3, "{interactive} interactive jobs went first");
    }
    ensure!(interactive == 3, "it did not wait for its turn: {:?}", probe.seen());
    Ok(())
}

async fn dedupe_a_second_click_gives_the_job_that_runs(lab: Lab) -> Result<()> {
    let (probe, mut began) = Probe::new();
    let dedupe = dedupe::Rule { mode: Mode::SingleFlight, key: Some(name("{project}:{session}:suggest")) };
    let (registry, gate) = gated(JobType { dedupe, ..kind("suggest") }, &probe);
    let lab = knowing(lab, &registry, Rules::default());
    let engine = engine(&lab, registry, 2).await?;
    let click = |session: &str| Enqueue { source_session: Some(name(session)), ..order("suggest", "p1") };
    let first = engine.store().commit(click("s1"), Actor::Api).await?;
    ensure!(began.recv().await == Some(first.job.id));
    let again = engine.store().commit(click("s1"), Actor::Api).await?;
    ensure!(again.how == How::AlreadyQueued && again.job.id == first.job.id);
    let other = engine.store().commit(click("s2"), Actor::Api).await?;
    ensure!(other.how == How::Enqueued, "another chat is another matter");
    gate.add_permits(1);
    until(engine.store(), first.job.id, is(Face::Completed)).await?;
    ensure!(engine.store().commit(click("s1"), Actor::Api).await?.how == How::Enqueued, "it may be clicked again");
    Ok(())
}

async fn dedupe_duplicates_are_dropped_or_merged_as_configured(lab: Lab) -> Result<()> {
    let mut registry = Registry::empty();
    for (text, mode) in [("drop", Mode::DropDuplicate), ("merge", Mode::MergeDuplicate)] {
        let dedupe = dedupe::Rule { mode, key: Some(name("{payload.item}")) };
        registry.add(JobType { dedupe, ..kind(text) }, |_: JobCx, payload: Json| async { Outcome::Done(payload) });
    }
    let lab = knowing(lab, &registry, Rules::default());
    let node = lab.node().await?;
    let about =
        |text: &str, more: &str| Enqueue { payload: Json::of(&json!({ "item": 1, more: true })), ..order(text, "p1") };
    // Nobody works yet, so all of them wait.
    let dropped = node.store.commit(about("drop", "a"), Actor::Api).await?;
    ensure!(node.store.commit(about("drop", "b"), Actor::Api).await?.how == How::Dropped);
    let merged = node.store.commit(about("merge", "a"), Actor::Api).await?;
    ensure!(node.store.commit(about("merge", "b"), Actor::Api).await?.how == How::Merged);
    let engine = Engine::start(node.store.clone(), registry, options(&node)).await?;
    let done = until_ended(engine.store(), dropped.job.id).await?;
    ensure!(done.result.unwrap().value() == json!({ "a": true, "item": 1 }));
    ensure!(engine.store().commit(about("drop", "c"), Actor::Api).await?.how == How::Dropped, "also when it is done");
    let done = until_ended(engine.store(), merged.job.id).await?;
    ensure!(done.result.unwrap().value() == json!({ "a": true, "b": true, "item": 1 }));
    clean(engine.store()).await
}
