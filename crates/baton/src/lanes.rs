//! `baton lanes`.

use crate::args::{LaneArgs, LaneListArgs, LanesArgs, LanesCommand};
use crate::client::{Client, Said, fresh_key, segment};
use crate::fault::Fault;
use crate::pages::{self, Ask};
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
        LanesCommand::Pause(args) => pause(args).await,
        LanesCommand::Resume(args) => {
            let lane = act(&args, "resume").await?;
            show(&lane, args.client.json)
        }
    }
}

fn path(args: &LaneArgs) -> String {
    format!("/api/v1/lanes/{}", segment(args.lane.as_str()))
}

async fn act(args: &LaneArgs, verb: &str) -> Result<Lane, Fault> {
    let path = format!("{}/{verb}", path(args));
    let said: Said<Lane> = Client::new(&args.client)?.post(&path, &Object::new(), &fresh_key()).await?;
    Ok(said.value)
}

async fn pause(args: LaneArgs) -> Result<(), Fault> {
    let lane = act(&args, "pause").await?;
    // Any name can be paused for jobs to come; one without a kind is more likely a project's.
    if lane.running + lane.waiting == 0 && !lane.lane.contains(':') {
        let name = &lane.lane;
        let note = format!("no job stands in the lane {name}; that of the project {name} is called project:{name}");
        writeln!(print::err(), "{}", dim(note))?;
    }
    show(&lane, args.client.json)
}

async fn list(args: LaneListArgs) -> Result<(), Fault> {
    let ask = Ask { path: "/api/v1/lanes", query: Vec::new(), page: &args.page };
    let list: LaneList = pages::read(&Client::new(&args.client)?, ask).await?;
    if args.client.json {
        return print::json(&list);
    }
    if list.lanes.is_empty() {
        writeln!(print::out(), "{}", dim("no lanes"))?;
    } else {
        table(&list.lanes)?;
    }
    print::more(&args.page, list.next_cursor.as_deref())
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
