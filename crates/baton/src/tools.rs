//! `baton tools`: what steps may call.

use crate::args::ToolsArgs;
use crate::client::Client;
use crate::fault::Fault;
use crate::print;
use crate::runs::length;
use baton_wire::{Tool, ToolList};
use comfy_table::Row;

pub async fn run(args: ToolsArgs) -> Result<(), Fault> {
    let list: ToolList = Client::new(&args.client)?.get("/api/v1/tools", &[]).await?;
    if args.client.json {
        return print::json(&list);
    }
    print::table(&["TOOL", "EFFECT", "PRICE", "TIMEOUT", "ATTEMPTS"], list.tools.iter().map(row))
}

fn row(tool: &Tool) -> Row {
    let timeout = match tool.timeout_ms {
        Some(0) => "none".to_owned(),
        Some(ms) => length(ms),
        None => "the run's".to_owned(),
    };
    Row::from(vec![
        print::text(&tool.name),
        print::text(tool.effect.as_str()),
        print::text(tool.price),
        print::text(timeout),
        print::text(tool.attempts.map_or_else(|| "the run's".to_owned(), |attempts| attempts.to_string())),
    ])
}
