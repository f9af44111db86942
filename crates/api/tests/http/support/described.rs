//! Holds what the server answers against what its document says. Every answer that a test gets goes
//! through here, so the whole suite proves that nothing undocumented is ever said.

use super::Reply;
use baton_api::{document, routes};
use jsonschema::Validator;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Panics if the document does not know this answer. `request` is the bytes that were sent.
pub fn check(request: &[u8], reply: &Reply) {
    // What the protocol layer answers by itself has no id; nobody can describe it.
    let Some((method, path)) = asked(request).filter(|_| reply.header("x-request-id").is_some()) else { return };
    let Some(route) = matched(path) else {
        assert!([403, 404].contains(&reply.status), "{method} {path} is no route: {reply:?}");
        return;
    };
    let operation = &document()["paths"][route][method.to_lowercase()];
    if operation.is_null() {
        let known = method == "HEAD" || [403, 405].contains(&reply.status);
        assert!(known, "{method} {route} is not described: {reply:?}");
        return;
    }
    let response = resolved(&operation["responses"][reply.status.to_string()]);
    assert!(response.is_object(), "{method} {route} never answers {}, says its document: {reply:?}", reply.status);
    for (name, header) in response["headers"].as_object().into_iter().flatten() {
        let required = resolved(header)["required"] == true;
        assert!(!required || reply.header(&name.to_lowercase()).is_some(), "{method} {route} lacks {name}: {reply:?}");
    }
    let Some(contents) = response["content"].as_object() else {
        assert!(reply.body.is_empty(), "{method} {route} has no content, says its document: {reply:?}");
        return;
    };
    let media = reply.header("content-type").unwrap_or_default().split(';').next().unwrap_or_default();
    let content = contents.get(media).unwrap_or_else(|| panic!("{method} {route} does not answer {media}: {reply:?}"));
    if media.ends_with("json") {
        let body: Value = reply.parse();
        let validator = validator(&format!("{method} {route} {}", reply.status), &content["schema"]);
        if let Err(error) = validator.validate(&body) {
            let at = error.instance_path().to_string();
            panic!("{method} {route} answers {} otherwise than described, at {at}: {error}\n{body:#}", reply.status);
        }
    }
}

fn asked(request: &[u8]) -> Option<(&str, &str)> {
    let line = request.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let path = target.split('?').next()?;
    path.starts_with('/').then_some((method, path))
}

/// The route that a path is served by; a plain word goes before a parameter.
fn matched(path: &str) -> Option<&'static str> {
    let given: Vec<_> = path.split('/').collect();
    let fits = |route: &&str| {
        let segments: Vec<_> = route.split('/').collect();
        // What stands between two others may be empty, as far as the router is concerned.
        let any = |at: usize| segments[at].starts_with('{') && (at + 1 < given.len() || !given[at].is_empty());
        segments.len() == given.len() && (0..given.len()).all(|at| segments[at] == given[at] || any(at))
    };
    let paths = routes().into_iter().map(|route| route.path);
    paths.filter(fits).min_by_key(|route| route.matches('{').count())
}

fn resolved(value: &'static Value) -> &'static Value {
    let at = value["$ref"].as_str().and_then(|at| at.strip_prefix('#'));
    at.and_then(|at| document().pointer(at)).unwrap_or(value)
}

fn validator(name: &str, schema: &Value) -> Arc<Validator> {
    static MADE: Mutex<BTreeMap<String, Arc<Validator>>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap();
    let make = || {
        let whole = json!({ "allOf": [schema], "components": { "schemas": document()["components"]["schemas"] } });
        Arc::new(jsonschema::options().should_validate_formats(true).build(&whole).unwrap())
    };
    made.entry(name.to_owned()).or_insert_with(make).clone()
}
