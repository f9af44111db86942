//! Who may come in, and what they may do: keys, roles and rights.

pub mod change;
pub mod grant;
pub mod key;
pub mod role;
pub mod session;

pub use grant::{BadGrant, Grant};
pub use key::{Ended, Key, Proof};
pub use role::{Right, Role};
