//! `baton runs list`.

use super::RUNS;
use crate::args::RunListArgs;
use crate::client::Client;
use crate::fault::Fault;
use crate::jobs::seconds;
use crate::pages::{self, Ask};
use crate::paint::dim;
use crate::print;
use baton_core::run::State;
use baton_wire::{Run, RunList};
use comfy_table::{Cell, Color, Row};
use std::io::Write as _;

pub async fn run(args: RunListArgs) -> Result<(), Fault> {
    let mut query: Vec<_> = args.project.map(|project| ("project", project.to_string())).into_iter().collect();
    query.extend(args.status.map(|state| ("status", state.to_string())));
    let list: RunList = pages::read(&Client::new(&args.client)?, Ask { path: RUNS, query, page: &args.page }).await?;
    if args.client.json {
        return print::json(&list);
    }
    if list.runs.is_empty() {
        writeln!(print::out(), "{}", dim("no runs"))?;
    } else {
        let header = ["RUN", "NAME", "PROJECT", "STATUS", "ATTEMPT", "STEPS", "CREDITS", "CREATED", "TOOK"];
        print::table(&header, list.runs.iter().map(row))?;
    }
    print::more(&args.page, list.next_cursor.as_deref())
}

fn row(run: &Run) -> Row {
    Row::from(vec![
        print::text(run.id),
        print::text(&run.name),
        print::text(&run.project_id),
        status(run.status),
        print::text(format!("{}/{}", run.attempt_number, run.max_attempts)),
        print::text(run.step_count),
        print::text(format!("{}/{}", run.credits_charged, run.budget)),
        print::text(seconds(run.created_at)),
        print::text(run.duration_ms.map(super::tree::length).unwrap_or_default()),
    ])
}

pub fn status(state: State) -> Cell {
    let colour = match state {
        State::Created | State::Pending | State::Paused | State::Retrying => Color::Yellow,
        State::Running | State::Resuming => Color::Cyan,
        State::Completed => Color::Green,
        State::Failed => Color::Red,
        State::Cancelled | State::Skipped => Color::DarkGrey,
    };
    print::text(state).fg(colour)
}
