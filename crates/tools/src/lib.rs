//! How we reach out: the one client for everything that goes over HTTP, and programs that are run
//! ([`process`]).
//!
//! A URL that somebody wrote down is not where they may make this machine go: [`Outgoing`] looks
//! at the address itself, at the moment it connects, and lets nothing but public ones pass
//! ([`address`]), unless the operator has allowed the host by its name ([`Allow`]).
//!
//! Invariants
//! - Whoever sends something over HTTP sends it through here; there is no second client.
//! - No redirect is followed, no proxy asked, no cookie kept: a request goes where its URL says,
//!   or nowhere.
//! - Nothing waits or grows without a limit that has a name ([`limits`]).
//! - Values of headers, paths and queries are secrets: no error and no `Debug` shows them.
//!
//! Elsewhere: whether to try again, and when (whoever sends).

pub mod address;
mod allow;
mod headers;
pub mod limits;
mod outgoing;
pub mod process;
mod request;
mod resolve;
mod target;
mod trust;
mod unsent;

pub use allow::{Allow, BadAllow};
pub use headers::Headers;
pub use limits::Limits;
pub use outgoing::{Outgoing, Policy, Unready};
pub use request::{Answer, Excess, Request};
pub use trust::{BadCertificate, Trust, provider};
pub use unsent::{CODES, Unsent, is_untrusted};
