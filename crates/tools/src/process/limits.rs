//! How long and how large things may be around a program that is run.

use std::time::Duration;

/// Programs that run at once, unless the operator says otherwise.
pub const AT_ONCE: usize = 64;
/// What a program is given to read.
pub const INPUT_BYTES: usize = 8 * 1024 * 1024;
/// What a program may write to its stdout, in KiB: as much as a result may be.
pub const OUTPUT_KB: u64 = 256;
/// What is kept of its stderr: the end, where the reason stands.
pub const STDERR_BYTES: usize = 2_000;
/// What a program says about its own failure.
pub const MESSAGE_BYTES: usize = 2_000;
/// The code that it gives itself.
pub const CODE_BYTES: usize = 64;
/// The longest pause that a program may ask for.
pub const RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest that one call may take.
pub const TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Arguments of a program, its name included.
pub const ARGUMENTS: usize = 256;
/// Variables of its environment, given and passed on.
pub const VARIABLES: usize = 256;
/// The same together with the arguments in bytes; a single one may be as long.
pub const ARGUMENT_BYTES: usize = 64 * 1024;
/// Memory, in MiB, unless declared.
pub const MEMORY_MB: u64 = 512;
/// Below, hardly any program gets as far as its first line.
pub const LEAST_MEMORY_MB: u64 = 16;
/// One file that it writes, in MiB, unless declared.
pub const FILE_MB: u64 = 64;
/// More than any machine has; keeps the sums in bytes within their type.
pub const MOST_MB: u64 = 1024 * 1024;
/// The most processes that can be declared.
pub const MOST_PROCESSES: u64 = 65_536;
/// Files that it may have open.
pub const OPEN_FILES: u64 = 256;

/// From the polite signal to the one that cannot be ignored.
pub const GRACE: Duration = Duration::from_secs(2);
/// How often the keeper looks for orphans of a running program.
pub const TICK: Duration = Duration::from_millis(500);
/// The rounds in which what is left of a program is killed, and the pause after each.
pub const SWEEP_ROUNDS: u32 = 500;
pub const SWEEP_PAUSE: Duration = Duration::from_millis(10);
/// The first rounds pause for less: mostly there is next to nothing left.
pub const QUICK_ROUNDS: u32 = 10;
pub const QUICK_PAUSE: Duration = Duration::from_millis(1);
/// How long the keeper waits for its order, and for its report to be taken.
pub const EXCHANGE: Duration = Duration::from_secs(10);
/// How long a keeper that was told to stop may take, before it is given up.
pub const STOPPED: Duration = Duration::from_secs(12);
/// How long what was written may still come in when everybody who could write has died.
pub const DRAIN: Duration = Duration::from_secs(1);
/// The order without its input.
pub const ORDER_BYTES: usize = 1024 * 1024;
/// The keeper's report.
pub const REPORT_BYTES: usize = 16 * 1024;
