//! What is known of something of an org, such as a job, by its key.
//!
//! Jobs and lanes are looked up several times for every move of a job. Looking one up copies no name, and compares no name
//! of an org more often than there are orgs.

use crate::name::OrgId;
use std::collections::BTreeMap;

/// In the order of orgs, and of keys in each. An org that is named has some.
#[derive(Clone, Debug)]
pub struct ByOrg<K, T>(Vec<(OrgId, BTreeMap<K, T>)>);

impl<K, T> Default for ByOrg<K, T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Ord, T> ByOrg<K, T> {
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where an org stands, or would.
    fn at(&self, org: &OrgId) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.cmp(org))
    }

    fn of_org(&mut self, org: &OrgId) -> &mut BTreeMap<K, T> {
        let at = self.at(org).unwrap_or_else(|at| {
            self.0.insert(at, (org.clone(), BTreeMap::new()));
            at
        });
        &mut self.0[at].1
    }

    pub fn get(&self, org: &OrgId, key: &K) -> Option<&T> {
        self.0[self.at(org).ok()?].1.get(key)
    }

    pub fn get_mut(&mut self, org: &OrgId, key: &K) -> Option<&mut T> {
        let at = self.at(org).ok()?;
        self.0[at].1.get_mut(key)
    }

    pub fn contains(&self, org: &OrgId, key: &K) -> bool {
        self.get(org, key).is_some()
    }

    /// What was known of it before.
    pub fn insert(&mut self, org: &OrgId, key: K, value: T) -> Option<T> {
        self.of_org(org).insert(key, value)
    }

    /// What is known of it, or this from now on.
    pub fn or_insert_with(&mut self, org: &OrgId, key: K, value: impl FnOnce() -> T) -> &mut T {
        self.of_org(org).entry(key).or_insert_with(value)
    }

    pub fn remove(&mut self, org: &OrgId, key: &K) -> Option<T> {
        let at = self.at(org).ok()?;
        let gone = self.0[at].1.remove(key);
        if self.0[at].1.is_empty() {
            self.0.remove(at);
        }
        gone
    }

    pub fn iter(&self) -> impl Iterator<Item = (&OrgId, &K, &T)> {
        self.0.iter().flat_map(|(org, all)| all.iter().map(move |(key, value)| (org, key, value)))
    }

    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flat_map(|(_, all)| all.values())
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().flat_map(|(_, all)| all.values_mut())
    }

    pub fn into_values(self) -> impl Iterator<Item = T> {
        self.0.into_iter().flat_map(|(_, all)| all.into_values())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::JobId;
    use proptest::prelude::*;
    use uuid::Uuid;

    proptest! {
        #[test]
        fn it_is_a_map_by_org_and_key(moves in proptest::collection::vec((0..3_u8, 0..4_u128, any::<Option<u8>>()), 0..40)) {
            let (mut all, mut plain) = (ByOrg::default(), BTreeMap::new());
            for (org, id, value) in moves {
                let org: OrgId = format!("org{org}").parse().unwrap();
                let id = JobId(Uuid::from_u128(id << 120 | 7));
                let key = (org.clone(), id);
                prop_assert_eq!(all.get(&org, &id), plain.get(&key));
                prop_assert_eq!(all.contains(&org, &id), plain.contains_key(&key));
                match value {
                    Some(value) if value % 2 == 0 => prop_assert_eq!(all.insert(&org, id, value), plain.insert(key, value)),
                    Some(value) => prop_assert_eq!(all.or_insert_with(&org, id, || value), plain.entry(key).or_insert(value)),
                    None => prop_assert_eq!(all.remove(&org, &id), plain.remove(&key)),
                }
                prop_assert_eq!(all.is_empty(), plain.is_empty());
                let listed: Vec<_> = all.iter().map(|(org, id, value)| ((org.clone(), *id), *value)).collect();
                prop_assert_eq!(listed, plain.clone().into_iter().collect::<Vec<_>>());
            }
            prop_assert!(all.values().eq(plain.values()));
            prop_assert!(all.into_values().eq(plain.into_values()));
        }
    }
}
