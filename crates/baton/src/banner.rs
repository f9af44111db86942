//! What `up` says once it is up.

use crate::args::DEFAULT_SERVER;
use crate::config::StoreSettings;
use crate::fault::Fault;
use crate::paint::{bad, bold, dim, good};
use crate::print;
use crate::version::VERSION;
use baton_api::limits::TICKET_LIFE;
use baton_core::credits::Credits;
use baton_store::SQLITE_FILE;
use baton_wire::Token;
use std::io::Write as _;
use std::path::Path;

/// A run that needs no tools.
const FIRST_RUN: &str =
    r#"{"name":"hello","plan":{"agents":[{"tasks":[{"steps":[{"tool":"sleep","input":{"for":"1s"}}]}]}]}}"#;

/// What happens once.
pub struct News<'a> {
    /// Where a damaged database went.
    pub moved: Option<&'a Path>,
    /// The first admin key, or another one, if it was just made.
    pub first: Option<&'a Token>,
    /// Credits that were given to begin with.
    pub credits: Option<Credits>,
    /// Where a browser can come in, once and soon.
    pub login: Option<&'a str>,
}

pub fn say(url: &str, store: &StoreSettings, news: &News<'_>) -> Result<(), Fault> {
    let dir = std::path::absolute(&store.data_dir).unwrap_or_else(|_| store.data_dir.clone());
    let kept = match &store.database {
        None => format!("{} (embedded database)", dir.display()),
        Some(url) => format!("{url}; the node's own files in {}", dir.display()),
    };
    let baton = program();
    let server = if url == DEFAULT_SERVER { String::new() } else { format!(" --server {url}") };
    let mut out = print::out();
    if let Some(moved) = news.moved {
        let moved = std::path::absolute(moved).unwrap_or_else(|_| moved.to_owned());
        let (what, left) = if moved.join(SQLITE_FILE).exists() {
            ("WAS DAMAGED", "the damaged file")
        } else {
            ("IS GONE", "what was left of it")
        };
        writeln!(out, "{}", bad(format_args!("THE DATABASE {what}: Baton has started with an empty one.")))?;
        writeln!(out, "Nothing was deleted; {left} is in {}", moved.display())?;
        writeln!(out)?;
    }
    writeln!(out, "{} {VERSION} {}", bold("Baton"), good("is up"))?;
    writeln!(out)?;
    writeln!(out, "  listens on  {}", bold(url))?;
    writeln!(out, "  data in     {kept}")?;
    writeln!(out)?;
    if let Some(first) = news.first {
        writeln!(out, "  {}", bold("the admin key, shown this once and kept in admin.key there:"))?;
        writeln!(out, "  {}", first.reveal())?;
        writeln!(out)?;
    }
    if let Some(credits) = news.credits {
        writeln!(
            out,
            "  {} to try things out; more with: baton credits grant",
            bold(format_args!("{credits} credits"))
        )?;
        writeln!(out)?;
    }
    if let Some(login) = news.login {
        let life = TICKET_LIFE.as_secs();
        writeln!(
            out,
            "  {}",
            bold(format_args!("for the browser, once and within {life} seconds (then: baton login):"))
        )?;
        writeln!(out, "  {login}")?;
        writeln!(out)?;
    }
    writeln!(out, "Try next, in another terminal; the key is found by itself:")?;
    writeln!(out)?;
    writeln!(out, "  echo '{FIRST_RUN}' | {baton} run -{server}")?;
    writeln!(out, "  {baton} jobs enqueue echo --project demo --payload '{{\"message\":\"hello\"}}' --wait{server}")?;
    writeln!(out, "  {baton} jobs list --project demo{server}")?;
    writeln!(out, "  {baton} events tail --from-start{server}")?;
    writeln!(out)?;
    writeln!(out, "{}", dim("Ctrl-C stops it. What was accepted goes on when it is started again."))?;
    out.flush()?;
    Ok(())
}

/// How to call this very program again.
fn program() -> String {
    let by_name = std::env::args_os().next().is_some_and(|name| Path::new(&name).components().count() == 1);
    let (Ok(exe), false) = (std::env::current_exe(), by_name) else { return "baton".to_owned() };
    let near =
        std::env::current_dir().ok().and_then(|here| exe.strip_prefix(here).ok().map(|p| Path::new(".").join(p)));
    let path = near.unwrap_or(exe).display().to_string();
    let plain = path.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-".contains(&b));
    if plain { path } else { format!("'{}'", path.replace('\'', r"'\''")) }
}
