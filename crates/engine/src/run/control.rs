//! Steps that call nobody: they wait for time, for a signal, for people.

use baton_core::Micros;
use baton_core::canon::Json;
use baton_core::plan::Doer;
use baton_core::plan::builtin::{self, BadCall, Sleep, Wait};
use baton_core::run::Fault;
use baton_core::run::advance::{Failed, Outcome};
use serde_json::Value;

/// What the step waits for from here on. It began at `begun`; only that decides when it is over.
pub(super) fn wait(doer: Doer, input: &Value, begun: Micros) -> Outcome {
    match understood(doer, input, begun) {
        Ok(outcome) => outcome,
        Err(bad) => {
            let fault = Fault::new("invalid_input", &bad.to_string());
            Outcome::Failed(Failed { fault, called: false, unknown: false, retry_after: None })
        }
    }
}

fn understood(doer: Doer, input: &Value, begun: Micros) -> Result<Outcome, BadCall> {
    Ok(match doer {
        Doer::Sleep => Outcome::Sleep(begun.plus(Sleep::of(input)?.span.span())),
        Doer::Wait => {
            let Wait { signal, within } = Wait::of(input)?;
            let until = within.map(|within| begun.plus(within.span()));
            Outcome::Wait { signal: signal.as_str().to_owned(), until }
        }
        Doer::Ask | Doer::Tool | Doer::Remote => {
            builtin::question(input)?;
            Outcome::Ask(Json::of(input))
        }
    })
}
