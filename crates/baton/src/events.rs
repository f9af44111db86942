//! `baton events tail`: the history, one event a line.

use crate::args::{EventsArgs, EventsCommand, TailArgs};
use crate::client::Client;
use crate::fault::Fault;
use crate::listen::{Listener, Portion};
use crate::paint::{bad, busy, dim, good};
use crate::print;
use baton_wire::{Event, TAIL, limit};
use std::io::Write as _;

pub async fn run(args: EventsArgs) -> Result<(), Fault> {
    match args.command {
        EventsCommand::Tail(args) => tail(args).await,
    }
}

async fn tail(args: TailArgs) -> Result<(), Fault> {
    let client = Client::new(&args.client)?;
    let follow = !args.no_follow;
    let from_start = args.from_start || (args.no_follow && args.after.is_none());
    let after = args.after.or_else(|| (!from_start).then(|| TAIL.to_owned()));
    let mut listener = Listener::new(&client, after);
    let mut left = args.limit.unwrap_or(usize::MAX);
    let wait_ms = if follow { limit::WAIT_MS } else { 0 };
    while left > 0 {
        let events = listener.hear(Portion { events: left, wait_ms }).await?;
        if events.is_empty() && !follow {
            break;
        }
        for event in &events {
            if args.client.json { print::json_line(event)? } else { line(event)? }
        }
        left -= events.len().min(left);
    }
    Ok(())
}

fn line(event: &Event) -> Result<(), Fault> {
    let mut out = print::out();
    let kind = format!("{:<16}", event.kind);
    write!(out, "{}  ", dim(event.at))?;
    match event.kind.rsplit('.').next() {
        Some("completed") => write!(out, "{}", good(kind))?,
        Some("failed" | "expired" | "recovered" | "cancelled" | "retry_scheduled") => write!(out, "{}", bad(kind))?,
        _ => write!(out, "{}", busy(kind))?,
    }
    writeln!(out, "  {} #{}  {}  {}", event.subject, event.n, event.actor, dim(&event.data))?;
    out.flush()?;
    Ok(())
}
