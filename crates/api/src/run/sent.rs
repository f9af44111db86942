//! Run documents as they are sent: JSON or YAML, with the place of everything.

use crate::app::App;
use crate::body;
use crate::idempotency::{self, Asked, Keyed};
use crate::limits;
use crate::problem::Fault;
use crate::query::Params;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts as _, Request};
use baton_core::canon::Json;
use baton_core::plan::Problem;
use baton_wire::DocumentProblem;
use baton_wire::source::{self, Format, Place, Positions};
use serde_json::Value;

pub struct Sent {
    path: String,
    key: Option<String>,
    bytes: Bytes,
    format: Format,
}

/// What YAML goes by.
const YAML: [&str; 4] = ["application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"];

impl FromRequest<App> for Sent {
    type Rejection = Fault;

    async fn from_request(request: Request, app: &App) -> Result<Self, Fault> {
        let (mut parts, body) = request.into_parts();
        Params::from_request_parts(&mut parts, app).await?.allow(&[])?;
        let path = parts.uri.path().to_owned();
        let key = idempotency::key(&parts.headers)?;
        let format = match body::media(&parts.headers) {
            Some(media) if media == "application/json" => Format::Json,
            Some(media) if YAML.contains(&media.as_str()) => Format::Yaml,
            _ => {
                let detail = "the Content-Type must be application/json or application/yaml";
                return Err(Fault::new("unsupported_media_type", detail));
            }
        };
        let bytes = body::read(Request::from_parts(parts, body), app, limits::BODY_BYTES).await?;
        Ok(Self { path, key, bytes, format })
    }
}

impl Sent {
    pub fn read(&self) -> Result<(Value, Positions), Fault> {
        let code = match self.format {
            Format::Json => "invalid_json",
            Format::Yaml => "invalid_yaml",
        };
        let wrong = |line: u32, column: u32, message: &str| {
            let place = Place { line, column };
            let only = problem(Problem { path: String::new(), code, message: message.to_owned() }, place);
            Fault::new(code, format!("line {line}, column {column}: {message}")).with_problems(vec![only])
        };
        let text = std::str::from_utf8(&self.bytes).map_err(|bad| {
            let line = self.bytes[..bad.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
            wrong(u32::try_from(line).unwrap_or(u32::MAX), 1, "the text is not UTF-8")
        })?;
        source::read(text, self.format).map_err(|error| wrong(error.line, error.column, &error.message))
    }

    /// What makes a repetition of this request one, if it carries a key: what the document says, however
    /// it is written.
    pub fn keyed(&self, scope: &'static str, document: &Json) -> Option<Keyed> {
        let key = self.key.clone()?;
        Some(Keyed::new(key, &Asked { scope, path: &self.path, body: document }))
    }
}

fn problem(problem: Problem, place: Place) -> DocumentProblem {
    let Problem { path, code, message } = problem;
    DocumentProblem { path, code: code.to_owned(), message, line: place.line, column: place.column }
}

/// A document that says something that cannot be.
pub fn invalid(problems: Vec<Problem>, places: &Positions) -> Fault {
    let problems: Vec<_> = problems
        .into_iter()
        .map(|found| {
            let place = places.at(&found.path);
            problem(found, place)
        })
        .collect();
    let more = match problems.len() {
        0 | 1 => String::new(),
        n => format!(", and {} more", n - 1),
    };
    let first = problems.first().map_or_else(String::new, |first| {
        format!("line {}, column {}: {}{more}", first.line, first.column, first.message)
    });
    Fault::new("invalid_run", first).with_problems(problems)
}
