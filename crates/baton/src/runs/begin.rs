//! `baton run`: a document becomes a run and is followed to its end.
//!
//! Where no server was named and none is at hand, one is started in this process for as long as the run
//! is followed: the run is as durable as any, and a server that is started later goes on with it.

use super::document::Source;
use super::follow::{Follower, Seen, summary, verdict};
use super::{RUNS, part_path, run_path};
use crate::args::{Cli, Command, DEFAULT_DATA_DIR, RunArgs, SettingsArgs};
use crate::client::{self, Client, Said, fresh_key};
use crate::config::{self, Settings};
use crate::contexts::Contexts;
use crate::fault::Fault;
use crate::listen::Listener;
use crate::paint::{bold, dim};
use crate::target::{self, Shown, Target};
use crate::{address, local, log, print, server};
use baton_core::run::State;
use baton_wire::{Cancel, Object, Run};
use clap::Parser as _;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How soon a second Ctrl-C must come to cancel the run.
const CANCEL_WITHIN: Duration = Duration::from_secs(3);
/// Looked for beside a document.
const CONFIG: &str = "baton.toml";
/// As shells say that something was interrupted.
const INTERRUPTED: i32 = 130;

/// Whose server it is.
enum Whose {
    Another,
    /// It ends with this process; one on the same data is started with this.
    Ours(String),
}

pub fn begin(args: RunArgs) -> Result<(), Fault> {
    let mut source = Source::read(&args.file, args.client.json)?;
    source.adjust(&args);
    let settings = match find(&args)? {
        Place::At(target) => {
            return client::block_on(async { go(&args, &source, Client::to(target)?, Whose::Another).await });
        }
        Place::Here(settings) => settings,
    };
    if args.detach {
        return Err(Fault::new("server_unreachable", "there is no server that would go on with the run")
            .hint("start one with `baton up`, or leave --detach away"));
    }
    log::set_up(settings.log, settings.log_filter.as_deref().unwrap_or(server::Mode::Within.filter()))?;
    server::block_on(server::during(&settings, async |address| {
        let server = format!("http://{address}");
        let server = target::url(&server)?;
        let key = local::read(&settings.store.data_dir).ok().flatten().map_or(Shown::Nothing, Shown::Given);
        let client = Client::to(Target { server, key, ca_cert: None })?;
        let gone = go(&args, &source, client, Whose::Ours(again_with(&settings, &args))).await;
        // Calls that are under way may take a while to end; whoever cannot wait need not.
        if let Ok(mut interrupt) = interrupts() {
            tokio::spawn(async move {
                interrupt.recv().await;
                std::process::exit(INTERRUPTED);
            });
        }
        gone
    }))
}

enum Place {
    At(Target),
    Here(Box<Settings>),
}

/// The server that was named, that of the data directory, that of this machine, or none.
fn find(args: &RunArgs) -> Result<Place, Fault> {
    if target::is_named(&args.client) || Contexts::read()?.find(None)?.is_some() {
        return Ok(Place::At(target::find(&args.client)?));
    }
    let given = |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
    let (config, data_dir) = (given(&args.config), given(&args.data_dir));
    let explicit = config.is_some() || data_dir.is_some();
    let config = config.or_else(|| beside(&args.file));
    let mut settings = config::settings(&settings_args(config.as_deref(), data_dir.as_deref())?)?;
    if let Some(address) = address::alive(&settings.store.data_dir) {
        return Ok(Place::At(target::here(&settings, address, &args.client)?));
    }
    let local = target::find(&args.client)?;
    if !explicit && local.key.token().is_some_and(|_| matches!(local.key, Shown::Local { .. })) {
        return Ok(Place::At(local));
    }
    // Nobody but this process talks to it.
    settings.listen.tls = None;
    if !args.client.json {
        let dir = settings.store.data_dir.display();
        let tools = config.map(|config| format!(", tools of {}", config.display())).unwrap_or_default();
        let said = format!("no server is running; this run has its own, with data in {dir}{tools}");
        writeln!(print::err(), "{}", dim(said))?;
    }
    Ok(Place::Here(Box::new(settings)))
}

/// How to start a server that stays, on the same data and with the same tools.
fn again_with(settings: &Settings, args: &RunArgs) -> String {
    let config = args.config.clone().or_else(|| beside(&args.file));
    let config = config.map(|path| format!(" --config {}", path.display())).unwrap_or_default();
    let dir = settings.store.data_dir.display().to_string();
    let dir = if dir == DEFAULT_DATA_DIR { String::new() } else { format!(" --data-dir {dir}") };
    format!("baton up{config}{dir}")
}

/// A configuration in the directory of a document is meant for it.
fn beside(file: &Path) -> Option<PathBuf> {
    let path = file.parent().filter(|_| file != Path::new("-"))?.join(CONFIG);
    path.is_file().then_some(path)
}

/// As `up` would have them, with everything that is set in the environment.
fn settings_args(config: Option<&Path>, data_dir: Option<&Path>) -> Result<SettingsArgs, Fault> {
    let mut line: Vec<OsString> = ["baton", "up", "--listen", "127.0.0.1:0"].map(OsString::from).into();
    for (flag, path) in [("--config", config), ("--data-dir", data_dir)] {
        line.extend(path.into_iter().flat_map(|path| [OsString::from(flag), path.as_os_str().to_owned()]));
    }
    match Cli::try_parse_from(line).map(|cli| cli.command) {
        Ok(Command::Up(up)) => Ok(up.settings),
        Ok(_) => Err(Fault::usage("the settings cannot be read")),
        Err(error) => Err(Fault::usage(error.to_string())),
    }
}

fn interrupts() -> Result<Signal, Fault> {
    signal(SignalKind::interrupt())
        .map_err(|error| Fault::new("start_failed", format!("signals cannot be heard: {error}")))
}

async fn go(args: &RunArgs, source: &Source, mut client: Client, whose: Whose) -> Result<(), Fault> {
    let json = args.client.json;
    let mut interrupt = interrupts()?;
    // The place to listen from is taken before anything happens.
    let listener = Listener::at_the_end(&client).await?;
    let run = create(args, source, &client).await?;
    client.be_patient();
    if args.detach {
        if json {
            return print::json(&run);
        }
        writeln!(print::out(), "{} is {}", run.id, run.status)?;
        return come_back(&run, &whose);
    }
    if !json {
        let mut err = print::err();
        writeln!(err, "{} {}", bold(run.id), dim(format_args!("· {}", print::visible(&run.name))))?;
    }
    let mut follower = Follower::new(&client, run.id, listener, json).await?;
    loop {
        match follower.until_ended(&mut interrupt).await? {
            Seen::Ended(tree) => {
                if !json {
                    summary(&tree)?;
                    if let Whose::Ours(again) = &whose {
                        writeln!(print::out(), "{}", dim(format_args!("  with a server on its data: {again}")))?;
                    }
                }
                return verdict(&tree.run);
            }
            Seen::Interrupted => {
                come_back(&run, &whose)?;
                writeln!(print::err(), "{}", dim("Ctrl-C again, within three seconds, cancels it"))?;
                if tokio::time::timeout(CANCEL_WITHIN, interrupt.recv()).await.is_err() {
                    return Err(Fault::Left);
                }
                let path = part_path(run.id, "cancel");
                let reason = Some("interrupted at the terminal".to_owned());
                client.post::<Run>(&path, &Cancel { reason }, &fresh_key()).await?;
            }
        }
    }
}

/// Creates it and starts it; with a key that was used before, whatever of that is still to be done.
async fn create(args: &RunArgs, source: &Source, client: &Client) -> Result<Run, Fault> {
    let key = args.idempotency_key.clone().unwrap_or_else(fresh_key);
    let sent = client.post(RUNS, &source.value, &key).await;
    let said: Said<Run> = sent.map_err(|fault| source.explain(fault, args.client.json))?;
    let mut run = said.value;
    if said.replayed {
        run = client.get(&run_path(run.id), &[]).await?;
        writeln!(print::err(), "{}", dim("this key was used before: nothing new was made, this is the run of then"))?;
    }
    if run.status != State::Created {
        return Ok(run);
    }
    let path = part_path(run.id, "start");
    match client.post::<Run>(&path, &Object::new(), &format!("{key}-start")).await {
        Ok(said) => Ok(said.value),
        Err(fault) => {
            let id = run.id;
            writeln!(print::err(), "{}", dim(format_args!("{id} was created; start it with: baton runs start {id}")))?;
            Err(fault)
        }
    }
}

fn come_back(run: &Run, whose: &Whose) -> Result<(), Fault> {
    let id = run.id;
    let mut err = print::err();
    match whose {
        Whose::Another => writeln!(err, "{}", dim("the run goes on; come back with:"))?,
        Whose::Ours(again) => {
            writeln!(err, "{}", dim("the run goes on when a server is started; come back with:"))?;
            writeln!(err, "  {again}")?;
        }
    }
    writeln!(err, "  baton runs show {id} --watch")?;
    Ok(())
}
