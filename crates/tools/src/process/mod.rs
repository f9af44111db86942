//! Programs that the operator declared: JSON goes to their stdin, JSON comes from their stdout.
//!
//! A program gets what was declared and nothing else: no shell, no environment of the server, no
//! open files, limits on memory, files and output, and an end: each runs under a keeper
//! ([`keeper`]), which leaves nothing of it behind, also if the server is killed.
//!
//! Invariants
//! - What a program does is never a panic and never a wait without a limit ([`limits`]).
//! - Every way to fail has a stable code ([`CODES`]); if in doubt, the program may have acted.
//! - Values of the environment are secrets: no error and no `Debug` shows them.
//!
//! Elsewhere: whether to call again, and when (whoever calls).

mod call;
mod declaration;
mod failure;
mod keeper;
pub mod limits;
mod order;
mod verdict;

pub use call::{Call, Options, Processes};
pub use declaration::{BadDeclaration, Declaration, Process, Variables};
pub use failure::{CODES, Class, ToolFailure};
pub use keeper::keeper;
