//! What the door costs: `POST /api/v1/jobs` over HTTP, beside the same command given to the store by as
//! many callers in the same process, in the same run.
//!
//! The server is the real one on a real port, with a log as in production that nobody reads; keys are
//! checked, connections are kept. Callers and server share this machine's processors, so the callers
//! do as little as they can ([`caller`]). The jobs are not due for years: nothing runs beside what is
//! measured.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool of developers")]

mod caller;
mod figures;

use anyhow::{Context, Result};
use baton_api::door::first;
use baton_api::{App, Secrets};
use baton_core::access::session::Sessions;
use baton_core::command::Actor;
use baton_core::job::enqueue::Enqueue;
use baton_core::rules::Rules;
use baton_core::webhook::sign::Signer;
use baton_core::{Json, Micros, OrgId};
use baton_engine::{Chronicler, Engine, Options, OsEntropy, SystemClock};
use baton_sim::lab::{Lab, Place, name};
use baton_sim::open_lane;
use baton_store::{Backend, Clock as _, OpenOptions, Store};
use caller::Caller;
use figures::{Figure, Sample, print};
use futures_util::future::try_join_all;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

const CONNECTIONS: [usize; 3] = [1, 32, 256];
const WARM_UP: Duration = Duration::from_millis(500);
const MEASURE: Duration = Duration::from_secs(3);
/// Pairs of measurements for each number of connections; the middle one counts.
const ROUNDS: usize = 3;
/// When the jobs are due.
const YEARS: i64 = 10 * 365 * 24 * 3_600_000_000;

#[tokio::main]
async fn main() -> Result<()> {
    let json = std::env::args().any(|arg| arg == "--json");
    tracing_subscriber::fmt().json().with_env_filter("info").with_writer(std::io::sink).init();
    let mut figures = Vec::new();
    for place in [Place::Sqlite, Place::Postgres] {
        match Lab::new(place, None).await? {
            Some(lab) => figures.extend(measure(&lab).await?),
            None => eprintln!("no PostgreSQL: run with `cargo xtask bench door`"),
        }
    }
    print(&figures, json);
    Ok(())
}

async fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    let store = if lab.url().is_some() { "postgres" } else { "sqlite" };
    let engine = start(lab).await?;
    let due = Micros(SystemClock.now().0 + YEARS);
    let noop = Enqueue {
        not_before: Some(due),
        ..Enqueue::new(OrgId::default(), name("p"), name("noop"), Json::of(&json!({ "n": 1 })))
    };
    let (address, key, stop) = open(&engine).await?;
    let body = json!({ "type": "noop", "projectId": "p", "payload": { "n": 1 }, "notBefore": baton_wire::Time(due) });
    let mut figures = Vec::new();
    for connections in CONNECTIONS {
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            let inside = commits(engine.store(), &noop, connections).await?;
            let outside = requests(address, &key, &body.to_string(), connections).await?;
            rounds.push(Figure { store, connections, inside, outside });
        }
        rounds.sort_by(|a, b| a.ratio().total_cmp(&b.ratio()));
        figures.push(rounds.swap_remove(ROUNDS / 2));
    }
    let _ = stop.send(());
    engine.stop(Duration::from_secs(5)).await;
    Ok(figures)
}

async fn start(lab: &Lab) -> Result<Engine> {
    let rules = Rules { max_per_project: u32::MAX, max_global: u32::MAX, ..Rules::default() };
    let registry = open_lane::registry();
    let definitions = Arc::new(registry.definitions(rules));
    let entropy = Arc::new(OsEntropy::default());
    let mut options = OpenOptions::new(lab.data_dir("door"), Arc::new(SystemClock), entropy, definitions);
    options.observer = Some(Arc::new(Chronicler::new(rules)));
    if let Some(url) = lab.url() {
        options.backend = Backend::Postgres(url.to_owned());
    }
    let store = Store::open(options).await.context("opening the store")?;
    Engine::start(store, registry, Options::new(name("node_a"))).await.context("starting the engine")
}

/// A server on a free port: where it is, the key that opens it, and how to stop it.
async fn open(engine: &Engine) -> Result<(SocketAddr, String, oneshot::Sender<()>)> {
    let entropy = Arc::new(OsEntropy::default());
    let token = first::draw(&*entropy, engine.store().clock_now());
    first::found(engine.store(), &token).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let app = App::new(
        engine.clone(),
        entropy,
        None,
        Secrets { signer: Signer::new([7; 32]), sessions: Sessions::new([8; 32]) },
    );
    let (stop, stopped) = oneshot::channel();
    tokio::spawn(baton_api::serve(listener, app, async {
        let _ = stopped.await;
    }));
    Ok((address, token.reveal(), stop))
}

async fn commits(store: &Store, command: &Enqueue, callers: usize) -> Result<Sample> {
    let began = Instant::now();
    let one = |store: Store, command: Enqueue| async move {
        let mut taken = Vec::new();
        while began.elapsed() < WARM_UP + MEASURE {
            let asked = Instant::now();
            store.commit(command.clone(), Actor::Api).await?;
            if began.elapsed() > WARM_UP {
                taken.push(asked.elapsed());
            }
        }
        anyhow::Ok(taken)
    };
    gather((0..callers).map(|_| tokio::spawn(one(store.clone(), command.clone())))).await
}

async fn requests(address: SocketAddr, key: &str, body: &str, connections: usize) -> Result<Sample> {
    let callers = try_join_all((0..connections).map(|_| Caller::connect(address, key, body))).await?;
    let began = Instant::now();
    let one = |mut caller: Caller| async move {
        let mut taken = Vec::new();
        while began.elapsed() < WARM_UP + MEASURE {
            let asked = Instant::now();
            caller.ask().await?;
            if began.elapsed() > WARM_UP {
                taken.push(asked.elapsed());
            }
        }
        anyhow::Ok(taken)
    };
    gather(callers.into_iter().map(|caller| tokio::spawn(one(caller)))).await
}

/// What all of them have measured, each in a task of its own.
async fn gather(tasks: impl Iterator<Item = JoinHandle<Result<Vec<Duration>>>>) -> Result<Sample> {
    let taken = try_join_all(tasks).await?.into_iter().collect::<Result<Vec<_>>>()?;
    Ok(Sample::new(taken.concat(), MEASURE))
}
