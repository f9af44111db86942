//! One suite of store behaviours. Every database must pass all of it.
//!
//! A case is an async function over a fresh [`Lab`]; it fails by panicking or by an error. Its
//! name is a sentence. [`for_each_case!`] lists them all, so that a test file can make tests of
//! them and the saboteur can run them against a broken committer.

mod basics;

use crate::lab::{Lab, Place};
use anyhow::Result;
use futures_util::future::BoxFuture;

/// Where a case can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// One node: a file, and PostgreSQL.
    OneNode,
    /// Several nodes on one database: a simulated disk, and PostgreSQL.
    Nodes,
    SqliteFile,
    Postgres,
}

pub struct Case {
    pub name: &'static str,
    pub needs: Needs,
    pub run: fn(Lab) -> BoxFuture<'static, Result<()>>,
}

impl Case {
    pub fn places(&self) -> &'static [Place] {
        match self.needs {
            Needs::OneNode => &[Place::Sqlite, Place::Postgres],
            Needs::Nodes => &[Place::SqliteDisk, Place::Postgres],
            Needs::SqliteFile => &[Place::Sqlite],
            Needs::Postgres => &[Place::Postgres],
        }
    }
}

macro_rules! cases {
    ($($module:ident :: $name:ident : $needs:ident,)*) => {
        pub const CASES: &[Case] = &[$(
            Case { name: stringify!($name), needs: Needs::$needs, run: |lab| Box::pin($module::$name(lab)) },
        )*];

        /// Calls a macro with the names of all cases.
        #[macro_export]
        macro_rules! for_each_case {
            ($each:ident) => { $each! { $($name)* } };
        }
    };
}

cases! {
    basics::an_enqueued_job_can_be_read_back: OneNode,
    basics::a_refusal_writes_nothing: OneNode,
    basics::a_job_goes_from_enqueue_over_claim_to_done: OneNode,
}

/// Runs one case wherever it can run.
pub async fn check(case: &str) {
    let Some(case) = CASES.iter().find(|c| c.name == case) else { panic!("no case is called {case}") };
    for place in case.places() {
        match Lab::new(*place, None).await {
            Ok(Some(lab)) => {
                if let Err(e) = (case.run)(lab).await {
                    panic!("{} on {place:?}: {e:?}", case.name);
                }
            }
            Ok(None) => {}
            Err(e) => panic!("no lab on {place:?}: {e:?}"),
        }
    }
}
