//! `baton runs start`, `pause`, `resume`, `cancel`, `retry`, `delete` and `signal`.

use super::{part_path, run_path};
use crate::args::{ActArgs, CancelRunArgs, ClientArgs, SignalArgs};
use crate::client::{Client, Said, fresh_key, segment};
use crate::fault::Fault;
use crate::print;
use baton_core::RunId;
use baton_wire::{Cancel, Object, Run, Signalled};
use serde::Serialize;
use serde_json::Value;
use std::io::Write as _;

pub async fn act(args: ActArgs, verb: &str) -> Result<(), Fault> {
    post(&args.client, args.id, verb, &Object::new(), args.idempotency_key).await
}

pub async fn cancel(args: CancelRunArgs) -> Result<(), Fault> {
    post(&args.client, args.id, "cancel", &Cancel { reason: args.reason }, args.idempotency_key).await
}

async fn post(
    args: &ClientArgs,
    id: RunId,
    verb: &str,
    body: &impl Serialize,
    key: Option<String>,
) -> Result<(), Fault> {
    let key = key.unwrap_or_else(fresh_key);
    let said: Said<Run> = Client::new(args)?.post(&part_path(id, verb), body, &key).await?;
    say(&said.value, args.json)
}

pub async fn delete(args: ActArgs) -> Result<(), Fault> {
    let run: Run = Client::new(&args.client)?.remove(&run_path(args.id)).await?;
    if args.client.json {
        return print::json(&run);
    }
    writeln!(print::out(), "{} is deleted", run.id)?;
    Ok(())
}

fn say(run: &Run, json: bool) -> Result<(), Fault> {
    if json {
        return print::json(run);
    }
    writeln!(print::out(), "{} is {}", run.id, run.status)?;
    Ok(())
}

pub async fn signal(args: SignalArgs) -> Result<(), Fault> {
    let data: Option<Value> = args.data.as_deref().map(serde_json::from_str).transpose().map_err(|error| {
        Fault::usage(format!("--data is not JSON: {error}")).hint("quote it for the shell: --data '{\"a\":1}'")
    })?;
    let path = format!("{}/{}", part_path(args.id, "signals"), segment(args.name.as_str()));
    let key = args.idempotency_key.unwrap_or_else(fresh_key);
    let said: Said<Signalled> = Client::new(&args.client)?.post(&path, &data.unwrap_or(Value::Null), &key).await?;
    if args.client.json {
        return print::json(&said.value);
    }
    let Signalled { run_id, name, news } = said.value;
    let before = if news { "" } else { " already" };
    writeln!(print::out(), "{run_id} has the signal {name}{before}")?;
    Ok(())
}
