//! What there is to ask, as the server's OpenAPI document says it.

use serde_json::Value;

/// A route with what it understands, so that what is sent is almost right.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    pub method: String,
    /// As the route is written, with its parameters in braces.
    pub path: String,
    pub queries: Vec<String>,
    /// Bodies that it would take.
    pub bodies: Vec<Value>,
}

pub fn targets(document: &Value) -> Vec<Target> {
    let mut all = Vec::new();
    for (path, operations) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in operations.as_object().into_iter().flatten() {
            // What all operations of a path share stands beside them.
            if !["get", "put", "post", "delete", "patch", "head", "options"].contains(&method.as_str()) {
                continue;
            }
            let given = [&operations["parameters"], &operation["parameters"]];
            let parameters = given.into_iter().filter_map(Value::as_array).flatten().map(|one| resolved(document, one));
            let queries = parameters.filter(|one| one["in"] == "query").filter_map(|one| one["name"].as_str());
            let examples = &resolved(document, &operation["requestBody"])["content"]["application/json"]["examples"];
            let bodies = examples.as_object().into_iter().flatten().map(|(_, example)| harmless(&example["value"]));
            all.push(Target {
                method: method.to_uppercase(),
                path: path.clone(),
                queries: queries.map(str::to_owned).collect(),
                bodies: bodies.collect(),
            });
        }
    }
    all
}

fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let at = value["$ref"].as_str().and_then(|at| at.strip_prefix('#'));
    at.and_then(|at| document.pointer(at)).unwrap_or(value)
}

/// An example's address may be somebody's; nobody is behind this one, and it is refused at that.
fn harmless(value: &Value) -> Value {
    match value {
        Value::String(text) if text.starts_with("http") => Value::from("https://127.0.0.1:1/"),
        Value::Array(items) => items.iter().map(harmless).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), harmless(value))).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_target_has_the_parameters_and_the_examples_of_its_operation() {
        let document = json!({
            "components": { "parameters": { "Limit": { "in": "query", "name": "limit" } } },
            "paths": { "/hooks": { "summary": "x", "post": {
                "parameters": [{ "$ref": "#/components/parameters/Limit" }, { "in": "path", "name": "id" }],
                "requestBody": { "content": { "application/json": { "examples": {
                    "one": { "value": { "urls": ["https://hooks.example.com/x"], "label": "l" } } } } } },
            } } },
        });
        let expected = Target {
            method: "POST".to_owned(),
            path: "/hooks".to_owned(),
            queries: vec!["limit".to_owned()],
            bodies: vec![json!({ "urls": ["https://127.0.0.1:1/"], "label": "l" })],
        };
        assert_eq!(targets(&document), [expected]);
    }
}
