//! `baton completions`: what shells need to complete commands and flags.

use crate::args::{Cli, CompletionsArgs};
use crate::fault::Fault;
use crate::print;
use clap::CommandFactory as _;
use std::io::Write as _;

pub fn run(args: &CompletionsArgs) -> Result<(), Fault> {
    // Written at once: the generator does not expect that nobody reads.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "baton", &mut script);
    print::out().write_all(&script)?;
    Ok(())
}
