use super::document;
use crate::code::CODES;
use crate::router::{described, routes};
use baton_wire::Problem;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Every operation of the document, with its method and path.
fn operations() -> Vec<(String, &'static Value)> {
    let paths = document()["paths"].as_object().unwrap();
    let of_path = |(path, methods): (&'static String, &'static Value)| {
        let methods = methods.as_object().unwrap().iter();
        methods.map(move |(method, operation)| (format!("{} {path}", method.to_uppercase()), operation))
    };
    paths.iter().flat_map(of_path).collect()
}

/// What is meant, if something is only referred to.
fn resolved(value: &'static Value) -> &'static Value {
    match value["$ref"].as_str() {
        Some(at) => document().pointer(at.strip_prefix('#').unwrap()).unwrap_or_else(|| panic!("{at} is not there")),
        None => value,
    }
}

#[track_caller]
fn fits(schema: &Value, value: &Value, what: &str) {
    let whole = json!({ "allOf": [schema], "components": document()["components"] });
    let validator = jsonschema::options().should_validate_formats(true).build(&whole).unwrap();
    if let Err(error) = validator.validate(value) {
        panic!("{what}: {error} at {}\n{value:#}", error.instance_path());
    }
}

#[test]
fn every_route_is_described_and_nothing_else_is() {
    let table: BTreeSet<String> = routes().iter().map(|route| format!("{} {}", route.method, route.path)).collect();
    let told: BTreeSet<String> = operations().into_iter().map(|(name, _)| name).collect();
    assert_eq!(told, table);
    assert_eq!(table.len(), routes().len(), "a route stands once");
}

#[test]
fn every_operation_has_a_name_of_its_own_and_something_to_look_at() {
    let mut ids = BTreeSet::new();
    let tags: Vec<_> = document()["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
    for (name, operation) in operations() {
        assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{name}: an id stands once");
        assert!(!operation["summary"].as_str().unwrap().is_empty(), "{name}");
        assert!(tags.contains(&&operation["tags"][0]), "{name}");
        if let Some(body) = operation.get("requestBody") {
            let examples = &body["content"]["application/json"]["examples"];
            assert!(!examples.as_object().unwrap().is_empty(), "{name}: no example of a request");
        }
        let mut successes = 0;
        for (status, response) in operation["responses"].as_object().unwrap() {
            let response = resolved(response);
            successes += usize::from(status.starts_with(['1', '2']));
            assert!(!response["description"].as_str().unwrap().is_empty(), "{name} {status}");
            for content in response["content"].as_object().into_iter().flat_map(|all| all.values()) {
                let named = content["examples"].as_object().is_some_and(|all| !all.is_empty());
                assert!(named || content["example"].is_string(), "{name} {status}: no example");
            }
            assert!(response["content"].is_object() || ["101", "204"].contains(&status.as_str()), "{name} {status}");
        }
        assert!(successes > 0, "{name} never succeeds");
    }
}

#[test]
fn parameters_of_a_path_are_those_it_names() {
    for (name, operation) in operations() {
        let told = operation["parameters"].as_array().unwrap().iter().filter(|param| param["in"] == "path");
        let told: BTreeSet<_> = told.map(|param| param["name"].as_str().unwrap()).collect();
        let named: BTreeSet<_> = name.split('{').skip(1).filter_map(|rest| rest.split('}').next()).collect();
        assert_eq!(told, named, "{name}");
        // Beside what a path names, only a key that the operation cannot do without must be there.
        let wants_key = operation.to_string().contains("idempotency_key_required");
        let must = |p: &Value| p["in"] == "path" || (wants_key && p["name"] == "Idempotency-Key");
        assert!(
            operation["parameters"].as_array().unwrap().iter().all(|p| must(p) == (p["required"] == true)),
            "{name}"
        );
    }
}

#[test]
fn links_lead_to_operations_that_take_what_they_hand_over() {
    let of = |id: &str| operations().into_iter().find(|(_, operation)| operation["operationId"] == id);
    for (name, operation) in operations() {
        for response in operation["responses"].as_object().unwrap().values() {
            for (to, link) in response["links"].as_object().into_iter().flatten() {
                let (_, target) = of(to).unwrap_or_else(|| panic!("{name} leads to {to}, which is not there"));
                let takes = target["parameters"].as_array().unwrap().iter().filter(|param| param["in"] == "path");
                let takes: BTreeSet<_> = takes.map(|param| param["name"].as_str().unwrap()).collect();
                let given: BTreeSet<_> = link["parameters"].as_object().unwrap().keys().map(String::as_str).collect();
                assert_eq!(takes, given, "{name} to {to}");
                for at in link["parameters"].as_object().unwrap().values() {
                    let at = at.as_str().unwrap().strip_prefix("$response.body#").unwrap();
                    let example = &response["content"]["application/json"]["examples"]["answer"]["value"];
                    assert!(example.pointer(at).is_some_and(Value::is_string), "{name} to {to}: {at}");
                }
            }
        }
    }
}

#[test]
fn every_example_fits_its_schema() {
    for (name, operation) in operations() {
        for param in operation["parameters"].as_array().unwrap() {
            if let Some(example) = param.get("example") {
                fits(&param["schema"], example, &format!("{name} {}", param["name"]));
            }
        }
        let responses = operation["responses"].as_object().unwrap().values().map(resolved);
        let contents =
            std::iter::once(&operation["requestBody"]).chain(responses).filter_map(|one| one["content"].as_object());
        for content in contents.flat_map(|content| content.values()) {
            for (example, shown) in content["examples"].as_object().into_iter().flatten() {
                fits(&content["schema"], &shown["value"], &format!("{name} {example}"));
            }
        }
    }
    for (name, header) in document()["components"]["headers"].as_object().unwrap() {
        fits(&header["schema"], &header["example"], name);
    }
}

#[test]
fn every_reference_leads_somewhere() {
    fn walk(value: &'static Value) {
        match value {
            Value::Object(fields) => {
                if fields.contains_key("$ref") {
                    resolved(value);
                }
                fields.values().for_each(walk);
            }
            Value::Array(items) => items.iter().for_each(walk),
            _ => {}
        }
    }
    walk(document());
}

#[test]
fn a_name_stands_for_one_thing_in_requests_and_in_answers() {
    assert_eq!(super::document::ambiguous(&described()), Vec::<String>::new());
}

#[test]
fn every_code_is_listed_and_belongs_to_an_operation() {
    let listed = &document()["components"]["schemas"]["Problem"]["properties"]["code"]["enum"];
    let codes: Vec<_> = CODES.iter().map(|code| code.code).collect();
    assert_eq!(*listed, json!(codes));
    let mut used = BTreeSet::new();
    for (name, operation) in operations() {
        for (status, response) in operation["responses"].as_object().unwrap() {
            let content = &resolved(response)["content"][Problem::CONTENT_TYPE];
            for code in content["schema"]["properties"]["code"]["enum"].as_array().into_iter().flatten() {
                let code = CODES.iter().find(|row| row.code == code).unwrap();
                assert_eq!(code.status.to_string(), *status, "{name} {}", code.code);
                used.insert(code.code);
            }
        }
    }
    // These are answers to what no operation is about: another path or method, or no TLS.
    let unused: Vec<_> = codes.into_iter().filter(|code| !used.contains(code)).collect();
    assert_eq!(unused, ["https_needed", "not_found", "method_not_allowed"]);
}

#[test]
fn operations_refuse_with_codes_that_exist() {
    for (route, operation) in described() {
        for code in operation.codes {
            assert!(CODES.iter().any(|row| row.code == code), "{} {}: {code}", route.method, route.path);
        }
    }
}

#[test]
fn whoever_asks_for_a_key_can_be_refused_for_want_of_it() {
    for (name, operation) in operations() {
        let closed = operation["security"] != json!([]);
        let told = &operation["responses"];
        for status in ["401", "429"] {
            assert_eq!(told.get(status).is_some(), closed, "{name} {status}");
        }
        let roles = operation["x-roles"].as_array().map_or(0, Vec::len);
        let anybodys = ["GET /api/v1/me", "POST /api/v1/login-links"].contains(&name.as_str());
        assert!(!closed || roles > 0 || anybodys, "{name}");
        assert!(["403", "500"].iter().all(|status| told.get(*status).is_some()), "{name}");
    }
}

#[test]
fn whoever_has_a_body_can_be_refused_for_it() {
    for (name, operation) in operations() {
        let has_body = operation.get("requestBody").is_some();
        for status in ["408", "413", "415"] {
            assert_eq!(operation["responses"].get(status).is_some(), has_body, "{name} {status}");
        }
        let keyed = operation["parameters"].as_array().unwrap().iter().any(|param| param["name"] == "Idempotency-Key");
        // What lets somebody in is good once, and nothing of it is kept to be said again.
        let once = ["POST /api/v1/login-links", "POST /api/v1/session"].contains(&name.as_str());
        // A worker's lease tells a repetition by itself.
        let leased = name.starts_with("POST /api/v1/worker/");
        assert_eq!(keyed, name.starts_with("POST ") && !once && !leased, "{name}");
    }
}
