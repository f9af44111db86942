//! `baton lanes`.

use crate::args::{LaneArgs, LaneListArgs, LanesArgs, LanesCommand};
use crate::client::{Client, Said, fresh_key, segment};
use crate::fault::Fault;
use crate::paint::dim;
use crate::print;
use baton_wire::{Lane, LaneList, Object};
use comfy_table::{Color, Row};
use std::io::Write as _;

pub async fn run(args: LanesArgs) -> Result<(), Fault> {
    match args.command {
        LanesCommand::List(args) => list(args).await,
        LanesCommand::Show(args) => {
            let lane: Lane = Client::new(&args.client)?.get(&path(&args), &[]).await?;
            show(&lane, args.client.json)
        }
        LanesCommand::Pause(args) => act(args, "pause").await,
        LanesCommand::Resume(args) => act(args, "resume").await,
    }
}

fn path(args: &LaneArgs) -> String {
    format!("/api/v1/lanes/{}", segment(args.lane.as_str()))
}

async fn act(args: LaneArgs, verb: &str) -> Result<(), Fault> {
    let path = format!("{}/{verb}", path(&args));
    let said: Said<Lane> = Client::new(&args.client)?.post(&path, &Object::new(), &fresh_key()).await?;
    show(&said.value, args.client.json)
}

async fn list(args: LaneListArgs) -> Result<(), Fault> {
    let mut query = vec![("limit", args.limit.to_string())];
    query.extend(args.cursor.map(|cursor| ("cursor", cursor)));
    let list: LaneList = Client::new(&args.client)?.get("/api/v1/lanes", &query).await?;
    if args.client.json {
        return print::json(&list);
    }
    if list.lanes.is_empty() {
        writeln!(print::out(), "{}", dim("no lanes"))?;
        return Ok(());
    }
    table(&list.lanes)?;
    if let Some(cursor) = list.next_cursor {
        writeln!(print::out(), "{}", dim(format_args!("more: --cursor {cursor}")))?;
    }
    Ok(())
}

fn show(lane: &Lane, json: bool) -> Result<(), Fault> {
    if json { print::json(lane) } else { table(std::slice::from_ref(lane)) }
}

fn table(lanes: &[Lane]) -> Result<(), Fault> {
    let row = |lane: &Lane| {
        let paused = if lane.paused { print::text("paused").fg(Color::Yellow) } else { print::text("") };
        Row::from(vec![
            print::text(&lane.lane),
            print::text(lane.running),
            print::text(lane.limit.map(|limit| limit.to_string()).unwrap_or_default()),
            print::text(lane.waiting),
            paused,
        ])
    };
    print::table(&["LANE", "RUNNING", "LIMIT", "WAITING", "PAUSED"], lanes.iter().map(row))
}
