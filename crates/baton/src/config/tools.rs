//! `[tools.NAME]` in the file: programs that steps of runs may call.
//!
//! What is relative means the directory of the file, not wherever somebody happened to start Baton: a
//! program is started there too, unless it says otherwise.

use super::invalid;
use crate::fault::Fault;
use baton_core::credits::Credits;
use baton_core::limits::{LANE_LIMIT, PLAN_ATTEMPTS};
use baton_core::name::ToolName;
use baton_core::plan::{self, Doer, Effect};
use baton_core::span::SpanText;
use baton_engine::run::{BadTool, ProcessTool, Toolbox};
use baton_tools::process::{Declaration, Options, Process, Processes};
use serde::Deserialize as _;
use std::collections::BTreeMap;
use std::path::Path;
use toml::{Table, Value};

/// Tools that one file may declare.
const TOOLS: usize = 256;
/// A program that is started here for every call.
const PROCESS: &str = "process";
/// Workers outside make the calls.
const REMOTE: &str = "remote";

/// As the file has them, by their names.
pub type Section = BTreeMap<String, Table>;

/// A tool that steps may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    pub name: ToolName,
    pub about: plan::Tool,
    pub by: By,
}

/// Who makes the calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    Process(Process),
    /// Workers, so many calls at once.
    Workers {
        limit: Option<u32>,
    },
}

impl Declared {
    /// What is started for every call, if something is.
    pub const fn program(&self) -> Option<&Process> {
        match &self.by {
            By::Process(process) => Some(process),
            By::Workers { .. } => None,
        }
    }
}

/// A tool that workers serve, as the file has it.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RemoteTool {
    effect: Option<String>,
    price: Option<String>,
    timeout: Option<String>,
    attempts: Option<String>,
    limit: Option<u32>,
}

/// What there is to call, with what is always there.
pub fn toolbox(declared: &[Declared]) -> Result<Toolbox, Fault> {
    let processes = Processes::new(Options::default());
    let mut toolbox = Toolbox::default();
    for Declared { name, about, by } in declared {
        let added = match by {
            By::Process(process) => {
                let tool = ProcessTool { processes: processes.clone(), process: process.clone() };
                toolbox.add(name.clone(), about.clone(), tool).map_err(BadTool::from)
            }
            By::Workers { limit } => toolbox.add_remote(name.clone(), about.clone(), *limit),
        };
        added.map_err(|error| invalid(format!("tools.{name}: {error}")))?;
    }
    Ok(toolbox)
}

/// Those of a file that is in this directory.
pub fn declared(section: Section, base: &Path) -> Result<Vec<Declared>, Fault> {
    if section.len() > TOOLS {
        return Err(invalid(format!("tools: {} are declared, at most {TOOLS} can be", section.len())));
    }
    section.into_iter().map(|(name, table)| one(&name, table, base)).collect()
}

fn one(name: &str, mut table: Table, base: &Path) -> Result<Declared, Fault> {
    let bad = |at: &str, why: String| invalid(format!("tools.{name}{at}: {why}"));
    let known: ToolName = name.parse().map_err(|error| bad("", format!("{error}")))?;
    if plan::Tools::BUILTIN.iter().any(|(builtin, _)| *builtin == name) {
        return Err(bad("", "sleep, wait and ask are always there and cannot be declared".to_owned()));
    }
    match table.remove("kind") {
        Some(Value::String(kind)) if kind == PROCESS => {}
        Some(Value::String(kind)) if kind == REMOTE => return remote(known, table),
        Some(_) => return Err(bad(".kind", format!("only {PROCESS:?} and {REMOTE:?} are known"))),
        None => return Err(bad(".kind", format!("it must be there, and say {PROCESS:?} or {REMOTE:?}"))),
    }
    // A value that is no text must not be repeated in an error: it may be a secret.
    let plain = |env: &Value| env.as_table().is_some_and(|all| all.values().all(Value::is_str));
    if table.get("env").is_some_and(|env| !plain(env)) {
        return Err(bad(".env", "names with values that are text are expected".to_owned()));
    }
    numbers_as_text(&mut table);
    let mut declaration = Declaration::deserialize(table).map_err(|error| bad("", error.message().to_owned()))?;
    let base = std::path::absolute(base).unwrap_or_else(|_| base.to_owned());
    declaration.cwd = Some(declaration.cwd.map_or_else(|| base.clone(), |cwd| base.join(cwd)));
    if let Some(program) = declaration.argv.first_mut().filter(|program| program.contains('/')) {
        *program = base.join(&*program).to_string_lossy().into_owned();
    }
    let process = declaration.check().map_err(|error| bad("", error.to_string()))?;
    let about = plan::Tool {
        doer: Doer::Tool,
        effect: effect(declaration.effect.as_deref()).map_err(|why| bad(".effect", why))?,
        price: price(declaration.price.as_deref()).map_err(|why| bad(".price", why))?,
        timeout: timeout(declaration.timeout.as_deref()).map_err(|why| bad(".timeout", why))?,
        attempts: attempts(declaration.attempts.as_deref()).map_err(|why| bad(".attempts", why))?,
    };
    Ok(Declared { name: known, about, by: By::Process(process) })
}

fn remote(name: ToolName, mut table: Table) -> Result<Declared, Fault> {
    let bad = |at: &str, why: String| invalid(format!("tools.{name}{at}: {why}"));
    numbers_as_text(&mut table);
    let tool = RemoteTool::deserialize(table).map_err(|error| bad("", error.message().to_owned()))?;
    if tool.limit.is_some_and(|limit| !(1..=LANE_LIMIT).contains(&limit)) {
        return Err(bad(".limit", format!("it must be a whole number from 1 to {LANE_LIMIT}")));
    }
    let about = plan::Tool {
        doer: Doer::Remote,
        effect: effect(tool.effect.as_deref()).map_err(|why| bad(".effect", why))?,
        price: price(tool.price.as_deref()).map_err(|why| bad(".price", why))?,
        timeout: timeout(tool.timeout.as_deref()).map_err(|why| bad(".timeout", why))?,
        attempts: attempts(tool.attempts.as_deref()).map_err(|why| bad(".attempts", why))?,
    };
    Ok(Declared { by: By::Workers { limit: tool.limit }, name, about })
}

/// `attempts = 3` and `price = 2` mean what they would in quotes.
fn numbers_as_text(table: &mut Table) {
    for key in ["attempts", "price"] {
        if let Some(value) = table.get_mut(key)
            && let Value::Integer(number) = value
        {
            *value = Value::String(number.to_string());
        }
    }
}

/// Nothing is assumed about a program.
fn effect(text: Option<&str>) -> Result<Effect, String> {
    let all = [Effect::Pure, Effect::Idempotent, Effect::Unsafe];
    let Some(text) = text else { return Ok(Effect::Unsafe) };
    let found = all.into_iter().find(|effect| effect.as_str() == text);
    found.ok_or_else(|| format!("it must be pure, idempotent or unsafe, not {text:?}"))
}

fn price(text: Option<&str>) -> Result<Credits, String> {
    text.map_or(Ok(Credits::ZERO), |text| text.parse().map_err(|error| format!("{error}")))
}

fn timeout(text: Option<&str>) -> Result<Option<baton_core::time::Span>, String> {
    let read = |text: &str| text.parse::<SpanText>().map(SpanText::span).map_err(|error| error.to_string());
    text.map(read).transpose()
}

fn attempts(text: Option<&str>) -> Result<Option<u32>, String> {
    let read = |text: &str| {
        let number = text.parse().ok().filter(|number| (1..=PLAN_ATTEMPTS).contains(number));
        number.ok_or_else(|| format!("it must be a whole number from 1 to {PLAN_ATTEMPTS}, not {text:?}"))
    };
    text.map(read).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::time::Span;

    fn read(text: &str) -> Result<Vec<Declared>, Fault> {
        #[derive(serde::Deserialize)]
        struct File {
            tools: Section,
        }
        declared(toml::from_str::<File>(text).unwrap().tools, Path::new("/etc/baton"))
    }

    #[track_caller]
    fn refused(text: &str, part: &str) {
        let said = format!("{:?}", read(text).unwrap_err());
        assert!(said.contains(part) && !said.contains("hunter2"), "{text}: {said}");
    }

    #[test]
    fn what_is_relative_means_the_directory_of_the_file() {
        let all = read(
            "[tools.a]\nkind = \"process\"\nargv = [\"bin/a\", \"x\"]\ncwd = \"work\"\n\
             [tools.b]\nkind = \"process\"\nargv = [\"sh\", \"b.sh\"]\n[tools.c]\nkind = \"process\"\nargv = [\"/c\"]\n",
        )
        .unwrap();
        let processes: Vec<_> = all.iter().filter_map(Declared::program).collect();
        let places: Vec<_> = processes.iter().map(|process| (process.program(), process.cwd())).collect();
        assert_eq!(places[0], (Path::new("/etc/baton/bin/a"), Path::new("/etc/baton/work")));
        assert!(places[1].0.ends_with("sh") && places[1].0.is_absolute());
        assert_eq!((places[1].1, places[2]), (Path::new("/etc/baton"), (Path::new("/c"), Path::new("/etc/baton"))));
    }

    #[test]
    fn nothing_is_assumed_about_a_program_and_what_is_said_is_taken() {
        let plain = read("[tools.a]\nkind = \"process\"\nargv = [\"/a\"]\n").unwrap().remove(0).about;
        let nothing = plan::Tool {
            doer: Doer::Tool,
            effect: Effect::Unsafe,
            price: Credits::ZERO,
            timeout: None,
            attempts: None,
        };
        assert_eq!(plain, nothing);
        let full = read(
            "[tools.a]\nkind = \"process\"\nargv = [\"/a\"]\neffect = \"pure\"\nprice = \"0.5\"\nattempts = 2\ntimeout = \"1m30s\"\n",
        );
        let about = full.unwrap().remove(0).about;
        assert_eq!((about.effect, about.price.to_string().as_str()), (Effect::Pure, "0.5"));
        assert_eq!((about.timeout, about.attempts), (Some(Span::secs(90)), Some(2)));
        let boxed = toolbox(&read("[tools.a]\nkind = \"process\"\nargv = [\"/a\"]\n").unwrap()).unwrap();
        assert_eq!(boxed.known().names().map(ToolName::as_str).collect::<Vec<_>>(), ["a", "ask", "sleep", "wait"]);
    }

    #[test]
    fn a_tool_that_workers_serve_says_no_more_than_what_it_is_like() {
        let all = read("[tools.a]\nkind = \"remote\"\neffect = \"pure\"\nprice = 2\nlimit = 4\n").unwrap();
        assert_eq!((all[0].about.doer, all[0].about.effect), (Doer::Remote, Effect::Pure));
        assert_eq!(all[0].by, By::Workers { limit: Some(4) });
        let boxed = toolbox(&all).unwrap();
        assert_eq!(boxed.remote().map(|kind| kind.name.as_str()).collect::<Vec<_>>(), ["tool.a"]);
        refused("[tools.a]\nkind = \"remote\"\nargv = [\"/a\"]\n", "tools.a: unknown field `argv`");
        refused("[tools.a]\nkind = \"remote\"\nlimit = 0\n", "tools.a.limit");
        let long = read(&format!("[tools.{}]\nkind = \"remote\"\n", "a".repeat(64))).unwrap();
        let refused = toolbox(&long).err().map(|fault| format!("{fault:?}"));
        assert!(refused.is_some_and(|why| why.contains("too long")));
    }

    #[test]
    fn what_cannot_be_used_is_named_by_its_path_and_no_secret_is_repeated() {
        let with = |line: &str| format!("[tools.a]\nkind = \"process\"\nargv = [\"/a\"]\n{line}\n");
        refused(&with("shell = true"), "tools.a: unknown field `shell`");
        refused(&with("effect = \"harmless\""), "tools.a.effect");
        refused(&with("price = \"-1\""), "tools.a.price");
        refused(&with("attempts = 11"), "tools.a.attempts");
        refused(&with("timeout = \"soon\""), "tools.a.timeout");
        refused(&with("env = \"TOKEN=hunter2\""), "tools.a.env");
        refused(&with("env = { TOKEN = [\"hunter2\"] }"), "tools.a.env");
        refused(&with("env = { BATON_KEY = \"hunter2\" }"), "tools.a: BATON_KEY");
        refused(&with("memory_mb = 1"), "tools.a: memory_mb");
        refused("[tools.a]\nargv = [\"/a\"]\n", "tools.a.kind");
        refused("[tools.a]\nkind = \"http\"\n", "tools.a.kind");
        refused("[tools.a]\nkind = \"process\"\n", "tools.a: missing field `argv`");
        refused("[tools.sleep]\nkind = \"process\"\nargv = [\"/a\"]\n", "tools.sleep");
        refused("[tools.Loud]\nkind = \"process\"\nargv = [\"/a\"]\n", "tools.Loud");
        refused("[tools.a]\nkind = \"process\"\nargv = [\"no-such-program-at-all\"]\n", "no-such-program");
    }

    #[test]
    fn the_examples_name_tools_that_their_configuration_declares() {
        use baton_wire::source::{Format, read};
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let store = crate::args::StoreArgs { config: Some(dir.join("baton.toml")), ..Default::default() };
        let args = crate::args::SettingsArgs { store, ..Default::default() };
        let toolbox = toolbox(&super::super::settings(&args).unwrap().tools).unwrap();
        let documents = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
        let documents: Vec<_> = documents.filter(|path| path.extension().is_some_and(|kind| kind == "yaml")).collect();
        assert!(documents.len() >= 8, "{documents:?}");
        for path in documents {
            let (document, _) = read(&std::fs::read_to_string(&path).unwrap(), Format::Yaml).unwrap();
            if let Err(problems) = plan::check(&document, toolbox.known()) {
                panic!("{}: {problems:#?}", path.display());
            }
        }
    }
}
