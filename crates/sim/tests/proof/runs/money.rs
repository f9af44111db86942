//! What runs may spend.

use super::Field;
use anyhow::{Context, Result, ensure};
use baton_core::OrgId;
use baton_core::command::{Actor, Refusal};
use baton_core::credits::Credits;
use baton_core::doc;
use baton_core::ledger::OrgAccount;
use baton_core::ledger::grant::Grant;
use baton_core::run::State;
use baton_core::run::start::Start;
use baton_sim::lab::Lab;
use baton_sim::on_both;
use baton_sim::run_lab::{create, even, grant, toolbox, until_is};
use baton_sim::stage::clean;
use baton_store::{CommitError, Store};
use futures_util::future::join_all;
use serde_json::json;

on_both! {
    a_run_never_spends_more_than_its_budget
    credits_are_granted_once_for_each_key
    of_two_runs_that_want_the_last_credits_one_gets_them
}

async fn balance(store: &Store) -> Result<Credits> {
    let key = doc::Key { class: doc::Class::Account, key: "org".to_owned() };
    let account = store.doc(&OrgId::default(), &key).await?.context("there is an account")?;
    Ok(OrgAccount::from_doc(account).purse.balance)
}

async fn a_run_never_spends_more_than_its_budget(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let engine = field.node("node_a").await?;
    let store = engine.store();
    grant(store, 100).await?;
    let mut document = even(3, 2, 3, "priced");
    document["budget"] = json!("10");
    document["max_attempts"] = json!(1);
    let id = field.begin(store, &document).await?;
    let run = until_is(store, id, State::Failed).await?;
    ensure!(run.error.as_ref().is_some_and(|fault| fault.code == "insufficient_credits"), "{run:?}");
    ensure!(run.money.charged <= Credits::whole(10), "{:?}", run.money);
    ensure!(balance(store).await?.plus(run.money.charged) == Some(Credits::whole(100)));
    clean(store).await
}

async fn credits_are_granted_once_for_each_key(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let (a, b) = (field.node("node_a").await?, field.node("node_b").await?);
    let grant = |n: usize| {
        let grant = Grant { org: OrgId::default(), amount: Credits::whole(5), key: format!("k{}", n % 3), note: None };
        let store = [&a, &b][n % 2].store().clone();
        async move { store.commit(grant, Actor::Api).await }
    };
    let granted = join_all((0..30).map(grant)).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    ensure!(granted.iter().filter(|granted| granted.posting.is_some()).count() == 3, "{granted:?}");
    ensure!(balance(a.store()).await? == Credits::whole(15));
    clean(a.store()).await
}

async fn of_two_runs_that_want_the_last_credits_one_gets_them(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let (a, b) = (field.node("node_a").await?, field.node("node_b").await?);
    grant(a.store(), 15).await?;
    let mut document = even(1, 1, 1, "priced");
    document["budget"] = json!("10");
    let mut runs = Vec::new();
    for _ in 0..2 {
        let create = create(&document, toolbox(&field.deeds).known())?;
        runs.push(a.store().commit(create, Actor::Api).await?.id);
    }
    let start = |store: &Store, run| {
        let store = store.clone();
        async move { store.commit(Start { org: OrgId::default(), run }, Actor::Api).await }
    };
    // Neither has ended, and so given back what it reserved, before the other is decided: both wait here.
    a.stop(std::time::Duration::from_secs(5)).await;
    b.stop(std::time::Duration::from_secs(5)).await;
    let nodes = [field.lab.node_named("node_c").await?, field.lab.node_named("node_d").await?];
    let started = tokio::join!(start(&nodes[0].store, runs[0]), start(&nodes[1].store, runs[1]));
    let (won, lost) = match started {
        (Ok(won), Err(lost)) | (Err(lost), Ok(won)) => (won, lost),
        other => anyhow::bail!("{other:?}"),
    };
    ensure!(matches!(&lost, CommitError::Refused(no) if no.code() == "insufficient_credits"), "{lost:?}");
    ensure!(balance(&nodes[0].store).await? == Credits::whole(5));
    let engine = field.node("node_e").await?;
    until_is(engine.store(), won.id, State::Completed).await?;
    ensure!(balance(engine.store()).await? == Credits::whole(14));
    clean(engine.store()).await
}
