//! `baton decisions`: what people are asked.

use crate::args::{DecisionListArgs, DecisionsArgs, DecisionsCommand, ResolveArgs};
use crate::client::{Client, Said, fresh_key};
use crate::fault::Fault;
use crate::pages::{self, Ask};
use crate::paint::dim;
use crate::print;
use baton_core::decision::Effect;
use baton_wire::{Decision, DecisionList, DecisionState, Resolve};
use comfy_table::{Color, Row};
use std::io::Write as _;

const DECISIONS: &str = "/api/v1/decisions";

pub async fn run(args: DecisionsArgs) -> Result<(), Fault> {
    match args.command {
        DecisionsCommand::List(args) => list(args).await,
        DecisionsCommand::Show(args) => {
            let decision: Decision = Client::new(&args.client)?.get(&format!("{DECISIONS}/{}", args.id), &[]).await?;
            show(&decision, args.client.json)
        }
        DecisionsCommand::Resolve(args) => resolve(args).await,
    }
}

async fn list(args: DecisionListArgs) -> Result<(), Fault> {
    let mut query = Vec::new();
    query.extend((!args.all).then(|| ("state", DecisionState::Open.to_string())));
    query.extend(args.project.map(|project| ("projectId", project.to_string())));
    query.extend(args.responsibility.map(|name| ("responsibility", name.to_string())));
    query.extend(args.subject.map(|subject| ("subject", subject)));
    let ask = Ask { path: DECISIONS, query, page: &args.page };
    let list: DecisionList = pages::read(&Client::new(&args.client)?, ask).await?;
    if args.client.json {
        return print::json(&list);
    }
    if list.decisions.is_empty() {
        writeln!(print::out(), "{}", dim(if args.all { "no decisions" } else { "nothing is to be decided" }))?;
        return print::more(&args.page, list.next_cursor.as_deref());
    }
    let row = |decision: &Decision| {
        let whose = decision.responsibility.as_ref().map(ToString::to_string).unwrap_or_default();
        Row::from(vec![
            print::text(decision.id),
            state(decision),
            print::text(&decision.project_id),
            print::text(whose),
            print::text(decision.prompt.lines().next().unwrap_or_default()),
            print::text(options(decision)),
        ])
    };
    print::table(&["DECISION", "STATE", "PROJECT", "FOR", "QUESTION", "OPTIONS"], list.decisions.iter().map(row))?;
    print::more(&args.page, list.next_cursor.as_deref())
}

fn options(decision: &Decision) -> String {
    decision.options.iter().map(|choice| choice.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn state(decision: &Decision) -> comfy_table::Cell {
    let colour = match decision.state {
        DecisionState::Open => Color::Yellow,
        DecisionState::Resolved => Color::Green,
        DecisionState::Expired | DecisionState::Withdrawn => Color::DarkGrey,
    };
    let text = if decision.overdue { "overdue".to_owned() } else { decision.state.to_string() };
    print::text(text).fg(colour)
}

async fn resolve(args: ResolveArgs) -> Result<(), Fault> {
    let data = args.data.as_deref().map(serde_json::from_str).transpose();
    let data = data.map_err(|error| Fault::usage(format!("--data is not JSON: {error}")))?;
    let answer = Resolve { option: args.option, comment: args.comment, data };
    let key = args.idempotency_key.unwrap_or_else(fresh_key);
    let path = format!("{DECISIONS}/{}/resolve", args.id);
    let said: Said<Decision> = Client::new(&args.client)?.post(&path, &answer, &key).await?;
    show(&said.value, args.client.json)
}

fn show(decision: &Decision, json: bool) -> Result<(), Fault> {
    if json {
        return print::json(decision);
    }
    let mut rows = vec![
        ("decision", print::text(decision.id)),
        ("state", state(decision)),
        ("kind", print::text(&decision.kind)),
        ("about", print::text(&decision.subject)),
        ("project", print::text(&decision.project_id)),
    ];
    rows.extend(decision.responsibility.as_ref().map(|name| ("for", print::text(name))));
    if !decision.prompt.is_empty() {
        rows.push(("question", print::text(&decision.prompt)));
    }
    for choice in &decision.options {
        let effect = match choice.effect {
            Effect::GoOn => "",
            Effect::Cancel => " (cancels)",
            Effect::Fail => " (fails)",
        };
        let label = choice.label.as_deref().map(|label| format!(": {label}")).unwrap_or_default();
        rows.push(("option", print::text(format!("{}{label}{effect}", choice.name))));
    }
    rows.push(("evidence", print::text(&decision.evidence)));
    rows.push(("opened", print::text(decision.opened_at)));
    rows.extend(decision.deadline_at.map(|at| ("deadline", print::text(at))));
    if let Some(closed) = &decision.resolution {
        rows.push(("closed", print::text(closed.at)));
        rows.push(("by", print::text(&closed.by)));
        rows.extend(closed.option.as_ref().map(|option| ("chosen", print::text(option))));
        rows.extend(closed.comment.as_ref().map(|comment| ("comment", print::text(comment))));
        rows.extend(closed.reason.as_ref().map(|reason| ("reason", print::text(reason))));
    }
    for turn in &decision.history {
        let by = turn.by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
        let whose = turn.responsibility.as_ref().map(|name| format!(", for {name}")).unwrap_or_default();
        rows.push(("history", print::text(format!("{} {}{by}{whose}", turn.at, turn.what))));
    }
    print::pairs(rows)
}
