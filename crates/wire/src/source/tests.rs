use super::*;
use proptest::prelude::*;
use serde_json::json;

fn value(text: &str, format: Format) -> Result<Value, SourceError> {
    read(text, format).map(|(value, _)| value)
}

#[track_caller]
fn refused(text: &str, format: Format, line: u32, column: u32, says: &str) {
    let error = read(text, format).unwrap_err();
    assert!(error.message.contains(says), "{text:?}: {error}");
    assert_eq!((error.line, error.column), (line, column), "{text:?}: {error}");
}

#[test]
fn yaml_says_the_same_as_json() {
    let yaml = "\
# a comment
name: ship it
budget: 1.5
on: yes
labels: { team: red, n: \"1\" }
none:
empty: ''
text: |
  two
  lines
list:
- 1
- -2
- 0x1F
- 0o17
- [true, False, ~, null]
-
  - .5
  - 1e3
  - 12:30
  - 1_000
  - +12
  - 18446744073709551615
  - 1h30m
";
    let list =
        json!([1, -2, 31, 15, [true, false, null, null], [0.5, 1000.0, "12:30", "1_000", 12, u64::MAX, "1h30m"]]);
    let same = json!({
        "name": "ship it", "budget": 1.5, "on": "yes", "labels": { "team": "red", "n": "1" }, "none": null, "empty": "",
        "text": "two\nlines\n", "list": list,
    });
    assert_eq!(value(yaml, Format::Yaml), Ok(same.clone()));
    assert_eq!(value(&format!("---\n{yaml}...\n"), Format::Yaml), Ok(same.clone()));
    assert_eq!(value(&same.to_string(), Format::Json), Ok(same));
}

#[test]
fn everything_has_a_place() {
    let yaml = "name: x\nplan:\n  agents:\n    - name: ü\n      tasks: [{a: 1}, {bü: 2, c/d: 3}]\n";
    let (_, places) = read(yaml, Format::Yaml).unwrap();
    for (pointer, line, column) in [
        ("", 1, 1),
        ("/name", 1, 1),
        ("/plan", 2, 1),
        ("/plan/agents", 3, 3),
        ("/plan/agents/0", 4, 7),
        ("/plan/agents/0/tasks", 5, 7),
        ("/plan/agents/0/tasks/1", 5, 23),
        ("/plan/agents/0/tasks/1/c~1d", 5, 31),
        ("/plan/agents/0/tool", 4, 7),
        ("/plan/agents/9/tool", 3, 3),
        ("/nothing", 1, 1),
    ] {
        assert_eq!(places.at(pointer), Place { line, column }, "{pointer}");
    }
    let json = "{\t\"ä\": 1,\r\n\t\"plan\": [\n  {}, \"é\\u00e9\\\"\", {\"k\": {\"l\": 2}}\n]}";
    let (_, places) = read(json, Format::Json).unwrap();
    for (pointer, line, column) in [
        ("", 1, 1),
        ("/ä", 1, 3),
        ("/plan", 2, 2),
        ("/plan/0", 3, 3),
        ("/plan/1", 3, 7),
        ("/plan/2", 3, 20),
        ("/plan/2/k/l", 3, 27),
        ("/plan/2/k/m/n", 3, 21),
    ] {
        assert_eq!(places.at(pointer), Place { line, column }, "{pointer}");
    }
}

#[test]
fn yaml_that_means_more_than_it_says_is_refused() {
    refused("a: &x 1\nb: *x\n", Format::Yaml, 1, 7, "anchors");
    refused("a: *x\n", Format::Yaml, 1, 4, "anchor");
    refused("a: !!str 1\n", Format::Yaml, 1, 10, "tags");
    refused("a: 1\nb: 2\na: 3\n", Format::Yaml, 3, 1, "twice");
    refused("a: 1\n---\nb: 2\n", Format::Yaml, 2, 1, "second document");
    refused("? [a]\n: 1\n", Format::Yaml, 1, 3, "a key must be text");
    refused("", Format::Yaml, 1, 1, "nothing");
    refused("a: .inf", Format::Yaml, 1, 4, "number");
    refused("a: 1e999", Format::Yaml, 1, 4, "number");
    refused("a: [1, 2", Format::Yaml, 2, 1, "expected");
    refused("a:\n\t- 1\n", Format::Yaml, 2, 2, "tabs");
}

#[test]
fn json_is_read_by_its_own_rules() {
    refused("{\"a\": 1, \"a\": 2}", Format::Json, 1, 10, "twice");
    refused("{\"a\": 1,}", Format::Json, 1, 9, "key");
    refused("[1 2]", Format::Json, 1, 4, "comma");
    refused("{a: 1}", Format::Json, 1, 2, "key");
    refused("{\"a\" 1}", Format::Json, 1, 6, "colon");
    refused("[01]", Format::Json, 1, 2, "number");
    refused("[1e999]", Format::Json, 1, 2, "number");
    refused("[\"\\x\"]", Format::Json, 1, 2, "escapes");
    refused("[\"a\tb\"]", Format::Json, 1, 2, "characters");
    refused("[\"a\nb\"]", Format::Json, 1, 2, "quote");
    refused("[\"a\\", Format::Json, 1, 2, "quote");
    refused("[\n'a'\n]", Format::Json, 2, 1, "value");
    refused("nul", Format::Json, 1, 1, "value");
    refused("1 1", Format::Json, 1, 3, "after the end");
    refused("", Format::Json, 1, 1, "ends too early");
    assert_eq!(value("\u{feff}\t[1,\t-0.5e1,\"\\ud83d\\ude00\"]\n", Format::Json), Ok(json!([1, -5.0, "😀"])));
}

#[test]
fn depth_and_size_are_bounded() {
    for format in [Format::Yaml, Format::Json] {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(read(&nested(DEPTH), format).is_ok());
        refused(&nested(DEPTH + 1), format, 1, DEPTH as u32 + 1, "inside each other");
        assert!(read(&"[".repeat(DOCUMENT_BYTES), format).is_err());
        let long = |n: usize| format!("\"{}\"", "x".repeat(n - 2));
        assert!(read(&long(DOCUMENT_BYTES), format).is_ok());
        refused(&long(DOCUMENT_BYTES + 1), format, 1, 1, "larger");
    }
    let blocks = |n: usize| format!("{}1", "- ".repeat(n));
    assert!(read(&blocks(DEPTH), Format::Yaml).is_ok());
    assert!(read(&blocks(DEPTH + 1), Format::Yaml).is_err());
    assert!(read(&blocks(DOCUMENT_BYTES / 2 - 1), Format::Yaml).is_err());
}

proptest! {
    #[test]
    fn json_reads_what_serde_reads(text in "[ \t\n]?[{\\[]?(\"[ab\\\\nu0\"]{0,3}\"|[:,{}\\[\\]]|-?[0-9.e]{1,3}|true|null|[ \t]){0,12}") {
        let serde = serde_json::from_str::<Value>(&text).ok();
        match value(&text, Format::Json) {
            Ok(ours) => prop_assert_eq!(Some(ours), serde),
            Err(error) => prop_assert!(serde.is_none() || error.message.contains("twice"), "{}: {}", text, error),
        }
    }

    #[test]
    fn no_text_makes_it_panic(
        text in "([ab]: |- |[\\[\\]{},?:&*!|>'\"#%@`~]|\\n|\\t|  |[a-c0-9ü]|---\\n|\\.\\.\\.|<<: |\\\\|\\u{feff}|\\r){0,40}",
        any in any::<String>(),
    ) {
        for text in [&text, &any] {
            for format in [Format::Yaml, Format::Json] {
                if let Ok((_, places)) = read(text, format) {
                    places.at("/a/0/b");
                }
            }
        }
    }
}
