//! Schemas as people read them.

use super::html::Esc;
use super::markdown;
use serde_json::Value;
use std::fmt::Write as _;

/// The type of a value in a few words, with links to what has a name.
pub fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|at| at.strip_prefix("#/components/schemas/")) {
        // A part of a schema is shown with the whole.
        let (whole, part) = name.split_once('/').unwrap_or((name, name));
        let part = part.rsplit('/').next().unwrap_or(part);
        return format!("<a href=\"#schema-{}\">{}</a>", Esc(whole), Esc(part));
    }
    let choices = ["anyOf", "oneOf"].iter().find_map(|word| schema[word].as_array());
    if let Some(choices) = choices {
        return choices.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    if let Some(value) = schema.get("const") {
        return format!("<code>{}</code>", Esc(&value.to_string()));
    }
    if let Some(words) = schema["enum"].as_array() {
        let word = |word: &Value| format!("<code>{}</code>", Esc(word.as_str().unwrap_or("null")));
        return words.iter().filter(|word| **word != "").map(word).collect::<Vec<_>>().join(", ");
    }
    let names = match &schema["type"] {
        Value::String(name) => vec![name.as_str()],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => return "anything".to_owned(),
    };
    let one = |name: &&str| match *name {
        "array" => format!("list of {}", kind(&schema["items"])),
        "object" if !schema["properties"].is_null() => format!("object {{ {} }}", fields_in_short(schema)),
        "string" if schema["format"] == "date-time" => "time".to_owned(),
        name => Esc(name).to_string(),
    };
    names.iter().map(one).collect::<Vec<_>>().join(" or ")
}

fn fields_in_short(schema: &Value) -> String {
    let fields = schema["properties"].as_object().into_iter().flatten();
    let one = |(name, field): (&String, &Value)| format!("<code>{}</code>: {}", Esc(name), kind(field));
    fields.map(one).collect::<Vec<_>>().join(", ")
}

/// Bounds, as far as a schema has any.
pub fn bounds(schema: &Value) -> String {
    let range = |from: &str, to: &str, what: &str| {
        let (from, to) = (schema[from].as_f64(), schema[to].as_f64());
        match (from, to) {
            (Some(from), Some(to)) => Some(format!("{from} to {to}{what}")),
            (Some(from), None) if from > 0.0 => Some(format!("at least {from}{what}")),
            (None, Some(to)) => Some(format!("at most {to}{what}")),
            _ => None,
        }
    };
    let pattern = schema["pattern"].as_str().map(|pattern| format!("<code>{}</code>", Esc(pattern)));
    let default = schema.get("default").filter(|default| !default.is_null());
    let default = default.map(|default| format!("<code>{}</code> unless given", Esc(&default.to_string())));
    let all = [
        range("minimum", "maximum", ""),
        range("minLength", "maxLength", " characters"),
        range("minItems", "maxItems", " of them"),
        pattern,
        default,
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// A schema that has a name, as a section of its own.
pub fn section(name: &str, schema: &Value) -> String {
    let mut html = format!("<section class=\"schema\" id=\"schema-{0}\">\n<h3>{0}</h3>\n", Esc(name));
    html.push_str(&about(schema));
    let Some(fields) = schema["properties"].as_object() else {
        let _ = write!(html, "<p>{}{}</p>\n{}</section>\n", kind(schema), aside(schema), words(schema));
        return html;
    };
    html.push_str("<table>\n<thead>\n<tr><th>field</th><th>type</th><th></th></tr>\n</thead>\n<tbody>\n");
    let required = |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    for (name, field) in fields {
        let mark = if required(name) { "" } else { " <span class=\"optional\">optional</span>" };
        let said = field["description"].as_str().map(markdown::inline).unwrap_or_default();
        let _ = writeln!(
            html,
            "<tr><td><code>{}</code>{mark}</td><td>{}{}</td><td>{said}</td></tr>",
            Esc(name),
            kind(field),
            aside(field),
        );
    }
    html.push_str("</tbody>\n</table>\n</section>\n");
    html
}

/// What each of its words means, where they are told apart.
fn words(schema: &Value) -> String {
    let mut html = String::new();
    for choice in schema["oneOf"].as_array().into_iter().flatten() {
        if let Some(said) = choice["description"].as_str() {
            let _ = writeln!(html, "<p class=\"word\">{}: {}</p>", kind(choice), markdown::inline(said));
        }
    }
    html
}

fn aside(schema: &Value) -> String {
    let bounds = bounds(schema);
    if bounds.is_empty() { bounds } else { format!(" <span class=\"bounds\">{bounds}</span>") }
}

pub fn about(shown: &Value) -> String {
    match shown["description"].as_str().filter(|text| !text.is_empty()) {
        Some(text) => format!("<p>{}</p>\n", markdown::inline(text)),
        None => String::new(),
    }
}
