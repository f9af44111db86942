//! Settings: flags and environment first, then the file, then the defaults.

mod job_types;
mod listen;
mod queue;
mod tools;

pub use listen::{Listen, TlsFiles};
pub use tools::{Declared, toolbox};

use crate::args::{DEFAULT_DATA_DIR, LogFormat, SettingsArgs, StoreArgs};
use crate::fault::Fault;
use baton_api::door::Rate;
use baton_core::definition::JobType;
use baton_core::rules::Rules;
use baton_core::seal::Key;
use baton_store::{Backend, OpenError};
use baton_tools::Allow;
use serde::Deserialize;
use std::fmt;
use std::path::{Path, PathBuf};

const SEAL_KEY: &str = "BATON_SEAL_KEY";

/// The file. Every key is optional; one that is not here is a mistake.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    listen: Option<String>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    insecure_plaintext: Option<bool>,
    #[serde(default)]
    host_names: Vec<String>,
    data_dir: Option<PathBuf>,
    database: Option<Url>,
    log: Option<LogFormat>,
    log_filter: Option<String>,
    slots: Option<u32>,
    agent_slots: Option<u32>,
    rate_limit: Option<u32>,
    #[serde(default)]
    allow_hosts: Vec<String>,
    seal_key_file: Option<PathBuf>,
    #[serde(default)]
    queue: queue::Section,
    #[serde(default)]
    tools: tools::Section,
    #[serde(default)]
    job_types: job_types::Section,
}

/// Where things are remembered.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    pub data_dir: PathBuf,
    /// The embedded database if there is none.
    pub database: Option<Url>,
    /// From outside the data directory, if given.
    pub seal_key: Option<Key>,
}

#[derive(Clone, Debug)]
pub struct Settings {
    pub listen: Listen,
    pub store: StoreSettings,
    pub log: LogFormat,
    pub log_filter: Option<String>,
    /// The engine's own, unless given.
    pub slots: Option<u32>,
    /// Agents that are worked on at once; the engine's own, unless given.
    pub agent_slots: Option<u32>,
    /// What steps of runs may call.
    pub tools: Vec<Declared>,
    /// Types that workers serve, for every org.
    pub job_types: Vec<JobType>,
    pub rules: Rules,
    /// How fast one key may ask; as fast as it can if there is none.
    pub rate: Option<Rate>,
    /// Who may be called wherever they are.
    pub reach: Allow,
    /// Another admin key is to be made.
    pub new_admin_key: bool,
}

/// A database URL. It may hold a password, so it is never printed as it is.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct Url(String);

impl Url {
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The part between the user and the `@`, as it is written in the URL.
    fn password(&self) -> Option<&str> {
        let (_, rest) = self.0.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next()?;
        let (user, _) = authority.rsplit_once('@')?;
        user.split_once(':').map(|(_, password)| password).filter(|password| !password.is_empty())
    }

    pub fn has_password(&self) -> bool {
        self.password().is_some() || self.0.contains("password=")
    }

    /// Drivers repeat the URL in their errors.
    pub fn scrub(&self, text: &str) -> String {
        let text = text.replace(&self.0, &self.to_string());
        self.password().map_or_else(|| text.clone(), |password| text.replace(password, "***"))
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = match self.password() {
            Some(password) => self.0.replacen(&format!(":{password}@"), ":***@", 1),
            None => self.0.clone(),
        };
        // Parameters can hold one too.
        match shown.split_once('?') {
            Some((before, _)) => write!(f, "{before}?***"),
            None => f.write_str(&shown),
        }
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl StoreSettings {
    pub fn backend(&self) -> Backend {
        self.database.as_ref().map_or(Backend::Sqlite, |url| Backend::Postgres(url.reveal().to_owned()))
    }

    /// The file that remembers the last seals.
    pub fn seal_memory(&self) -> PathBuf {
        self.data_dir.join(self.backend().seal_heads())
    }
}

pub fn settings(args: &SettingsArgs) -> Result<Settings, Fault> {
    let mut file = read(args.store.config.as_deref())?;
    let keys = listen::Keys {
        listen: file.listen.take(),
        tls_cert: file.tls_cert.take(),
        tls_key: file.tls_key.take(),
        insecure_plaintext: file.insecure_plaintext,
        host_names: std::mem::take(&mut file.host_names),
    };
    let config = args.store.config.as_deref();
    // Beside the file; a path without a directory is in this one.
    let base = config.and_then(Path::parent).unwrap_or_else(|| Path::new(""));
    let tools = tools::declared(std::mem::take(&mut file.tools), base).map_err(|fault| in_file(fault, config))?;
    let job_types = job_types::declared(std::mem::take(&mut file.job_types)).map_err(|fault| in_file(fault, config))?;
    Ok(Settings {
        tools,
        job_types,
        listen: listen::listen(&args.listen, &keys)?,
        log: log_format(args.log.clone(), file.log)?,
        log_filter: given(args.log_filter.clone()).or(file.log_filter.clone()),
        slots: queue::slots(args.slots.as_ref(), file.slots, &file.queue)?,
        agent_slots: queue::agent_slots(args.agent_slots.as_ref(), file.agent_slots)?,
        rules: queue::rules(&args.queue, &file.queue)?,
        rate: rate(args.rate_limit.clone(), file.rate_limit)?,
        reach: reach(&args.allow_host, &file.allow_hosts)?,
        new_admin_key: args.new_admin_key,
        store: store_of(&args.store, file)?,
    })
}

fn reach(args: &[String], file: &[String]) -> Result<Allow, Fault> {
    let given = args.iter().map(|host| host.trim()).filter(|host| !host.is_empty()).collect::<Vec<_>>();
    let hosts = if given.is_empty() { file.iter().map(String::as_str).collect() } else { given };
    Allow::parse(hosts).map_err(|error| {
        invalid(error.to_string()).hint("it is set by --allow-host, by BATON_ALLOW_HOST, or in allow_hosts in the file")
    })
}

/// Requests a second; after a rest, those of two seconds at once.
fn rate(text: Option<String>, file: Option<u32>) -> Result<Option<Rate>, Fault> {
    let per_second = match given(text) {
        None => file.unwrap_or(Rate::default().per_second),
        Some(text) => text.parse().map_err(|_| {
            invalid(format!("rate_limit must be a number of requests a second, or 0, not {text:?}"))
                .hint("it is set by --rate-limit, by BATON_RATE_LIMIT, or as rate_limit in the file")
        })?,
    };
    Ok((per_second > 0).then(|| Rate { per_second, burst: per_second.saturating_mul(2) }))
}

fn log_format(text: Option<String>, file: Option<LogFormat>) -> Result<LogFormat, Fault> {
    match given(text).as_deref() {
        None => Ok(file.unwrap_or(LogFormat::Pretty)),
        Some("pretty") => Ok(LogFormat::Pretty),
        Some("json") => Ok(LogFormat::Json),
        Some(other) => Err(invalid(format!("log must be pretty or json, not {other:?}"))
            .hint("it is set by --log, by BATON_LOG_FORMAT, or as log in the file")),
    }
}

pub fn store(args: &StoreArgs) -> Result<StoreSettings, Fault> {
    store_of(args, read(args.config.as_deref())?)
}

fn store_of(args: &StoreArgs, file: File) -> Result<StoreSettings, Fault> {
    let data_dir = args.data_dir.clone().filter(|dir| !dir.as_os_str().is_empty()).or(file.data_dir);
    let database = given(args.database.clone()).map(Url).or(file.database.filter(|url| !url.0.is_empty()));
    if let Some(url) = &database
        && !["postgres://", "postgresql://"].iter().any(|scheme| url.0.starts_with(scheme))
    {
        return Err(Fault::open(&OpenError::Url("it must begin with postgres://".to_owned()))
            .hint("leave it out to use the embedded database in the data directory"));
    }
    Ok(StoreSettings {
        data_dir: data_dir.unwrap_or_else(|| PathBuf::from(DEFAULT_DATA_DIR)),
        database,
        seal_key: seal_key(file.seal_key_file.as_deref())?,
    })
}

/// An empty variable is how many tools leave one out.
fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

fn read(path: Option<&Path>) -> Result<File, Fault> {
    let Some(path) = path.filter(|path| !path.as_os_str().is_empty()) else { return Ok(File::default()) };
    let text = std::fs::read_to_string(path)
        .map_err(|error| invalid(format!("cannot read the configuration {}: {error}", path.display())))?;
    let mut file = parse(&text).map_err(|error| invalid(format!("{}: {error}", path.display())))?;
    // Where the file is, not where somebody happened to start Baton.
    if let Some(base) = path.parent() {
        for inside in
            [&mut file.data_dir, &mut file.seal_key_file, &mut file.tls_cert, &mut file.tls_key].into_iter().flatten()
        {
            *inside = base.join(&*inside);
        }
    }
    Ok(file)
}

/// The error names line and key, but not the line's text: it may be the one with the password.
fn parse(text: &str) -> Result<File, String> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        let message = error.message();
        line.map_or_else(|| message.to_owned(), |line| format!("line {line}: {message}"))
    })
}

fn seal_key(file: Option<&Path>) -> Result<Option<Key>, Fault> {
    let (from, text) = match (std::env::var(SEAL_KEY).ok().filter(|text| !text.is_empty()), file) {
        (Some(text), _) => (SEAL_KEY.to_owned(), text),
        (None, Some(path)) => {
            let cannot = |error| invalid(format!("cannot read the seal key {}: {error}", path.display()));
            (path.display().to_string(), std::fs::read_to_string(path).map_err(cannot)?)
        }
        (None, None) => return Ok(None),
    };
    match baton_engine::node::parse_seal_key(&text) {
        Some(key) => Ok(Some(key)),
        None => Err(invalid(format!("the seal key in {from} must be 64 hexadecimal digits"))
            .hint("make one with: openssl rand -hex 32")),
    }
}

/// Says which file it is about.
fn in_file(mut fault: Fault, path: Option<&Path>) -> Fault {
    if let (Fault::Told { problem, .. }, Some(path)) = (&mut fault, path) {
        problem.detail = format!("{}: {}", path.display(), problem.detail);
    }
    fault
}

fn invalid(detail: String) -> Fault {
    Fault::new("config_invalid", detail)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::args::ListenArgs;
    use crate::fault::Exit;

    pub fn code(fault: &Fault) -> &str {
        match fault {
            Fault::Told { problem, .. } => &problem.code,
            Fault::NobodyReads | Fault::Left => "",
        }
    }

    #[test]
    fn an_unknown_key_in_the_file_is_refused_with_its_line_and_without_its_text() {
        let error = parse("listen = \"127.0.0.1:1\"\n\ncolour = \"secret-blue\"\n").err().unwrap();
        assert!(error.contains("line 3") && error.contains("colour"), "{error}");
        assert!(!error.contains("secret"), "{error}");
        let error = parse("slots = \"many\"").err().unwrap();
        assert!(error.contains("line 1"), "{error}");
    }

    #[test]
    fn the_password_is_never_shown() {
        let url = |text: &str| Url(text.to_owned());
        assert_eq!(url("postgres://me:pa:ss@db/b").to_string(), "postgres://me:***@db/b");
        assert_eq!(url("postgres://me@db/b").to_string(), "postgres://me@db/b");
        assert_eq!(url("postgres://db/b?user=me&password=x").to_string(), "postgres://db/b?***");
        assert_eq!(url("postgres://me:p@ss@db/b").to_string(), "postgres://me:***@db/b");
        let secret = url("postgres://me:hunter2@db/b");
        assert_eq!(
            secret.scrub("cannot use postgres://me:hunter2@db/b: hunter2?"),
            "cannot use postgres://me:***@db/b: ***?"
        );
        assert!(!format!("{secret:?}").contains("hunter2"));
    }

    #[test]
    fn flags_win_over_the_file_and_its_paths_are_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("baton.toml");
        let text = "listen = \"127.0.0.1:1\"\ndata_dir = \"data\"\nslots = 3\nlog = \"json\"\n\
                    tls_cert = \"c.pem\"\ntls_key = \"/k.pem\"\nhost_names = [\"a.example\"]\nagent_slots = 9\n\
                    insecure_plaintext = false\n[queue]\nmax_global = 7\n";
        std::fs::write(&path, text).unwrap();
        let store = StoreArgs { config: Some(path.clone()), ..StoreArgs::default() };
        let args = SettingsArgs { store: store.clone(), ..SettingsArgs::default() };
        let read = settings(&args).unwrap();
        assert_eq!((read.listen.address.port(), read.listen.name.as_deref()), (1, Some("a.example")));
        assert_eq!(read.listen.tls, Some(TlsFiles { cert: dir.path().join("c.pem"), key: "/k.pem".into() }));
        assert_eq!(read.store.data_dir, dir.path().join("data"));
        assert_eq!((read.slots, read.log, read.rules.max_global), (Some(3), LogFormat::Json, 7));
        assert_eq!((read.agent_slots, read.tools.len()), (Some(9), 0));
        let args = SettingsArgs {
            listen: ListenArgs { listen: Some("127.0.0.1:2".to_owned()), ..ListenArgs::default() },
            slots: Some("4".to_owned()),
            log: Some("pretty".to_owned()),
            store: StoreArgs { data_dir: Some("elsewhere".into()), ..store },
            ..SettingsArgs::default()
        };
        let read = settings(&args).unwrap();
        assert_eq!(read.listen.address.port(), 2);
        assert_eq!(read.store.data_dir, Path::new("elsewhere"));
        assert_eq!((read.slots, read.log), (Some(4), LogFormat::Pretty));
    }

    #[test]
    fn what_cannot_be_used_is_a_matter_of_configuration() {
        let database = |url: &str| StoreArgs { database: Some(url.to_owned()), ..StoreArgs::default() };
        let fault = store(&database("mysql://x")).unwrap_err();
        assert_eq!((code(&fault), fault.exit()), ("database_url", Exit::Config));
        assert!(store(&database("")).unwrap().database.is_none(), "empty means not given");
        let log = |text: &str| settings(&SettingsArgs { log: Some(text.to_owned()), ..SettingsArgs::default() });
        assert_eq!(code(&log("loud").unwrap_err()), "config_invalid");
        assert_eq!(log("").unwrap().log, LogFormat::Pretty, "empty means not given");
        let missing = StoreArgs { config: Some("/nowhere/baton.toml".into()), ..StoreArgs::default() };
        assert_eq!(code(&store(&missing).unwrap_err()), "config_invalid");
    }
}
