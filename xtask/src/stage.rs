//! Stages: named steps with a time budget, run until one fails, then summed up in a table.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;

use crate::guard::Guard;
use crate::run::Deadline;

#[derive(Clone, Copy)]
pub struct Stage {
    pub name: &'static str,
    pub budget_s: u64,
}

pub struct Stages {
    plan: Vec<Stage>,
    done: Vec<Row>,
    guard: Guard,
}

struct Row {
    name: &'static str,
    ok: bool,
    took: Duration,
}

/// The stage that failed; its error has been printed.
#[derive(Debug, PartialEq)]
pub struct Failed(&'static str);

impl Stages {
    pub fn new(plan: Vec<Stage>, guard: Guard) -> Self {
        Self { plan, done: Vec::new(), guard }
    }

    pub fn run<T>(&mut self, stage: Stage, work: impl FnOnce(Deadline, &mut Guard) -> Result<T>) -> Result<T, Failed> {
        println!("==> {}", stage.name);
        let deadline = Deadline::after(Duration::from_secs(stage.budget_s));
        let outcome = work(deadline, &mut self.guard);
        self.done.push(Row { name: stage.name, ok: outcome.is_ok(), took: deadline.elapsed() });
        outcome.map_err(|error| {
            eprintln!("error: {error:#}");
            Failed(stage.name)
        })
    }

    /// Tears down, prints the summary of `command`, and turns it into an exit code.
    pub fn end(self, command: &str, outcome: Result<(), Failed>) -> ExitCode {
        // First, so that a warning of the guard cannot follow the last line.
        drop(self.guard);
        println!("\n{}", table(&self.plan, &self.done));
        match outcome {
            Ok(()) => {
                println!("{command}: ok");
                ExitCode::SUCCESS
            }
            Err(Failed(stage)) => {
                println!("{command}: FAILED in {stage}");
                ExitCode::FAILURE
            }
        }
    }
}

fn table(plan: &[Stage], done: &[Row]) -> String {
    let mut table = format!("{:<18}{:<9}{:>8}\n", "stage", "result", "seconds");
    for stage in plan {
        // Writing to a string cannot fail.
        let _ = match done.iter().find(|row| row.name == stage.name) {
            Some(row) => {
                let result = if row.ok { "ok" } else { "FAILED" };
                let seconds = row.took.as_secs_f32();
                writeln!(table, "{:<18}{result:<9}{seconds:>8.1}", row.name)
            }
            None => writeln!(table, "{:<18}{:<9}{:>8}", stage.name, "not run", "-"),
        };
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Stage = Stage { name: "first", budget_s: 60 };
    const SECOND: Stage = Stage { name: "second", budget_s: 60 };
    const THIRD: Stage = Stage { name: "third", budget_s: 60 };

    fn stages() -> Stages {
        Stages::new(vec![FIRST, SECOND, THIRD], Guard::absent())
    }

    #[test]
    fn a_failure_is_named_and_stops_what_follows() {
        let mut stages = stages();
        let outcome = (|| {
            stages.run(FIRST, |_, _| Ok(()))?;
            stages.run(SECOND, |_, _| anyhow::bail!("broken"))?;
            stages.run(THIRD, |_, _| -> Result<()> { unreachable!("stopped") })
        })();
        assert_eq!(outcome, Err(Failed("second")));
        for row in &mut stages.done {
            row.took = Duration::from_millis(1250);
        }
        let expected = "\
stage             result    seconds
first             ok            1.2
second            FAILED        1.2
third             not run         -
";
        assert_eq!(table(&stages.plan, &stages.done), expected);
        assert_eq!(stages.end("test", outcome), ExitCode::FAILURE);
    }

    #[test]
    fn a_stage_hands_its_value_on() {
        let mut stages = stages();
        assert_eq!(stages.run(FIRST, |_, _| Ok(7)), Ok(7));
        assert_eq!(stages.end("test", Ok(())), ExitCode::SUCCESS);
    }
}
