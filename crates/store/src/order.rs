//! Which way a list is read: its index is walked forwards or backwards.

use uuid::Uuid;

/// By key, or by time where keys rise with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Rising,
    Falling,
}

impl Order {
    /// What comes later compares so with what came before.
    pub(crate) const fn beyond(self) -> &'static str {
        match self {
            Self::Rising => ">",
            Self::Falling => "<",
        }
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Rising => "ASC",
            Self::Falling => "DESC",
        }
    }

    /// Beyond this stands every id.
    pub(crate) const fn before_ids(self) -> Uuid {
        match self {
            Self::Rising => Uuid::nil(),
            Self::Falling => Uuid::max(),
        }
    }

    /// Beyond this stands every text that is not empty and begins with no such character.
    pub(crate) const fn before_texts(self) -> &'static str {
        match self {
            Self::Rising => "",
            Self::Falling => "\u{10FFFF}",
        }
    }
}
