//! Lists: all are asked alike for a page, in one of two orders, from where the one before ended.
//!
//! A cursor is opaque to clients. It is good only for the list that handed it out and for the order
//! in which that was read: both stand in it.

use crate::problem::Fault;
use crate::query::Params;
use baton_core::{JobId, RunId};
use baton_store::Order;
use baton_wire::limit;
use std::fmt::Write as _;

/// A list as it is unless one asks otherwise.
#[derive(Clone, Copy)]
pub struct List {
    /// What its cursors begin with.
    mark: &'static str,
    order: Order,
    most: usize,
    usual: usize,
}

const fn of_jobs(mark: &'static str) -> List {
    List { mark, order: Order::Falling, most: limit::JOBS, usual: limit::JOBS_DEFAULT }
}

const fn by_time(mark: &'static str) -> List {
    List { mark, order: Order::Falling, most: limit::NAMES, usual: limit::NAMES_DEFAULT }
}

const fn by_name(mark: &'static str) -> List {
    List { order: Order::Rising, ..by_time(mark) }
}

pub const JOBS: List = of_jobs("j2");
pub const LETTERS: List = of_jobs("d2");
pub const DELIVERIES: List = of_jobs("v2");
pub const LANES: List = by_name("l2");
pub const SCHEDULES: List = by_name("s2");
pub const JOB_TYPES: List = by_name("n2");
pub const ORGS: List = by_name("o2");
pub const KEYS: List = by_time("k2");
pub const WEBHOOKS: List = by_time("w2");
pub const DECISIONS: List = by_time("q2");
pub const RUNS: List = by_time("r2");
pub const AGENTS: List = by_name("a2");
pub const TASKS: List = by_name("t2");
pub const STEPS: List = by_name("p2");
pub const LEDGER: List = by_time("y2");
pub const RUN_LEDGER: List = by_name("z2");

/// Longer than any name in a list.
const TEXT_MAX: usize = 1_000;

/// What was asked of a list.
pub struct Asked {
    list: List,
    pub order: Order,
    pub limit: usize,
    /// What the cursor says after its mark and its order.
    place: Option<String>,
}

impl List {
    /// `filters` are the parameters that only this list has.
    pub fn asked(self, params: &Params, filters: &[&str]) -> Result<Asked, Fault> {
        params.allow(&[filters, &["order", "limit", "cursor"]].concat())?;
        let order = match params.parsed("order")? {
            None => self.order,
            Some(baton_wire::Order::Asc) => Order::Rising,
            Some(baton_wire::Order::Desc) => Order::Falling,
        };
        self.placed(params, order)
    }

    /// The same for a list that has one order only.
    pub fn asked_forwards(self, params: &Params, filters: &[&str]) -> Result<Asked, Fault> {
        params.allow(&[filters, &["limit", "cursor"]].concat())?;
        self.placed(params, self.order)
    }

    fn placed(self, params: &Params, order: Order) -> Result<Asked, Fault> {
        let limit = params.number("limit", 1..=self.most, self.usual)?;
        let mut asked = Asked { list: self, order, limit, place: None };
        if let Some(cursor) = params.one("cursor")? {
            asked.place = Some(cursor.strip_prefix(&asked.mark()).ok_or_else(foreign)?.to_owned());
        }
        Ok(asked)
    }
}

impl Asked {
    fn mark(&self) -> String {
        let order = match self.order {
            Order::Rising => 'a',
            Order::Falling => 'd',
        };
        format!("{}{order}", self.list.mark)
    }

    pub fn after_job(&self) -> Result<Option<JobId>, Fault> {
        let read = |hex: &String| format!("{}_{hex}", JobId::PREFIX).parse().map_err(|_| foreign());
        self.place.as_ref().map(read).transpose()
    }

    pub fn after_run(&self) -> Result<Option<RunId>, Fault> {
        let read = |hex: &String| format!("{}_{hex}", RunId::PREFIX).parse().map_err(|_| foreign());
        self.place.as_ref().map(read).transpose()
    }

    pub fn after_text(&self) -> Result<Option<String>, Fault> {
        self.place.as_ref().map(|hex| from_hex(hex).ok_or_else(foreign)).transpose()
    }

    /// The cursor to go on with.
    pub fn next_job(&self, id: JobId) -> String {
        format!("{}{}", self.mark(), id.0.simple())
    }

    pub fn next_run(&self, id: RunId) -> String {
        format!("{}{}", self.mark(), id.0.simple())
    }

    /// The same. Names hold all sorts of characters, not all of which are fit for a URL.
    pub fn next_text(&self, name: &str) -> String {
        let mut cursor = self.mark();
        for byte in name.bytes() {
            let _ = write!(cursor, "{byte:02x}");
        }
        cursor
    }
}

fn from_hex(hex: &str) -> Option<String> {
    let plain = hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if hex.is_empty() || hex.len() > 2 * TEXT_MAX || hex.len() % 2 == 1 || !plain {
        return None;
    }
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).ok();
    let bytes: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(byte).collect();
    // No name holds a control character, and not every database could look for one.
    String::from_utf8(bytes?).ok().filter(|name| !name.chars().any(char::is_control))
}

pub fn foreign() -> Fault {
    Fault::new("invalid_cursor", "use a nextCursor as it was handed out, on the same list and in the same order")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(list: List, pairs: &[(&str, &str)]) -> Result<Asked, Fault> {
        list.asked(&Params::of(pairs), &["state"])
    }

    fn after_job(list: List, cursor: &str) -> Result<Option<JobId>, Fault> {
        asked(list, &[("cursor", cursor)])?.after_job()
    }

    fn after_text(list: List, cursor: &str) -> Result<Option<String>, Fault> {
        asked(list, &[("cursor", cursor)])?.after_text()
    }

    #[test]
    fn cursors_go_to_text_and_back_and_nothing_else_passes() {
        let id: JobId = "job_018bcfe568007001800000000000002a".parse().unwrap();
        let own = asked(JOBS, &[]).unwrap().next_job(id);
        assert_eq!(after_job(JOBS, &own).unwrap(), Some(id));
        assert_eq!(asked(JOBS, &[]).unwrap().after_job().unwrap(), None);
        let bare = "018bcfe568007001800000000000002a";
        let others =
            [asked(LETTERS, &[]).unwrap().next_job(id), id.to_string(), format!("j1{bare}"), format!("j2{bare}")];
        for bad in ["", "j2", "j2d", bare, "j2dzz", "c10000000000000001"].into_iter().chain(others.iter().map(|o| &**o))
        {
            assert_eq!(after_job(JOBS, bad).unwrap_err().code(), "invalid_cursor", "{bad}");
        }
        for name in ["project:shop", "a/b ü\u{10ffff}", "p/nightly"] {
            let own = asked(LANES, &[]).unwrap().next_text(name);
            assert_eq!(after_text(LANES, &own).unwrap().as_deref(), Some(name));
        }
        let long = format!("l2a{}", "61".repeat(TEXT_MAX + 1));
        for bad in ["", "l2", "l2a", "l2af", "l2aFF", "l2aff", "s2a61", "l2a+1", "l2a00", "l261", &long] {
            assert_eq!(after_text(LANES, bad).unwrap_err().code(), "invalid_cursor", "{bad}");
        }
    }

    #[test]
    fn a_cursor_is_good_for_the_order_that_it_was_handed_out_under() {
        for list in
            [JOBS, LETTERS, DELIVERIES, LANES, SCHEDULES, ORGS, KEYS, WEBHOOKS, DECISIONS, RUNS, LEDGER, RUN_LEDGER]
        {
            for (order, other) in [("asc", "desc"), ("desc", "asc")] {
                let own = asked(list, &[("order", order)]).unwrap().next_text("x");
                let again = asked(list, &[("order", order), ("cursor", &own)]).unwrap();
                assert_eq!(again.after_text().unwrap().as_deref(), Some("x"));
                let turned = asked(list, &[("order", other), ("cursor", &own)]);
                assert_eq!(turned.err().map(|fault| fault.code()), Some("invalid_cursor"), "{own}");
                // To say the order that a list has anyway changes nothing.
                let usual = if list.order == Order::Rising { "asc" } else { "desc" };
                assert_eq!(after_text(list, &own).is_ok(), order == usual, "{own}");
            }
        }
    }

    #[test]
    fn what_no_list_understands_is_refused() {
        for bad in [("order", "up"), ("order", ""), ("limit", "0"), ("limit", "201"), ("colour", "red")] {
            assert_eq!(asked(JOBS, &[bad]).err().map(|fault| fault.code()), Some("invalid_request"), "{bad:?}");
        }
        assert!(asked(JOBS, &[("state", "queued"), ("limit", "200"), ("order", "asc")]).is_ok());
    }
}
