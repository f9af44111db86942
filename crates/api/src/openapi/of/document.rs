//! The documents about all this.

use super::super::operation::{Content, Operation, Tag};
use schemars::json_schema;
use serde_json::json;

pub fn openapi() -> Operation {
    let schema =
        |_: &mut schemars::SchemaGenerator| json_schema!({ "type": "object", "required": ["openapi", "paths"] });
    let examples = vec![super::super::operation::Example {
        name: "answer",
        value: json!({ "openapi": super::super::VERSION, "info": { "title": "Baton" }, "paths": {} }),
    }];
    Operation::new("getDocument", Tag::Documents, "Describe this API, for programs").answer(
        200,
        "An OpenAPI document.",
        Content::Json { schema, examples },
    )
}

pub fn reference() -> Operation {
    html("readReference", "Describe this API, for people", "Every operation with its examples.")
}

pub fn login() -> Operation {
    html("readLogin", "Come in with a browser", "Where a login link leads to; its script hands the ticket in.")
}

pub fn login_script() -> Operation {
    let content = Content::Text { media: "text/javascript", about: "A script.", example: "\"use strict\";" };
    Operation::new("getLoginScript", Tag::Documents, "The script of that page").answer(200, "A script.", content)
}

pub fn style() -> Operation {
    let content = Content::Text { media: "text/css", about: "A style sheet.", example: "body { margin: 0 }" };
    Operation::new("getStyle", Tag::Documents, "The look of these pages").answer(200, "A style sheet.", content)
}

pub fn errors() -> Operation {
    html("readErrors", "Explain every error code, for people", "A heading for each code, by which it can be linked to.")
}

pub fn errors_text() -> Operation {
    markdown("readErrorsText", "Explain every error code, as text", "# Errors\n\nEvery error has a code…\n")
}

pub fn guide() -> Operation {
    html("readGuide", "Explain how this API is used, for people", "What stands behind the operations.")
}

pub fn guide_text() -> Operation {
    markdown("readGuideText", "Explain how this API is used, as text", "# HTTP API\n\nBase address: …\n")
}

fn html(id: &'static str, summary: &'static str, about: &'static str) -> Operation {
    let content = Content::Text { media: "text/html", about, example: "<!doctype html>…" };
    Operation::new(id, Tag::Documents, summary).answer(200, "A page.", content)
}

fn markdown(id: &'static str, summary: &'static str, example: &'static str) -> Operation {
    let content = Content::Text { media: "text/markdown", about: "Markdown.", example };
    Operation::new(id, Tag::Documents, summary).answer(200, "A page.", content)
}
