//! Outputs of a cell as HTML.

use std::fmt::Write as _;

use cellwright_editing::view::{ChosenText, FoundImage};
use cellwright_notebook::{Notebook, NotebookCell, NotebookOutput, OutputKind};
use cellwright_output::{HarmlessHtml, escaped_html};

use super::ansi::{coloured_html, spans};
use super::pictures::{PictureFiles, inline};
use super::prose::prose_html;
use crate::draw;

/// One output as HTML, inside an element of its own. Nothing if it shows nothing.
pub(super) fn output_html(
    notebook: &Notebook,
    cell: &NotebookCell<'_>,
    number: usize,
    output: &NotebookOutput<'_>,
    files: &PictureFiles,
) -> String {
    let scope = format!("output-{}-{number}", cell.index());
    let (class, body) = match output.kind() {
        OutputKind::Stream(name) => {
            let class = if name == "stderr" { "stream stderr" } else { "stream" };
            (class, pre(&output.stream_text().unwrap_or_default()))
        }
        OutputKind::Error => ("error", pre(&output.traceback().unwrap_or_else(|| output.error_line()))),
        OutputKind::Result | OutputKind::Display | OutputKind::Other(_) => {
            ("display", shown(notebook, cell, output, files, &scope))
        }
    };
    if body.is_empty() {
        return body;
    }
    format!("<div class=\"output {class}\" id=\"{scope}\">{body}</div>\n")
}

/// A value by the best of its types that a page without scripts can show.
fn shown(
    notebook: &Notebook,
    cell: &NotebookCell<'_>,
    output: &NotebookOutput<'_>,
    files: &PictureFiles,
    scope: &str,
) -> String {
    let picture = |address: &str| files.address(address, cell);
    let bundle = output.bundle();
    let html = bundle.as_ref().and_then(|bundle| bundle.text("text/html"));
    // What a script would draw says nothing here: something beside it may.
    if let Some(html) =
        html.map(|html| HarmlessHtml::of(&html, scope, &picture)).filter(|html| html.is_visible)
    {
        // Colours of its own were chosen for a light page.
        let has_ground = html.html.contains("background") || html.html.contains("bgcolor");
        let class = if has_ground && !html.html.contains("var(--") { "html paper" } else { "html" };
        return format!("<div class=\"{class}\">{}</div>", html.html);
    }
    let images = output.images();
    let drawn = images.iter().find_map(|image| {
        let address = inline(image)?;
        Some(format!(
            "<img class=\"{}\" alt=\"\" src=\"{address}\">",
            escaped_html(&image.mime).replace(['/', '+'], "-")
        ))
    });
    if let Some(drawn) = drawn {
        return drawn;
    }
    let images = FoundImage::all_of(output);
    let mut out = String::new();
    match ChosenText::of(notebook, output, &images) {
        ChosenText { text, .. } if text.trim().is_empty() => {}
        ChosenText { text, is_markdown: true } => {
            write!(out, "<div class=\"prose\">{}</div>", prose_html(&text, scope, &picture))
                .expect("a String takes everything");
        }
        ChosenText { text, is_markdown: false } => out = pre(&text),
    }
    out
}

fn pre(text: &str) -> String {
    let shown = coloured_html(text);
    if shown.is_empty() { shown } else { format!("<pre>{}</pre>", shown.trim_end_matches('\n')) }
}

/// Code with colours.
pub(super) fn code_html(code: &str, language: &str) -> String {
    let painted = draw::code::painted(code.trim_end_matches('\n'), language);
    format!("<pre class=\"code\"><code>{}</code></pre>", spans(&painted))
}
