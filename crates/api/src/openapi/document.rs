//! The document: OpenAPI 3.1, made from the route table and nothing else.

use super::header;
use super::operation::{Answer, Body, Content, Example, Link, Operation, Tag, problem};
use super::parameter;
use super::{VERSION, codes};
use crate::code::{CODES, Code};
use crate::door::{Ask, session};
use crate::router::Route;
use baton_core::access::Role;
use baton_wire::{Envelope, Event, JobPayload, Object, Problem};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

const ABOUT: &str = "Baton runs fleets of agents durably. This document is made from the routes that the server has. \
                     Every refusal is a problem (RFC 9457) with a stable `code`; each code is explained at \
                     `/docs/errors`. For people, the same as this is at `/docs`.";

const KEY: &str = "key";
const SESSION: &str = "session";

/// Makes the document piece by piece. What is asked and what is answered have schemas of their own:
/// a field that may be left out of a request is always there in an answer.
struct Maker {
    asked: SchemaGenerator,
    answered: SchemaGenerator,
    responses: Object,
}

pub fn document(routes: &[(Route, Operation)]) -> Value {
    let mut maker = Maker::new();
    let paths = maker.paths(routes);
    let tags = Tag::ALL.map(|tag| json!({ "name": tag.name(), "description": tag.about() }));
    json!({
        "openapi": VERSION,
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": {
            "title": "Baton",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "Wherever this document came from." }],
        "tags": tags,
        "paths": paths,
        "components": maker.components(),
    })
}

impl Maker {
    fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            })
        };
        Self {
            asked: settings().for_deserialize().into_generator(),
            answered: settings().for_serialize().into_generator(),
            responses: Object::new(),
        }
    }

    fn paths(&mut self, routes: &[(Route, Operation)]) -> Object {
        let mut paths = Object::new();
        for (route, operation) in routes {
            let path = paths.entry(route.path).or_insert_with(|| Value::Object(Object::new()));
            path[route.method.as_str().to_lowercase()] = self.operation(route, operation);
        }
        paths
    }

    fn operation(&mut self, route: &Route, operation: &Operation) -> Value {
        let key = operation.keyed.then(parameter::idempotency_key);
        let params = operation.params.iter().chain(&key);
        let mut params =
            params.map(|param| param.to_json((param.schema)(&mut self.asked).to_value())).collect::<Vec<_>>();
        if operation.codes.contains(&"idempotency_key_required")
            && let Some(key) = params.last_mut()
        {
            key["required"] = Value::from(true);
        }
        let mut responses = Object::new();
        for answer in &operation.answers {
            responses.insert(answer.status.to_string(), self.answer(route, operation, answer));
        }
        for (status, codes) in codes::of(route, operation) {
            responses.insert(status.to_string(), self.refusal(status, &codes));
        }
        let mut shown = json!({
            "operationId": operation.id,
            "tags": [operation.tag.name()],
            "summary": operation.summary,
            "description": operation.about,
            "parameters": params,
            "responses": responses,
        });
        if let Some(body) = &operation.body {
            shown["requestBody"] = self.body(body);
        }
        shown["security"] = match route.ask {
            Ask::Nobody => json!([]),
            _ => json!([{ KEY: [] }, { SESSION: [] }]),
        };
        if let Some((right, whole)) = right(route.ask) {
            shown["x-right"] = json!(right.as_str());
            shown["x-roles"] = Role::ALL.into_iter().filter(|role| role.may(right)).map(Role::as_str).collect();
            shown["x-installation"] = json!(whole);
        }
        shown
    }

    fn body(&mut self, body: &Body) -> Value {
        let schema = (body.schema)(&mut self.asked).to_value();
        // Its type must be said even if it is empty, so it is never left out.
        let about = if body.optional { "May be empty; the `Content-Type` is said all the same." } else { "" };
        let mut content =
            json!({ "application/json": { "schema": schema.clone(), "examples": examples(&body.examples) } });
        if let Some(text) = body.yaml {
            content["application/yaml"] = json!({ "schema": schema, "example": text });
        }
        json!({ "required": true, "description": about, "content": content })
    }

    fn answer(&mut self, route: &Route, operation: &Operation, answer: &Answer) -> Value {
        let mut headers = header::always();
        if route.ask != Ask::Nobody {
            headers.extend(header::paced());
        }
        if operation.keyed {
            headers.extend(header::replayed());
        }
        let mut shown = json!({ "description": answer.about, "headers": headers });
        if answer.status < 300 && !operation.links.is_empty() {
            shown["links"] = links(&operation.links);
        }
        match &answer.content {
            Content::Nothing => {}
            Content::Json { schema, examples: given } => {
                let schema = schema(&mut self.answered).to_value();
                shown["content"] = json!({ "application/json": { "schema": schema, "examples": examples(given) } });
            }
            Content::Text { media, about, example } => {
                let schema = json!({ "type": "string", "description": about });
                shown["content"] = json!({ *media: { "schema": schema, "example": example } });
            }
        }
        shown
    }

    /// Refusals with the same codes are the same, and stand once.
    fn refusal(&mut self, status: u16, codes: &[&'static Code]) -> Value {
        let names: Vec<_> = codes.iter().map(|code| code.code).collect();
        let name = format!("{status}.{}", names.join("."));
        let mut schema = problem(&mut self.answered).to_value();
        schema["properties"] = json!({ "status": { "const": status }, "code": { "enum": names } });
        let mut headers = header::always();
        headers.extend(header::refused(status, codes));
        let shown = json!({
            "description": codes.iter().map(|code| format!("{}. ", code.title)).collect::<String>().trim_end(),
            "headers": headers,
            "content": { Problem::CONTENT_TYPE: { "schema": schema, "examples": refusals(codes) } },
        });
        self.responses.insert(name.clone(), shown);
        json!({ "$ref": format!("#/components/responses/{name}") })
    }

    fn components(mut self) -> Value {
        // Said over a stream and a socket, where no content has a schema of its own.
        self.answered.subschema_for::<Event>();
        self.answered.subschema_for::<Envelope>();
        self.answered.subschema_for::<JobPayload>();
        let mut schemas = self.asked.take_definitions(true);
        schemas.extend(self.answered.take_definitions(true));
        if let Some(code) = schemas.get_mut("Problem").and_then(|schema| schema.pointer_mut("/properties/code")) {
            code["enum"] = CODES.iter().map(|code| code.code).collect();
        }
        json!({
            "schemas": schemas,
            "responses": self.responses,
            "headers": header::all(),
            "securitySchemes": {
                KEY: {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "bk_…",
                    "description": "A key, as it was shown when it was made. `baton up` keeps the first one in its data directory.",
                },
                SESSION: {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": session::NAME,
                    "description": "What a browser has instead, once it has handed in the ticket of a login link. Only pages of \
                                    this server change anything with it.",
                },
            },
        })
    }
}

fn links(links: &[Link]) -> Value {
    let one = |link: &Link| {
        let parameters: Object = link.from.iter().map(|(name, at)| ((*name).to_owned(), json!(at))).collect();
        link.to.iter().map(move |to| ((*to).to_owned(), json!({ "operationId": to, "parameters": parameters })))
    };
    links.iter().flat_map(one).collect::<Object>().into()
}

fn right(ask: Ask) -> Option<(baton_core::access::Right, bool)> {
    match ask {
        Ask::Nobody | Ask::Anybody => None,
        Ask::Right(right) => Some((right, false)),
        Ask::Installation(right) => Some((right, true)),
    }
}

fn examples(given: &[Example]) -> Value {
    given.iter().map(|example| (example.name.to_owned(), json!({ "value": example.value }))).collect::<Object>().into()
}

/// One problem for each code.
fn refusals(codes: &[&'static Code]) -> Value {
    let one = |code: &&'static Code| {
        let mut value = json!({
            "type": Problem::page(code.code), "title": code.title, "status": code.status, "code": code.code,
            "detail": "…", "requestId": "req_4f1d22a900000001",
        });
        if let Some(hint) = code.hint {
            value["hint"] = json!(hint);
        }
        (code.code.to_owned(), json!({ "value": value }))
    };
    codes.iter().map(one).collect::<Object>().into()
}

/// Names that stand for one thing in requests and for another in answers.
#[cfg(test)]
pub fn ambiguous(routes: &[(Route, Operation)]) -> Vec<String> {
    let mut maker = Maker::new();
    maker.paths(routes);
    let answered = maker.answered.definitions();
    let differs = |(name, schema): &(&String, &Value)| answered.get(*name).is_some_and(|other| other != *schema);
    maker.asked.definitions().iter().filter(differs).map(|(name, _)| name.clone()).collect()
}
