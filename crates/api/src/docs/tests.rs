use super::*;
use crate::code::CODES;
use serde_json::json;
use std::collections::BTreeSet;

fn reference_page() -> String {
    reference::page(crate::openapi::document(), &crate::router::routes())
}

fn pages() -> [(&'static str, String); 3] {
    [
        ("/docs", reference_page()),
        ("/docs/errors", html::page("Errors", &html::contents(ERRORS), &markdown::render(ERRORS))),
        ("/docs/api", html::page("Guide", &html::contents(API), &markdown::render(API))),
    ]
}

/// Everything between quotes after `name=`.
fn attributes<'a>(html: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!(" {name}=\"");
    html.split(start.as_str()).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn every_link_leads_somewhere_on_this_server() {
    let ids: Vec<(&str, BTreeSet<String>)> = pages()
        .iter()
        .map(|(at, html)| {
            let all = attributes(html, "id");
            let unique: BTreeSet<String> = all.iter().map(|id| (*id).to_owned()).collect();
            assert_eq!(unique.len(), all.len(), "an id stands twice in {at}");
            (*at, unique)
        })
        .collect();
    let routes: Vec<_> = crate::router::routes().iter().map(|route| route.path).collect();
    for (at, html) in pages() {
        for link in attributes(&html, "href") {
            let (page, anchor) = link.split_once('#').unwrap_or((link, ""));
            let page = match page {
                "" => at.to_owned(),
                page if page.starts_with('/') => page.to_owned(),
                page => format!("/docs/{page}"),
            };
            assert!(routes.contains(&page.as_str()), "{at} links to {link}");
            if !anchor.is_empty() {
                let there = ids.iter().find(|(at, _)| *at == page).unwrap_or_else(|| panic!("{link}"));
                assert!(there.1.contains(anchor), "{at} links to {link}, which is not there");
            }
        }
    }
}

#[test]
fn every_code_has_a_place_to_point_to() {
    let (_, html) = &pages()[1];
    for code in &CODES {
        assert!(html.contains(&format!("<h3 id=\"{}\">", code.code)), "{}", code.code);
    }
}

#[test]
fn pages_are_balanced_and_hold_nothing_from_elsewhere() {
    for (at, html) in pages() {
        let mut open = Vec::new();
        for tag in html.split('<').skip(1).filter_map(|rest| rest.split('>').next()) {
            let name = tag.split([' ', '\n']).next().unwrap_or_default();
            match name.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name), "{at}: {tag}"),
                None if matches!(name, "!doctype" | "meta" | "link") => {}
                None => open.push(name),
            }
        }
        assert!(open.is_empty(), "{at}: {open:?}");
        assert!(!html.contains("<script") && !html.contains(" style=") && !html.contains(" src="), "{at}");
        assert!(attributes(&html, "href").iter().all(|link| !link.contains("//")), "{at}");
    }
}

#[test]
fn every_operation_and_every_schema_is_shown() {
    let html = reference_page();
    let document = crate::openapi::document();
    for (route, operation) in crate::router::described() {
        assert!(html.contains(&format!("id=\"{}\"", operation.id)), "{} {}", route.method, route.path);
    }
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        assert!(html.contains(&format!("id=\"schema-{name}\"")), "{name}");
    }
    assert!(html.contains("Asks for the right to <strong>keys</strong>: admin."));
    assert!(html.contains("<strong>see</strong>: viewer, operator, admin, with a key of the first org"));
}

#[test]
fn whatever_the_document_says_stands_in_the_page_as_text() {
    let evil = "<script>alert('x')</script>\"'&";
    let mut document = crate::openapi::document().clone();
    spoil(&mut document, evil);
    document["tags"] = json!([{ "name": evil, "description": evil }]);
    let html = reference::page(&document, &crate::router::routes());
    assert!(!html.contains("<script"), "{html}");
    assert!(html.contains("&lt;script&gt;"));
}

/// Puts a text in the place of every other one.
fn spoil(value: &mut serde_json::Value, text: &str) {
    match value {
        serde_json::Value::String(old) if !old.starts_with('#') => *old = text.to_owned(),
        serde_json::Value::Array(items) => items.iter_mut().for_each(|item| spoil(item, text)),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(|item| spoil(item, text)),
        _ => {}
    }
}
