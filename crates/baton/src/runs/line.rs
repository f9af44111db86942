//! A line of several styles that can be cut to a width.

use crate::paint::{self, Painted};
use crate::print;
use anstyle::Style;
use std::fmt::{self, Display};

#[derive(Clone, Debug, Default)]
pub struct Line(Vec<(Style, String)>);

impl Line {
    pub fn new() -> Self {
        Self::default()
    }

    /// What others wrote must not speak to the terminal.
    #[must_use]
    pub fn styled(mut self, style: Style, text: impl Display) -> Self {
        self.0.push((style, print::visible(&text.to_string())));
        self
    }

    #[must_use]
    pub fn plain(self, text: impl Display) -> Self {
        self.styled(paint::PLAIN, text)
    }

    #[must_use]
    pub fn dim(self, text: impl Display) -> Self {
        self.styled(paint::DIM, text)
    }

    /// Nothing if there is nothing to say.
    #[must_use]
    pub fn also(self, style: Style, text: &str) -> Self {
        if text.is_empty() { self } else { self.styled(style, format_args!("  {text}")) }
    }

    /// At most so many characters, the last an ellipsis if something was cut off.
    #[must_use]
    pub fn fit(mut self, width: usize) -> Self {
        let all: usize = self.0.iter().map(|(_, text)| text.chars().count()).sum();
        if all <= width {
            return self;
        }
        let mut left = width.saturating_sub(1);
        for (_, text) in &mut self.0 {
            let cut: String = text.chars().take(left).collect();
            left -= cut.chars().count();
            *text = cut;
        }
        self.plain('…')
    }
}

impl Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().filter(|(_, text)| !text.is_empty()).try_for_each(|(style, text)| {
            // A text without a style needs no codes around it.
            if *style == paint::PLAIN { f.write_str(text) } else { Painted(*style, text).fmt(f) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_by_what_is_seen_of_it() {
        let line = Line::new().styled(paint::BOLD, "über").plain(" das").also(paint::DIM, "");
        let text = |width| anstream::adapter::strip_str(&line.clone().fit(width).to_string()).to_string();
        assert_eq!(text(8), "über das");
        assert_eq!(text(6), "über …");
        assert_eq!(text(3), "üb…");
        assert!(!Line::new().plain("\u{1b}[2J").to_string().contains('\u{1b}'));
    }
}
