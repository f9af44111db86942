//! `baton runs logs`: what happened in a run, in words.

use super::follow::say;
use super::{part_path, run_path, words};
use crate::args::LogsArgs;
use crate::client::Client;
use crate::fault::Fault;
use crate::listen::{Listener, Portion};
use crate::print;
use baton_wire::{Event, EventList, Run, limit};

/// Pages of events that are read at most: far more than a run can have.
const PAGES: usize = 10_000;

pub async fn run(args: LogsArgs) -> Result<(), Fault> {
    let mut client = Client::new(&args.client)?;
    let tell = |events: &[Event]| {
        if args.client.json { events.iter().try_for_each(print::json_line) } else { say(events) }
    };
    let path = part_path(args.id, "events");
    let mut query = vec![("limit", limit::EVENTS.to_string())];
    let mut next = None;
    for _ in 0..PAGES {
        let page: EventList = client.get(&path, &query).await?;
        tell(&page.events)?;
        next = Some(page.next.clone());
        query.truncate(1);
        query.push(("after", page.next));
        if page.events.is_empty() {
            break;
        }
    }
    if !args.follow {
        return Ok(());
    }
    // The history of all goes on where that of the run ended: nothing is missed, nothing told twice.
    let mut listener = Listener::new(&client, next);
    client.be_patient();
    loop {
        let run: Run = client.get(&run_path(args.id), &[]).await?;
        let ended = run.status.is_ended();
        let wait_ms = if ended { 0 } else { limit::WAIT_MS };
        let heard = listener.hear(Portion { events: limit::EVENTS, wait_ms }).await?;
        if ended && heard.is_empty() {
            return Ok(());
        }
        let news: Vec<_> = heard.into_iter().filter(|event| words::concerns(event, args.id)).collect();
        tell(&news)?;
    }
}
