//! `baton runs show`: a run as a tree, once or until it has ended.

use super::follow::{Follower, Seen, summary, verdict};
use super::tree::{Outline, Tree, first_line};
use super::{part_path, run_path};
use crate::args::{PageArgs, ShowRunArgs};
use crate::client::Client;
use crate::fault::Fault;
use crate::jobs::seconds;
use crate::listen::Listener;
use crate::pages::{self, Ask};
use crate::paint::{bad, dim, warn};
use crate::print;
use baton_engine::SystemClock;
use baton_store::Clock as _;
use baton_wire::{AgentList, Run, RunAction, StepList, TaskList};
use serde_json::json;
use std::io::Write as _;
use tokio::signal::unix::{SignalKind, signal};

/// As many parts as a run can have.
const PARTS: PageArgs = PageArgs { limit: 10_000, order: None, cursor: None };

pub async fn run(args: ShowRunArgs) -> Result<(), Fault> {
    let mut client = Client::new(&args.client)?;
    if args.watch {
        let listener = Listener::at_the_end(&client).await?;
        client.be_patient();
        return watch(&args, &client, listener).await;
    }
    if args.client.json {
        return whole(&args, &client).await;
    }
    let outline = Outline::read(&client, args.id).await?;
    let tree = Tree::read(&client, args.id, &outline).await?;
    say(&tree)
}

async fn watch(args: &ShowRunArgs, client: &Client, listener: Listener) -> Result<(), Fault> {
    let mut interrupt = signal(SignalKind::interrupt())
        .map_err(|error| Fault::new("start_failed", format!("signals cannot be heard: {error}")))?;
    let mut follower = Follower::new(client, args.id, listener, args.client.json).await?;
    match follower.until_ended(&mut interrupt).await? {
        Seen::Interrupted => Err(Fault::Left),
        Seen::Ended(tree) => {
            if !args.client.json {
                summary(&tree)?;
            }
            verdict(&tree.run)
        }
    }
}

/// Everything that is known, for programs.
async fn whole(args: &ShowRunArgs, client: &Client) -> Result<(), Fault> {
    let run: Run = client.get(&run_path(args.id), &[]).await?;
    let ask = |path, query| Ask { path, query, page: &PARTS };
    let [agents, tasks, steps] = ["agents", "tasks", "steps"].map(|part| part_path(args.id, part));
    let agents: AgentList = pages::read(client, ask(&agents, Vec::new())).await?;
    let tasks: TaskList = pages::read(client, ask(&tasks, Vec::new())).await?;
    let steps: StepList = pages::read(client, ask(&steps, vec![("results", "true".to_owned())])).await?;
    print::json(&json!({ "run": run, "agents": agents.agents, "tasks": tasks.tasks, "steps": steps.steps }))
}

fn say(tree: &Tree) -> Result<(), Fault> {
    let run = &tree.run;
    let mut out = print::out();
    for line in tree.lines(SystemClock.now()) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    let money = format!(
        "budget {} · reserved {} · charged {} · given back {}",
        run.budget, run.credits_reserved, run.credits_charged, run.credits_refunded
    );
    let labels: Vec<_> = run.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let labels = if labels.is_empty() { String::new() } else { format!(" · {}", print::visible(&labels.join(" "))) };
    writeln!(out, "{}", dim(format_args!("project {} · created {}{labels}", run.project_id, seconds(run.created_at))))?;
    writeln!(out, "{}", dim(money))?;
    if let Some(error) = &run.last_error {
        writeln!(out, "{}", bad(format_args!("{}: {}", error.code, print::visible(first_line(&error.message)))))?;
    }
    if let Some(reason) = &run.reason {
        writeln!(out, "{}", warn(print::visible(reason)))?;
    }
    if !run.allowed_actions.is_empty() {
        let id = run.id;
        let actions: Vec<_> = run.allowed_actions.iter().copied().map(RunAction::as_str).collect();
        writeln!(out, "{}", dim(format_args!("you can: baton runs {} {id}", actions.join("|"))))?;
    }
    out.flush()?;
    Ok(())
}
