//! JSON Schema as a shape: compiled once, checked where decisions are made.

mod weight;

use baton_core::definition::Shape;
use baton_core::limits::cut;
use baton_store::Shapes;
use jsonschema::PatternOptions;
use serde_json::Value;
use std::sync::Arc;

/// Longest description of a misfit.
const DETAIL_CHARS: usize = 300;

pub(crate) struct JsonShape(Result<jsonschema::Validator, String>);

impl JsonShape {
    /// A schema that cannot be used lets nothing pass, and says why. References to other places
    /// are not followed.
    pub fn new(schema: &Value) -> Self {
        let linear = PatternOptions::regex();
        let options = jsonschema::options().offline().with_pattern_options(linear);
        Self(options.build(schema).map_err(|e| e.to_string()))
    }
}

/// For the schemas of job types that are registered while Baton runs.
pub struct JsonShapes;

impl Shapes for JsonShapes {
    fn of(&self, schema: &Value) -> Arc<dyn Shape> {
        Arc::new(JsonShape::new(schema))
    }
}

/// Whether a schema that somebody registers can be used; why not. It is checked where decisions are made, so it must
/// not take long whatever it is given: no patterns that go back, and not too many parts, references followed.
pub fn check_schema(schema: &Value) -> Result<(), String> {
    weight::check(schema)?;
    JsonShape::new(schema).0.map(drop).map_err(|why| cut(&why, DETAIL_CHARS))
}

impl Shape for JsonShape {
    fn check(&self, value: &Value) -> Result<(), String> {
        let validator = self.0.as_ref().map_err(|why| format!("its schema cannot be used: {why}"))?;
        let Err(misfit) = validator.validate(value) else { return Ok(()) };
        let path = misfit.instance_path().to_string();
        let place = if path.is_empty() { "/".to_owned() } else { path };
        // Values may be secrets: only the place and the rule are said.
        Err(cut(&format!("at {place}: {}", misfit.masked()), DETAIL_CHARS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_misfit_is_named_by_its_place_without_its_value() {
        let shape = JsonShape::new(&json!({
            "type": "object",
            "required": ["n"],
            "properties": { "n": { "type": "integer" }, "secret": { "type": "null" } },
        }));
        assert_eq!(shape.check(&json!({ "n": 1 })), Ok(()));
        let no = shape.check(&json!({ "n": 1, "secret": "hunter2" })).unwrap_err();
        assert!(no.contains("/secret") && !no.contains("hunter2"), "{no}");
        assert!(shape.check(&json!({})).unwrap_err().starts_with("at /: "));
    }

    #[test]
    fn a_schema_that_cannot_be_used_lets_nothing_pass() {
        for schema in [json!({ "type": "moon" }), json!({ "$ref": "https://example.com/schema.json" })] {
            let no = JsonShape::new(&schema).check(&json!({})).unwrap_err();
            assert!(no.contains("its schema cannot be used"), "{no}");
        }
    }
}
