//! `baton version`.

use crate::args::VersionArgs;
use crate::fault::Fault;
use crate::print;
use std::io::Write as _;

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

pub fn run(args: VersionArgs) -> Result<(), Fault> {
    if args.json {
        return print::json(&serde_json::json!({ "name": "baton", "version": VERSION }));
    }
    writeln!(print::out(), "baton {VERSION}")?;
    Ok(())
}
