//! Calls a program under a keeper: `process TIMEOUT_MS PROGRAM [ARGUMENT…]`, with `{}` as its input.
//! The tests use it as the binary that becomes a keeper, as a server that can be killed, and, as
//! `process hog`, as a program that wants more memory than there is.

use baton_tools::process::{Call, Declaration, Options, Processes, keeper};
use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if let Some(ended) = keeper() {
        return Ok(ended);
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((first, argv)) = arguments.split_first() else { return Err("no arguments".into()) };
    if first == "hog" {
        let mut all: Vec<Vec<u8>> = Vec::new();
        loop {
            all.push(vec![1; 1 << 24]);
        }
    }
    let declared: Declaration = serde_json::from_value(serde_json::json!({ "argv": argv }))?;
    let (process, processes) = (declared.check()?, Processes::new(Options::default()));
    let call = Call {
        input: &serde_json::json!({}),
        timeout: Duration::from_millis(first.parse()?),
        run: None,
        agent: None,
        step: None,
        attempt: 1,
        key: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(processes.call(&process, &call, std::future::pending()))?;
    writeln!(std::io::stdout(), "{result}")?;
    Ok(ExitCode::SUCCESS)
}
