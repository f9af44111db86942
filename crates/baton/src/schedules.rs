//! `baton schedules`.

use crate::args::{ScheduleArgs, ScheduleListArgs, SchedulesArgs, SchedulesCommand, SetArgs};
use crate::client::{Client, Said, fresh_key};
use crate::fault::Fault;
use crate::jobs::seconds;
use crate::pages::{self, Ask};
use crate::paint::dim;
use crate::{input, print};
use baton_core::ProjectId;
use baton_core::name::ScheduleName;
use baton_wire::{NewSchedule, Object, Schedule, ScheduleList, Time};
use comfy_table::{Cell, Color, Row};
use std::io::Write as _;

pub async fn run(args: SchedulesArgs) -> Result<(), Fault> {
    match args.command {
        SchedulesCommand::Set(args) => set(args).await,
        SchedulesCommand::List(args) => list(args).await,
        SchedulesCommand::Show(args) => {
            let schedule = Client::new(&args.client)?.get(&path(&args.project, &args.name), &[]).await?;
            show(&schedule, args.client.json)
        }
        SchedulesCommand::Pause(args) => act(args, "pause").await,
        SchedulesCommand::Resume(args) => act(args, "resume").await,
        SchedulesCommand::Delete(args) => delete(args).await,
    }
}

fn path(project: &ProjectId, name: &ScheduleName) -> String {
    format!("/api/v1/projects/{project}/schedules/{name}")
}

async fn set(args: SetArgs) -> Result<(), Fault> {
    let new = NewSchedule {
        cron: args.cron,
        time_zone: args.time_zone,
        kind: args.kind,
        payload: input::payload(&args.payload)?,
        priority: args.priority,
        source_session_id: args.source_session,
        catch_up: args.catch_up.into(),
        single_flight: args.single_flight,
    };
    let schedule = Client::new(&args.client)?.put(&path(&args.project, &args.name), &new).await?;
    show(&schedule, args.client.json)
}

async fn act(args: ScheduleArgs, verb: &str) -> Result<(), Fault> {
    let path = format!("{}/{verb}", path(&args.project, &args.name));
    let said: Said<Schedule> = Client::new(&args.client)?.post(&path, &Object::new(), &fresh_key()).await?;
    show(&said.value, args.client.json)
}

async fn delete(args: ScheduleArgs) -> Result<(), Fault> {
    Client::new(&args.client)?.delete(&path(&args.project, &args.name)).await?;
    if !args.client.json {
        writeln!(print::out(), "{} of {} is deleted; the jobs it made stay", args.name, args.project)?;
    }
    Ok(())
}

async fn list(args: ScheduleListArgs) -> Result<(), Fault> {
    let project = args.project.map(|project| ("projectId", project.to_string()));
    let query = project.into_iter().chain(args.kind.map(|kind| ("type", kind.to_string()))).collect();
    let ask = Ask { path: "/api/v1/schedules", query, page: &args.page };
    let list: ScheduleList = pages::read(&Client::new(&args.client)?, ask).await?;
    if args.client.json {
        return print::json(&list);
    }
    if list.schedules.is_empty() {
        writeln!(print::out(), "{}", dim("no schedules"))?;
        return print::more(&args.page, list.next_cursor.as_deref());
    }
    let row = |schedule: &Schedule| {
        Row::from(vec![
            print::text(&schedule.project_id),
            print::text(&schedule.name),
            print::text(&schedule.cron),
            print::text(&schedule.time_zone),
            print::text(&schedule.kind),
            next(schedule),
            print::text(schedule.last_at.map(seconds).unwrap_or_default()),
            print::text(schedule.jobs_made),
        ])
    };
    let header = ["PROJECT", "NAME", "CRON", "ZONE", "TYPE", "NEXT", "LAST", "JOBS"];
    print::table(&header, list.schedules.iter().map(row))?;
    print::more(&args.page, list.next_cursor.as_deref())
}

fn next(schedule: &Schedule) -> Cell {
    match (schedule.paused, schedule.next_at) {
        (true, _) => print::text("paused").fg(Color::Yellow),
        (false, Some(at)) => print::text(seconds(at)),
        (false, None) => print::text("never"),
    }
}

fn show(schedule: &Schedule, json: bool) -> Result<(), Fault> {
    if json {
        return print::json(schedule);
    }
    let catch_up = serde_json::to_value(schedule.catch_up).unwrap_or_default();
    let mut rows = vec![
        ("schedule", print::text(format!("{} of {}", schedule.name, schedule.project_id))),
        ("id", print::text(schedule.id)),
        ("cron", print::text(format!("{} ({})", schedule.cron, schedule.time_zone))),
        ("in words", print::text(&schedule.description)),
        ("next", next(schedule)),
        ("makes", print::text(&schedule.kind)),
        ("payload", print::text(serde_json::to_string(&schedule.payload).unwrap_or_default())),
    ];
    rows.extend(schedule.priority.map(|priority| ("priority", print::text(priority))));
    rows.extend(schedule.source_session_id.iter().map(|session| ("session", print::text(session))));
    rows.push(("catches up", print::text(catch_up.as_str().unwrap_or_default())));
    rows.push(("single flight", print::text(if schedule.single_flight { "yes" } else { "no" })));
    rows.extend(schedule.last_at.map(|at: Time| ("last", print::text(seconds(at)))));
    rows.extend(schedule.last_job_id.map(|id| ("last job", print::text(id))));
    rows.push(("jobs made", print::text(schedule.jobs_made)));
    print::pairs(rows)
}
