//! Role → right: one table, and nothing else decides.

use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Looks, and answers what it is responsible for.
    Viewer,
    /// Gives work and steers it.
    Operator,
    /// Does work.
    Worker,
    /// Everything, keys included.
    Admin,
}

/// What a route asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// Look at jobs, runs, lanes, schedules, decisions, money and the history.
    See,
    /// Give work.
    Enqueue,
    /// Steer work that was given: cancel, requeue, start and pause runs, pause lanes, change schedules.
    Operate,
    /// Answer a decision; which ones, responsibilities say.
    Decide,
    /// Take work and report on it.
    Work,
    /// Have the whole history verified.
    Audit,
    /// Say who else may come in.
    Keys,
    /// Send what happens to somebody outside.
    Webhooks,
    /// Give the org credits to spend.
    Credits,
    /// Found orgs. Beside the role this needs a key of the first org.
    Orgs,
}

impl Right {
    pub const ALL: [Self; 10] = [
        Self::See,
        Self::Enqueue,
        Self::Operate,
        Self::Decide,
        Self::Work,
        Self::Audit,
        Self::Keys,
        Self::Webhooks,
        Self::Credits,
        Self::Orgs,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::See => "see",
            Self::Enqueue => "enqueue",
            Self::Operate => "operate",
            Self::Decide => "decide",
            Self::Work => "work",
            Self::Audit => "audit",
            Self::Keys => "keys",
            Self::Webhooks => "webhooks",
            Self::Credits => "credits",
            Self::Orgs => "orgs",
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Role {
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Operator, Self::Worker, Self::Admin];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Worker => "worker",
            Self::Admin => "admin",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }

    /// The table.
    pub const fn rights(self) -> &'static [Right] {
        use Right::{Audit, Decide, Enqueue, Operate, See, Work};
        match self {
            Self::Viewer => &[See, Decide],
            Self::Operator => &[See, Enqueue, Operate, Decide, Audit],
            Self::Worker => &[Work],
            Self::Admin => &Right::ALL,
        }
    }

    pub fn may(self, right: Right) -> bool {
        self.rights().contains(&right)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_times_every_right() {
        let (y, n) = (true, false);
        #[rustfmt::skip]
        let table = [
            //                 viewer operator worker admin
            (Right::See,      [y,     y,       n,     y]),
            (Right::Enqueue,  [n,     y,       n,     y]),
            (Right::Operate,  [n,     y,       n,     y]),
            (Right::Decide,   [y,     y,       n,     y]),
            (Right::Work,     [n,     n,       y,     y]),
            (Right::Audit,    [n,     y,       n,     y]),
            (Right::Keys,     [n,     n,       n,     y]),
            (Right::Webhooks, [n,     n,       n,     y]),
            (Right::Credits,  [n,     n,       n,     y]),
            (Right::Orgs,     [n,     n,       n,     y]),
        ];
        assert!(table.iter().map(|(right, _)| *right).eq(Right::ALL));
        for (right, expected) in table {
            assert_eq!(Role::ALL.map(|role| role.may(right)), expected, "{right}");
        }
    }

    #[test]
    fn words_go_there_and_back() {
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Some(role));
            assert_eq!(serde_json::to_value(role).unwrap(), role.as_str());
        }
        assert_eq!(Role::parse("root"), None);
    }
}
