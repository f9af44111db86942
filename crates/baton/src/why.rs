//! `baton why`: why something does not go on, and who can change that.

use crate::args::WhyArgs;
use crate::client::{Client, segment};
use crate::fault::Fault;
use crate::jobs::seconds;
use crate::paint;
use crate::print;
use crate::runs::Line;
use baton_wire::{Wait, Why};
use std::io::Write as _;

pub async fn run(args: WhyArgs) -> Result<(), Fault> {
    let why: Why = Client::new(&args.client)?.get(&format!("/api/v1/why/{}", segment(&args.id)), &[]).await?;
    if args.client.json {
        return print::json(&why);
    }
    let mut out = print::out();
    let since = why.since.map(|since| format!("since {}", seconds(since))).unwrap_or_default();
    let head = Line::new().styled(paint::BOLD, &why.id).also(style(&why.status), &why.status);
    writeln!(out, "{}", head.also(paint::DIM, &since))?;
    writeln!(out, "{}", print::visible(&why.summary))?;
    for wait in &why.waits_for {
        for line in told(wait) {
            writeln!(out, "{line}")?;
        }
    }
    out.flush()?;
    Ok(())
}

fn style(status: &str) -> anstyle::Style {
    match status {
        "completed" => paint::GOOD,
        "failed" => paint::BAD,
        "running" | "executing" => paint::BUSY,
        _ => paint::WARN,
    }
}

fn told(wait: &Wait) -> impl Iterator<Item = Line> {
    let what = format!("{:?}", wait.what).to_lowercase();
    let since = wait.since.map(|since| format!("since {}", seconds(since))).unwrap_or_default();
    let until = wait.until.map(|until| format!("until {}", seconds(until))).unwrap_or_default();
    let first = Line::new().plain("  ").styled(paint::WARN, what).also(paint::PLAIN, &wait.detail);
    let first = first.also(paint::DIM, &since).also(paint::DIM, &until);
    let more =
        |name: &str, text: Option<&String>| text.map(|text| Line::new().dim(format_args!("    {name}: ")).plain(text));
    [Some(first), more("then", wait.next.as_ref()), more("who", wait.who.as_ref())].into_iter().flatten()
}
