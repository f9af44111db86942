//! Keys and orgs.

use super::super::example;
use super::super::operation::{Content, Operation, Tag};
use super::super::parameter;
use baton_wire::{
    FoundedOrg, HandIn, Key, KeyList, LoggedIn, LoginLink, MadeKey, Me, NewKey, NewOrg, OrgList, RotateKey,
};
use serde_json::json;

pub fn me() -> Operation {
    let me =
        json!({ "org": "default", "key": example::key(), "rights": ["see", "enqueue", "operate", "decide", "audit"] });
    Operation::new("getMe", Tag::Access, "Say who the server takes you for").answers::<Me>(200, "You.", me)
}

pub fn login_link() -> Operation {
    let link = json!({ "path": format!("/login#bt_{}", "7".repeat(64)), "expiresAt": "2027-01-15T09:02:00.000000Z" });
    Operation::new("createLoginLink", Tag::Access, "Get a link to come in with a browser")
        .about("It works once, for thirty seconds, and lets a browser do what this key may. A session gets none.")
        .bare()
        .unkeyed()
        .answers::<LoginLink>(201, "The link.", link)
        .refuses(&["forbidden"])
}

pub fn enter() -> Operation {
    let told = json!({ "org": "default", "key": example::key(), "expiresAt": "2027-01-15T21:00:00.000000Z" });
    Operation::new("logIn", Tag::Access, "Hand in the ticket of a login link")
        .about(
            "Opens a session of twelve hours, in the cookie `baton_session`: it stands for the key wherever no key is \
             given. What changes something, or listens over a socket, is done with it by this server's own pages only.",
        )
        .body::<HandIn>("a ticket", json!({ "ticket": format!("bt_{}", "7".repeat(64)) }))
        .unkeyed()
        .answers::<LoggedIn>(201, "Who you are.", told)
        .refuses(&["ticket_gone", "store_unavailable", "store_closed", "overloaded"])
}

pub fn leave() -> Operation {
    Operation::new("logOut", Tag::Access, "End the session")
        .about("A session that was handed in opens nothing any more, here at once and at other nodes within a second.")
        .answer(204, "It has ended, and the browser forgets it.", Content::Nothing)
        .refuses(&["forbidden_origin", "too_many_sessions", "store_unavailable", "store_closed", "overloaded"])
}

pub fn list() -> Operation {
    let page = json!({ "keys": [example::key()], "nextCursor": null });
    Operation::new("listKeys", Tag::Access, "List the org's keys, newest first")
        .takes([parameter::order_by_time(), parameter::limit_names(), parameter::cursor()])
        .answers::<KeyList>(200, "A page of them.", page)
        .leads(&["getKey"], &[("keyId", "$response.body#/keys/0/id")])
}

pub fn create() -> Operation {
    Operation::new("createKey", Tag::Access, "Make a key")
        .about("Its secret is shown once: in this answer, and not when the request is repeated.")
        .body::<NewKey>("an operator of one project", example::new_key())
        .answers::<MadeKey>(201, "The key, with its secret.", example::made_key())
        .answers::<MadeKey>(200, "Said before under the same `Idempotency-Key`.", example::made_key_again())
        .leads(&["getKey", "rotateKey", "revokeKey"], &[("keyId", "$response.body#/id")])
        .refuses(&["invalid_key", "key_exists"])
}

pub fn get() -> Operation {
    Operation::new("getKey", Tag::Access, "Show a key")
        .takes([parameter::key_id()])
        .answers::<Key>(200, "The key.", example::key())
        .refuses(&["key_not_found"])
}

pub fn rotate() -> Operation {
    Operation::new("rotateKey", Tag::Access, "Give a key another secret")
        .takes([parameter::key_id()])
        .body_or_none::<RotateKey>("an hour to change over", json!({ "graceMs": 3_600_000 }))
        .answers::<MadeKey>(200, "The key, with its new secret.", example::rotated_key())
        .refuses(&["key_not_found", "key_dead", "invalid_key"])
}

pub fn revoke() -> Operation {
    Operation::new("revokeKey", Tag::Access, "Revoke a key")
        .about("It opens nothing any more, here at once and at other nodes within a second.")
        .takes([parameter::key_id()])
        .bare()
        .answers::<Key>(200, "The key, revoked.", example::revoked_key())
        .refuses(&["key_not_found", "own_key"])
}

pub fn orgs() -> Operation {
    Operation::new("listOrgs", Tag::Access, "List the orgs of this installation by name")
        .takes([parameter::order_by_name(), parameter::limit_names(), parameter::cursor()])
        .answers::<OrgList>(200, "One page.", json!({ "orgs": ["acme", "default"], "nextCursor": null }))
}

pub fn found() -> Operation {
    let again = example::org(example::made_key_again());
    Operation::new("foundOrg", Tag::Access, "Found an org, with its first admin key")
        .body::<NewOrg>("an org", json!({ "org": "acme" }))
        .answers::<FoundedOrg>(201, "The org, with the key that governs it.", example::org(example::made_key()))
        .answers::<FoundedOrg>(200, "Said before under the same `Idempotency-Key`.", again)
        .refuses(&["org_exists", "invalid_key", "key_exists"])
}
