//! `baton login`: a link to come in with a browser.

use crate::args::LoginArgs;
use crate::client::{Client, Said, fresh_key};
use crate::fault::Fault;
use crate::paint::dim;
use crate::print;
use baton_wire::{LoginLink, Object};
use std::io::Write as _;

pub async fn run(args: LoginArgs) -> Result<(), Fault> {
    let client = Client::new(&args.client)?;
    let said: Said<LoginLink> = client.post("/api/v1/login-links", &Object::new(), &fresh_key()).await?;
    let link = said.value;
    // The server does not know by which name it is reached from here; we do.
    let url = client.link(&link.path)?;
    if args.client.json {
        return print::json(&serde_json::json!({ "url": url, "expiresAt": link.expires_at }));
    }
    // The link goes to standard output alone, so that it can be handed to a browser.
    writeln!(print::err(), "{}", dim("open this in a browser; it works once and for half a minute:"))?;
    writeln!(print::out(), "{url}")?;
    Ok(())
}
