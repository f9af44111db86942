//! JSON, with the place of every value and no key twice.

use super::{DEPTH, Inside, Node, Place, SourceError};
use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;

pub(super) fn read(text: &str) -> Result<(Value, Node), SourceError> {
    let mut reader = Reader { text, at: 0, counted: 0, place: Place { line: 1, column: 1 } };
    reader.skip();
    let read = reader.value(0)?;
    reader.skip();
    if reader.at < text.len() { Err(reader.bad("there is something after the end")) } else { Ok(read) }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// How far lines and columns are counted: always forward, so that all of it is counted once.
    counted: usize,
    place: Place,
}

impl<'a> Reader<'a> {
    fn place(&mut self) -> Place {
        for c in self.text[self.counted..self.at].chars() {
            if c == '\n' {
                self.place = Place { line: self.place.line + 1, column: 1 };
            } else {
                self.place.column += 1;
            }
        }
        self.counted = self.at;
        self.place
    }

    fn bad(&mut self, why: &str) -> SourceError {
        SourceError::at(self.place(), why)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    /// A value that begins here, in so many lists and objects.
    fn value(&mut self, deep: usize) -> Result<(Value, Node), SourceError> {
        let place = self.place();
        let leaf = |value| (value, Node { place, inside: Inside::Nothing });
        match self.peek() {
            Some(b'{' | b'[') if deep == DEPTH => Err(SourceError::too_deep(place)),
            Some(b'{') => self.object(deep + 1, place),
            Some(b'[') => self.list(deep + 1, place),
            Some(b'"') => Ok(leaf(Value::String(self.string()?))),
            Some(b'-' | b'0'..=b'9') => Ok(leaf(Value::Number(self.number()?))),
            Some(_) => {
                let words = [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Null)];
                let found = words.into_iter().find(|(word, _)| self.text[self.at..].starts_with(word));
                let (word, value) = found.ok_or_else(|| self.bad("a value is expected here"))?;
                self.at += word.len();
                Ok(leaf(value))
            }
            None => Err(self.bad("the document ends too early")),
        }
    }

    fn list(&mut self, deep: usize, place: Place) -> Result<(Value, Node), SourceError> {
        let (mut items, mut nodes) = (Vec::new(), Vec::new());
        self.at += 1;
        self.skip();
        if !self.take(b']') {
            loop {
                self.skip();
                let (item, node) = self.value(deep)?;
                items.push(item);
                nodes.push(node);
                self.skip();
                if self.take(b']') {
                    break;
                }
                if !self.take(b',') {
                    return Err(self.bad("a comma or ] is expected here"));
                }
            }
        }
        Ok((Value::Array(items), Node { place, inside: Inside::List(nodes) }))
    }

    fn object(&mut self, deep: usize, place: Place) -> Result<(Value, Node), SourceError> {
        let (mut fields, mut nodes) = (Map::new(), BTreeMap::new());
        self.at += 1;
        self.skip();
        if !self.take(b'}') {
            loop {
                self.skip();
                let place = self.place();
                if self.peek() != Some(b'"') {
                    return Err(self.bad("a key in double quotes is expected here"));
                }
                let key = self.string()?;
                self.skip();
                if !self.take(b':') {
                    return Err(self.bad("a colon is expected here"));
                }
                self.skip();
                let (value, node) = self.value(deep)?;
                if fields.insert(key.clone(), value).is_some() {
                    return Err(SourceError::twice(place, &key));
                }
                nodes.insert(key, Node { place, ..node });
                self.skip();
                if self.take(b'}') {
                    break;
                }
                if !self.take(b',') {
                    return Err(self.bad("a comma or } is expected here"));
                }
            }
        }
        Ok((Value::Object(fields), Node { place, inside: Inside::Object(nodes) }))
    }

    fn string(&mut self) -> Result<String, SourceError> {
        let place = self.place();
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => break,
                // Whatever is behind a backslash does not end the text; if it is more than a byte, the rest follows.
                Some(b'\\') => self.at += 2,
                Some(b'\n') | None => return Err(SourceError::at(place, "the closing quote is missing")),
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        self.token(start).ok_or_else(|| SourceError::at(place, "this text has characters or escapes that JSON has not"))
    }

    fn number(&mut self) -> Result<Number, SourceError> {
        let place = self.place();
        let start = self.at;
        while matches!(self.peek(), Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')) {
            self.at += 1;
        }
        self.token(start).ok_or_else(|| SourceError::at(place, "this is not a number, or too large for one"))
    }

    /// What stands from there to here, as JSON.
    fn token<T: serde::de::DeserializeOwned>(&self, start: usize) -> Option<T> {
        self.text.get(start..self.at).and_then(|token| serde_json::from_str(token).ok())
    }
}
