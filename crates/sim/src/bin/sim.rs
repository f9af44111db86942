//! Runs simulations: many seeds, or one again.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool of developers")]

use anyhow::{Context, Result, bail};
use baton_sim::simulation::{self, Summary};
use baton_store::faults::Sabotage;
use std::collections::BTreeMap;
use std::io::IsTerminal;

const USAGE: &str = "usage: sim [--of jobs|runs] [--seeds N] [--from S] | --seed S";

type Simulate = fn(u64, Option<Sabotage>) -> Result<Summary>;

const JOBS: Simulate = simulation::run;
const RUNS: Simulate = simulation::runs::run;

struct Args {
    from: u64,
    seeds: u64,
    single: bool,
    of: Vec<Simulate>,
}

fn args() -> Result<Args> {
    let mut args = Args { from: 0, seeds: 500, single: false, of: vec![JOBS, RUNS] };
    let mut words = std::env::args().skip(1);
    while let Some(flag) = words.next() {
        let value = words.next().with_context(|| format!("{flag} needs a value; {USAGE}"))?;
        if flag == "--of" {
            args.of = match value.as_str() {
                "jobs" => vec![JOBS],
                "runs" => vec![RUNS],
                _ => bail!("{value} is not known; {USAGE}"),
            };
            continue;
        }
        let number = value.parse().with_context(|| format!("{value} is not a number; {USAGE}"))?;
        match flag.as_str() {
            "--seeds" => args.seeds = number,
            "--from" => args.from = number,
            "--seed" => (args.from, args.seeds, args.single) = (number, 1, true),
            _ => bail!("{flag} is not known; {USAGE}"),
        }
    }
    Ok(args)
}

fn main() -> Result<()> {
    let args = args()?;
    // Handlers are asked to panic now and then; that is not news.
    std::panic::set_hook(Box::new(|_| {}));
    let (mut commits, mut crashes, mut lost) = (0, 0, 0);
    let mut happened = BTreeMap::<String, u64>::new();
    for (done, seed) in (args.from..args.from.saturating_add(args.seeds)).enumerate() {
        for simulate in &args.of {
            let summary = simulate(seed, None)?;
            if args.single {
                println!("{summary:#?}");
            }
            commits += summary.commits;
            crashes += summary.crashes;
            lost += summary.lost_answers;
            for (what, times) in summary.happened {
                *happened.entry(what).or_default() += times;
            }
        }
        if std::io::stderr().is_terminal() && done % 50 == 49 {
            eprint!("\r{} of {} seeds", done + 1, args.seeds);
        }
    }
    if std::io::stderr().is_terminal() {
        eprintln!();
    }
    for (what, times) in happened {
        println!("{times:>10} {what}");
    }
    println!("{} seeds held: {commits} commits, {crashes} crashes, {lost} lost answers", args.seeds);
    Ok(())
}
