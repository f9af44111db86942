//! Nothing is lost, nothing is spent twice, nothing is spent that was not there.

use super::{Facts, must};
use crate::credits::Credits;
use crate::ledger::{Account, Kind, Posting, Purse};
use std::collections::{BTreeMap, BTreeSet};

/// What the entries of one account come to.
#[derive(Default)]
struct Book<'a> {
    purse: Purse,
    sums: BTreeMap<Kind, i64>,
    keys: BTreeSet<(Kind, &'a str)>,
}

impl Book<'_> {
    fn sum(&self, kind: Kind) -> i64 {
        self.sums.get(&kind).copied().unwrap_or_default()
    }
}

pub(super) fn check(facts: &Facts<'_>, wrong: &mut Vec<String>) {
    let books = books(&facts.postings, wrong);
    let empty = Book::default();
    let book = |account: Account| books.get(&account).unwrap_or(&empty);
    for agent in &facts.agents {
        let (name, book) = (&agent.name, book(agent.account()));
        must!(wrong, agent.purse == book.purse, "{name} has {:?}, its entries say {:?}", agent.purse, book.purse);
        let charged = book.sum(Kind::Charge);
        must!(
            wrong,
            agent.charged.micros() == charged,
            "{name} was charged {}, its entries say {charged}",
            agent.charged
        );
        must!(wrong, agent.held() <= agent.purse.balance, "{name} has set aside more than it has");
        must!(wrong, !agent.is_ended() || agent.purse.balance.is_zero(), "{name} has ended and has credits");
        let tally = facts.tally.agents.get(&agent.id).copied().unwrap_or_default();
        let open: i64 = agent.steps().map(|(_, _, step)| step.charged.micros()).sum();
        must!(wrong, tally.charged.micros() + open == charged, "{name}: its steps cost other than it was charged");
        let told = !agent.is_ended() || tally.charged_by_tasks == agent.charged;
        must!(wrong, told, "{name}: its tasks cost other than it was charged");
    }
    for attempt in 1..facts.run.attempt {
        let left = book(Account::Run(facts.run.id, attempt)).purse.balance;
        must!(wrong, left.is_zero(), "attempt {attempt} is over and has {left}");
    }
    attempt(facts, book(facts.run.account()), wrong);
    for record in &facts.tally.attempts {
        let settled = record.charged.plus(record.refunded) == Some(record.reserved);
        must!(wrong, settled, "attempt {} does not add up: {record:?}", record.attempt);
    }
}

fn books<'a>(postings: &[&'a Posting], wrong: &mut Vec<String>) -> BTreeMap<Account, Book<'a>> {
    let mut books: BTreeMap<Account, Book<'a>> = BTreeMap::new();
    for posting in postings {
        let Posting { account, kind, amount, balance_after, n, .. } = posting;
        let book = books.entry(*account).or_default();
        let signed = if kind.is_into() { amount.micros() } else { -amount.micros() };
        let after = Credits::from_micros(book.purse.balance.micros() + signed);
        must!(wrong, after == Some(*balance_after), "{account} entry {n}: {balance_after} is not what is left");
        must!(wrong, !amount.is_zero(), "{account} entry {n} moves nothing");
        must!(wrong, *n == book.purse.n + 1, "{account} entry {n} follows {}", book.purse.n);
        must!(wrong, book.keys.insert((*kind, &posting.key)), "{account}: {} {} twice", kind.as_str(), posting.key);
        *book.sums.entry(*kind).or_default() += amount.micros();
        book.purse = Purse { balance: *balance_after, n: *n };
    }
    books
}

/// The attempt at hand.
fn attempt(facts: &Facts<'_>, book: &Book<'_>, wrong: &mut Vec<String>) {
    let money = &facts.run.money;
    must!(wrong, money.purse == book.purse, "the run has {:?}, its entries say {:?}", money.purse, book.purse);
    let (reserved, refunded) = (book.sum(Kind::Reserved), book.sum(Kind::Release));
    must!(wrong, money.reserved.micros() == reserved, "reserved {} and {reserved} differ", money.reserved);
    must!(wrong, money.refunded.micros() == refunded, "refunded {} and {refunded} differ", money.refunded);
    let charged: i64 = facts.current().map(|agent| agent.charged.micros()).sum();
    let of_ended: i64 = facts.current().filter(|a| a.is_ended()).map(|agent| agent.charged.micros()).sum();
    must!(wrong, money.charged.micros() == of_ended, "charged {}, its agents say {of_ended}", money.charged);
    must!(wrong, charged <= reserved, "{charged} charged of {reserved}");
    let with_agents: i64 = facts.current().map(|agent| agent.purse.balance.micros()).sum();
    let all = charged + refunded + with_agents + money.purse.balance.micros();
    must!(wrong, all == reserved, "{all} of {reserved} are accounted for");
    if facts.run.state.is_ended() {
        must!(wrong, charged + refunded == reserved, "{charged} + {refunded} is not {reserved}");
        must!(wrong, money.purse.balance.is_zero(), "the attempt is over and has {}", money.purse.balance);
    }
}
