//! Standard output: tables for people, JSON for programs.

use crate::args::PageArgs;
use crate::fault::Fault;
use crate::paint::dim;
use comfy_table::{Cell, ContentArrangement, Row, Table, presets};
use serde::Serialize;
use std::fmt::Display;
use std::io::Write as _;

/// For what is said beside the answer.
pub fn err() -> anstream::AutoStream<std::io::StderrLock<'static>> {
    anstream::stderr().lock()
}

pub type Out = anstream::AutoStream<std::io::StdoutLock<'static>>;

pub fn out() -> Out {
    anstream::stdout().lock()
}

/// One value, indented.
pub fn json(value: &impl Serialize) -> Result<(), Fault> {
    let text = serde_json::to_string_pretty(value).map_err(std::io::Error::other)?;
    writeln!(out(), "{text}")?;
    Ok(())
}

/// One value on one line, out at once: whoever reads the stream should not wait for the next.
pub fn json_line(value: &impl Serialize) -> Result<(), Fault> {
    let text = serde_json::to_string(value).map_err(std::io::Error::other)?;
    let mut out = out();
    writeln!(out, "{text}")?;
    out.flush()?;
    Ok(())
}

/// A cell with what somebody else wrote: it must not speak to the terminal.
pub fn text(value: impl Display) -> Cell {
    Cell::new(visible(&value.to_string()))
}

/// Control characters, and those that turn the direction of writing, as escapes.
pub fn visible(text: &str) -> String {
    let speaks = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if speaks(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    shown
}

pub fn table(header: &[&str], rows: impl IntoIterator<Item = Row>) -> Result<(), Fault> {
    let mut table = Table::new();
    // Lines stay whole: a cell that is broken over lines can be neither copied nor searched for.
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled).enforce_styling();
    if !header.is_empty() {
        table.set_header(header.iter().map(|name| Cell::new(name).add_attribute(comfy_table::Attribute::Bold)));
    }
    table.add_rows(rows);
    table.style_text_only();
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let mut out = out();
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Where a list goes on that is not at its end.
pub fn more(asked: &PageArgs, cursor: Option<&str>) -> Result<(), Fault> {
    if let Some(cursor) = cursor {
        // A cursor is good for one order only.
        let order = asked.order.map(|order| format!("--order {order} ")).unwrap_or_default();
        writeln!(out(), "{}", dim(format_args!("more: {order}--cursor {cursor}")))?;
    }
    Ok(())
}

/// Names with their values, one pair a line.
pub fn pairs(rows: impl IntoIterator<Item = (&'static str, Cell)>) -> Result<(), Fault> {
    let name = |name| Cell::new(name).add_attribute(comfy_table::Attribute::Bold);
    table(&[], rows.into_iter().map(|(key, value)| Row::from(vec![name(key), value])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_speaks_to_the_terminal_is_shown_instead() {
        assert_eq!(visible("a\u{1b}[2J\u{202e}ä\n"), "a\\u{1b}[2J\\u{202e}ä\\u{a}");
        assert_eq!(visible("plain – text"), "plain – text");
    }
}
