//! `baton keys` and `baton orgs`: who may come in.

use crate::args::{CreateKeyArgs, KeyArgs, KeyListArgs, KeysArgs, KeysCommand, OrgsArgs, OrgsCommand, RotateKeyArgs};
use crate::client::{Client, Said, fresh_key};
use crate::fault::Fault;
use crate::local;
use crate::pages::{self, Ask};
use crate::paint::{bold, dim};
use crate::print;
use crate::target::{self, Shown};
use baton_core::id::KeyId;
use baton_wire::{FoundedOrg, Key, KeyList, MadeKey, Me, NewKey, NewOrg, Object, OrgList, RotateKey, Token};
use comfy_table::Row;
use std::collections::BTreeSet;
use std::io::Write as _;

const KEYS: &str = "/api/v1/keys";

pub async fn run(args: KeysArgs) -> Result<(), Fault> {
    match args.command {
        KeysCommand::Create(args) => create(args).await,
        KeysCommand::List(args) => list(args).await,
        KeysCommand::Rotate(args) => rotate(args).await,
        KeysCommand::Revoke(args) => revoke(args).await,
        KeysCommand::Me(args) => {
            let me: Me = Client::new(&args.client)?.get("/api/v1/me", &[]).await?;
            if args.client.json {
                return print::json(&me);
            }
            writeln!(print::out(), "{} of {}, may: {}", me.key.id, me.org, me.rights.join(", "))?;
            table(std::slice::from_ref(&me.key))
        }
    }
}

fn some<T: Ord>(all: Vec<T>) -> Option<BTreeSet<T>> {
    if all.is_empty() { None } else { Some(all.into_iter().collect()) }
}

async fn create(args: CreateKeyArgs) -> Result<(), Fault> {
    let new = NewKey {
        label: args.label,
        role: args.role,
        responsibilities: args.responsibilities.into_iter().collect(),
        projects: some(args.projects),
        types: some(args.types),
        expires_at: args.expires,
    };
    let said: Said<MadeKey> = Client::new(&args.client)?.post(KEYS, &new, &fresh_key()).await?;
    shown_once(&said.value, args.client.json)
}

async fn rotate(args: RotateKeyArgs) -> Result<(), Fault> {
    let grace_ms = args.grace.map_or(0, |grace| grace.to_std().as_millis() as u64);
    let path = format!("{KEYS}/{}/rotate", args.id);
    let target = target::find(&args.client)?;
    let local = match &target.key {
        Shown::Local { address, data_dir } => Some((*address, data_dir.clone())),
        Shown::Given(_) | Shown::Nothing => None,
    };
    let said: Said<MadeKey> = Client::to(target)?.post(&path, &RotateKey { grace_ms }, &fresh_key()).await?;
    // The key that this machine comes in with has another secret now. Kept before it is shown: whoever
    // reads what is printed may have gone.
    let mut kept = false;
    if let (Some((address, data_dir)), Some(secret)) = (local, &said.value.secret) {
        let token: Token = secret.parse().map_err(|_| Fault::new("unexpected_answer", "the new secret is no key"))?;
        kept = local::replace(address, &data_dir, &token)?;
    }
    shown_once(&said.value, args.client.json)?;
    if kept {
        writeln!(print::err(), "{}", dim("it is kept in admin.key in the place of the old one"))?;
    }
    Ok(())
}

async fn revoke(args: KeyArgs) -> Result<(), Fault> {
    let path = format!("{KEYS}/{}/revoke", args.id);
    let said: Said<Key> = Client::new(&args.client)?.post(&path, &Object::new(), &fresh_key()).await?;
    if args.client.json { print::json(&said.value) } else { table(&[said.value]) }
}

async fn list(args: KeyListArgs) -> Result<(), Fault> {
    let ask = Ask { path: KEYS, query: Vec::new(), page: &args.page };
    let list: KeyList = pages::read(&Client::new(&args.client)?, ask).await?;
    if args.client.json {
        return print::json(&list);
    }
    table(&list.keys)?;
    print::more(&args.page, list.next_cursor.as_deref())
}

/// The secret goes to standard output alone, so that it can be piped to where it belongs.
fn shown_once(made: &MadeKey, json: bool) -> Result<(), Fault> {
    if json {
        return print::json(made);
    }
    let MadeKey { key, secret } = made;
    writeln!(print::err(), "{} {} ({})", bold(key.id), print::visible(&key.label), key.role)?;
    match secret {
        Some(secret) => {
            writeln!(print::err(), "{}", dim("this is the key; it is not shown again:"))?;
            writeln!(print::out(), "{secret}")?;
        }
        None => return Err(Fault::unshown("keys", key.id)),
    }
    Ok(())
}

fn names<T: ToString>(all: &BTreeSet<T>) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn table(keys: &[Key]) -> Result<(), Fault> {
    let row = |key: &Key| {
        let dead = match (key.revoked_at, key.expires_at) {
            (Some(at), _) => format!("revoked {at}"),
            (None, Some(at)) => format!("until {at}"),
            (None, None) => String::new(),
        };
        let scope = [key.projects.as_ref().map(names), key.types.as_ref().map(names)];
        Row::from(vec![
            print::text(key.id),
            print::text(&key.label),
            print::text(key.role),
            print::text(names(&key.responsibilities)),
            print::text(scope.into_iter().flatten().collect::<Vec<_>>().join("; ")),
            print::text(dead),
        ])
    };
    print::table(&["KEY", "LABEL", "ROLE", "RESPONSIBLE FOR", "ONLY", "LIFE"], keys.iter().map(row))
}

pub async fn orgs(args: OrgsArgs) -> Result<(), Fault> {
    match args.command {
        OrgsCommand::Create(args) => {
            let client = Client::new(&args.client)?;
            let said: Said<FoundedOrg> = client.post("/api/v1/orgs", &NewOrg { org: args.org }, &fresh_key()).await?;
            if args.client.json {
                return print::json(&said.value);
            }
            shown_once(&said.value.key, false)
        }
        OrgsCommand::List(args) => {
            let ask = Ask { path: "/api/v1/orgs", query: Vec::new(), page: &args.page };
            let list: OrgList = pages::read(&Client::new(&args.client)?, ask).await?;
            if args.client.json {
                return print::json(&list);
            }
            for org in &list.orgs {
                writeln!(print::out(), "{org}")?;
            }
            print::more(&args.page, list.next_cursor.as_deref())
        }
    }
}

/// A key's id, also when somebody gives the whole key.
pub fn key_id(text: &str) -> Result<KeyId, String> {
    match text.parse::<baton_wire::Token>() {
        Ok(token) => Ok(token.id),
        Err(_) => text.parse::<KeyId>().map_err(|error| error.to_string()),
    }
}
