//! Colours. Written always; the streams take them out where nobody wants them (`NO_COLOR`,
//! pipes, files).

use anstyle::{AnsiColor, Style};
use std::fmt::{self, Display};

/// A text in a style.
pub struct Painted<T>(pub Style, pub T);

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.0.render(), self.1, self.0.render_reset())
    }
}

pub const BAD: Style = AnsiColor::Red.on_default().bold();
pub const GOOD: Style = AnsiColor::Green.on_default();
pub const WARN: Style = AnsiColor::Yellow.on_default();
pub const BUSY: Style = AnsiColor::Cyan.on_default();
pub const DIM: Style = Style::new().dimmed();
pub const BOLD: Style = Style::new().bold();
pub const PLAIN: Style = Style::new();

pub const fn bad<T>(text: T) -> Painted<T> {
    Painted(BAD, text)
}

pub const fn good<T>(text: T) -> Painted<T> {
    Painted(GOOD, text)
}

pub const fn warn<T>(text: T) -> Painted<T> {
    Painted(WARN, text)
}

pub const fn busy<T>(text: T) -> Painted<T> {
    Painted(BUSY, text)
}

pub const fn dim<T>(text: T) -> Painted<T> {
    Painted(DIM, text)
}

pub const fn bold<T>(text: T) -> Painted<T> {
    Painted(BOLD, text)
}
