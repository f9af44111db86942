//! `baton contexts`: servers and keys under names, in a file that only its owner can read.

use crate::args::{AddContextArgs, ContextsArgs, ContextsCommand};
use crate::fault::Fault;
use crate::paint::dim;
use crate::print;
use comfy_table::Row;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Contexts {
    /// The one that is meant where none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<String>,
    contexts: BTreeMap<String, Context>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    pub server: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl Contexts {
    /// The file they are kept in.
    pub fn path() -> Result<PathBuf, Fault> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let config = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")));
        let config = config.ok_or_else(|| {
            Fault::new("file_unusable", "there is no place for contexts: neither XDG_CONFIG_HOME nor HOME is set")
        })?;
        Ok(config.join("baton").join("contexts.toml"))
    }

    /// Those there are; none if nobody made any, or there is no place for them.
    pub fn read() -> Result<Self, Fault> {
        let Ok(path) = Self::path() else { return Ok(Self::default()) };
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(Fault::new("file_unusable", format!("{}: {error}", path.display()))),
        };
        // What is wrong in it may be a key: its words are not repeated.
        toml::from_str(&text).map_err(|_| Fault::new("file_unusable", format!("{} is not understood", path.display())))
    }

    fn write(&self) -> Result<(), Fault> {
        let path = Self::path()?;
        let failed = |error: io::Error| Fault::new("file_unusable", format!("{}: {error}", path.display()));
        let dir = path.parent().map_or_else(PathBuf::new, PathBuf::from);
        fs::create_dir_all(&dir).map_err(failed)?;
        let text = toml::to_string(self).map_err(|e| Fault::new("file_unusable", e.to_string()))?;
        let draft = path.with_extension("new");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&draft).map_err(failed)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&draft, &path).map_err(failed)
    }

    pub fn len(&self) -> usize {
        self.contexts.len()
    }

    /// The one that is named, or else the current one.
    pub fn find(&self, name: Option<&str>) -> Result<Option<&Context>, Fault> {
        let Some(name) = name.or(self.current.as_deref()) else { return Ok(None) };
        match self.contexts.get(name) {
            Some(context) => Ok(Some(context)),
            None => Err(Fault::usage(format!("there is no context called {name}"))
                .hint("contexts are listed by: baton contexts list")),
        }
    }
}

impl Contexts {
    fn shown(&self) -> Vec<Shown> {
        let shown = |(name, context): (&String, &Context)| Shown {
            name: name.clone(),
            server: context.server.clone(),
            has_key: context.key.is_some(),
            current: self.current.as_ref() == Some(name),
        };
        self.contexts.iter().map(shown).collect()
    }
}

pub fn run(args: ContextsArgs) -> Result<(), Fault> {
    match args.command {
        ContextsCommand::Add(args) => add(args),
        ContextsCommand::Use(args) => {
            let mut all = Contexts::read()?;
            all.find(Some(&args.name))?;
            all.current = Some(args.name.clone());
            all.write()?;
            say(&all.shown(), args.json)
        }
        ContextsCommand::Remove(args) => {
            let mut all = Contexts::read()?;
            all.find(Some(&args.name))?;
            all.contexts.remove(&args.name);
            all.current = all.current.filter(|name| *name != args.name);
            all.write()?;
            say(&all.shown(), args.json)
        }
        ContextsCommand::List(args) => say(&Contexts::read()?.shown(), args.json),
    }
}

fn add(args: AddContextArgs) -> Result<(), Fault> {
    let mut all = Contexts::read()?;
    let key = match args.key_file {
        Some(path) => Some(crate::input::read(&path)?.trim().to_owned()),
        None => args.key,
    };
    if key.as_ref().is_some_and(|key| key.parse::<baton_wire::Token>().is_err()) {
        return Err(Fault::usage("that is no key; one begins with bk_ and has 100 characters"));
    }
    crate::target::url(&args.server)?;
    all.current.get_or_insert_with(|| args.name.clone());
    all.contexts.insert(args.name, Context { server: args.server, key });
    all.write()?;
    say(&all.shown(), args.json)
}

/// All there are, after whatever was done to them.
fn say(shown: &[Shown], json: bool) -> Result<(), Fault> {
    if json {
        return print::json(&serde_json::json!({ "contexts": shown }));
    }
    if shown.is_empty() {
        writeln!(print::out(), "{}", dim("no contexts"))?;
        return Ok(());
    }
    let row = |one: &Shown| {
        let (key, current) = (if one.has_key { "yes" } else { "" }, if one.current { "*" } else { "" });
        Row::from(vec![print::text(current), print::text(&one.name), print::text(&one.server), print::text(key)])
    };
    print::table(&["", "NAME", "SERVER", "KEY"], shown.iter().map(row))
}

/// A context without its key.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    name: String,
    server: String,
    has_key: bool,
    current: bool,
}
