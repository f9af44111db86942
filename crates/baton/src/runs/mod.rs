//! `baton run` and `baton runs`.

mod act;
mod begin;
mod document;
mod follow;
mod line;
mod list;
mod logs;
mod screen;
mod show;
mod tree;
mod words;

pub use begin::begin;
pub use line::Line;
pub use tree::length;

use crate::args::{RunsArgs, RunsCommand};
use crate::fault::Fault;
use crate::pages::Page;
use baton_core::RunId;
use baton_wire::{Agent, AgentList, Run, RunList, Step, StepList, Task, TaskList, limit};

const RUNS: &str = "/api/v1/runs";

pub async fn run(args: RunsArgs) -> Result<(), Fault> {
    match args.command {
        RunsCommand::List(args) => list::run(args).await,
        RunsCommand::Show(args) => show::run(args).await,
        RunsCommand::Start(args) => act::act(args, "start").await,
        RunsCommand::Pause(args) => act::act(args, "pause").await,
        RunsCommand::Resume(args) => act::act(args, "resume").await,
        RunsCommand::Cancel(args) => act::cancel(args).await,
        RunsCommand::Retry(args) => act::act(args, "retry").await,
        RunsCommand::Delete(args) => act::delete(args).await,
        RunsCommand::Logs(args) => logs::run(args).await,
        RunsCommand::Signal(args) => act::signal(args).await,
    }
}

fn run_path(id: RunId) -> String {
    format!("{RUNS}/{id}")
}

/// A part of a run, or what is done to it.
fn part_path(id: RunId, part: &str) -> String {
    format!("{RUNS}/{id}/{part}")
}

impl Page for RunList {
    type Item = Run;
    const MOST: usize = limit::NAMES;

    fn parts(&mut self) -> (&mut Vec<Run>, &mut Option<String>) {
        (&mut self.runs, &mut self.next_cursor)
    }
}

impl Page for AgentList {
    type Item = Agent;
    const MOST: usize = limit::NAMES;

    fn parts(&mut self) -> (&mut Vec<Agent>, &mut Option<String>) {
        (&mut self.agents, &mut self.next_cursor)
    }
}

impl Page for TaskList {
    type Item = Task;
    const MOST: usize = limit::NAMES;

    fn parts(&mut self) -> (&mut Vec<Task>, &mut Option<String>) {
        (&mut self.tasks, &mut self.next_cursor)
    }
}

impl Page for StepList {
    type Item = Step;
    const MOST: usize = limit::NAMES;

    fn parts(&mut self) -> (&mut Vec<Step>, &mut Option<String>) {
        (&mut self.steps, &mut self.next_cursor)
    }
}
