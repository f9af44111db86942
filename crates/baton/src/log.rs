//! Logs, on standard error.

use crate::args::LogFormat;
use crate::fault::Fault;
use std::io::{self, IsTerminal as _};
use tracing_subscriber::EnvFilter;

pub fn set_up(format: LogFormat, filter: &str) -> Result<(), Fault> {
    let filter = EnvFilter::try_new(filter)
        .map_err(|error| Fault::new("config_invalid", format!("the log filter {filter:?} cannot be used: {error}")))?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let set = match format {
        LogFormat::Pretty => logs.with_ansi(colours).try_init(),
        LogFormat::Json => logs.json().flatten_event(true).with_current_span(true).with_span_list(false).try_init(),
    };
    set.map_err(|error| Fault::new("start_failed", format!("logging cannot be set up: {error}")))
}
