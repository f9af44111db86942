//! The reference: every operation of the document, by tag, in the order of the route table.

use super::html::{self, Esc};
use super::{curl, markdown, shape};
use crate::router::Route;
use serde_json::Value;
use std::fmt::Write as _;

const INTRODUCTION: &str = "\
<h1>Reference</h1>\n\
<p>Made from the routes of this server. To try the commands, say where it is and who you are:</p>\n\
<pre><code>export BATON_SERVER=http://127.0.0.1:22866\nexport BATON_KEY=bk_…\n</code></pre>\n";

pub fn page(document: &Value, routes: &[Route]) -> String {
    let mut contents = String::new();
    let mut main = INTRODUCTION.to_owned();
    for tag in document["tags"].as_array().into_iter().flatten() {
        let name = tag["name"].as_str().unwrap_or_default();
        let anchor = markdown::anchor(name);
        let _ = write!(contents, "<h2><a href=\"#{}\">{}</a></h2>\n<ul>\n", Esc(&anchor), Esc(name));
        let _ = write!(main, "<h2 id=\"{}\">{}</h2>\n{}", Esc(&anchor), Esc(name), shape::about(tag));
        for route in routes {
            let method = route.method.as_str();
            let operation = &document["paths"][route.path][method.to_lowercase()];
            if operation["tags"][0] == name {
                let id = operation["operationId"].as_str().unwrap_or_default();
                let summary = operation["summary"].as_str().unwrap_or_default();
                let _ = writeln!(contents, "<li><a href=\"#{}\">{}</a></li>", Esc(id), Esc(summary));
                main.push_str(&section(document, method, route.path, operation));
            }
        }
        contents.push_str("</ul>\n");
    }
    contents.push_str("<h2><a href=\"#schemas\">Schemas</a></h2>\n");
    main.push_str("<h2 id=\"schemas\">Schemas</h2>\n");
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        main.push_str(&shape::section(name, schema));
    }
    html::page("Reference", &contents, &main)
}

fn section(document: &Value, method: &str, path: &str, operation: &Value) -> String {
    let id = operation["operationId"].as_str().unwrap_or_default();
    let summary = operation["summary"].as_str().unwrap_or_default();
    let mut html = format!(
        "<section class=\"operation\" id=\"{0}\">\n<h3>{1} <a class=\"anchor\" href=\"#{0}\" \
         aria-label=\"Link to this\">#</a></h3>\n\
         <p class=\"route\"><span class=\"method {2}\">{2}</span> <code>{3}</code></p>\n",
        Esc(id),
        Esc(summary),
        Esc(method),
        Esc(path)
    );
    html.push_str(&shape::about(operation));
    let _ = writeln!(html, "<p class=\"who\">{}</p>", who(operation));
    html.push_str(&parameters(operation));
    html.push_str(&body(operation));
    let command = curl::command(method, path, operation);
    let _ =
        write!(html, "<details>\n<summary>Try it</summary>\n<pre><code>{}\n</code></pre>\n</details>\n", Esc(&command));
    html.push_str(&answers(document, operation));
    html.push_str("</section>\n");
    html
}

/// Who may.
fn who(operation: &Value) -> String {
    if operation["security"].as_array().is_some_and(Vec::is_empty) {
        return "Anybody may; it takes no key.".to_owned();
    }
    let Some(right) = operation["x-right"].as_str() else {
        return "Any key may.".to_owned();
    };
    let roles = operation["x-roles"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let roles: Vec<String> = roles.map(|role| Esc(role).to_string()).collect();
    let whole = match operation["x-installation"] == true {
        true => ", with a key of the first org that reaches all of it",
        false => "",
    };
    format!("Asks for the right to <strong>{}</strong>: {}{whole}.", Esc(right), roles.join(", "))
}

fn parameters(operation: &Value) -> String {
    let Some(params) = operation["parameters"].as_array().filter(|params| !params.is_empty()) else {
        return String::new();
    };
    let mut html =
        "<table>\n<thead>\n<tr><th>parameter</th><th>in</th><th>type</th><th></th></tr>\n</thead>\n<tbody>\n"
            .to_owned();
    for param in params {
        let said = param["description"].as_str().map(markdown::inline).unwrap_or_default();
        let bounds = shape::bounds(&param["schema"]);
        let mark = if param["required"] == true { "" } else { " <span class=\"optional\">optional</span>" };
        let _ = writeln!(
            html,
            "<tr><td><code>{}</code>{mark}</td><td>{}</td><td>{} <span class=\"bounds\">{bounds}</span></td><td>{said}</td></tr>",
            Esc(param["name"].as_str().unwrap_or_default()),
            Esc(param["in"].as_str().unwrap_or_default()),
            shape::kind(&param["schema"]),
        );
    }
    html.push_str("</tbody>\n</table>\n");
    html
}

fn body(operation: &Value) -> String {
    let body = &operation["requestBody"];
    if body.is_null() {
        return String::new();
    }
    let content = &body["content"]["application/json"];
    let said = body["description"].as_str().map(markdown::inline).unwrap_or_default();
    let mut html = format!("<p>Body: {}. {said}</p>\n", shape::kind(&content["schema"]));
    html.push_str(&examples(content));
    html
}

fn answers(document: &Value, operation: &Value) -> String {
    let mut html = "<h4>Answers</h4>\n".to_owned();
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        let shared = response["$ref"].as_str().and_then(|at| at.strip_prefix("#/components/responses/"));
        match shared {
            Some(name) => {
                let codes = &document["components"]["responses"][name]["content"]["application/problem+json"];
                let codes = codes["schema"]["properties"]["code"]["enum"].as_array().into_iter().flatten();
                let link = |code: &str| format!("<a href=\"/docs/errors#{0}\"><code>{0}</code></a>", Esc(code));
                let codes: Vec<String> = codes.filter_map(Value::as_str).map(link).collect();
                let _ = writeln!(
                    html,
                    "<p class=\"refusal\"><span class=\"status\">{}</span> {}</p>",
                    Esc(status),
                    codes.join(", ")
                );
            }
            None => html.push_str(&answer(status, response)),
        }
    }
    html
}

fn answer(status: &str, response: &Value) -> String {
    let said = response["description"].as_str().map(markdown::inline).unwrap_or_default();
    let mut html = format!("<p class=\"success\"><span class=\"status\">{}</span> {said}", Esc(status));
    // Each has one form at most.
    if let Some((media, content)) = response["content"].as_object().and_then(|all| all.iter().next()) {
        let kind = shape::kind(&content["schema"]);
        let media = if media == "application/json" { String::new() } else { format!(" as {}", Esc(media)) };
        let _ = write!(html, " {kind}{media}</p>\n{}{}", shape::about(&content["schema"]), examples(content));
        return html;
    }
    html.push_str("</p>\n");
    html
}

fn examples(content: &Value) -> String {
    let mut html = String::new();
    let mut show = |name: &str, text: &str| {
        let (name, text) = (Esc(name), Esc(text));
        let _ = write!(
            html,
            "<details>\n<summary>Example: {name}</summary>\n<pre><code>{text}\n</code></pre>\n</details>\n"
        );
    };
    for (name, example) in content["examples"].as_object().into_iter().flatten() {
        show(name, &format!("{:#}", example["value"]));
    }
    if let Some(text) = content["example"].as_str() {
        show("text", text.trim_end());
    }
    html
}
