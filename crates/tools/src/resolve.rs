//! From names to addresses, at the moment of connecting.
//!
//! This is where a name that points at a private address is caught, also one that pointed elsewhere
//! a moment ago: whatever is connected to, is what was looked at here.

use crate::address;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

pub type Looking = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// Who knows the addresses of names.
pub trait Lookup: Send + Sync {
    fn lookup(&self, name: &str) -> Looking;
}

/// As this machine is set up.
pub struct System;

impl Lookup for System {
    fn lookup(&self, name: &str) -> Looking {
        let name = name.to_owned();
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) })
    }
}

/// No address of the name may be reached.
#[derive(Debug, thiserror::Error)]
#[error("no address of the name may be reached")]
pub struct Refused {
    /// What the first of them is.
    pub why: &'static str,
}

/// The name has no address, or nobody could say.
#[derive(Debug, thiserror::Error)]
#[error("the name cannot be resolved")]
pub struct Unresolved(#[source] pub io::Error);

/// Lets public addresses through and nothing else.
pub struct Checked(pub Arc<dyn Lookup>);

/// For names that the operator allows.
pub struct Unchecked(pub Arc<dyn Lookup>);

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let looking = self.0.lookup(name.as_str());
        Box::pin(async move {
            let found = found(looking).await?;
            let why = found.iter().find_map(|found| address::refused(found.ip()));
            let public: Vec<_> = found.into_iter().filter(|found| address::refused(found.ip()).is_none()).collect();
            match why {
                Some(why) if public.is_empty() => Err(Refused { why }.into()),
                _ => Ok(Box::new(public.into_iter()) as Addrs),
            }
        })
    }
}

impl Resolve for Unchecked {
    fn resolve(&self, name: Name) -> Resolving {
        let looking = self.0.lookup(name.as_str());
        Box::pin(async move { Ok(Box::new(found(looking).await?.into_iter()) as Addrs) })
    }
}

async fn found(looking: Looking) -> Result<Vec<SocketAddr>, Unresolved> {
    match looking.await {
        Ok(found) if found.is_empty() => Err(Unresolved(io::Error::from(io::ErrorKind::NotFound))),
        Ok(found) => Ok(found),
        Err(error) => Err(Unresolved(error)),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::net::IpAddr;
    use std::sync::Mutex;

    /// Answers one after the other, the last one for ever; never, if there is none.
    pub struct Script(Mutex<Vec<Vec<IpAddr>>>);

    pub fn script(answers: &[&[&str]]) -> Arc<Script> {
        let ips = |answer: &&[&str]| answer.iter().map(|ip| ip.parse().unwrap()).collect();
        Arc::new(Script(Mutex::new(answers.iter().rev().map(ips).collect())))
    }

    impl Lookup for Script {
        fn lookup(&self, _: &str) -> Looking {
            let mut left = self.0.lock().unwrap();
            let Some(answer) = left.last().cloned() else { return Box::pin(std::future::pending()) };
            if left.len() > 1 {
                left.pop();
            }
            Box::pin(async move { Ok(answer.into_iter().map(|ip| SocketAddr::new(ip, 0)).collect()) })
        }
    }

    async fn resolve(resolver: &impl Resolve) -> Result<Vec<String>, String> {
        match resolver.resolve("name.example".parse().unwrap()).await {
            Ok(found) => Ok(found.map(|found| found.ip().to_string()).collect()),
            Err(error) => Err(error.downcast_ref::<Refused>().map_or("unresolved", |refused| refused.why).to_owned()),
        }
    }

    #[tokio::test]
    async fn of_public_and_private_addresses_only_the_public_ones_are_used() {
        let mixed = script(&[&["10.0.0.1", "8.8.8.8", "::1", "2a00::1", "::ffff:127.0.0.1"]]);
        assert_eq!(resolve(&Checked(mixed)).await.unwrap(), ["8.8.8.8", "2a00::1"]);
    }

    #[tokio::test]
    async fn a_name_with_private_addresses_only_is_refused() {
        assert_eq!(resolve(&Checked(script(&[&["192.168.0.1", "::1"]]))).await.unwrap_err(), "private");
        assert_eq!(resolve(&Checked(script(&[&[]]))).await.unwrap_err(), "unresolved");
    }

    #[tokio::test]
    async fn a_name_that_is_pointed_elsewhere_later_is_looked_at_again() {
        let rebound = Checked(script(&[&["8.8.8.8"], &["169.254.169.254"]]));
        assert_eq!(resolve(&rebound).await.unwrap(), ["8.8.8.8"]);
        assert_eq!(resolve(&rebound).await.unwrap_err(), "a cloud's metadata");
    }

    #[tokio::test]
    async fn an_allowed_name_may_be_anywhere() {
        assert_eq!(resolve(&Unchecked(script(&[&["10.0.0.1"]]))).await.unwrap(), ["10.0.0.1"]);
    }
}
