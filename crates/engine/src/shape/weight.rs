//! How much work a schema makes, before anything is checked with it.

use serde_json::Value;
use std::collections::BTreeMap;

/// Parts of a schema, each counted as often as it is referred to.
const PARTS: u64 = 1_000;
/// Schemas inside each other, references followed.
const DEPTH: u32 = 64;

/// Refuses a schema that refers to itself, to somewhere else, or to its parts too often.
pub fn check(schema: &Value) -> Result<(), String> {
    let parts = Weighing { root: schema, known: BTreeMap::new() }.weigh(schema, 0)?;
    if parts > PARTS {
        return Err(format!("it has more than {PARTS} parts, each counted as often as it is referred to"));
    }
    Ok(())
}

struct Weighing<'a> {
    root: &'a Value,
    /// Of places that are referred to.
    known: BTreeMap<String, u64>,
}

impl<'a> Weighing<'a> {
    fn weigh(&mut self, part: &'a Value, depth: u32) -> Result<u64, String> {
        if depth > DEPTH {
            return Err("it refers to itself, or is nested too deep".to_owned());
        }
        match part {
            Value::Array(items) => self.sum(items.iter(), depth),
            Value::Object(fields) => {
                for word in ["$dynamicRef", "$recursiveRef", "$id", "$anchor", "$dynamicAnchor"] {
                    if fields.contains_key(word) {
                        return Err(format!("{word} is not supported here"));
                    }
                }
                let referred = match fields.get("$ref").and_then(Value::as_str) {
                    Some(place) => self.referred(place, depth)?,
                    None => 0,
                };
                Ok(1_u64.saturating_add(referred).saturating_add(self.sum(fields.values(), depth)?))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(0),
        }
    }

    fn sum(&mut self, parts: impl Iterator<Item = &'a Value>, depth: u32) -> Result<u64, String> {
        parts.into_iter().try_fold(0_u64, |sum, part| Ok(sum.saturating_add(self.weigh(part, depth + 1)?)))
    }

    fn referred(&mut self, place: &str, depth: u32) -> Result<u64, String> {
        if let Some(known) = self.known.get(place) {
            return Ok(*known);
        }
        let inside = place.strip_prefix('#').ok_or("references must lead to places inside of it, such as #/$defs/x")?;
        let part = self.root.pointer(inside).ok_or_else(|| format!("there is nothing at {place}"))?;
        let weight = self.weigh(part, depth + 1)?;
        self.known.insert(place.to_owned(), weight);
        Ok(weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_that_doubles_itself_is_refused_at_once() {
        let level = |n: u32| json!({ "allOf": [{ "$ref": format!("#/$defs/a{}", n + 1) }, { "$ref": format!("#/$defs/a{}", n + 1) }] });
        let mut defs: serde_json::Map<String, Value> = (0..15).map(|n| (format!("a{n}"), level(n))).collect();
        defs.insert("a15".to_owned(), json!({ "type": "string" }));
        let no = check(&json!({ "$ref": "#/$defs/a0", "$defs": defs })).unwrap_err();
        assert!(no.contains("parts"), "{no}");
    }

    #[test]
    fn a_schema_that_refers_to_itself_or_elsewhere_is_refused() {
        for bad in [
            json!({ "properties": { "a": { "$ref": "#" } } }),
            json!({ "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } }, "$ref": "#/$defs/a" }),
            json!({ "$ref": "https://example.com/x.json" }),
            json!({ "$ref": "#/nowhere" }),
            json!({ "$dynamicRef": "#x" }),
        ] {
            assert!(check(&bad).is_err(), "{bad}");
        }
        let fine = json!({ "$defs": { "a": { "type": "string" } }, "properties": { "x": { "$ref": "#/$defs/a" }, "y": { "$ref": "#/$defs/a" } } });
        assert_eq!(check(&fine), Ok(()));
    }
}
