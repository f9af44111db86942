//! The run document: read, adjusted by flags, and what is wrong with it shown where it stands.

use crate::args::RunArgs;
use crate::fault::Fault;
use crate::input;
use crate::paint::{bad, bold, dim};
use crate::print;
use baton_wire::source::{Format, Place, Positions, read};
use serde_json::{Map, Value, json};
use std::io::{self, Write as _};
use std::path::Path;

/// Lines longer than this are not shown: nobody finds the place in them.
const SHOWN_CHARS: usize = 160;

pub struct Source {
    name: String,
    text: String,
    pub value: Value,
    places: Positions,
}

impl Source {
    pub fn read(path: &Path, json: bool) -> Result<Self, Fault> {
        let text = input::read(path)?;
        let name = if path == Path::new("-") { "stdin".to_owned() } else { path.display().to_string() };
        match read(&text, format(path, &text)) {
            Ok((value, places)) => Ok(Self { name, text, value, places }),
            Err(error) => {
                let place = Place { line: error.line, column: error.column };
                if !json {
                    show(&name, &text, place, &error.message, "document_invalid")?;
                }
                Err(Fault::new("document_invalid", format!("{name}: {error}"))
                    .hint("what a document looks like: docs/runs.md, and examples/ has some"))
            }
        }
    }

    /// Flags win over what the document says.
    pub fn adjust(&mut self, args: &RunArgs) {
        // What is no object is refused by the server, with its place.
        let Value::Object(fields) = &mut self.value else { return };
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                fields.insert(name.to_owned(), value);
            }
        };
        set("name", args.name.clone().map(Value::String));
        set("project", args.project.as_ref().map(|project| json!(project.to_string())));
        set("budget", args.budget.map(|budget| json!(budget)));
        if args.labels.is_empty() {
            return;
        }
        let labels = fields.entry("labels").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(labels) = labels {
            labels.extend(args.labels.iter().map(|(name, value)| (name.clone(), json!(value))));
        }
    }

    /// Shows what the server finds wrong with the document, where it stands in the file.
    pub fn explain(&self, mut fault: Fault, json: bool) -> Fault {
        let Fault::Told { problem, .. } = &mut fault else { return fault };
        let Some(wrong) = &mut problem.members.problems else { return fault };
        for one in wrong.iter_mut() {
            // What was sent is not the text that somebody wrote.
            let place = self.places.at(&one.path);
            (one.line, one.column) = (place.line, place.column);
            if !json {
                // If even this cannot be written, the exit code has to speak for it.
                let _ = show(&self.name, &self.text, place, &one.message, &one.code);
            }
        }
        // The server says where the first one stands in what was sent.
        problem.detail = match &wrong[..] {
            [first, ..] if json => format!("{}:{}:{}: {}", self.name, first.line, first.column, first.message),
            [_] => format!("{} has a problem", self.name),
            all => format!("{} has {} problems", self.name, all.len()),
        };
        let unknown_tool = wrong.iter().any(|wrong| wrong.code == "unknown_tool");
        let hint = if unknown_tool {
            "tools are declared under [tools.NAME] in the server's configuration; those it knows: baton tools"
        } else {
            "each code is explained in docs/errors.md, under \"Problems of a run document\""
        };
        fault.hint(hint)
    }
}

/// JSON is told by its name; where there is none, by how it begins.
fn format(path: &Path, text: &str) -> Format {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => Format::Json,
        Some("yaml" | "yml") => Format::Yaml,
        _ if text.trim_start().starts_with('{') => Format::Json,
        _ => Format::Yaml,
    }
}

/// `file:line:column: message (code)`, the line, and a caret below the place.
fn show(name: &str, text: &str, place: Place, message: &str, code: &str) -> io::Result<()> {
    let mut err = print::err();
    let at = format!("{name}:{}:{}", place.line, place.column);
    writeln!(err, "{}: {} {}", bold(at), print::visible(message), dim(format_args!("({code})")))?;
    let Some(line) = text.lines().nth((place.line as usize).saturating_sub(1)) else { return Ok(()) };
    if line.chars().count() > SHOWN_CHARS {
        return Ok(());
    }
    let number = place.line.to_string();
    // A tab is as wide as the terminal likes: the caret stands below what it means only if there is none.
    let line = line.replace('\t', " ");
    let before = " ".repeat((place.column as usize).saturating_sub(1));
    writeln!(err, "  {} {}", dim(format_args!("{number} |")), print::visible(&line))?;
    writeln!(err, "  {} {before}{}", dim(format_args!("{} |", " ".repeat(number.len()))), bad('^'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_told_from_yaml() {
        for (path, text, expected) in [
            ("a.json", "", Format::Json),
            ("a.yaml", "{}", Format::Yaml),
            ("a.yml", "{}", Format::Yaml),
            ("-", " \n{", Format::Json),
            ("-", "name: x", Format::Yaml),
        ] {
            assert_eq!(format(Path::new(path), text), expected, "{path} {text:?}");
        }
    }
}
