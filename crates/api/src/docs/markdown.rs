//! As much of Markdown as our own texts use: headings, paragraphs, tables, code, links, emphasis.
//!
//! Whatever it does not know it shows as it is written, escaped; so nothing can get out of it.

use super::html::Esc;
use std::fmt::Write as _;

pub fn render(text: &str) -> String {
    let mut html = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim().is_empty() {
            continue;
        }
        if let Some(language) = line.strip_prefix("```") {
            let code: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            let _ = write!(html, "<pre><code class=\"{}\">{}\n</code></pre>\n", Esc(language), Esc(&code.join("\n")));
        } else if let Some((level, text)) = heading(line) {
            let anchor = anchor(text);
            let text = inline(text);
            let _ = writeln!(
                html,
                "<h{level} id=\"{0}\">{text} <a class=\"anchor\" href=\"#{0}\" aria-label=\"Link to this\">#</a></h{level}>",
                Esc(&anchor)
            );
        } else if line.starts_with('|') {
            let mut rows = vec![line];
            while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
                rows.push(row);
            }
            table(&mut html, &rows);
        } else {
            let mut paragraph = line.to_owned();
            let goes_on = |line: &&str| !line.trim().is_empty() && !line.starts_with(['#', '|', '`']);
            while let Some(line) = lines.next_if(goes_on) {
                paragraph.push('\n');
                paragraph.push_str(line);
            }
            let _ = writeln!(html, "<p>{}</p>", inline(&paragraph));
        }
    }
    html
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let text = line.get(level..)?.strip_prefix(' ')?;
    (1..=4).contains(&level).then_some((level, text))
}

/// As the places that show Markdown commonly make them, so that links in the texts work there too.
pub fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn table(html: &mut String, rows: &[&str]) {
    let cells = |row: &str| -> Vec<String> {
        let inner = row.trim().trim_start_matches('|').trim_end_matches('|');
        inner.split('|').map(|cell| inline(cell.trim())).collect()
    };
    let line = |html: &mut String, row: &str, tag: &str| {
        html.push_str("<tr>");
        for cell in cells(row) {
            let _ = write!(html, "<{tag}>{cell}</{tag}>");
        }
        html.push_str("</tr>\n");
    };
    html.push_str("<table>\n<thead>\n");
    let (head, body) = rows.split_first().map_or(("", rows), |(head, body)| (*head, body));
    line(html, head, "th");
    html.push_str("</thead>\n<tbody>\n");
    // The line under the head only says that it is one.
    for row in body.iter().skip(1) {
        line(html, row, "td");
    }
    html.push_str("</tbody>\n</table>\n");
}

/// Code, links and emphasis inside of a line.
pub fn inline(text: &str) -> String {
    let mut html = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '[', '*']) {
        let (before, from) = rest.split_at(at);
        let _ = write!(html, "{}", Esc(before));
        rest = match special(&mut html, from) {
            Some(rest) => rest,
            None => {
                html.push_str(&from[..1]);
                &from[1..]
            }
        };
    }
    let _ = write!(html, "{}", Esc(rest));
    html
}

/// What begins here, if it also ends; and what comes after it.
fn special<'a>(html: &mut String, from: &'a str) -> Option<&'a str> {
    let inner = from.get(1..)?;
    match from.as_bytes().first()? {
        b'`' => {
            let (code, rest) = inner.split_once('`')?;
            let _ = write!(html, "<code>{}</code>", Esc(code));
            Some(rest)
        }
        b'*' => {
            let (text, rest) = inner.split_once('*').filter(|(text, _)| !text.is_empty() && !text.starts_with(' '))?;
            let _ = write!(html, "<em>{}</em>", Esc(text));
            Some(rest)
        }
        _ => {
            let (text, rest) = inner.split_once("](")?;
            let (target, rest) = rest.split_once(')')?;
            // The same texts lie side by side in the repository, where they have an ending.
            let _ = write!(html, "<a href=\"{}\">{}</a>", Esc(&target.replacen(".md", "", 1)), inline(text));
            Some(rest)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_our_texts_use_is_understood() {
        let text = "# A `b`\n\nOne\ntwo *three* [four](api.md#x).\n\n```json\n{ \"<\": 1 }\n```\n\n| a | |\n|---|---|\n| `x` | y |\n";
        let html = render(text);
        for part in [
            "<h1 id=\"a-b\">A <code>b</code> ",
            "<p>One\ntwo <em>three</em> <a href=\"api#x\">four</a>.</p>",
            "<pre><code class=\"json\">{ &quot;&lt;&quot;: 1 }\n</code></pre>",
            "<tr><th>a</th><th></th></tr>",
            "<tr><td><code>x</code></td><td>y</td></tr>",
        ] {
            assert!(html.contains(part), "{part}\n{html}");
        }
        assert!(!html.contains("---"), "{html}");
    }

    #[test]
    fn what_is_not_understood_is_shown_and_harmless() {
        assert_eq!(inline("a * b ` c [d](e"), "a * b ` c [d](e");
        assert_eq!(inline("*/5 and */7"), "<em>/5 and </em>/7");
        assert_eq!(
            inline("<script>`<b>`[<i>](\"x\")"),
            "&lt;script&gt;<code>&lt;b&gt;</code><a href=\"&quot;x&quot;\">&lt;i&gt;</a>"
        );
    }

    #[test]
    fn anchors_are_what_links_in_the_texts_say() {
        assert_eq!(anchor("`GET /api/v1/jobs/{jobId}`"), "get-apiv1jobsjobid");
        assert_eq!(anchor("The orchestrator's routes"), "the-orchestrators-routes");
        assert_eq!(anchor("invalid_json"), "invalid_json");
    }
}
