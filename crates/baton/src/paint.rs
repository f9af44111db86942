//! Colours. Written always; the streams take them out where nobody wants them (`NO_COLOR`,
//! pipes, files).

use anstyle::{AnsiColor, Style};
use std::fmt::{self, Display};

/// A text in a style.
pub struct Painted<T>(Style, T);

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.0.render(), self.1, self.0.render_reset())
    }
}

const fn coloured<T>(colour: AnsiColor, text: T) -> Painted<T> {
    Painted(colour.on_default(), text)
}

pub const fn bad<T>(text: T) -> Painted<T> {
    Painted(AnsiColor::Red.on_default().bold(), text)
}

pub const fn good<T>(text: T) -> Painted<T> {
    coloured(AnsiColor::Green, text)
}

pub const fn warn<T>(text: T) -> Painted<T> {
    coloured(AnsiColor::Yellow, text)
}

pub const fn busy<T>(text: T) -> Painted<T> {
    coloured(AnsiColor::Cyan, text)
}

pub const fn dim<T>(text: T) -> Painted<T> {
    Painted(Style::new().dimmed(), text)
}

pub const fn bold<T>(text: T) -> Painted<T> {
    Painted(Style::new().bold(), text)
}
