//! Following a run to its end, by its events.

use super::run_path;
use super::screen::Screen;
use super::tree::{Outline, Tree, length};
use super::words;
use crate::client::Client;
use crate::fault::Fault;
use crate::listen::{Listener, Portion};
use crate::paint::dim;
use crate::print;
use baton_core::RunId;
use baton_core::run::State;
use baton_engine::SystemClock;
use baton_store::Clock as _;
use baton_wire::{Event, Run, RunAction, limit};
use std::io::Write as _;
use std::pin::Pin;
use std::time::Duration;
use tokio::signal::unix::Signal;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// What happens next, in a while.
const NEXT: Portion = Portion { events: limit::EVENTS, wait_ms: limit::WAIT_MS };
/// What has happened by now.
const NOW: Portion = Portion { events: limit::EVENTS, wait_ms: 0 };
/// Between two drawings of the tree.
const REDRAW: Duration = Duration::from_millis(200);

/// How a run is shown while it goes on.
enum Face {
    /// A tree that is drawn again and again.
    Live(Screen),
    /// What happens, in words.
    Lines,
    /// Events as JSON.
    Json,
}

pub enum Seen {
    Ended(Box<Tree>),
    /// Somebody pressed Ctrl-C.
    Interrupted,
}

type Hearing = Pin<Box<dyn Future<Output = (Listener, Result<Vec<Event>, Fault>)> + Send>>;

pub struct Follower {
    client: Client,
    id: RunId,
    outline: Outline,
    face: Face,
    hearing: Hearing,
    /// Nothing if nobody has looked yet.
    ended: Option<bool>,
    redraw: Interval,
}

impl Follower {
    /// The listener must have been there before whatever shall be heard.
    pub async fn new(client: &Client, id: RunId, listener: Listener, json: bool) -> Result<Self, Fault> {
        let outline = Outline::read(client, id).await?;
        let face = match Screen::new() {
            _ if json => Face::Json,
            Some(screen) => Face::Live(screen),
            None => Face::Lines,
        };
        let mut redraw = interval(REDRAW);
        redraw.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self { client: client.clone(), id, outline, face, hearing: hear(listener, NOW), ended: None, redraw })
    }

    pub async fn until_ended(&mut self, interrupt: &mut Signal) -> Result<Seen, Fault> {
        let mut changed = true;
        let mut tree = None;
        loop {
            let live = matches!(self.face, Face::Live(_));
            tokio::select! {
                biased;
                _ = interrupt.recv() => {
                    if let Face::Live(screen) = &mut self.face {
                        screen.leave();
                    }
                    return Ok(Seen::Interrupted);
                }
                (listener, heard) = &mut self.hearing => {
                    let heard = heard?;
                    let caught_up = heard.is_empty();
                    let events: Vec<_> = heard.into_iter().filter(|event| words::concerns(event, self.id)).collect();
                    changed |= !events.is_empty();
                    self.tell(&events)?;
                    // It may have ended before anybody listened, while there was other news.
                    if self.ended.is_none() || caught_up || events.iter().any(|event| event.kind.starts_with("run.")) {
                        self.ended = Some(self.run().await?.status.is_ended());
                    }
                    let ended = self.ended == Some(true);
                    // All that led to the end is told before it: what is left of that is there already.
                    self.hearing = hear(listener, if ended { NOW } else { NEXT });
                    if ended && (caught_up || events.iter().any(is_end)) {
                        return self.end().await;
                    }
                }
                _ = self.redraw.tick(), if live => {
                    if changed {
                        tree = Some(Tree::read(&self.client, self.id, &self.outline).await?);
                        changed = false;
                    }
                    if let (Face::Live(screen), Some(tree)) = (&mut self.face, &tree) {
                        screen.draw(tree.lines_within(SystemClock.now(), Screen::size().0))?;
                    }
                }
            }
        }
    }

    async fn run(&self) -> Result<Run, Fault> {
        self.client.get(&run_path(self.id), &[]).await
    }

    fn tell(&self, events: &[Event]) -> Result<(), Fault> {
        match self.face {
            Face::Live(_) => Ok(()),
            Face::Json => events.iter().try_for_each(print::json_line),
            Face::Lines => say(events),
        }
    }

    async fn end(&mut self) -> Result<Seen, Fault> {
        let tree = Tree::read(&self.client, self.id, &self.outline).await?;
        match &mut self.face {
            Face::Live(screen) => {
                screen.draw(tree.lines_within(SystemClock.now(), Screen::size().0))?;
                screen.leave();
            }
            Face::Json => print::json_line(&tree.run)?,
            Face::Lines => {}
        }
        Ok(Seen::Ended(Box::new(tree)))
    }
}

/// Whether a run has ended with this; an attempt that is followed by another ends so too.
fn is_end(event: &Event) -> bool {
    let state = event.kind.strip_prefix("run.").and_then(State::parse);
    state.is_some_and(State::is_ended)
}

/// The request goes on whatever else happens meanwhile.
fn hear(mut listener: Listener, portion: Portion) -> Hearing {
    Box::pin(async move {
        let heard = listener.hear(portion).await;
        (listener, heard)
    })
}

/// Events in words, out at once.
pub fn say(events: &[Event]) -> Result<(), Fault> {
    let mut out = print::out();
    for line in events.iter().flat_map(words::lines) {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(())
}

/// What became of it, for people.
pub fn summary(tree: &Tree) -> Result<(), Fault> {
    let run = &tree.run;
    let (done, all) = tree.progress();
    let took = run.duration_ms.map(|ms| format!(" in {}", length(ms))).unwrap_or_default();
    let mut out = print::out();
    writeln!(out)?;
    writeln!(out, "{}", tree.title(SystemClock.now()))?;
    let money = format!("{} credits charged, {} given back", run.credits_charged, run.credits_refunded);
    writeln!(out, "{}", dim(format_args!("  {done} of {all} steps{took}; {money}")))?;
    for line in tree.failures() {
        writeln!(out, "{line}")?;
    }
    if matches!(run.status, State::Completed | State::Skipped) {
        writeln!(out, "{}", dim(format_args!("  see it again with: baton runs show {}", run.id)))?;
    }
    out.flush()?;
    Ok(())
}

/// How whoever waited for a run exits.
pub fn verdict(run: &Run) -> Result<(), Fault> {
    let why = run.last_error.as_ref().map(|error| format!(": {}: {}", error.code, error.message));
    match run.status {
        State::Failed => {
            let retry = if run.allowed_actions.contains(&RunAction::Retry) {
                format!("; attempt it again with: baton runs retry {}", run.id)
            } else {
                String::new()
            };
            Err(Fault::new("run_failed", format!("run {} failed{}", run.id, why.unwrap_or_default()))
                .hint(format!("see where with: baton runs show {}{retry}", run.id)))
        }
        State::Cancelled => {
            let why = run.reason.as_ref().map(|reason| format!(": {reason}")).or(why).unwrap_or_default();
            Err(Fault::new("run_cancelled", format!("run {} was cancelled{why}", run.id)))
        }
        _ => Ok(()),
    }
}
