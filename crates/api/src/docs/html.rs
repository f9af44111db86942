//! What every page has around it, and the one way to put text into it.

use super::markdown;
use std::fmt;

/// Text that stands in a page as text, whatever it holds.
pub struct Esc<'a>(pub &'a str);

impl fmt::Display for Esc<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c => fmt::Write::write_char(f, c)?,
            }
        }
        Ok(())
    }
}

/// A whole page. `contents` and `main` are HTML already.
pub fn page(title: &str, contents: &str, main: &str) -> String {
    let title = Esc(title);
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title} · Baton</title>\n\
         <link rel=\"stylesheet\" href=\"/docs/style.css\">\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">Skip to the text</a>\n\
         <header>\n<strong>Baton</strong> <span>{version}</span>\n<nav aria-label=\"Documents\">\n\
         <a href=\"/docs\">Reference</a> <a href=\"/docs/api\">Guide</a> <a href=\"/docs/errors\">Errors</a> \
         <a href=\"/openapi.json\">openapi.json</a>\n</nav>\n</header>\n\
         <nav class=\"contents\" aria-label=\"Contents\">\n{contents}</nav>\n\
         <main id=\"main\" tabindex=\"-1\">\n{main}</main>\n</body>\n</html>\n"
    )
}

/// The headings of a text, to jump to.
pub fn contents(text: &str) -> String {
    let mut list = String::from("<ul>\n");
    let mut fenced = false;
    for line in text.lines() {
        fenced ^= line.starts_with("```");
        let heading =
            line.strip_prefix("### ").map(|text| (3, text)).or(line.strip_prefix("## ").map(|text| (2, text)));
        if let Some((level, text)) = heading.filter(|_| !fenced) {
            let anchor = markdown::anchor(text);
            let text = markdown::inline(text);
            list.push_str(&format!("<li class=\"level{level}\"><a href=\"#{}\">{text}</a></li>\n", Esc(&anchor)));
        }
    }
    list.push_str("</ul>\n");
    list
}
