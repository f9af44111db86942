//! `baton jobs cancel` and `wake`: each answers with the job.

use super::job_path;
use super::show::show;
use crate::args::{CancelArgs, ClientArgs, WakeArgs};
use crate::client::{Client, Said, fresh_key};
use crate::fault::Fault;
use baton_core::JobId;
use baton_wire::{Cancel, Job, Object};
use serde::Serialize;

pub async fn cancel(args: CancelArgs) -> Result<(), Fault> {
    act(&args.client, args.id, "cancel", &Cancel { reason: args.reason }, args.idempotency_key).await
}

pub async fn wake(args: WakeArgs) -> Result<(), Fault> {
    act(&args.client, args.id, "wake", &Object::new(), args.idempotency_key).await
}

async fn act(
    args: &ClientArgs,
    id: JobId,
    verb: &str,
    body: &impl Serialize,
    key: Option<String>,
) -> Result<(), Fault> {
    let path = format!("{}/{verb}", job_path(id));
    let said: Said<Job> = Client::new(args)?.post(&path, body, &key.unwrap_or_else(fresh_key)).await?;
    show(&said.value, args.json)
}
