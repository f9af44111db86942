//! Calling a program, from the side of the server.

use super::declaration::Process;
use super::failure::{self, Class, ToolFailure};
use super::order::{Ended, How, Order, Report, STOP, Unstarted, reports};
use super::verdict::{Left, verdict};
use super::{keeper, limits};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::pin;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep_until, timeout};

#[derive(Clone, Debug)]
pub struct Options {
    /// Others wait, as long as their time allows.
    pub max_at_once: usize,
    /// The binary whose `main` begins with [`keeper`](super::keeper).
    pub keeper: PathBuf,
}

impl Default for Options {
    /// This binary, also if it was replaced on disk meanwhile.
    fn default() -> Self {
        Self { max_at_once: limits::AT_ONCE, keeper: "/proc/self/exe".into() }
    }
}

/// Cheap to clone; clones share how many may run at once.
#[derive(Clone, Debug)]
pub struct Processes {
    keeper: Arc<PathBuf>,
    places: Arc<Semaphore>,
}

/// One call. What is known about it is told to the program in variables: `BATON_RUN_ID`,
/// `BATON_AGENT_ID`, `BATON_STEP`, `BATON_ATTEMPT`, `BATON_IDEMPOTENCY_KEY`.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    pub input: &'a Value,
    /// From now to the end, waiting for a place included.
    pub timeout: Duration,
    pub run: Option<&'a str>,
    pub agent: Option<&'a str>,
    pub step: Option<&'a str>,
    pub attempt: u32,
    pub key: Option<&'a str>,
}

/// Why a program was told to stop.
#[derive(Clone, Copy, Debug)]
enum Why {
    Late,
    Cancelled,
    Excess,
}

impl Processes {
    pub fn new(options: Options) -> Self {
        let places = options.max_at_once.clamp(1, Semaphore::MAX_PERMITS);
        Self { keeper: Arc::new(options.keeper), places: Arc::new(Semaphore::new(places)) }
    }

    /// Ends when nothing is left of the program. If `cancel` ends first, so does the program. Dropping
    /// the call ends it too, at once and without asking it.
    pub async fn call(
        &self,
        process: &Process,
        call: &Call<'_>,
        cancel: impl Future<Output = ()>,
    ) -> Result<Value, ToolFailure> {
        let frame = frame(process, call)?;
        let deadline = Instant::now() + call.timeout.min(limits::TIMEOUT);
        let mut cancel = pin!(cancel);
        let _place = tokio::select! {
            place = self.places.acquire() => place.map_err(|_| unstarted("no more programs are run"))?,
            () = &mut cancel => return Err(never(Why::Cancelled)),
            () = sleep_until(deadline) => return Err(never(Why::Late)),
        };
        let kept = Kept::start(&self.keeper).map_err(|error| unstarted(&format!("no keeper: {error}")))?;
        let ended = kept.run(frame, process.output_bytes, deadline, cancel).await;
        // What a program was entrusted with stays with it, whatever it says.
        match ended {
            Ok(result) => Ok(process.scrubbed(result)),
            Err(failure) => Err(ToolFailure { message: process.scrub(&failure.message), ..failure }),
        }
    }
}

fn frame(process: &Process, call: &Call<'_>) -> Result<Vec<u8>, ToolFailure> {
    let mut env = process.env.0.clone();
    let attempt = call.attempt.to_string();
    let told = [
        ("BATON_RUN_ID", call.run),
        ("BATON_AGENT_ID", call.agent),
        ("BATON_STEP", call.step),
        ("BATON_ATTEMPT", Some(attempt.as_str())),
        ("BATON_IDEMPOTENCY_KEY", call.key),
    ];
    // A variable cannot hold a zero byte.
    env.extend(told.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.replace('\0', "")))));
    let order = Order {
        program: process.program.clone(),
        arguments: process.arguments.clone(),
        cwd: process.cwd.clone(),
        env,
        memory_bytes: process.memory_bytes,
        file_bytes: process.file_bytes,
        processes: process.processes,
    };
    let input = serde_json::to_vec(call.input).map_err(|error| unstarted(&error.to_string()))?;
    order.frame(&input).map_err(|_| {
        let message = format!("the input of the program is over the limit of {} bytes", limits::INPUT_BYTES);
        ToolFailure::never_ran(failure::INPUT_TOO_LARGE, Class::Deterministic, message)
    })
}

fn unstarted(why: &str) -> ToolFailure {
    ToolFailure::never_ran(failure::NOT_STARTED, Class::Transient, format!("the program was not started: {why}"))
}

fn lost() -> ToolFailure {
    ToolFailure::ran(failure::KEEPER_LOST, Class::Transient, "the process that watches the program died")
}

fn never(why: Why) -> ToolFailure {
    ToolFailure { may_have_acted: false, ..stopped(why, 0) }
}

fn stopped(why: Why, output_bytes: usize) -> ToolFailure {
    match why {
        Why::Late => ToolFailure::ran(failure::TIMEOUT, Class::Transient, "the program did not end in time"),
        Why::Cancelled => ToolFailure::ran(failure::CANCELLED, Class::Deterministic, "the call was cancelled"),
        Why::Excess => {
            let message = format!("what the program wrote to its stdout is over the limit of {output_bytes} bytes");
            ToolFailure::ran(failure::OUTPUT_TOO_LARGE, Class::Deterministic, message)
        }
    }
}

/// A keeper, and what connects us to it.
struct Kept {
    child: Child,
    socket: UnixStream,
}

impl Kept {
    fn start(keeper: &PathBuf) -> io::Result<Self> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let socket = UnixStream::from_std(ours)?;
        let child = Command::new(keeper)
            .arg0("baton")
            .arg(keeper::ARGUMENT)
            .env_clear()
            // What the terminal sends to the server is not meant for it.
            .process_group(0)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        Ok(Self { child, socket })
    }

    async fn run(
        mut self,
        frame: Vec<u8>,
        output_bytes: usize,
        deadline: Instant,
        mut cancel: impl Future<Output = ()> + Unpin,
    ) -> Result<Value, ToolFailure> {
        let (Some(stdout), Some(stderr)) = (self.child.stdout.take(), self.child.stderr.take()) else {
            return Err(unstarted("the keeper has no pipes"));
        };
        let (hear, mut speak) = self.socket.into_split();
        let stop = Notify::new();
        // The socket stays open until the end: closing it would mean that nobody waits any more.
        let mut speak = pin!(async {
            if speak.write_all(&frame).await.is_ok() {
                stop.notified().await;
                let _ = speak.write_all(&[STOP]).await;
            }
            std::future::pending::<()>().await
        });
        let mut hear = pin!(collect(hear, limits::REPORT_BYTES));
        let mut write = pin!(collect(stdout, output_bytes));
        let mut say = pin!(tail(stderr));
        let mut until = pin!(sleep_until(deadline));
        let (mut why, mut output, mut said, mut given_up) = (None, None, None, false);
        let reported = loop {
            let stopping = tokio::select! {
                biased;
                heard = &mut hear => break heard.bytes,
                () = &mut speak => continue,
                written = &mut write, if output.is_none() => {
                    let excess = written.excess;
                    output = Some(written);
                    if excess { Why::Excess } else { continue }
                }
                end = &mut say, if said.is_none() => {
                    said = Some(end);
                    continue;
                }
                () = &mut cancel, if why.is_none() => Why::Cancelled,
                () = &mut until => Why::Late,
            };
            if why.is_none() {
                why = Some(stopping);
                stop.notify_one();
                until.as_mut().reset(Instant::now() + limits::STOPPED);
            } else if until.is_elapsed() {
                if given_up {
                    break Vec::new();
                }
                // Its death closes the socket; the program does not outlive it.
                given_up = true;
                let _ = self.child.start_kill();
                until.as_mut().reset(Instant::now() + limits::STOPPED);
            }
        };
        // Whoever could write is dead, so this is mostly there already.
        let rest = async {
            if output.is_none() {
                output = Some(write.await);
            }
            if said.is_none() {
                said = Some(say.await);
            }
            self.child.wait().await
        };
        let _ = timeout(limits::DRAIN, rest).await;
        conclude(&Heard { reported, why, output, said: said.unwrap_or_default(), output_bytes })
    }
}

/// Everything that came back.
struct Heard {
    reported: Vec<u8>,
    why: Option<Why>,
    /// Missing if somebody still holds the pipe.
    output: Option<Collected>,
    said: Vec<u8>,
    output_bytes: usize,
}

fn conclude(heard: &Heard) -> Result<Value, ToolFailure> {
    let mut group = None;
    for report in reports(&heard.reported) {
        match report {
            Report::Started(number) => group = Some(number),
            Report::Unstarted(Unstarted { missing: true, why }) => {
                return Err(ToolFailure::never_ran(failure::DEPENDENCY_MISSING, Class::Deterministic, why));
            }
            Report::Unstarted(Unstarted { why, .. }) => return Err(unstarted(&why)),
            Report::Ended(ended) => return concluded(heard, &ended),
        }
    }
    // The program died with its keeper; this is for those around it.
    if let Some(group) = group.and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    Err(heard.why.map_or_else(lost, |why| stopped(why, heard.output_bytes)))
}

fn concluded(heard: &Heard, ended: &Ended) -> Result<Value, ToolFailure> {
    if ended.left {
        tracing::warn!("something that a program started could not be killed");
    }
    let how = match (heard.why, &heard.output) {
        (Some(why), _) if ended.stopped => return Err(stopped(why, heard.output_bytes)),
        (_, Some(Collected { excess: true, .. })) => return Err(stopped(Why::Excess, heard.output_bytes)),
        _ => ended.how,
    };
    // What could not be read to its end is not a result, however the program ended.
    let (how, output) = heard.output.as_ref().map_or((How::Unknown, &[][..]), |output| (how, &output.bytes[..]));
    verdict(&Left { how, output, said: &heard.said })
}

#[derive(Default)]
struct Collected {
    bytes: Vec<u8>,
    excess: bool,
}

const CHUNK: usize = 16 * 1024;

/// All of it, up to a limit. What cannot be read counts as its end.
async fn collect(mut from: impl AsyncRead + Unpin, limit: usize) -> Collected {
    let mut all = Collected::default();
    let mut chunk = vec![0; CHUNK];
    while let Ok(count @ 1..) = from.read(&mut chunk).await {
        if count > limit - all.bytes.len() {
            all.excess = true;
            break;
        }
        all.bytes.extend_from_slice(&chunk[..count]);
    }
    all
}

/// The last of it.
async fn tail(mut from: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut last = Vec::new();
    let mut chunk = vec![0; CHUNK];
    while let Ok(count @ 1..) = from.read(&mut chunk).await {
        last.extend_from_slice(&chunk[..count]);
        last.drain(..last.len().saturating_sub(limits::STDERR_BYTES));
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_read_has_a_limit() {
        let all = collect(&[7; 20_000][..], 20_000).await;
        assert_eq!((all.bytes.len(), all.excess), (20_000, false));
        assert!(collect(&[7; 20_001][..], 20_000).await.excess);
        let text: Vec<u8> = (0..40_000_u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
        assert_eq!(tail(&text[..]).await, text[text.len() - limits::STDERR_BYTES..]);
    }
}
