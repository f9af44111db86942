//! The one place that draws from the system's randomness.

use baton_store::Entropy;
use std::sync::{Mutex, PoisonError};

/// Words drawn from the system at once: a system call per command would be felt.
const BUFFERED: usize = 256;

/// Randomness of the operating system, drawn in blocks. Each word is handed out once.
#[derive(Default)]
pub struct OsEntropy {
    words: Mutex<Vec<u64>>,
}

impl Entropy for OsEntropy {
    fn words(&self) -> (u64, u64) {
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        if words.len() < 2 {
            *words = block();
        }
        match (words.pop(), words.pop()) {
            (Some(a), Some(b)) => (a, b),
            _ => unreachable!("a block holds more than two words"),
        }
    }
}

/// 32 bytes for a key.
pub(crate) fn key_bytes() -> std::io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    fill(&mut bytes)?;
    Ok(bytes)
}

fn block() -> Vec<u64> {
    let mut bytes = [0; BUFFERED * 8];
    // A system without randomness cannot make ids that nobody guesses or repeats. A panic would
    // end one task and let the rest go on as if nothing were wrong.
    if let Err(e) = fill(&mut bytes) {
        tracing::error!(%e, "the operating system gives no randomness; the process ends");
        std::process::abort();
    }
    bytes.chunks_exact(8).map(|c| c.iter().fold(0, |n, b| n << 8 | u64::from(*b))).collect()
}

#[expect(clippy::disallowed_methods, reason = "this is the room where randomness comes in")]
fn fill(bytes: &mut [u8]) -> std::io::Result<()> {
    getrandom::fill(bytes).map_err(std::io::Error::other)
}
