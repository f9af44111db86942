//! Inputs of steps that name things: `${steps.fetch.body.items.0.id}`, `${run.name}`.
//!
//! A text that is one reference and nothing else takes the value as it is; inside of longer text a value is put in as
//! text. `$${` stands for `${`. Names of fields are never looked into.
//!
//! Reading and rendering take time in proportion to what is written and what comes out: a value is measured before it
//! is copied, and nothing grows past its limit.

use super::problem;
use super::reference::{BadReference, Reference, Source};
use crate::limits;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::io;

/// A parsed input.
#[derive(Clone, Debug, PartialEq)]
pub struct Input(Node);

#[derive(Clone, Debug, PartialEq)]
enum Node {
    /// Nothing is named in here.
    Literal(Value),
    /// Takes the type of what it names.
    Whole(Reference),
    Text(Vec<Piece>),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Reference(Reference),
}

/// Why an input cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadInput {
    #[error("it is larger than {max} bytes", max = limits::INPUT_BYTES)]
    TooLarge,
    #[error("it has more than {max} lists and objects inside each other", max = limits::INPUT_DEPTH)]
    TooDeep,
    #[error(transparent)]
    Reference(#[from] BadReference),
}

impl BadInput {
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TooLarge => problem::INPUT_TOO_LARGE,
            Self::TooDeep => problem::INPUT_TOO_DEEP,
            Self::Reference(bad) => bad.code(),
        }
    }
}

/// Why an input cannot be filled in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    #[error("{0} has no value")]
    Missing(Reference),
    #[error("with all that it names, the input is larger than {max} bytes", max = limits::INPUT_BYTES)]
    TooLarge,
    #[error("with all that it names, the input has more than {max} lists and objects inside each other", max = limits::INPUT_DEPTH)]
    TooDeep,
}

impl RenderError {
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Missing(_) => problem::MISSING_RESULT,
            Self::TooLarge => problem::INPUT_TOO_LARGE,
            Self::TooDeep => problem::INPUT_TOO_DEEP,
        }
    }
}

impl Input {
    pub fn parse(value: &Value) -> Result<Self, BadInput> {
        // Depth first: measuring goes as deep as the value does.
        if !at_most_deep(value, limits::INPUT_DEPTH) {
            return Err(BadInput::TooDeep);
        }
        measure(value, limits::INPUT_BYTES).ok_or(BadInput::TooLarge)?;
        Ok(Self(Node::parse(value)?))
    }

    /// What it names, each once, in order.
    pub fn names(&self) -> BTreeSet<&Reference> {
        let mut names = BTreeSet::new();
        self.0.names(&mut names);
        names
    }

    /// Whether it is what it says, whatever happens.
    pub fn is_literal(&self) -> bool {
        self.names().is_empty()
    }

    /// Fills in what it names. `look` knows the whole value that a reference starts from.
    pub fn render<'a>(&self, look: &dyn Fn(&Source) -> Option<&'a Value>) -> Result<Value, RenderError> {
        let mut out = Rendering { look, left: limits::INPUT_BYTES };
        out.node(&self.0, limits::INPUT_DEPTH)
    }
}

impl Node {
    fn parse(value: &Value) -> Result<Self, BadReference> {
        Ok(match value {
            Value::String(text) => Self::text(text)?,
            Value::Array(items) => {
                let nodes = items.iter().map(Self::parse).collect::<Result<Vec<_>, _>>()?;
                if nodes.iter().all(Self::is_literal) { Self::Literal(value.clone()) } else { Self::List(nodes) }
            }
            Value::Object(fields) => {
                let node = |(name, value): (&String, &Value)| Ok((name.clone(), Self::parse(value)?));
                let nodes = fields.iter().map(node).collect::<Result<Vec<_>, BadReference>>()?;
                if nodes.iter().all(|(_, node)| node.is_literal()) {
                    Self::Literal(value.clone())
                } else {
                    Self::Object(nodes)
                }
            }
            other => Self::Literal(other.clone()),
        })
    }

    fn text(text: &str) -> Result<Self, BadReference> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            if rest[..at].ends_with('$') {
                plain.push_str(&rest[..at - 1]);
                plain.push_str("${");
                rest = &rest[at + 2..];
                continue;
            }
            plain.push_str(&rest[..at]);
            let (inside, after) = rest[at + 2..].split_once('}').ok_or_else(|| BadReference::unclosed(&rest[at..]))?;
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(Piece::Reference(inside.parse()?));
            rest = after;
        }
        plain.push_str(rest);
        if pieces.is_empty() {
            // An escape makes the text another one than was written, so that it is no literal of its list.
            let literal = Value::String(plain);
            return Ok(if literal.as_str() == Some(text) { Self::Literal(literal) } else { Self::escaped(literal) });
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(match <[Piece; 1]>::try_from(pieces) {
            Ok([Piece::Reference(reference)]) => Self::Whole(reference),
            Ok(one) => Self::Text(one.into()),
            Err(pieces) => Self::Text(pieces),
        })
    }

    fn escaped(text: Value) -> Self {
        match text {
            Value::String(text) => Self::Text(vec![Piece::Text(text)]),
            other => Self::Literal(other),
        }
    }

    const fn is_literal(&self) -> bool {
        matches!(self, Self::Literal(_))
    }

    fn names<'a>(&'a self, names: &mut BTreeSet<&'a Reference>) {
        match self {
            Self::Literal(_) => {}
            Self::Whole(reference) => {
                names.insert(reference);
            }
            Self::Text(pieces) => names.extend(pieces.iter().filter_map(|piece| match piece {
                Piece::Text(_) => None,
                Piece::Reference(reference) => Some(reference),
            })),
            Self::List(nodes) => nodes.iter().for_each(|node| node.names(names)),
            Self::Object(nodes) => nodes.iter().for_each(|(_, node)| node.names(names)),
        }
    }
}

/// What is being rendered, and how many bytes there may still be.
struct Rendering<'r, 'a> {
    look: &'r dyn Fn(&Source) -> Option<&'a Value>,
    left: usize,
}

impl<'a> Rendering<'_, 'a> {
    fn node(&mut self, node: &Node, deep: usize) -> Result<Value, RenderError> {
        match node {
            Node::Literal(value) => self.copy(value, deep),
            Node::Whole(reference) => {
                let value = self.find(reference)?;
                self.copy(value, deep)
            }
            Node::Text(pieces) => self.text(pieces).map(Value::String),
            Node::List(nodes) => {
                let deep = deep.checked_sub(1).ok_or(RenderError::TooDeep)?;
                // The brackets, and a comma between two.
                self.take(nodes.len().max(1) + 1)?;
                nodes.iter().map(|node| self.node(node, deep)).collect::<Result<_, _>>().map(Value::Array)
            }
            Node::Object(nodes) => {
                let deep = deep.checked_sub(1).ok_or(RenderError::TooDeep)?;
                self.take(nodes.len().max(1) + 1)?;
                let mut fields = Map::new();
                for (name, node) in nodes {
                    self.take(1)?;
                    self.take_text(name)?;
                    fields.insert(name.clone(), self.node(node, deep)?);
                }
                Ok(Value::Object(fields))
            }
        }
    }

    fn text(&mut self, pieces: &[Piece]) -> Result<String, RenderError> {
        let mut text = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(plain) => self.put(&mut text, plain)?,
                Piece::Reference(reference) => match self.find(reference)? {
                    Value::String(found) => self.put(&mut text, found)?,
                    other => {
                        measure(other, self.left).ok_or(RenderError::TooLarge)?;
                        self.put(&mut text, &other.to_string())?;
                    }
                },
            }
        }
        // What was put in is counted as it is; the quotes, and what they make longer, come on top.
        let size = written(&text, self.left.saturating_add(text.len())).ok_or(RenderError::TooLarge)?;
        self.take(size.saturating_sub(text.len()))?;
        Ok(text)
    }

    /// Counts as it goes, so that a text never grows past what is left.
    fn put(&mut self, text: &mut String, more: &str) -> Result<(), RenderError> {
        self.take(more.len())?;
        text.push_str(more);
        Ok(())
    }

    fn find(&self, reference: &Reference) -> Result<&'a Value, RenderError> {
        let whole = (self.look)(&reference.source);
        whole.and_then(|whole| reference.walk(whole)).ok_or_else(|| RenderError::Missing(reference.clone()))
    }

    fn copy(&mut self, value: &Value, deep: usize) -> Result<Value, RenderError> {
        // Size first: whatever is not too large is quickly looked through.
        let size = measure(value, self.left).ok_or(RenderError::TooLarge)?;
        self.take(size)?;
        if !at_most_deep(value, deep) {
            return Err(RenderError::TooDeep);
        }
        Ok(value.clone())
    }

    fn take_text(&mut self, text: &str) -> Result<(), RenderError> {
        let size = written(text, self.left).ok_or(RenderError::TooLarge)?;
        self.take(size)
    }

    fn take(&mut self, bytes: usize) -> Result<(), RenderError> {
        self.left = self.left.checked_sub(bytes).ok_or(RenderError::TooLarge)?;
        Ok(())
    }
}

/// The bytes of a value as canonical text; `None` if there are more than `max`. Stops as soon as it knows.
fn measure(value: &Value, max: usize) -> Option<usize> {
    let mut count = Count { max, bytes: 0 };
    serde_json::to_writer(&mut count, value).ok()?;
    Some(count.bytes)
}

/// The bytes of a text as JSON, in the same way.
fn written(text: &str, max: usize) -> Option<usize> {
    let mut count = Count { max, bytes: 0 };
    serde_json::to_writer(&mut count, text).ok()?;
    Some(count.bytes)
}

struct Count {
    max: usize,
    bytes: usize,
}

impl io::Write for Count {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        self.bytes = self.bytes.saturating_add(more.len());
        if self.bytes > self.max { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(more.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether no value lies deeper than `deep` lists and objects.
fn at_most_deep(value: &Value, deep: usize) -> bool {
    match value {
        Value::Array(items) => deep > 0 && items.iter().all(|item| at_most_deep(item, deep - 1)),
        Value::Object(fields) => deep > 0 && fields.values().all(|item| at_most_deep(item, deep - 1)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn render(input: &Value, result: &Value) -> Result<Value, RenderError> {
        let known = |source: &Source| match source {
            Source::Step(name) if name.as_str() == "a" => Some(result),
            _ => None,
        };
        Input::parse(input).unwrap().render(&known)
    }

    #[test]
    fn one_reference_alone_keeps_its_type_and_inside_text_it_becomes_text() {
        let result = json!({ "n": 7, "s": "x", "b": true, "z": null, "l": [1, { "k": "v" }], "0": "zero" });
        for (input, output) in [
            (json!("${steps.a.n}"), json!(7)),
            (json!("${steps.a}"), result.clone()),
            (json!("${steps.a.l.1.k}"), json!("v")),
            (json!("${steps.a.0}"), json!("zero")),
            (json!("n=${steps.a.n}, s=${steps.a.s}, b=${steps.a.b}"), json!("n=7, s=x, b=true")),
            (json!("${steps.a.l}!"), json!(r#"[1,{"k":"v"}]!"#)),
            (json!(" ${steps.a.z}"), json!(" null")),
            (json!("${steps.a.n}${steps.a.n}"), json!("77")),
            (json!("$${steps.a.n}"), json!("${steps.a.n}")),
            (json!("a $${x} ${steps.a.n} $"), json!("a ${x} 7 $")),
            (json!({ "${steps.a.n}": ["${steps.a.n}", 1], "k": "$${" }), json!({ "${steps.a.n}": [7, 1], "k": "${" })),
            (json!({ "plain": [1, "$x", "{}", "}"] }), json!({ "plain": [1, "$x", "{}", "}"] })),
        ] {
            assert_eq!(render(&input, &result), Ok(output), "{input}");
        }
    }

    #[test]
    fn what_is_not_there_is_missed() {
        for input in
            ["${steps.b}", "${steps.a.no}", "${steps.a.l.9}", "${steps.a.l.x}", "x${steps.a.l.01}", "${run.id}"]
        {
            let error = render(&json!(input), &json!({ "l": [1, 2] })).unwrap_err();
            assert_eq!(error.code(), "missing_result", "{input}");
        }
    }

    #[test]
    fn names_are_found_once_each() {
        let input =
            Input::parse(&json!({ "a": ["${steps.b}", "x ${steps.b} ${run.id}"], "c": "$${steps.d}" })).unwrap();
        let names: Vec<String> = input.names().into_iter().map(ToString::to_string).collect();
        assert_eq!(names, ["${steps.b}", "${run.id}"]);
        assert!(!input.is_literal());
        assert!(Input::parse(&json!("$${steps.d}")).unwrap().is_literal());
    }

    #[test]
    fn an_input_is_as_large_as_its_limit_and_no_larger() {
        let fits = json!("x".repeat(limits::INPUT_BYTES - 2));
        let large = json!("x".repeat(limits::INPUT_BYTES - 1));
        assert!(Input::parse(&fits).is_ok());
        assert_eq!(Input::parse(&large), Err(BadInput::TooLarge));
        assert_eq!(render(&json!("${steps.a}"), &fits).as_ref(), Ok(&fits));
        assert_eq!(render(&json!("${steps.a}"), &large), Err(RenderError::TooLarge));
        assert_eq!(render(&json!("${steps.a}y"), &fits), Err(RenderError::TooLarge));
        let quotes = json!("\"".repeat(limits::INPUT_BYTES / 2));
        assert_eq!(
            render(&json!("y${steps.a}"), &quotes),
            Err(RenderError::TooLarge),
            "as it is written, it is twice as long"
        );
    }

    #[test]
    fn an_input_is_as_deep_as_its_limit_and_no_deeper() {
        let deep = |n: usize| (0..n).fold(json!(1), |inner, _| json!([inner]));
        assert!(Input::parse(&deep(limits::INPUT_DEPTH)).is_ok());
        assert_eq!(Input::parse(&deep(limits::INPUT_DEPTH + 1)), Err(BadInput::TooDeep));
        assert!(render(&json!(["${steps.a}"]), &deep(limits::INPUT_DEPTH - 1)).is_ok());
        assert_eq!(render(&json!(["${steps.a}"]), &deep(limits::INPUT_DEPTH)), Err(RenderError::TooDeep));
        assert!(render(&json!("as text: ${steps.a}"), &deep(limits::INPUT_DEPTH + 9)).is_ok());
    }

    #[test]
    fn thousands_of_references_to_much_are_refused_at_once() {
        let many: Vec<_> = (0..4_000).map(|_| json!("${steps.a}")).collect();
        let much = json!(vec![0; 100_000]);
        assert_eq!(render(&json!(many), &much), Err(RenderError::TooLarge));
        let text = "${steps.a}".repeat(4_000);
        assert_eq!(render(&json!(text), &much), Err(RenderError::TooLarge));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            any::<String>().prop_map(Value::String),
            "[$]{0,3}[{]?(steps|tasks|run|agent)?[.]?[ab0.]{0,4}[}]?[$]{0,2}".prop_map(Value::String),
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<f64>().prop_map(Value::from),
            text
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
                proptest::collection::btree_map("[ab0]{0,2}", inner, 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn rendering_never_panics_and_never_says_more_than_fits(input in any_json(), result in any_json()) {
            if let Ok(parsed) = Input::parse(&input) {
                let known = |source: &Source| (!matches!(source, Source::RunTask)).then_some(&result);
                if let Ok(value) = parsed.render(&known) {
                    prop_assert!(value.to_string().len() <= limits::INPUT_BYTES);
                    if parsed.is_literal() && !input.to_string().contains("$${") {
                        prop_assert_eq!(value, input);
                    }
                }
            }
        }
    }
}
