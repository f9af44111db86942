//! `baton up` and `baton serve`: everything in one process.

use crate::args::SettingsArgs;
use crate::config::{self, Settings, StoreSettings};
use crate::fault::Fault;
use crate::{address, aside, banner, first, local, log, signals, tls, welcome};
use baton_api::{App, Entrance, Secrets};
use baton_core::access::session::Sessions;
use baton_core::definition::Definitions;
use baton_core::seal::Key;
use baton_core::webhook;
use baton_core::webhook::sign::Signer;
use baton_engine::registry::Registry;
use baton_engine::webhook::{Deliver, Post};
use baton_engine::{Chronicler, Engine, JsonShapes, Options, OsEntropy, SystemClock, node};
use baton_store::{Corrupt, OpenOptions, Store};
use baton_tools::{Outgoing, Policy};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// How long running jobs may go on once the process is told to stop.
const DRAIN: Duration = Duration::from_secs(30);

/// How long a server that could not start waits for its store to close.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

/// How long what was left behind may hold on to its threads before the process ends without it.
const THREADS_WAIT: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// For somebody at a terminal.
    Up,
    /// For production.
    Serve { start_empty: bool },
    /// For one command, for as long as that takes.
    Within,
}

impl Mode {
    const fn corrupt(self) -> Corrupt {
        match self {
            Self::Up | Self::Serve { start_empty: true } => Corrupt::StartEmpty,
            Self::Serve { start_empty: false } | Self::Within => Corrupt::Stop,
        }
    }

    pub const fn filter(self) -> &'static str {
        match self {
            Self::Up => "warn",
            Self::Within => "error",
            Self::Serve { .. } => "info",
        }
    }
}

pub fn run(mode: Mode, args: &SettingsArgs) -> Result<(), Fault> {
    let settings = config::settings(args)?;
    log::set_up(settings.log, settings.log_filter.as_deref().unwrap_or(mode.filter()))?;
    block_on(async {
        let told = signals::listen().map_err(|error| failed(format!("signals cannot be heard: {error}")))?;
        live(mode, &settings, told, None).await
    })
}

/// Runs what has a server in it: with as many threads as there are cores.
pub fn block_on<T>(command: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Fault::new("start_failed", format!("the runtime cannot be started: {error}")))?;
    let lived = runtime.block_on(command);
    // Dropping it would wait for as long as a handler blocks its thread.
    runtime.shutdown_timeout(THREADS_WAIT);
    lived
}

/// Everything as `up` has it, on a free port of this machine, for as long as `work` takes. What `work`
/// says counts, unless the server could not be started.
pub async fn during<T>(
    settings: &Settings,
    work: impl AsyncFnOnce(SocketAddr) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let (tell, told) = signals::Told::by();
    let (up, is_up) = oneshot::channel();
    let work = async {
        let worked = match is_up.await {
            Ok(address) => Some(work(address).await),
            Err(_) => None,
        };
        tell.send_replace(true);
        worked
    };
    let (lived, worked) = tokio::join!(live(Mode::Within, settings, told, Some(up)), work);
    match worked {
        Some(worked) => worked,
        None => Err(lived.err().unwrap_or_else(|| failed("it ended before it was up".to_owned()))),
    }
}

async fn live(
    mode: Mode,
    settings: &Settings,
    told: signals::Told,
    up: Option<oneshot::Sender<SocketAddr>>,
) -> Result<(), Fault> {
    let tls = settings.listen.tls.as_ref().map(tls::server).transpose()?;
    // Before anything counts.
    baton_api::metrics::install();
    let mut registry = Registry::builtin();
    registry.work(config::toolbox(&settings.tools)?);
    for job_type in &settings.job_types {
        let taken = registry.declare(job_type.clone());
        taken.map_err(|error| Fault::new("config_invalid", format!("job_types.{}: {error}", job_type.name)))?;
    }
    let carrier = Arc::new(Post(outgoing(settings)?));
    let definitions = registry.definitions_with(settings.rules, [webhook::job_type()]);
    // The lock on the data directory comes first: of two servers on one directory, the second
    // should hear about the directory and not about the port.
    let aside = aside::Before::look(&settings.store);
    let store = open(&settings.store, mode.corrupt(), definitions).await?;
    let moved = aside.moved(&settings.store.data_dir);
    let parts = async {
        let listener = bind(settings.listen.address).await?;
        let seal_key = seal_key(&settings.store)?;
        let signer = Signer::new(seal_key.derive("webhooks"));
        registry.deliver(Deliver { signer: signer.clone(), carrier });
        let engine = start(store.clone(), registry, settings, &seal_key).await?;
        let mut first = first::key(&store, &settings.store.data_dir).await?;
        if first.is_none() && settings.new_admin_key {
            first = Some(first::another(&store, &settings.store.data_dir).await?);
        }
        let credits = if matches!(mode, Mode::Serve { .. }) { None } else { welcome::grant(&store).await? };
        let secrets = Secrets { signer, sessions: Sessions::new(seal_key.derive("sessions")) };
        Ok((listener, engine, first, secrets, credits))
    };
    let (listener, engine, first, secrets, credits) = match parts.await {
        Ok(parts) => parts,
        Err(fault) => {
            let _ = tokio::time::timeout(CLOSE_WAIT, store.close()).await;
            return Err(fault);
        }
    };
    let address = listener.local_addr().map_err(|error| failed(format!("the address cannot be read back: {error}")))?;
    let app = App::new(engine.clone(), Arc::new(OsEntropy::default()), settings.rate, secrets);
    let _noted = local::note(address, &settings.store.data_dir);
    let posted = address::post(&settings.store.data_dir, address)
        .map_err(|error| failed(format!("cannot write into {}: {error}", settings.store.data_dir.display())));
    let login = login_link(mode, &app, settings, address);
    let news = banner::News { moved: moved.as_deref(), first: first.as_ref(), credits, login: login.as_deref() };
    let said = posted.and_then(|posted| announce(mode, address, settings, &news).map(|()| posted));

    if let (Some(up), Ok(_)) = (up, &said) {
        // Nobody waits for it any more if this fails; then we are told to stop.
        let _ = up.send(address);
    }
    // Whatever could not be said, what was started is stopped in order.
    let (told, posted) = match said {
        Ok(posted) => (told, Ok(posted)),
        Err(fault) => (signals::Told::already(), Err(fault)),
    };
    let broken = OnceLock::new();
    let shutdown = async {
        tokio::select! {
            biased;
            () = told.stopped() => {}
            // Nothing can be committed any more, and only a restart can be trusted.
            () = store.closed() => drop(broken.set("the database can no longer be written to".to_owned())),
            part = engine.broken() => drop(broken.set(format!("a part of the engine has ended: the {part}"))),
        }
        // Jobs begin to drain while the last requests are answered; the store closes after both.
        engine.begin_stopping(DRAIN);
    };
    baton_api::serve(Entrance { listener, tls, hosts: settings.listen.hosts.clone() }, app, shutdown).await;
    engine.stop(DRAIN).await;
    posted?;
    if let Some(why) = broken.into_inner() {
        return Err(failed(format!("{why}; see the log")).hint("start it again"));
    }
    tracing::info!("stopped");
    Ok(())
}

/// Opens the store; the same for a server and for an audit without one.
pub async fn open(settings: &StoreSettings, corrupt: Corrupt, definitions: Definitions) -> Result<Store, Fault> {
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(OsEntropy::default()));
    let chronicler = Chronicler::new(definitions.rules);
    let mut options = OpenOptions::new(settings.data_dir.clone(), clock, entropy, Arc::new(definitions));
    options.observer = Some(Arc::new(chronicler));
    options.shapes = Some(Arc::new(JsonShapes));
    options.backend = settings.backend();
    options.corrupt = corrupt;
    Store::open(options).await.map_err(|error| Fault::open(&error).scrubbed(settings.database.as_ref()))
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Fault> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => {
            Fault::new("address_in_use", format!("another program already listens on {address}")).hint(
                "if it is Baton, use it; else choose another port with --listen 127.0.0.1:PORT (0 takes a free one)",
            )
        }
        _ => Fault::new("listen_failed", format!("cannot listen on {address}: {error}"))
            .hint("choose another address with --listen 127.0.0.1:PORT"),
    })
}

/// The one client for everything that this server sends out.
fn outgoing(settings: &Settings) -> Result<Outgoing, Fault> {
    let policy = Policy { allow: settings.reach.clone(), ..Policy::public() };
    Outgoing::new(policy).map_err(|error| failed(format!("nothing can be sent out: {error}")))
}

/// The configured key, or the one that the data directory keeps.
fn seal_key(settings: &StoreSettings) -> Result<Key, Fault> {
    match &settings.seal_key {
        Some(key) => Ok(key.clone()),
        None => node::load_seal_key(&settings.data_dir)
            .map_err(|error| failed(format!("the seal key in {}: {error}", settings.data_dir.display()))),
    }
}

async fn start(store: Store, registry: Registry, settings: &Settings, seal_key: &Key) -> Result<Engine, Fault> {
    let node = node::load_node(&settings.store.data_dir)
        .map_err(|error| failed(format!("the node's name in {}: {error}", settings.store.data_dir.display())))?;
    let mut options = Options::new(node);
    options.seal_key = Some(seal_key.clone());
    options.seal_memory = Some(settings.store.seal_memory());
    if let Some(slots) = settings.slots {
        options.slots = slots as usize;
    }
    if let Some(slots) = settings.agent_slots {
        options.agent_slots = slots as usize;
    }
    let database = settings.store.database.as_ref();
    Engine::start(store, registry, options).await.map_err(|error| failed(error.to_string()).scrubbed(database))
}

/// Where somebody at this terminal can come in with a browser, once and soon.
fn login_link(mode: Mode, app: &App, settings: &Settings, address: SocketAddr) -> Option<String> {
    let token = local::read(&settings.store.data_dir).ok().flatten().filter(|_| mode == Mode::Up)?;
    Some(format!("{}{}", settings.listen.url(address), app.login_path(&token)?))
}

fn announce(mode: Mode, address: SocketAddr, settings: &Settings, news: &banner::News<'_>) -> Result<(), Fault> {
    let database = settings.store.database.as_ref().map_or_else(|| "embedded".to_owned(), ToString::to_string);
    if !settings.rules.enabled {
        tracing::warn!("the queue is switched off: no job is taken in, and none is handed out");
    }
    let url = settings.listen.url(address);
    if settings.listen.tls.is_none() && !address.ip().is_loopback() {
        tracing::warn!(%address, "listening without TLS: keys and data can be read by whoever is on the way");
    }
    tracing::info!(%address, url, data_dir = %settings.store.data_dir.display(), %database, "listening");
    match mode {
        // The log is no place for a secret; where it is kept may stand there.
        Mode::Serve { .. } if news.first.is_some() => {
            let file = settings.store.data_dir.join(local::ADMIN_KEY);
            tracing::info!(file = %file.display(), "an admin key was made and is kept there");
            Ok(())
        }
        Mode::Serve { .. } | Mode::Within => Ok(()),
        // Nobody reading the banner is no reason not to run.
        Mode::Up => match banner::say(&url, &settings.store, news) {
            Err(Fault::NobodyReads) => Ok(()),
            said => said,
        },
    }
}

fn failed(detail: String) -> Fault {
    Fault::new("start_failed", detail)
}
