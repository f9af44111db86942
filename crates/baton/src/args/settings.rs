//! How a server is set up.

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use std::path::PathBuf;

/// Empty passes here and means "not given" later: many tools leave a variable out that way.
pub fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// Where things are remembered. Flags and environment win over the file.
#[derive(Args, Clone, Default)]
pub struct StoreArgs {
    /// Where data and the node's own files are [default: ./.baton]
    #[arg(long, env = "BATON_DATA_DIR", value_name = "DIR", value_parser = path())]
    pub data_dir: Option<PathBuf>,
    /// A postgres:// URL; without one the embedded database in the data directory is used
    #[arg(long, env = "BATON_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub database: Option<String>,
    /// A TOML file with: listen, tls_cert, tls_key, insecure_plaintext, host_names, data_dir, database, log, log_filter, slots, agent_slots, rate_limit, allow_hosts, seal_key_file, [queue], [tools.NAME]
    #[arg(long, env = "BATON_CONFIG", value_name = "FILE", value_parser = path())]
    pub config: Option<PathBuf>,
}

/// Where a server listens, and how.
#[derive(Args, Clone, Default)]
pub struct ListenArgs {
    /// Where to listen; an address that others reach needs TLS [default: 127.0.0.1:22866]
    #[arg(long, env = "BATON_LISTEN", value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Speak HTTPS with this certificate: a PEM file, those that vouch for it after it
    #[arg(long, env = "BATON_TLS_CERT", value_name = "FILE", value_parser = path())]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's private key: a PEM file
    #[arg(long, env = "BATON_TLS_KEY", value_name = "FILE", value_parser = path())]
    pub tls_key: Option<PathBuf>,
    /// Listen without TLS where others can read what is sent; for a proxy that speaks TLS in front of it
    #[arg(long, env = "BATON_INSECURE_PLAINTEXT", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub insecure_plaintext: Option<String>,
    /// A name by which clients reach it; loopback always passes. May be repeated
    #[arg(long, env = "BATON_HOST_NAME", value_name = "NAME", value_delimiter = ',')]
    pub host_name: Vec<String>,
}

/// What a server needs to know besides.
#[derive(Args, Clone, Default)]
pub struct SettingsArgs {
    #[command(flatten)]
    pub listen: ListenArgs,
    #[command(flatten)]
    pub store: StoreArgs,
    /// How logs look: pretty or json [default: pretty]
    #[arg(long, env = "BATON_LOG_FORMAT", value_name = "FORMAT")]
    pub log: Option<String>,
    /// What is logged, such as info or baton_engine=debug [default: warn for up, info for serve]
    #[arg(long, env = "BATON_LOG", value_name = "FILTER")]
    pub log_filter: Option<String>,
    /// Jobs that run at once in this process, 1 to 1024 [default: 2]
    #[arg(long, env = "ORCHESTRATOR_QUEUE_GLOBAL_CONCURRENCY", value_name = "N")]
    pub slots: Option<String>,
    /// Agents of runs that are worked on at once in this process, 1 to 1024; those that wait take no place [default: 64]
    #[arg(long, env = "BATON_AGENT_SLOTS", value_name = "N")]
    pub agent_slots: Option<String>,
    /// Requests that one key may send in a second; 0 is as many as it can [default: 1000]
    #[arg(long, env = "BATON_RATE_LIMIT", value_name = "N")]
    pub rate_limit: Option<String>,
    /// A host that may be called although its address is not public, such as localhost:8080. May be repeated
    #[arg(long, env = "BATON_ALLOW_HOST", value_name = "HOST[:PORT]", value_delimiter = ',')]
    pub allow_host: Vec<String>,
    /// Make another admin key and keep it in the data directory: for those who have lost theirs
    #[arg(long)]
    pub new_admin_key: bool,
    #[command(flatten)]
    pub queue: QueueArgs,
}

/// What an operator may set about the queue. Texts here: they are understood together with what
/// the file says, and refused in the same words.
#[derive(Args, Clone, Default)]
pub struct QueueArgs {
    /// Take jobs in and hand them out: true or false, or 1 or 0 [default: true]
    #[arg(long, env = "ORCHESTRATOR_QUEUE_ENABLED", value_name = "BOOL", help_heading = "Queue")]
    pub queue_enabled: Option<String>,
    /// Jobs that may wait in one project's lane [default: 100]
    #[arg(long, env = "ORCHESTRATOR_QUEUE_MAX_PER_PROJECT", value_name = "N", help_heading = "Queue")]
    pub max_per_project: Option<String>,
    /// Jobs that may wait in all project lanes together [default: 500]
    #[arg(long, env = "ORCHESTRATOR_QUEUE_MAX_GLOBAL", value_name = "N", help_heading = "Queue")]
    pub max_global: Option<String>,
    /// Executions of a job whose type does not say [default: 2]
    #[arg(long, env = "ORCHESTRATOR_QUEUE_MAX_ATTEMPTS", value_name = "N", help_heading = "Queue")]
    pub max_attempts: Option<String>,
    /// How long one execution may take where the type does not say [default: 60000]
    #[arg(long, env = "ORCHESTRATOR_QUEUE_DEFAULT_TIMEOUT_MS", value_name = "MS", help_heading = "Queue")]
    pub default_timeout_ms: Option<String>,
    /// A background job that has waited so long goes first now and then [default: 15000]
    #[arg(long, env = "ORCHESTRATOR_QUEUE_BACKGROUND_AGING_MS", value_name = "MS", help_heading = "Queue")]
    pub background_aging_ms: Option<String>,
    /// Interactive jobs in a row after which it does [default: 3]
    #[arg(long, env = "ORCHESTRATOR_QUEUE_MAX_INTERACTIVE_BURST", value_name = "N", help_heading = "Queue")]
    pub max_interactive_burst: Option<String>,
    /// Ended jobs that are kept per project [default: 500]
    #[arg(long, env = "BATON_RETAINED_JOBS", value_name = "N", help_heading = "Queue")]
    pub retained_jobs: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Pretty,
    Json,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton up
  baton up --listen 127.0.0.1:8080 --data-dir /var/tmp/baton
  baton up --database postgres://me@localhost/baton
  baton up --new-admin-key                   after the admin key was lost

A damaged database file is moved aside, and an empty one is started.")]
pub struct UpArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton serve --config /etc/baton.toml --log json
  BATON_DATABASE_URL=postgres://baton@db/baton baton serve
  baton serve --listen 0.0.0.0:22866 --tls-cert baton.pem --tls-key baton.key --host-name baton.example.com
  baton serve --start-empty                  go on after a damaged database was moved aside

SIGTERM and SIGINT let running work end or give it back, for at most 30 seconds.")]
pub struct ServeArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// If the database file is damaged, move it aside and start with an empty one
    #[arg(long)]
    pub start_empty: bool,
}
