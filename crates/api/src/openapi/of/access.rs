//! Keys and orgs.

use super::super::example;
use super::super::operation::{Operation, Tag};
use super::super::parameter;
use baton_wire::{FoundedOrg, Key, KeyList, MadeKey, Me, NewKey, NewOrg, OrgList, RotateKey};
use serde_json::json;

pub fn me() -> Operation {
    let me =
        json!({ "org": "default", "key": example::key(), "rights": ["see", "enqueue", "operate", "decide", "audit"] });
    Operation::new("getMe", Tag::Access, "Say who the server takes you for").answers::<Me>(200, "You.", me)
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
