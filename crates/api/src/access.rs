//! Keys and orgs: who else may come in.

use crate::app::App;
use crate::call::Call;
use crate::cursor;
use crate::door::{Caller, first};
use crate::idempotency::{self, rendered};
use crate::problem::Fault;
use crate::query::Params;
use crate::wait;
use axum::Json as Answer;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use baton_core::OrgId;
use baton_core::access::Key;
use baton_core::access::change::{Act, Change, Found, Kept, NewKey};
use baton_core::doc::Class;
use baton_core::id::KeyId;
use baton_core::time::Span;
use baton_store::{ListDocs, ListOrgs};
use baton_wire::{FoundedOrg, KeyList, MadeKey, Me, NewOrg, OrgList, RotateKey, Token};

type Id = Result<Path<String>, PathRejection>;

pub async fn me(caller: Caller, params: Params) -> Result<Answer<Me>, Fault> {
    params.allow(&[])?;
    let rights = caller.grant.role.rights().iter().map(ToString::to_string).collect();
    Ok(Answer(Me { org: caller.org.clone(), key: baton_wire::Key::of(caller.key, &caller.kept), rights }))
}

pub async fn list(State(app): State<App>, caller: Caller, params: Params) -> Result<Answer<KeyList>, Fault> {
    let asked = cursor::KEYS.asked(&params, &[])?;
    let ask = ListDocs {
        org: caller.org.clone(),
        class: Class::Key,
        prefix: String::new(),
        flag: None,
        order: asked.order,
        after: asked.after_text()?,
        limit: asked.limit,
    };
    let page = wait::read(app.store().docs(ask)).await?;
    let shown = |(at, doc): &(baton_core::doc::Key, baton_core::doc::Doc)| {
        Some(baton_wire::Key::of(at.key.parse().ok()?, &Key::of(doc)?))
    };
    let keys = page.items.iter().filter_map(shown).collect();
    Ok(Answer(KeyList { keys, next_cursor: page.next.map(|key| asked.next_text(&key)) }))
}

pub async fn get(
    State(app): State<App>,
    caller: Caller,
    id: Id,
    params: Params,
) -> Result<Answer<baton_wire::Key>, Fault> {
    params.allow(&[])?;
    let id = key_id(id)?;
    let doc = wait::read(app.store().doc(&caller.org, &Key::at(id))).await?;
    match doc.as_ref().and_then(Key::of) {
        Some(key) => Ok(Answer(baton_wire::Key::of(id, &key))),
        None => Err(Fault::new("key_not_found", format!("key {id} does not exist"))),
    }
}

pub async fn create(State(app): State<App>, caller: Caller, call: Call) -> Result<Response, Fault> {
    let new: baton_wire::NewKey = call.body.parse()?;
    let keyed = call.keyed("POST /api/v1/keys", &new)?;
    let token = first::draw(app.entropy(), app.store().clock_now());
    let key = NewKey {
        id: token.id,
        label: new.label.clone(),
        grant: new.grant(),
        proof: token.proof(),
        expires_at: new.expires_at.map(|at| at.0),
    };
    let command = change(&caller, key.id, Act::Create(Box::new(key)));
    idempotency::commit_secret(&app, &caller, command, keyed, move |kept, shown| {
        made(201, kept, shown.then_some(&token))
    })
    .await
}

pub async fn rotate(State(app): State<App>, caller: Caller, id: Id, call: Call) -> Result<Response, Fault> {
    let id = key_id(id)?;
    let asked: RotateKey = call.body.parse_or_default()?;
    let keyed = call.keyed("POST /api/v1/keys/{keyId}/rotate", &asked)?;
    let drawn = first::draw(app.entropy(), app.store().clock_now());
    let token = drawn.renamed(id);
    let grace = i64::try_from(asked.grace_ms).ok().and_then(|ms| ms.checked_mul(1_000)).map_or(Span(i64::MAX), Span);
    let act = Act::Rotate { proof: token.proof(), grace };
    let command = change(&caller, id, act);
    let answer = idempotency::commit_secret(&app, &caller, command, keyed, move |kept, shown| {
        made(200, kept, shown.then_some(&token))
    })
    .await;
    app.keyring().forget(id);
    answer
}

pub async fn revoke(State(app): State<App>, caller: Caller, id: Id, call: Call) -> Result<Response, Fault> {
    let id = key_id(id)?;
    let keyed = call.keyed_bare("POST /api/v1/keys/{keyId}/revoke")?;
    let command = change(&caller, id, Act::Revoke);
    let render = |kept: &Kept| rendered(200, &baton_wire::Key::of(kept.id, &kept.key));
    let answer = idempotency::commit(&app, &caller, command, keyed, render).await;
    app.keyring().forget(id);
    answer
}

pub async fn orgs(State(app): State<App>, params: Params) -> Result<Answer<OrgList>, Fault> {
    let asked = cursor::ORGS.asked(&params, &[])?;
    let after = asked.after_text()?.map(|text| OrgId::new(&text).map_err(|_| cursor::foreign())).transpose()?;
    // One more than wanted: one of them is nobody's, and what is built in stands there.
    let limit = asked.limit + 1;
    let mut page = wait::read(app.store().list_orgs(ListOrgs { order: asked.order, after, limit })).await?;
    page.items.retain(|org| *org != OrgId::system());
    if page.items.len() > asked.limit {
        page.items.truncate(asked.limit);
        page.next = page.items.last().cloned();
    }
    Ok(Answer(OrgList { orgs: page.items, next_cursor: page.next.map(|org| asked.next_text(org.as_str())) }))
}

pub async fn found(State(app): State<App>, caller: Caller, call: Call) -> Result<Response, Fault> {
    let new: NewOrg = call.body.parse()?;
    let keyed = call.keyed("POST /api/v1/orgs", &new)?;
    let token = first::draw(app.entropy(), app.store().clock_now());
    let first = first::admin("first admin key", &token);
    let org = new.org.clone();
    let command = Found { org: new.org, first };
    let render = move |kept: &Kept, shown: bool| {
        let key = MadeKey { key: baton_wire::Key::of(kept.id, &kept.key), secret: shown.then(|| token.reveal()) };
        rendered(201, &FoundedOrg { org: org.clone(), key })
    };
    idempotency::commit_secret(&app, &caller, command, keyed, render).await
}

fn change(caller: &Caller, id: KeyId, act: Act) -> Change {
    Change { org: caller.org.clone(), id, act, by: Some(caller.key) }
}

fn made(status: u16, kept: &Kept, token: Option<&Token>) -> baton_core::once::Rendered {
    let secret = token.map(Token::reveal);
    rendered(status, &MadeKey { key: baton_wire::Key::of(kept.id, &kept.key), secret })
}

/// An id that nobody could have been given names no key.
fn key_id(path: Id) -> Result<KeyId, Fault> {
    let text = path.map(|Path(text)| text).unwrap_or_default();
    text.parse().map_err(|error: baton_core::id::BadId| Fault::new("key_not_found", error.to_string()))
}
