//! Bodies: values that are almost right, text that was JSON once, and more than anybody can want.

use super::draw::Draw;
use super::route::{path, request};
use super::{Aim, Shout, Then};
use serde_json::{Value, json};

/// A body that its route would take, except for what was changed about it.
pub fn almost(bodies: &[Value], draw: &mut Draw) -> Value {
    let mut body = match bodies.get(draw.below(bodies.len())) {
        Some(example) if draw.chance(7, 8) => example.clone(),
        _ => json!({}),
    };
    // One in three stays as it is: what is made so is there for others to stumble over.
    for _ in 0..draw.below(3) {
        change(&mut body, draw);
    }
    body
}

/// Changes something somewhere in it.
fn change(value: &mut Value, draw: &mut Draw) {
    match value {
        Value::Object(fields) if !fields.is_empty() && draw.chance(5, 6) => {
            let name = fields.keys().nth(draw.below(fields.len())).cloned().unwrap_or_default();
            match draw.below(5) {
                0 => drop(fields.remove(&name)),
                1 => {
                    let new = draw.value(3);
                    fields.insert(name, new);
                }
                2 => {
                    let new = draw.value(2);
                    fields.insert(draw.word().to_owned(), new);
                }
                _ => fields.get_mut(&name).into_iter().for_each(|inner| change(inner, draw)),
            }
        }
        Value::Array(items) if !items.is_empty() && draw.chance(3, 4) => {
            let at = draw.below(items.len());
            match draw.below(4) {
                0 => drop(items.remove(at)),
                1 => items.push(items[at].clone()),
                _ => change(&mut items[at], draw),
            }
        }
        other => *other = draw.value(3),
    }
}

/// Text that was JSON before it was damaged.
pub fn damaged(aim: &Aim, draw: &mut Draw) -> Shout {
    let target = aim.taker(draw);
    let mut text = almost(&target.bodies, draw).to_string().into_bytes();
    for _ in 0..=draw.below(4) {
        let at = draw.below(text.len() + 1).min(text.len());
        match draw.below(6) {
            0 => text.truncate(at),
            1 => text.insert(at, draw.byte()),
            2 if at < text.len() => text[at] = draw.byte(),
            3 if at < text.len() => drop(text.remove(at)),
            4 => {
                let piece = draw.pick(&[
                    b"\xff".as_slice(),
                    b"\xed\xa0\x80",
                    b"\xf4\x90\x80\x80",
                    b"\xc0\x80",
                    b"\\u",
                    b"\\ud800",
                    b"1e999",
                    b"[[[[",
                    b"}}",
                    b"\0",
                    b"\xef\xbb\xbf",
                    b"NaN",
                    b"/**/",
                ]);
                drop(text.splice(at..at, piece.iter().copied()));
            }
            _ => drop(text.splice(at..at, b"9".repeat(draw.below(400)))),
        }
    }
    let path = path(aim, target, draw);
    let bytes = request(&target.method, &path, &aim.bearer(), &text);
    Shout { what: "a damaged body", bytes, then: Then::Listen }
}

/// Deep, long, wide, or many.
pub fn enormous(aim: &Aim, draw: &mut Draw) -> Shout {
    let target = aim.taker(draw);
    let body = match draw.below(6) {
        0 => nested(draw),
        1 => format!(
            "{{\"type\":\"noop\",\"projectId\":\"p\",\"payload\":{{\"n\":{}}}}}",
            "9".repeat(draw.below(100_000))
        ),
        2 => format!("{{\"{}\":1}}", "k".repeat(draw.below(300_000))),
        3 => {
            let fields = (0..draw.below(20_000)).map(|n| format!("\"k{n}\":{n}"));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        4 => format!("{{\"jobs\":[{}]}}", vec!["{}"; draw.below(20_000)].join(",")),
        // Somewhat more than most routes read, and less than one does.
        _ => format!("{}{{}}", " ".repeat(1_000_000 + draw.below(200_000))),
    };
    let path = path(aim, target, draw);
    let bytes = request(&target.method, &path, &aim.bearer(), body.as_bytes());
    Shout { what: "an enormous body", bytes, then: Then::Listen }
}

fn nested(draw: &mut Draw) -> String {
    // Around what the parser and the payload may be, and far beyond.
    let depth = [60, 64, 65, 126, 127, 128, 129, 60_000][draw.below(8)];
    let (open, close) = if draw.chance(1, 2) { ("[", "]") } else { ("{\"a\":", "}") };
    let mut text = String::from("{\"type\":\"noop\",\"projectId\":\"p\",\"payload\":{\"x\":");
    text.push_str(&open.repeat(depth));
    if draw.chance(2, 3) {
        text.push('1');
        text.push_str(&close.repeat(depth));
        text.push_str("}}");
    }
    text
}
