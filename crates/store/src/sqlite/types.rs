//! Types of jobs that are asked for.

use crate::group::Ask;
use baton_core::name::TypeName;

/// The names of the types that an ask is about, in order.
pub(super) struct Types<'a>(Vec<&'a TypeName>);

impl<'a> Types<'a> {
    pub fn asked(ask: &'a Ask) -> Self {
        Self::of(ask.kinds.iter().map(|kind| &kind.name))
    }

    pub fn of(names: impl IntoIterator<Item = &'a TypeName>) -> Self {
        let mut names: Vec<&TypeName> = names.into_iter().collect();
        names.sort_unstable();
        names.dedup();
        Self(names)
    }

    /// If there is but one.
    pub fn only(&self) -> Option<&str> {
        if let [only] = self.0[..] { Some(only.as_str()) } else { None }
    }

    pub fn includes(&self, name: &str) -> bool {
        self.0.binary_search_by(|asked| asked.as_str().cmp(name)).is_ok()
    }
}
