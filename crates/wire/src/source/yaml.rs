//! YAML, from the events of its parser.

use super::{DEPTH, Inside, Node, Place, SourceError};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, StrInput, Tag};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

pub(super) fn read(text: &str) -> Result<(Value, Node), SourceError> {
    let mut reader = Reader(Parser::new_from_str(text));
    reader.next()?;
    match reader.next()? {
        (Event::DocumentStart(_), _) => {}
        (_, place) => return Err(SourceError::at(place, "there is nothing in the document")),
    }
    let first = reader.next()?;
    let read = reader.node(first, 0)?;
    reader.next()?;
    match reader.next()? {
        (Event::StreamEnd, _) => Ok(read),
        (_, place) => Err(SourceError::at(place, "a second document begins here; there may be one")),
    }
}

struct Reader<'a>(Parser<'a, StrInput<'a>>);

type Read<'a> = (Event<'a>, Place);

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Read<'a>, SourceError> {
        match self.0.next_event() {
            Some(Ok((event, span))) => Ok((event, place(&span.start))),
            Some(Err(error)) => Err(bad(&error)),
            None => Err(SourceError::at(Place { line: 1, column: 1 }, "the document ends too early")),
        }
    }

    fn node(&mut self, (event, place): Read<'a>, deep: usize) -> Result<(Value, Node), SourceError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                plain(anchor, tag.as_deref(), place)?;
                Ok((scalar(text, style, place)?, Node { place, inside: Inside::Nothing }))
            }
            Event::SequenceStart(..) | Event::MappingStart(..) if deep == DEPTH => Err(SourceError::too_deep(place)),
            Event::SequenceStart(anchor, tag) => {
                plain(anchor, tag.as_deref(), place)?;
                self.list(place, deep + 1)
            }
            Event::MappingStart(anchor, tag) => {
                plain(anchor, tag.as_deref(), place)?;
                self.object(place, deep + 1)
            }
            Event::Alias(_) => Err(SourceError::at(place, "aliases are not accepted")),
            _ => Err(SourceError::at(place, "a value is expected here")),
        }
    }

    fn list(&mut self, place: Place, deep: usize) -> Result<(Value, Node), SourceError> {
        let (mut items, mut nodes) = (Vec::new(), Vec::new());
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => break,
                event => {
                    let (item, node) = self.node(event, deep)?;
                    items.push(item);
                    nodes.push(node);
                }
            }
        }
        Ok((Value::Array(items), Node { place, inside: Inside::List(nodes) }))
    }

    fn object(&mut self, place: Place, deep: usize) -> Result<(Value, Node), SourceError> {
        let (mut fields, mut nodes) = (Map::new(), BTreeMap::new());
        loop {
            let (key, place) = match self.next()? {
                (Event::MappingEnd, _) => break,
                (Event::Scalar(key, _, anchor, tag), place) => {
                    plain(anchor, tag.as_deref(), place)?;
                    (key.into_owned(), place)
                }
                (_, place) => return Err(SourceError::at(place, "a key must be text")),
            };
            let event = self.next()?;
            let (value, node) = self.node(event, deep)?;
            if fields.insert(key.clone(), value).is_some() {
                return Err(SourceError::twice(place, &key));
            }
            nodes.insert(key, Node { place, ..node });
        }
        Ok((Value::Object(fields), Node { place, inside: Inside::Object(nodes) }))
    }
}

/// Anchors and tags make a text mean something else than it says.
fn plain(anchor: usize, tag: Option<&Tag>, place: Place) -> Result<(), SourceError> {
    match (anchor, tag) {
        (0, None) => Ok(()),
        (0, Some(_)) => Err(SourceError::at(place, "tags are not accepted")),
        _ => Err(SourceError::at(place, "anchors are not accepted")),
    }
}

fn scalar(text: Cow<'_, str>, style: ScalarStyle, place: Place) -> Result<Value, SourceError> {
    if style != ScalarStyle::Plain {
        return Ok(Value::String(text.into_owned()));
    }
    Ok(match &*text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        word => match number(word) {
            Some(Ok(number)) => Value::Number(number),
            Some(Err(TooLarge)) => return Err(SourceError::at(place, "this number is too large, or none at all")),
            None => Value::String(text.into_owned()),
        },
    })
}

/// What JSON cannot say: too large, endless, or not a number.
struct TooLarge;

/// By the core rules of YAML 1.2.
fn number(text: &str) -> Option<Result<Number, TooLarge>> {
    let whole = |digits: &str, base| {
        let fits = u64::from_str_radix(digits, base).map(Number::from);
        fits.map_err(|_| TooLarge)
    };
    let all = |text: &str, ok: fn(&u8) -> bool| !text.is_empty() && text.bytes().all(|byte| ok(&byte));
    if let Some(digits) = text.strip_prefix("0x").filter(|digits| all(digits, u8::is_ascii_hexdigit)) {
        return Some(whole(digits, 16));
    }
    if let Some(digits) = text.strip_prefix("0o").filter(|digits| all(digits, |byte| matches!(byte, b'0'..=b'7'))) {
        return Some(whole(digits, 8));
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Some(Err(TooLarge));
    }
    if all(unsigned, u8::is_ascii_digit) {
        let whole = text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from));
        return Some(whole.or_else(|_| float(text)));
    }
    is_float(unsigned).then(|| float(text))
}

fn float(text: &str) -> Result<Number, TooLarge> {
    text.parse().ok().and_then(Number::from_f64).ok_or(TooLarge)
}

/// Digits with a point among, before or behind them, and perhaps an exponent.
fn is_float(text: &str) -> bool {
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (text, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (before, behind) = number.split_once('.').unwrap_or((number, ""));
    let some = !before.is_empty() || !behind.is_empty();
    some && digits(before) && digits(behind) && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent))
}

fn place(mark: &Marker) -> Place {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    // The parser counts lines from 1 and columns from 0.
    Place { line: count(mark.line()), column: count(mark.col()).saturating_add(1) }
}

fn bad(error: &ScanError) -> SourceError {
    SourceError::at(place(error.marker()), error.info())
}
