//! Tickets: what a login link carries. Each is good for one session, soon, at this node.
//!
//! They live in memory only, and only as hashes: whoever looks there finds nothing to come in with.

use crate::limits::{TICKET_LIFE, TICKETS, TICKETS_PER_KEY};
use crate::problem::Fault;
use baton_core::access::Proof;
use baton_core::canon::Digest;
use baton_core::id::KeyId;
use baton_store::Entropy;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use tokio::time::Instant;

const PREFIX: &str = "bt_";

/// A ticket as it is handed out. It shows itself only when asked to: see [`Ticket::reveal`].
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket([u8; 32]);

impl Ticket {
    fn draw(entropy: &dyn Entropy) -> Self {
        let mut bytes = [0; 32];
        for half in bytes.chunks_exact_mut(16) {
            let (a, b) = entropy.words();
            half[..8].copy_from_slice(&a.to_be_bytes());
            half[8..].copy_from_slice(&b.to_be_bytes());
        }
        Self(bytes)
    }

    fn proof(&self) -> Proof {
        Proof(Digest::of(&[&self.0]))
    }

    /// The text itself. Whoever calls this lets somebody in.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", Digest(self.0))
    }
}

impl FromStr for Ticket {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Digest::from_hex(text.strip_prefix(PREFIX).ok_or(())?).map(|bytes| Self(bytes.0)).ok_or(())
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}…")
    }
}

/// Whose key it stands for, and the proof of the secret that was shown for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    pub key: KeyId,
    pub proof: Proof,
}

struct Issued {
    proof: Proof,
    holder: Holder,
    until: Instant,
}

/// Those that were handed out and not yet handed in, the oldest first.
#[derive(Default)]
pub struct Tickets(Mutex<Vec<Issued>>);

impl Tickets {
    pub fn issue(&self, entropy: &dyn Entropy, holder: Holder) -> Result<Ticket, Fault> {
        let ticket = Ticket::draw(entropy);
        self.with(|all| {
            // Whoever asks for many gives up the first of them, and takes nothing from others.
            let own = all.iter().filter(|issued| issued.holder.key == holder.key).count();
            if own >= TICKETS_PER_KEY
                && let Some(oldest) = all.iter().position(|issued| issued.holder.key == holder.key)
            {
                all.remove(oldest);
            }
            if all.len() >= TICKETS {
                return Err(Fault::new("overloaded", "too many login links are waiting to be used"));
            }
            all.push(Issued { proof: ticket.proof(), holder, until: Instant::now() + TICKET_LIFE });
            Ok(ticket)
        })
    }

    /// Takes a ticket in. Nobody can hand it in again.
    pub fn redeem(&self, ticket: &Ticket) -> Option<Holder> {
        let proof = ticket.proof();
        self.with(|all| {
            // All are compared, so that the time it takes says nothing of any.
            let mut found = None;
            for (at, issued) in all.iter().enumerate() {
                if issued.proof.matches(&proof) {
                    found = Some(at);
                }
            }
            found.map(|at| all.remove(at).holder)
        })
    }

    fn with<T>(&self, f: impl FnOnce(&mut Vec<Issued>) -> T) -> T {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        all.retain(|issued| now < issued.until);
        f(&mut all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_engine::OsEntropy;
    use std::time::Duration;
    use uuid::Uuid;

    fn holder(n: u128) -> Holder {
        Holder { key: KeyId(Uuid::from_u128(n)), proof: Proof(Digest::of(&[&n.to_be_bytes()])) }
    }

    fn issue(tickets: &Tickets, n: u128) -> Ticket {
        tickets.issue(&OsEntropy::default(), holder(n)).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_ticket_is_good_once_and_soon() {
        let tickets = Tickets::default();
        let (one, two) = (issue(&tickets, 1), issue(&tickets, 2));
        assert_eq!(tickets.redeem(&two), Some(holder(2)));
        assert_eq!(tickets.redeem(&two), None, "it was used");
        tokio::time::advance(TICKET_LIFE - Duration::from_millis(1)).await;
        let late = one.clone();
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(tickets.redeem(&late), None, "it is over");
        let three = issue(&tickets, 3);
        tokio::time::advance(TICKET_LIFE - Duration::from_millis(1)).await;
        assert_eq!(tickets.redeem(&three), Some(holder(3)));
        assert_eq!(tickets.redeem(&Ticket([0; 32])), None);
    }

    #[test]
    fn whoever_asks_for_many_takes_nothing_from_others() {
        let tickets = Tickets::default();
        let other = issue(&tickets, 2);
        let own: Vec<_> = (0..=TICKETS_PER_KEY).map(|_| issue(&tickets, 1)).collect();
        assert_eq!(tickets.redeem(&own[0]), None, "the first was given up");
        assert!(own[1..].iter().all(|ticket| tickets.redeem(ticket) == Some(holder(1))));
        assert_eq!(tickets.redeem(&other), Some(holder(2)));
        for n in 0..TICKETS as u128 {
            issue(&tickets, n + 10);
        }
        let full = tickets.issue(&OsEntropy::default(), holder(1)).unwrap_err();
        assert_eq!(full.code(), "overloaded");
    }

    #[test]
    fn a_ticket_goes_there_and_back_and_hides_itself() {
        let ticket = Ticket([0xab; 32]);
        assert_eq!(ticket.reveal().parse(), Ok(ticket.clone()));
        assert!(!format!("{ticket:?}").contains("abab"));
        for bad in ["", "bt_", "bt_ab", &ticket.reveal()[3..]] {
            assert_eq!(bad.parse::<Ticket>(), Err(()), "{bad}");
        }
    }
}
