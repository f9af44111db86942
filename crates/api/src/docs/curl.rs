//! An operation as a command to try.

use serde_json::Value;
use std::fmt::Write as _;

/// With the examples of the document. The server and the key come from the environment, as for the
/// command line.
pub fn command(method: &str, path: &str, operation: &Value) -> String {
    let mut path = path.to_owned();
    for param in operation["parameters"].as_array().into_iter().flatten() {
        if let (Some("path"), Some(name), Some(example)) =
            (param["in"].as_str(), param["name"].as_str(), param["example"].as_str())
        {
            path = path.replace(&format!("{{{name}}}"), example);
        }
    }
    let mut command = String::from("curl");
    if method != "GET" {
        let _ = write!(command, " -X {method}");
    }
    let _ = write!(command, " \"$BATON_SERVER{path}\"");
    if operation["security"].as_array().is_some_and(|all| !all.is_empty()) {
        command.push_str(" \\\n  -H \"Authorization: Bearer $BATON_KEY\"");
    }
    let body = &operation["requestBody"]["content"]["application/json"]["examples"];
    if let Some(example) = body.as_object().and_then(|all| all.values().next()) {
        command.push_str(" \\\n  -H 'Content-Type: application/json'");
        let _ = write!(command, " \\\n  -d {}", quoted(&example["value"].to_string()));
    }
    command
}

/// One word to a shell, whatever it holds.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_command_has_the_path_the_key_and_the_body() {
        let operation = json!({
            "parameters": [{ "in": "path", "name": "id", "example": "x1" }, { "in": "query", "name": "q" }],
            "security": [{ "key": [] }],
            "requestBody": { "content": { "application/json": { "examples": { "a": { "value": { "a": "it's" } } } } } },
        });
        let expected = "curl -X POST \"$BATON_SERVER/things/x1\" \\\n  -H \"Authorization: Bearer $BATON_KEY\" \\\n  \
                        -H 'Content-Type: application/json' \\\n  -d '{\"a\":\"it'\\''s\"}'";
        assert_eq!(command("POST", "/things/{id}", &operation), expected);
        assert_eq!(command("GET", "/healthz", &json!({ "security": [] })), "curl \"$BATON_SERVER/healthz\"");
    }
}
