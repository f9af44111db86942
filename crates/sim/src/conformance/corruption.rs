//! A database file that cannot be read: moved aside, never overwritten, never passed over.

use super::steps::{echo_in, enqueue, exactly};
use crate::lab::Lab;
use anyhow::{Context, Result, ensure};
use baton_core::command::Actor;
use baton_store::{Corrupt, OpenError, Store};
use std::fs;
use std::path::{Path, PathBuf};

const FILE: &str = "baton.db";
const PAGE: usize = 4_096;

/// A sound database as bytes.
async fn sound(lab: &Lab) -> Result<Vec<u8>> {
    let node = lab.node().await?;
    for _ in 0..200 {
        enqueue(&node).await?;
    }
    node.store.raw("PRAGMA wal_checkpoint(TRUNCATE)").await?;
    node.store.close().await;
    Ok(fs::read(lab.data_dir(node.name.as_str()).join(FILE))?)
}

fn ways_to_break(sound: &[u8]) -> [(&'static str, Vec<u8>); 5] {
    let with = |change: fn(&mut Vec<u8>)| {
        let mut bytes = sound.to_vec();
        change(&mut bytes);
        bytes
    };
    [
        ("never a database", b"this is not a database. ".repeat(1_000)),
        ("a header of zeros", with(|b| b[..100].fill(0))),
        ("a schema that is noise", with(|b| b[100..PAGE].fill(0xA5))),
        ("pages that are noise", with(|b| b[PAGE..].fill(0xA5))),
        ("half of it gone", with(|b| b.truncate(b.len() / 2))),
    ]
}

async fn open(lab: &Lab, name: &str, corrupt: Corrupt) -> Result<Store, OpenError> {
    let mut options = lab.options(name);
    options.corrupt = corrupt;
    Store::open(options).await
}

fn corrupt(opened: Result<Store, OpenError>) -> Result<PathBuf> {
    match opened.err().context("it should not have been opened")? {
        OpenError::Corrupt { moved_to } => Ok(moved_to),
        other => anyhow::bail!("{other:?}"),
    }
}

fn put(dir: &Path, bytes: &[u8]) -> Result<()> {
    fs::create_dir_all(dir)?;
    Ok(fs::write(dir.join(FILE), bytes)?)
}

pub async fn a_corrupt_file_is_moved_aside_and_stops_the_start(lab: Lab) -> Result<()> {
    let sound = sound(&lab).await?;
    for (n, (way, bytes)) in ways_to_break(&sound).into_iter().enumerate() {
        let name = format!("broken_{n}");
        let dir = lab.data_dir(&name);
        put(&dir, &bytes)?;
        let moved_to = corrupt(open(&lab, &name, Corrupt::Stop).await).context(way)?;
        ensure!(moved_to.starts_with(&dir), "{way}: {}", moved_to.display());
        ensure!(fs::read(moved_to.join(FILE))? == bytes, "{way}: the file is kept as it was found");
        ensure!(!dir.join(FILE).exists(), "{way}: nothing has taken its place");
        // Whoever restarts what has stopped, a service manager for instance, decides nothing.
        let again = corrupt(open(&lab, &name, Corrupt::Stop).await).with_context(|| format!("{way}, again"))?;
        ensure!(again == moved_to, "{way}");
        // A backup that was put back is as good as ever.
        put(&dir, &sound)?;
        let restored = open(&lab, &name, Corrupt::Stop).await?;
        restored.commit(echo_in("p2"), Actor::Api).await?;
        restored.close().await;
    }
    Ok(())
}

pub async fn a_corrupt_file_is_moved_aside_and_the_start_is_fresh_if_so_wanted(lab: Lab) -> Result<()> {
    let sound = sound(&lab).await?;
    for (n, (way, bytes)) in ways_to_break(&sound).into_iter().enumerate() {
        let name = format!("broken_{n}");
        put(&lab.data_dir(&name), &bytes)?;
        let store = open(&lab, &name, Corrupt::StartEmpty).await.with_context(|| way.to_owned())?;
        exactly(&store, "p1", []).await?;
        let id = store.commit(echo_in("p2"), Actor::Api).await?.job.id;
        store.close().await;
        let kept = lab.data_dir(&name).join("corrupt-1").join(FILE);
        ensure!(fs::read(kept)? == bytes, "{way}: the file is kept as it was found");
        let again = open(&lab, &name, Corrupt::Stop).await.context("it is sound now")?;
        exactly(&again, "p2", [id]).await?;
    }
    Ok(())
}

pub async fn a_corrupt_file_that_is_only_looked_at_is_left_alone(lab: Lab) -> Result<()> {
    let sound = sound(&lab).await?;
    for (n, (way, bytes)) in ways_to_break(&sound).into_iter().enumerate() {
        let name = format!("broken_{n}");
        let file = lab.data_dir(&name).join(FILE);
        let nothing = open(&lab, &name, Corrupt::LeaveAlone).await.err();
        ensure!(matches!(nothing, Some(OpenError::NoDatabase(_))), "{nothing:?}");
        ensure!(!file.exists(), "looking makes no database");
        put(&lab.data_dir(&name), &bytes)?;
        for _ in 0..2 {
            let no = open(&lab, &name, Corrupt::LeaveAlone).await.err().with_context(|| way.to_owned())?;
            ensure!(matches!(&no, OpenError::Damaged { path, .. } if *path == file), "{way}: {no:?}");
            ensure!(fs::read(&file)? == bytes, "{way}: it was touched");
        }
    }
    Ok(())
}

pub async fn each_corrupt_file_is_kept(lab: Lab) -> Result<()> {
    for n in 1..=3 {
        let bytes = format!("garbage number {n} ").repeat(500).into_bytes();
        put(&lab.data_dir("node_g"), &bytes)?;
        let moved_to = corrupt(open(&lab, "node_g", Corrupt::Stop).await)?;
        ensure!(moved_to == lab.data_dir("node_g").join(format!("corrupt-{n}")));
        ensure!(fs::read(moved_to.join(FILE))? == bytes);
    }
    Ok(())
}

pub async fn an_empty_file_is_a_new_database(lab: Lab) -> Result<()> {
    put(&lab.data_dir("node_n"), b"")?;
    let store = open(&lab, "node_n", Corrupt::Stop).await?;
    let id = store.commit(echo_in("p1"), Actor::Api).await?.job.id;
    exactly(&store, "p1", [id]).await
}

pub async fn a_database_that_is_gone_is_not_mistaken_for_a_first_start(lab: Lab) -> Result<()> {
    let sound = sound(&lab).await?;
    let ways: [(&str, &str, &[u8]); 3] =
        [("seals", "seal.heads", b""), ("a log", "baton.db-wal", b"x"), ("both", "seal.heads", b"")];
    for (n, (way, left, bytes)) in ways.into_iter().enumerate() {
        let name = format!("gone_{n}");
        let dir = lab.data_dir(&name);
        put(&dir, &sound)?;
        fs::remove_file(dir.join(FILE))?;
        fs::write(dir.join(left), bytes)?;
        if way == "both" {
            fs::write(dir.join(FILE), "")?;
            fs::write(dir.join("baton.db-wal"), "x")?;
        }
        let nothing = open(&lab, &name, Corrupt::LeaveAlone).await.err();
        ensure!(matches!(nothing, Some(OpenError::NoDatabase(_))), "{way}: {nothing:?}");
        for _ in 0..2 {
            let no = open(&lab, &name, Corrupt::Stop).await.err().with_context(|| way.to_owned())?;
            ensure!(matches!(&no, OpenError::Gone(gone) if *gone == dir), "{way}: {no:?}");
            ensure!(fs::read(dir.join(left))? == bytes, "{way}: it was touched");
        }
        let store = open(&lab, &name, Corrupt::StartEmpty).await?;
        ensure!(fs::read(dir.join("corrupt-1").join(left))? == bytes, "{way}: what is left goes aside");
        store.commit(echo_in("p1"), Actor::Api).await?;
        store.close().await;
        open(&lab, &name, Corrupt::Stop).await.context("it is there now")?;
    }
    Ok(())
}
