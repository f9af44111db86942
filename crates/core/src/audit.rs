//! Verifying the whole history: what must hold over rows that were read back.
//!
//! Pure: the store feeds rows in order, this names every violation. A report keeps at most
//! [`KEPT`] of them and counts the rest.

use crate::canon::{Digest, Json};
use crate::event::{Head, Recorded};
use crate::job::prune::{self, Stub};
use crate::name::OrgId;
use crate::seal::{Key, Root, Seal, SealHead};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uuid::Uuid;

/// Violations that a report spells out.
pub const KEPT: usize = 1_000;

/// One thing that is wrong. The code is stable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    pub code: String,
    pub org: OrgId,
    pub subject: String,
    pub detail: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub chains: u64,
    pub events: u64,
    pub seals: u64,
    /// Seals whose MAC could be checked: none without the key.
    pub macs_checked: u64,
    pub violations: Vec<Violation>,
    pub violations_total: u64,
}

impl Report {
    pub const fn is_clean(&self) -> bool {
        self.violations_total == 0
    }

    pub fn add(&mut self, code: &str, org: &OrgId, subject: impl ToString, detail: impl ToString) {
        self.violations_total += 1;
        if self.violations.len() < KEPT {
            self.violations.push(Violation {
                code: code.to_owned(),
                org: org.clone(),
                subject: subject.to_string(),
                detail: detail.to_string(),
            });
        }
    }
}

impl Report {
    /// By how much a lane's counters are off.
    pub fn lane(&mut self, org: &OrgId, key: &str, running: i64, waiting: i64) {
        let detail = format!("its row says {running:+} running and {waiting:+} waiting beside what there is");
        self.add("lane_miscounted", org, key, detail);
    }

    /// By how much the count of all who wait is off.
    pub fn crowd(&mut self, off: i64) {
        if off != 0 {
            let detail = format!("{off:+} beside what there is");
            self.add("crowd_miscounted", &OrgId::system(), "all projects", detail);
        }
    }
}

/// Compares what retention removed with what the history says it removed.
#[derive(Default)]
pub struct Prunings {
    removed: BTreeMap<(OrgId, Uuid, i64), Vec<Stub>>,
}

impl Prunings {
    /// In the order of positions.
    pub fn removed(&mut self, org: OrgId, by: Uuid, n: i64, stub: Stub) {
        self.removed.entry((org, by, n)).or_default().push(stub);
    }

    pub fn told(&mut self, report: &mut Report, org: &OrgId, by: Uuid, n: i64, data: &Json) {
        let stubs = self.removed.remove(&(org.clone(), by, n)).unwrap_or_default();
        let (count, sha256) = prune::digest(stubs.iter());
        let data = data.value();
        if data["events"] != count || data["sha256"] != sha256.to_string() {
            let detail = format!("event {n} says that other events were removed than are missing");
            report.add("prune_mismatch", org, by.simple(), detail);
        }
    }

    /// What nobody says was removed.
    pub fn finish(self, report: &mut Report) {
        for ((org, by, n), stubs) in self.removed {
            let detail = format!("{} events are gone, and no event {n} says so", stubs.len());
            report.add("prune_untold", &org, by.simple(), detail);
        }
    }
}

/// Follows the chains of events that come ordered by (org, subject, n), each beside the head
/// that its subject's row claims.
#[derive(Default)]
pub struct Chains {
    open: Option<Chain>,
}

/// What the rows of a subject say about themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    pub n: i64,
    pub hash: Digest,
    /// Of a job.
    pub state: Option<String>,
}

struct Chain {
    org: OrgId,
    subject: Uuid,
    head: Head,
    claimed: Option<Claimed>,
    /// What the last event says the state is.
    state: Option<String>,
    /// The event that last named a payload: what it says, and what is there.
    payload: Option<(i64, String, Digest)>,
}

impl Chains {
    /// `claimed` is what the subject's row says; `None` if there is no such row. `body` is the
    /// digest of what the event has a digest of as it stands now: a payload or a result.
    pub fn event(&mut self, report: &mut Report, row: &Recorded, claimed: Option<Claimed>, body: Option<Digest>) {
        let continues = self.open.as_ref().is_some_and(|c| c.subject == row.subject && c.org == row.org);
        if !continues {
            self.close(report);
            report.chains += 1;
            self.open = Some(Chain {
                org: row.org.clone(),
                subject: row.subject,
                head: Head::NONE,
                claimed,
                state: None,
                payload: None,
            });
        }
        let Some(chain) = self.open.as_mut() else { return };
        report.events += 1;
        let id = row.subject.simple();
        if row.n != chain.head.n + 1 {
            report.add("chain_gap", &row.org, id, format!("event {} follows event {}", row.n, chain.head.n));
        } else if row.hash_after(chain.head.hash) != row.hash {
            report.add("chain_broken", &row.org, id, format!("the hash of event {} does not match its text", row.n));
        }
        if row.at < chain.head.at {
            report.add("time_backwards", &row.org, id, format!("event {} is dated before the one it follows", row.n));
        }
        chain.head = Head { n: row.n, hash: row.hash, at: row.at };
        let data = row.data.value();
        if let Some(state) = data["state"].as_str() {
            chain.state = Some(state.to_owned());
        }
        match body {
            // A payload may have been merged into since; the last word counts.
            Some(body) if data["payload_sha256"].is_string() => {
                let said = data["payload_sha256"].as_str().unwrap_or_default();
                chain.payload = Some((row.n, said.to_owned(), body));
            }
            Some(body) if data["result_sha256"].as_str().is_some_and(|said| said != body.to_string()) => {
                report.add("body_changed", &row.org, id, format!("what event {} is about is not what it was", row.n));
            }
            _ => {}
        }
    }

    fn close(&mut self, report: &mut Report) {
        let Some(chain) = self.open.take() else { return };
        let id = chain.subject.simple();
        if let Some((n, said, body)) = &chain.payload
            && body.to_string() != *said
        {
            report.add("body_changed", &chain.org, id, format!("what event {n} is about is not what it was"));
        }
        match chain.claimed {
            None => report.add("orphan_chain", &chain.org, id, "there are events but no row they are about"),
            Some(claimed) if claimed.n != chain.head.n || claimed.hash != chain.head.hash => report.add(
                "head_mismatch",
                &chain.org,
                id,
                format!("the row says its chain ends at event {}, but it ends at {}", claimed.n, chain.head.n),
            ),
            Some(Claimed { state: Some(state), .. }) if chain.state.as_ref() != Some(&state) => report.add(
                "state_mismatch",
                &chain.org,
                id,
                format!("the row says {state}, its history says {}", chain.state.as_deref().unwrap_or("nothing")),
            ),
            Some(_) => {}
        }
    }

    pub fn finish(mut self, report: &mut Report) {
        self.close(report);
    }
}

/// Follows one org's seals in order. The caller feeds each with the root over its range.
pub struct Seals<'a> {
    key: Option<&'a Key>,
    last: SealHead,
}

impl<'a> Seals<'a> {
    pub const fn new(key: Option<&'a Key>) -> Self {
        Self { key, last: SealHead::NONE }
    }

    pub fn seal(&mut self, report: &mut Report, seal: &Seal, found: Root) {
        report.seals += 1;
        let name = format!("seal {}", seal.n);
        if seal.n != self.last.n + 1 || seal.from_pos != self.last.to_pos || seal.prev != self.last.mac {
            report.add("seal_gap", &seal.org, &name, "it does not follow the seal before it");
        }
        if found.count != seal.count {
            let detail = format!("{} events were sealed, {} are there", seal.count, found.count);
            report.add("seal_count", &seal.org, &name, detail);
        } else if found.finish() != seal.root {
            report.add("seal_root", &seal.org, &name, "the events in its range are not those that were sealed");
        }
        if let Some(key) = self.key {
            report.macs_checked += 1;
            if seal.mac_under(key) != seal.mac {
                report.add("seal_mac", &seal.org, &name, "it was not made with this key");
            }
        }
        self.last = seal.head();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, Subject};
    use crate::id::JobId;
    use crate::time::Micros;

    fn chain(len: usize) -> (Vec<Recorded>, Head) {
        let mut head = Head::NONE;
        let mut rows = Vec::new();
        for i in 0..len {
            let data = serde_json::json!({ "i": i });
            let event = Event::new(Subject::Job(JobId(Uuid::from_u128(1))), "job.queued", data);
            let (row, next) = Recorded::append(head, &OrgId::default(), "api", Micros(i as i64), event);
            head = next;
            rows.push(row);
        }
        (rows, head)
    }

    fn codes(rows: &[Recorded], claimed: Option<Claimed>) -> Vec<String> {
        let mut report = Report::default();
        let mut chains = Chains::default();
        rows.iter().for_each(|row| chains.event(&mut report, row, claimed.clone(), None));
        chains.finish(&mut report);
        report.violations.into_iter().map(|v| v.code).collect()
    }

    #[test]
    fn every_kind_of_tampering_is_named() {
        let (rows, head) = chain(4);
        let claimed = Some(Claimed { n: head.n, hash: head.hash, state: None });
        assert!(codes(&rows, claimed.clone()).is_empty());
        assert_eq!(codes(&rows, None), ["orphan_chain"]);
        assert_eq!(codes(&rows[..3], claimed.clone()), ["head_mismatch"]);
        let lying = claimed.clone().map(|c| Claimed { state: Some("completed".to_owned()), ..c });
        assert_eq!(codes(&rows, lying), ["state_mismatch"]);
        let mut changed = rows.clone();
        changed[1].data = Json::of(&serde_json::json!({ "i": 7 }));
        assert_eq!(codes(&changed, claimed.clone()), ["chain_broken"]);
        let mut missing = rows.clone();
        missing.remove(1);
        assert_eq!(codes(&missing, claimed.clone())[0], "chain_gap");
        let mut dated = rows;
        dated[3].at = Micros(-1);
        assert_eq!(codes(&dated, claimed), ["chain_broken", "time_backwards"]);
    }
}
