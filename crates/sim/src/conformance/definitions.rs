//! Definitions: one name, immutable versions, one chain, whoever registers them.

use super::steps::{clean, counts, history};
use crate::lab::{Lab, Node, name};
use anyhow::{Context, Result, ensure};
use baton_core::OrgId;
use baton_core::command::Actor;
use baton_core::definition::{JobType, RegisterError, Registered};
use baton_store::CommitError;
use futures_util::future::{join, join_all};

fn moon(version: u32) -> JobType {
    JobType { max_attempts: Some(1), ..JobType::new(name("moon"), version, "shines") }
}

async fn register(node: &Node, kind: &JobType) -> Result<Registered, CommitError<RegisterError>> {
    node.store.commit(kind.register(), Actor::Engine).await
}

pub async fn registering_again_changes_nothing(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    ensure!(register(&node, &moon(1)).await? == Registered::Now);
    let commits = node.script.commits();
    for _ in 0..3 {
        ensure!(register(&node, &moon(1)).await? == Registered::Before);
    }
    ensure!(node.script.commits() == commits, "nothing was written");
    ensure!(history(&node.store, &OrgId::system(), 1).await?.len() == 1);
    clean(&node.store).await
}

pub async fn a_version_means_one_thing_for_ever(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    register(&node, &moon(1)).await?;
    let changed = JobType { summary: "is dark".to_owned(), ..moon(1) };
    let refused = register(&node, &changed).await;
    let no = |e: &CommitError<RegisterError>| matches!(e, CommitError::Refused(RegisterError::Changed { version: 1, name }) if name.as_str() == "moon");
    ensure!(refused.as_ref().is_err_and(no), "{refused:?}");
    ensure!(register(&node, &JobType { version: 2, ..changed.clone() }).await? == Registered::Now);
    ensure!(register(&node, &moon(1)).await? == Registered::Before);
    ensure!(register(&node, &moon(2)).await.as_ref().is_err(), "version 2 is taken as well now");
    let rows = history(&node.store, &OrgId::system(), 2).await?;
    ensure!(rows.iter().all(|row| row.event.kind == "definition.registered"));
    ensure!(rows.iter().map(|row| row.event.n).eq([1, 2]) && rows[0].event.subject == rows[1].event.subject);
    clean(&node.store).await
}

pub async fn definitions_survive_a_restart(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    register(&node, &moon(1)).await?;
    register(&node, &moon(2)).await?;
    node.store.close().await;
    drop(node);
    let node = lab.node().await?;
    for version in [1, 2] {
        ensure!(register(&node, &moon(version)).await? == Registered::Before);
    }
    ensure!(register(&node, &moon(3)).await? == Registered::Now);
    clean(&node.store).await
}

pub async fn of_two_nodes_that_register_the_same_one_does_and_both_are_content(lab: Lab) -> Result<()> {
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    for n in 0..10 {
        let kind = JobType { name: name(&format!("moon-{n}")), ..moon(1) };
        let mut now = 0;
        for answer in join_all((0..6).map(|i| register(&nodes[i % 2], &kind))).await {
            now += usize::from(answer? == Registered::Now);
        }
        ensure!(now == 1, "{now} registered it");
    }
    let rows = history(&nodes[0].store, &OrgId::system(), 10).await?;
    ensure!(rows.len() == 10 && rows.iter().all(|row| row.event.n == 1));
    counts(&nodes[0].store, "SELECT count(*) FROM definition", 10).await?;
    counts(&nodes[0].store, "SELECT count(*) FROM definition_version", 10).await?;
    clean(&nodes[0].store).await
}

pub async fn two_nodes_that_register_different_versions_make_one_chain(lab: Lab) -> Result<()> {
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    for n in 0..10 {
        let kind = |version| JobType { name: name(&format!("moon-{n}")), ..moon(version) };
        let (one, two) = (kind(1), kind(2));
        let (first, second) = join(register(&nodes[0], &one), register(&nodes[1], &two)).await;
        ensure!(first? == Registered::Now && second? == Registered::Now);
    }
    let rows = history(&nodes[0].store, &OrgId::system(), 20).await?;
    ensure!(rows.len() == 20 && rows.iter().filter(|row| row.event.n == 2).count() == 10);
    counts(&nodes[0].store, "SELECT count(*) FROM definition", 10).await?;
    clean(&nodes[1].store).await
}

pub async fn of_two_nodes_that_disagree_about_a_version_one_is_refused(lab: Lab) -> Result<()> {
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    for n in 0..10 {
        let kind = |summary: &str| JobType { name: name(&format!("moon-{n}")), summary: summary.to_owned(), ..moon(1) };
        let (bright, dark) = (kind("bright"), kind("dark"));
        let answers = join(register(&nodes[0], &bright), register(&nodes[1], &dark)).await;
        let refused = match answers {
            (Ok(Registered::Now), Err(e)) | (Err(e), Ok(Registered::Now)) => e,
            other => anyhow::bail!("{other:?}"),
        };
        ensure!(matches!(refused, CommitError::Refused(RegisterError::Changed { .. })), "{refused:?}");
    }
    let rows = history(&nodes[1].store, &OrgId::system(), 10).await?;
    rows.get(9).context("ten were registered")?;
    ensure!(rows.len() == 10);
    clean(&nodes[1].store).await
}
