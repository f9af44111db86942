//! Lines of a terminal that are drawn again in place.

use super::line::Line;
use crate::fault::Fault;
use crate::print;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};

/// Where nobody says how large the terminal is.
const ROWS: usize = 24;
const COLUMNS: usize = 80;

pub struct Screen {
    /// Lines that were drawn last.
    drawn: usize,
}

impl Screen {
    /// None where lines cannot be drawn again: no terminal, a simple one, or nobody wants colours.
    pub fn new() -> Option<Self> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let simple = set("TERM").is_none_or(|term| term == "dumb") || set("NO_COLOR").is_some();
        (std::io::stdout().is_terminal() && !simple).then_some(Self { drawn: 0 })
    }

    /// Rows that can be drawn on, with one left for the cursor, and columns.
    pub fn size() -> (usize, usize) {
        let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
        let known = |n: u16, otherwise: usize| if n == 0 { otherwise } else { usize::from(n) };
        let (rows, columns) =
            size.map_or((ROWS, COLUMNS), |size| (known(size.ws_row, ROWS), known(size.ws_col, COLUMNS)));
        (rows.saturating_sub(1).max(1), columns)
    }

    /// In one write, so that nothing flickers.
    pub fn draw(&mut self, lines: Vec<Line>) -> Result<(), Fault> {
        let (_, columns) = Self::size();
        let mut text = String::new();
        if self.drawn > 0 {
            let _ = write!(text, "\u{1b}[{}A\r\u{1b}[J", self.drawn);
        }
        self.drawn = lines.len();
        for line in lines {
            let _ = writeln!(text, "{}", line.fit(columns.saturating_sub(1)));
        }
        let mut out = print::out();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        Ok(())
    }

    /// What is drawn stays, and what comes next is below it.
    pub const fn leave(&mut self) {
        self.drawn = 0;
    }
}
