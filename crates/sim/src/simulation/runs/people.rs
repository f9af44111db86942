//! People who want runs, look at them and answer what is asked for them.

use super::super::client::Client;
use super::super::order::pick;
use super::deeds::{Deeds, Place};
use crate::answers::resolve;
use crate::run_lab::create;
use anyhow::{Context, Result, bail};
use baton_core::command::{Actor, Command};
use baton_core::decision::Case;
use baton_core::id::DecisionId;
use baton_core::once::{Key, Rendered};
use baton_core::plan::Tools;
use baton_core::rng::Rng;
use baton_core::run::hand::Doing;
use baton_core::run::{Agent, Run};
use baton_core::{Digest, OrgId, RunId};
use baton_store::{Answer, CommitError, Once, Store};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Somebody who looks waits this long for an answer.
const PATIENCE: Duration = Duration::from_secs(7);
/// Agents looked at at once; no run here has more.
const AGENTS: usize = 10;

pub(super) struct People<'a> {
    pub client: Client<'a>,
    pub deeds: &'a Arc<Deeds>,
}

impl People<'_> {
    /// Says something until somebody answers, with whatever.
    pub async fn insist<C: Command + Clone>(&self, command: &C) -> Result<bool> {
        let said = |store: Store| {
            let command = command.clone();
            async move {
                match store.commit(command, Actor::Api).await {
                    Ok(_) => Some(true),
                    Err(CommitError::Refused(_) | CommitError::KeyReused) => Some(false),
                    Err(CommitError::Store(_)) => None,
                }
            }
        };
        self.client.until_answered(said).await
    }

    /// A run that exists once, however often it was asked for. `None` if it is refused.
    pub async fn create(&self, n: u64, document: &Value, tools: &Tools) -> Result<Option<RunId>> {
        let command = create(document, tools)?;
        let asked = |store: Store| {
            let (command, once) = (command.clone(), once(n));
            async move {
                match store.commit_once(command, Actor::Api, once).await {
                    Ok(Answer::Fresh(run)) => Some(Ok(Some(run.id))),
                    Ok(Answer::Replayed(before)) => Some(before.body.parse().map(Some)),
                    Err(CommitError::Refused(_) | CommitError::KeyReused) => Some(Ok(None)),
                    Err(CommitError::Store(_)) => None,
                }
            }
        };
        self.client.until_answered(asked).await?.context("an answer names a run")
    }

    /// How a run and its agents stand, if anybody answers.
    pub async fn look(&self, run: RunId) -> Option<(Store, Run, Vec<Agent>)> {
        let store = self.client.fleet.stores().pop()?;
        let look = async {
            let run = store.run(&OrgId::default(), run).await.ok()??;
            let agents = store.agents(&OrgId::default(), run.id, run.attempt, None, AGENTS).await.ok()?;
            Some((run, agents))
        };
        let (run, agents) = tokio::time::timeout(PATIENCE, look).await.ok()??;
        Some((store, run, agents))
    }

    /// Answers what is asked for a run. The honest say how it is.
    pub async fn answer(&self, run: RunId, rng: Option<&mut Rng>) -> Result<()> {
        let Some((store, _, agents)) = self.look(run).await else { return Ok(()) };
        let mut rng = rng;
        for agent in &agents {
            for (_, _, step) in agent.steps() {
                let answer = match step.doing {
                    Doing::Answer(id) => {
                        let option = rng.as_mut().map_or("yes", |rng| pick(rng, &["yes", "yes", "no"]));
                        Some(resolve(id, option, "now"))
                    }
                    Doing::Unknown(id) => self.known(&store, agent, id, rng.as_deref_mut()).await,
                    _ => None,
                };
                if let Some(answer) = answer {
                    match rng {
                        Some(_) => self.client.shout(answer).await,
                        None => drop(self.insist(&answer).await?),
                    }
                }
            }
        }
        Ok(())
    }

    /// Looks at what really happened. While the call may still be going on there is nothing to say.
    async fn known(
        &self,
        store: &Store,
        agent: &Agent,
        id: DecisionId,
        rng: Option<&mut Rng>,
    ) -> Option<baton_core::decision::resolve::Resolve> {
        let found = tokio::time::timeout(PATIENCE, store.doc(&OrgId::default(), &Case::at(id))).await;
        let case = Case::of(&found.ok()?.ok()??)?;
        let text = |field: &str| case.evidence[field].as_str().map(str::to_owned);
        let step = format!("{}.{}", text("task")?, text("step")?);
        let place = Place(agent.run, agent.name.to_string(), step.clone());
        let deed = self.deeds.of(&place);
        if deed.flying > 0 {
            return None;
        }
        let honest = if deed.done > deed.lies { "done" } else { "not_done" };
        let option = rng.map_or(honest, |rng| pick(rng, &[honest, honest, honest, "not_done", "abort"]));
        if option == "not_done" {
            self.deeds.denied(&place);
        }
        let mut answer = resolve(id, option, "looked");
        answer.data = (option == "done").then(|| json!({ "step": step }));
        Some(answer)
    }

    /// Nothing goes wrong any more: somebody is up sooner or later.
    pub async fn any_store(&self) -> Result<Store> {
        for _ in 0..1_000 {
            if let Some(store) = self.client.fleet.stores().pop() {
                return Ok(store);
            }
            let _ = tokio::time::timeout(PATIENCE, self.client.fleet.up.notified()).await;
        }
        bail!("nobody ever comes up")
    }
}

fn once(n: u64) -> Once<Run> {
    let key = format!("run-{n}");
    Once {
        request: Digest::of(&[key.as_bytes()]),
        key: Key { org: OrgId::default(), scope: "sim".to_owned(), key },
        render: Box::new(|run| Rendered { status: 201, body: run.id.to_string() }),
    }
}
