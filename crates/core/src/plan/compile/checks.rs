//! The checks that agents, tasks and steps have in common.

use super::Compiler;
use crate::limits;
use crate::name::PlanName;
use crate::plan::graph;
use crate::plan::problem::{self, Path};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;

/// Names that are listed in one message.
pub(super) const LISTED: usize = 20;

/// Whether the parts of something go one after the other, or when those they wait for have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Going {
    InTurn,
    AsTheyCan,
}

impl Compiler<'_> {
    pub(super) fn missing(&mut self, path: &Path<'_>, field: &str) {
        self.problems.add(&path.field(field), problem::MISSING_FIELD, format_args!("{field} is missing"));
    }

    /// One line of text, within bounds.
    pub(super) fn line(&mut self, path: &Path<'_>, text: &str, chars: RangeInclusive<usize>) {
        let (min, max) = (*chars.start(), *chars.end());
        if !chars.contains(&text.chars().count()) {
            self.problems.add(path, problem::OVER_LIMIT, format_args!("this must have {min} to {max} characters"));
        } else if text.chars().any(char::is_control) {
            let told = format_args!("this must be one line, without control characters");
            self.problems.add(path, problem::INVALID_VALUE, told);
        }
    }

    pub(super) fn text(&mut self, path: &Path<'_>, text: &str, max: usize) {
        if text.chars().count() > max {
            self.problems.add(path, problem::OVER_LIMIT, format_args!("this must have at most {max} characters"));
        } else if text.contains('\0') {
            self.problems.add(path, problem::INVALID_VALUE, format_args!("this must not have NUL characters"));
        }
    }

    pub(super) fn number(
        &mut self,
        path: &Path<'_>,
        field: &str,
        (given, default): (Option<i64>, u32),
        bounds: RangeInclusive<u32>,
    ) -> u32 {
        let Some(given) = given else { return default };
        match u32::try_from(given).ok().filter(|number| bounds.contains(number)) {
            Some(number) => number,
            None => {
                let (min, max) = (bounds.start(), bounds.end());
                let told = format_args!("{field} is {given} and must be from {min} to {max}");
                self.problems.add(&path.field(field), problem::OVER_LIMIT, told);
                default
            }
        }
    }

    pub(super) fn attempts(&mut self, path: &Path<'_>, field: &str, given: (Option<i64>, u32)) -> u32 {
        self.number(path, field, given, 1..=limits::PLAN_ATTEMPTS)
    }

    pub(super) fn at_most(&mut self, path: &Path<'_>, n: usize, max: usize, what: &str) {
        if n > max {
            self.problems.add(path, problem::OVER_LIMIT, format_args!("there are {n} {what}; {max} can be"));
        }
    }

    /// Some there must be, and not too many.
    pub(super) fn some(&mut self, path: &Path<'_>, n: usize, max: usize, what: &str) {
        if n == 0 {
            self.problems.add(path, problem::EMPTY, format_args!("there are no {what}"));
        }
        self.at_most(path, n, max, what);
    }

    /// The names of siblings, in order and by name. Those that have none are called by their place.
    pub(super) fn names<'n>(
        &mut self,
        path: &Path<'_>,
        kind: &'static str,
        given: impl Iterator<Item = Option<&'n PlanName>>,
    ) -> (Vec<PlanName>, BTreeMap<PlanName, u32>) {
        let mut by_name = BTreeMap::new();
        let mut names = Vec::new();
        for (n, name) in given.enumerate() {
            let name = name.cloned().unwrap_or_else(|| PlanName::numbered(kind, n + 1));
            if let Some(first) = by_name.get(&name) {
                let told = format_args!("{kind} {} is called {name} already", first + 1);
                self.problems.add(&path.place(n).field("name"), problem::DUPLICATE_NAME, told);
            } else {
                by_name.insert(name.clone(), n as u32);
            }
            names.push(name);
        }
        (names, by_name)
    }

    /// What `own` must wait for because it names `other`: in turn, that is nothing, if only it comes before.
    pub(super) fn wait(
        &mut self,
        path: &Path<'_>,
        going: Going,
        own: usize,
        other: (u32, &dyn Display),
    ) -> Option<u32> {
        match going {
            Going::AsTheyCan => Some(other.0),
            Going::InTurn if (other.0 as usize) < own => None,
            Going::InTurn => {
                let told = format_args!("{} does not come before this, and they go one after the other", other.1);
                self.problems.add(path, problem::DANGLING_REFERENCE, told);
                None
            }
        }
    }

    /// What `own` must wait for because it says so.
    pub(super) fn depends_on(
        &mut self,
        path: &Path<'_>,
        going: Going,
        own: usize,
        (names, siblings): (Option<&[PlanName]>, &BTreeMap<PlanName, u32>),
        unknown: &'static str,
    ) -> Vec<u32> {
        let path = path.field("depends_on");
        let mut after = Vec::new();
        for (n, name) in names.unwrap_or_default().iter().enumerate() {
            let path = path.place(n);
            match siblings.get(name) {
                Some(other) => after.extend(self.wait(&path, going, own, (*other, name))),
                None => self.problems.add(&path, unknown, format_args!("there is nothing called {name} beside this")),
            }
        }
        after
    }

    pub(super) fn no_cycle<'n>(
        &mut self,
        path: &Path<'_>,
        after: impl Iterator<Item = &'n [u32]>,
        name: impl Fn(usize) -> &'n PlanName,
    ) {
        let after: Vec<&[u32]> = after.collect();
        let Some(members) = graph::cycle(&after) else { return };
        let first = members.first().map_or(0, |&n| n as usize);
        let mut way = String::new();
        for &n in members.iter().take(LISTED) {
            way.push_str(name(n as usize).as_str());
            way.push_str(" → ");
        }
        let more = if members.len() > LISTED { "… → " } else { "" };
        let told = format_args!("these wait for each other in a circle: {way}{more}{}", name(first));
        self.problems.add(&path.place(first), problem::CYCLE, told);
    }
}

/// In order, each once.
pub(super) fn in_order(mut after: Vec<u32>) -> Vec<u32> {
    after.sort_unstable();
    after.dedup();
    after
}
