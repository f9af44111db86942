//! `baton credits`: how many there are, and where they went.

use crate::args::{CreditsArgs, CreditsCommand, GrantArgs, LedgerArgs};
use crate::client::{Client, Said, fresh_key};
use crate::fault::Fault;
use crate::jobs::seconds;
use crate::pages::{self, Ask, Page};
use crate::paint::dim;
use crate::print;
use baton_wire::{Balance, Direction, Granted, LedgerEntry, LedgerList, NewGrant, limit};
use comfy_table::{Color, Row};
use std::io::Write as _;

impl Page for LedgerList {
    type Item = LedgerEntry;
    const MOST: usize = limit::NAMES;

    fn parts(&mut self) -> (&mut Vec<LedgerEntry>, &mut Option<String>) {
        (&mut self.entries, &mut self.next_cursor)
    }
}

pub async fn run(args: CreditsArgs) -> Result<(), Fault> {
    match args.command {
        CreditsCommand::Balance(args) => {
            let balance: Balance = Client::new(&args.client)?.get("/api/v1/credits/balance", &[]).await?;
            if args.client.json {
                return print::json(&balance);
            }
            print::pairs([
                ("available", print::text(balance.available)),
                ("reserved for runs", print::text(balance.reserved)),
                ("entries", print::text(balance.entries)),
            ])
        }
        CreditsCommand::Grant(args) => grant(args).await,
        CreditsCommand::Ledger(args) => ledger(args).await,
    }
}

async fn grant(args: GrantArgs) -> Result<(), Fault> {
    let key = args.idempotency_key.unwrap_or_else(fresh_key);
    let new = NewGrant { amount: args.amount, note: args.note };
    let said: Said<Granted> = Client::new(&args.client)?.post("/api/v1/credits/grants", &new, &key).await?;
    if args.client.json {
        return print::json(&said.value);
    }
    if said.replayed || said.value.entry.is_none() {
        writeln!(print::err(), "{}", dim("this key was used before: nothing was given, this is the answer of then"))?;
    }
    writeln!(print::out(), "{} credits given, {} available", said.value.amount, said.value.balance)?;
    Ok(())
}

async fn ledger(args: LedgerArgs) -> Result<(), Fault> {
    let query = args.account.map(|account| ("account", account)).into_iter().collect();
    let ask = Ask { path: "/api/v1/ledger", query, page: &args.page };
    let list: LedgerList = pages::read(&Client::new(&args.client)?, ask).await?;
    if args.client.json {
        return print::json(&list);
    }
    if list.entries.is_empty() {
        writeln!(print::out(), "{}", dim("no entries"))?;
    } else {
        print::table(&["N", "AT", "KIND", "AMOUNT", "BALANCE", "RUN", "KEY"], list.entries.iter().map(row))?;
    }
    print::more(&args.page, list.next_cursor.as_deref())
}

fn row(entry: &LedgerEntry) -> Row {
    let (sign, colour) = match entry.direction {
        Direction::In => ('+', Color::Green),
        Direction::Out => ('-', Color::Yellow),
    };
    Row::from(vec![
        print::text(entry.n),
        print::text(seconds(entry.at)),
        print::text(entry.kind.as_str()),
        print::text(format!("{sign}{}", entry.amount)).fg(colour),
        print::text(entry.balance_after),
        print::text(entry.run_id.map(|run| run.to_string()).unwrap_or_default()),
        print::text(&entry.key),
    ])
}
