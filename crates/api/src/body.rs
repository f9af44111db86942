//! Bodies of requests: JSON, bounded in size, depth and time.

use crate::app::App;
use crate::limits;
use crate::problem::Fault;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, FailedToBufferBody};
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use serde_json::error::Category;
use serde_path_to_error::Segment;

/// The bytes of a body that says it is JSON, not yet understood. A route that takes more than usual
/// must raise the router's own limit too.
pub struct Body<const MAX: usize = { limits::BODY_BYTES }>(Bytes);

impl<const MAX: usize> FromRequest<App> for Body<MAX> {
    type Rejection = Fault;

    async fn from_request(request: Request, app: &App) -> Result<Self, Fault> {
        if !says_json(request.headers()) {
            return Err(Fault::new("unsupported_media_type", "the Content-Type must be application/json"));
        }
        read(request, app, MAX).await.map(Self)
    }
}

/// The bytes of a body, whatever they are.
pub async fn read(request: Request, app: &App, max: usize) -> Result<Bytes, Fault> {
    let too_large = || Fault::new("body_too_large", format!("at most {max} bytes are read"));
    let announced = request.headers().get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|bytes| bytes > max as u64) {
        return Err(too_large());
    }
    match tokio::time::timeout(limits::BODY_WAIT, Bytes::from_request(request, app)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(BytesRejection::FailedToBufferBody(FailedToBufferBody::LengthLimitError(_)))) => Err(too_large()),
        Ok(Err(_)) => Err(Fault::new("invalid_request", "the body broke off")),
        Err(_) => {
            let detail = format!("the body did not arrive within {} s", limits::BODY_WAIT.as_secs());
            Err(Fault::new("request_timeout", detail))
        }
    }
}

impl<const MAX: usize> Body<MAX> {
    /// What the body says. A wrong field is named, and of a list the wrong one is counted.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        let not_json = |error: serde_json::Error| Fault::new("invalid_json", error.to_string());
        // First whether it is JSON at all, so that a slip of the pen is not called a wrong field.
        serde_json::from_slice::<IgnoredAny>(&self.0).map_err(not_json)?;
        // A list would be read as the fields in their order, which nobody promised.
        if self.0.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
            return Err(Fault::new("invalid_request", "the body must be a JSON object"));
        }
        let mut json = serde_json::Deserializer::from_slice(&self.0);
        serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let path = error.path().to_string();
            let index = error.path().iter().nth(1).and_then(|segment| match segment {
                Segment::Seq { index } => Some(*index),
                _ => None,
            });
            let inner = error.into_inner();
            let fault = match inner.classify() {
                Category::Data if path == "." => Fault::new("invalid_request", inner.to_string()),
                Category::Data => Fault::field(&path, inner),
                Category::Syntax | Category::Eof | Category::Io => not_json(inner),
            };
            match index {
                Some(index) => fault.at(index),
                None => fault,
            }
        })
    }

    /// Any JSON at all; nothing is null.
    pub fn value(&self) -> Result<Value, Fault> {
        if self.0.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&self.0).map_err(|error| Fault::new("invalid_json", error.to_string()))
    }

    /// For requests whose body may be left out.
    pub fn parse_or_default<T: DeserializeOwned + Default>(&self) -> Result<T, Fault> {
        if self.0.is_empty() { Ok(T::default()) } else { self.parse() }
    }

    /// For requests that need no body: none, or one that says nothing.
    pub fn expect_nothing(&self) -> Result<(), Fault> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Nothing {}
        if self.0.is_empty() {
            return Ok(());
        }
        self.parse::<Nothing>().map(|_| ())
    }
}

fn says_json(headers: &HeaderMap) -> bool {
    media(headers).is_some_and(|media| media == "application/json")
}

/// What a body says it is, in lower case, if it says so once and in UTF-8.
pub fn media(headers: &HeaderMap) -> Option<String> {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let mut parts = value.to_str().ok()?.split(';').map(str::trim);
    let media = parts.next()?.to_ascii_lowercase();
    // Whoever says it is something else than UTF-8 is about to send something else.
    let utf8 = parts.filter_map(|part| part.split_once('=')).all(|(name, value)| {
        !name.trim().eq_ignore_ascii_case("charset") || value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
    });
    utf8.then_some(media)
}

/// Whether no value lies deeper than `depth` lists and objects. The parser has bounded the
/// recursion already.
pub fn at_most_deep(value: &Value, depth: usize) -> bool {
    match value {
        Value::Array(items) => depth > 0 && items.iter().all(|item| at_most_deep(item, depth - 1)),
        Value::Object(fields) => depth > 0 && fields.values().all(|item| at_most_deep(item, depth - 1)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use baton_wire::{Cancel, NewBatch, NewJob};
    use serde_json::json;

    fn body(text: impl Into<Vec<u8>>) -> Body {
        Body(Bytes::from(text.into()))
    }

    fn parse(text: impl Into<Vec<u8>>) -> (&'static str, String) {
        match body(text).parse::<NewJob>() {
            Ok(_) => ("ok", String::new()),
            Err(fault) => (fault.code(), format!("{fault:?}")),
        }
    }

    #[test]
    fn the_wrong_one_of_a_list_is_counted() {
        let two = r#"{"jobs":[{"type":"echo","projectId":"p"},{"type":"echo","projectId":""}]}"#;
        let fault = body(two).parse::<NewBatch>().unwrap_err();
        let said = format!("{fault:?}");
        assert!(said.contains("jobs[1].projectId: ") && said.contains("index: Some(1)"), "{said}");
        let fault = body(r#"{"jobs":{}}"#).parse::<NewBatch>().unwrap_err();
        assert!(format!("{fault:?}").contains("index: None"), "{fault:?}");
    }

    #[test]
    fn a_body_that_may_be_left_out_is_still_checked_if_it_is_there() {
        for nothing in ["", "{}", " {}\n"] {
            assert_eq!(body(nothing).parse_or_default::<Cancel>().unwrap(), Cancel::default());
        }
        for bad in ["[]", " ", "\n"] {
            assert!(body(bad).parse_or_default::<Cancel>().is_err(), "{bad:?}");
            assert!(body(bad).expect_nothing().is_err(), "{bad:?}");
        }
        assert!(body(r#"{"why":1}"#).parse_or_default::<Cancel>().is_err());
    }

    #[test]
    fn what_is_not_json_is_told_from_what_is_not_a_job() {
        assert_eq!(parse(r#" {"type":"echo","projectId":"p"} "#).0, "ok");
        for bad in ["", "  ", "{", "{}x", "nul", "{'a':1}", "[1,", "{}{}"] {
            assert_eq!(parse(bad).0, "invalid_json", "{bad}");
        }
        for bad in [&b"1e999"[..], b"\"\\ud800\"", b"\"\xff\"", b"\"\x00\"", b"01", b"NaN", b"[1,]"] {
            let body = [br#"{"type":"echo","projectId":"p","payload":{"x":"#, bad, b"}}"].concat();
            assert_eq!(parse(body).0, "invalid_json", "{}", bad.escape_ascii());
        }
        for bad in ["{}", "[]", "1", "null", "\"x\"", r#"["echo","p"]"#, r#"{"type":"echo"}"#] {
            assert_eq!(parse(bad).0, "invalid_request", "{bad}");
        }
    }

    #[test]
    fn the_wrong_field_is_named() {
        let cases = [
            (r#"{"type":5,"projectId":"p"}"#, "type: "),
            (r#"{"type":"echo","projectId":"a/b"}"#, "projectId: a project id must be"),
            (r#"{"type":"echo","projectId":"p","payload":[]}"#, "payload: "),
            (r#"{"type":"echo","projectId":"p","deadline":"soon"}"#, "deadline: a time must be"),
            (r#"{"type":"echo","projectId":"p","colour":1}"#, "colour"),
            (r#"{"type":"echo","type":"echo","projectId":"p"}"#, "duplicate field `type`"),
            (r#"{"projectId":"p"}"#, "missing field `type`"),
        ];
        for (text, expected) in cases {
            let (code, detail) = parse(text);
            assert_eq!(code, "invalid_request", "{text}");
            assert!(detail.contains(expected), "{text}: {detail}");
        }
    }

    #[test]
    fn a_bottomless_body_is_refused_by_the_parser() {
        let deep = format!(r#"{{"type":"echo","projectId":"p","payload":{{"a":{}"#, "[".repeat(100_000));
        assert_eq!(parse(deep).0, "invalid_json");
    }

    #[test]
    fn depth_counts_lists_and_objects() {
        assert!(at_most_deep(&json!(1), 0));
        assert!(!at_most_deep(&json!([]), 0));
        assert!(at_most_deep(&json!({ "a": [1] }), 2));
        assert!(!at_most_deep(&json!({ "a": [[]] }), 2));
    }

    #[test]
    fn only_json_in_utf_8_says_json() {
        let says = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(CONTENT_TYPE, HeaderValue::from_str(value).unwrap());
            }
            says_json(&headers)
        };
        for ok in ["application/json", "Application/JSON", "application/json; charset=UTF-8", "application/json;x=y"] {
            assert!(says(&[ok]), "{ok}");
        }
        for bad in ["", "text/plain", "application/jsonx", "application/json; charset=latin1", "text/json"] {
            assert!(!says(&[bad]), "{bad}");
        }
        assert!(!says(&[]));
        assert!(!says(&["application/json", "application/json"]));
    }
}
