//! Laws of the view, on generated notebooks.

use cellwright_editing::page;
use cellwright_editing::view::{NotebookView, OutputView};
use cellwright_notebook::{Notebook, Selector, text};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::view::{PICTURE, stream, view, with_outputs};

fn sources() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        "[ \t]{0,2}#[ \t]{0,2}%{0,4}[ \t\r]{0,2}(\\[(code|raw|output 0)\\])?( cell:[0-9]{0,2})?[ \r]{0,1}",
        "[a-z%#\\[\\]\r ]{0,6}",
        any::<String>(),
    ];
    prop::collection::vec((line, prop_oneof!["\n", "\r\n", "\r", "\n\n", ""]), 0..5)
        .prop_map(|lines| lines.into_iter().flat_map(|(line, end)| [line, end]).collect())
}

fn cells() -> impl Strategy<Value = Value> {
    prop_oneof![
        (sources(), prop::collection::vec(sources(), 0..3)).prop_map(|(source, outputs)| {
            let stream = |text| json!({"output_type": "stream", "name": "stdout", "text": text});
            let outputs: Vec<_> = outputs.into_iter().map(stream).collect();
            json!({"cell_type": "code", "execution_count": null, "metadata": {}, "source": source, "outputs": outputs})
        }),
        sources().prop_map(|source| {
            let attachments = json!({"a\nb": {"image/png": PICTURE}});
            json!({"cell_type": "markdown", "metadata": {}, "source": source, "attachments": attachments})
        }),
    ]
}

proptest! {
    /// The lines of a cell, cut out and parsed, are the cell: whatever the sources hold, with outputs between them
    /// or without, also in the file's own JSON.
    #[test]
    fn the_line_map_is_exact(
        cells in prop::collection::vec(cells(), 0..5),
        budget in 0usize..60,
        pretty: bool,
    ) {
        let whole = json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4});
        let whole = if pretty { format!("{whole:#}") } else { whole.to_string() };
        let notebook = Notebook::parse(whole.into_bytes()).unwrap();
        let cut = |view: &NotebookView, at: usize| {
            let lines: Vec<_> = view.text.split_inclusive('\n').collect();
            let range = &view.cells[at].lines;
            lines[range.start() - 1..*range.end()].concat()
        };
        for outputs in [OutputView::None, OutputView::Summary, OutputView::Text { budget }] {
            let shown = view(&notebook, "", outputs);
            prop_assert_eq!(shown.cells.len(), notebook.len());
            for (at, cell) in notebook.cells().enumerate() {
                let parsed = text::parse(&cut(&shown, at)).unwrap();
                prop_assert_eq!(parsed.len(), 1);
                prop_assert_eq!(parsed[0].origin, Some(at));
                prop_assert_eq!(parsed[0].cell.kind, cell.kind());
                prop_assert_eq!(&parsed[0].cell.source, &*cell.source());
            }
        }
        let raw = view(&notebook, ":raw", OutputView::None);
        for (at, cell) in notebook.cells().enumerate() {
            prop_assert!(cut(&raw, at).contains(cell.raw()));
        }
        let backwards = (0..notebook.len()).rev().map(|at| at.to_string()).collect::<Vec<_>>().join(",");
        if !backwards.is_empty() {
            let shown = view(&notebook, &format!("#{backwards}"), OutputView::None);
            let parsed = text::parse(&shown.text).unwrap();
            let sources: Vec<_> = parsed.iter().rev().map(|cell| cell.cell.source.clone()).collect();
            let expected: Vec<_> = notebook.cells().map(|cell| cell.source().into_owned()).collect();
            prop_assert_eq!(sources, expected);
        }
    }

    /// The outputs of a view take no more than the budget, and each one is whole or has a notice whose address
    /// leads to its rest.
    #[test]
    fn outputs_keep_to_the_budget_and_every_notice_is_true(
        texts in prop::collection::vec(("[a-z é]{0,20}", 0usize..30, any::<bool>()), 0..6),
        budget in 0usize..400,
    ) {
        let texts: Vec<_> = texts.into_iter().enumerate().map(|(at, (line, count, is_one))| {
            let end = if is_one { " " } else { "\n" };
            format!("{at}{line}{end}").repeat(count)
        }).collect();
        let notebook = with_outputs(&texts.iter().map(|text| stream(text)).collect::<Vec<_>>().join(","));
        let shown = view(&notebook, "", OutputView::Text { budget }).text;
        let blocks: Vec<_> = shown.split("# %% [output ").skip(1).collect();
        prop_assert_eq!(blocks.len(), texts.len());
        let mut used = 0;
        for (number, (block, text)) in blocks.iter().zip(&texts).enumerate() {
            let body = block.split_once('\n').unwrap().1;
            let Some((head, after)) = body.split_once("[… ") else {
                prop_assert_eq!(body.trim_end_matches('\n'), text.trim_end_matches('\n'));
                used += text.len();
                continue;
            };
            let (notice, tail) = after.split_once("]\n").unwrap();
            let (sizes, way) = notice.split_once(" bytes not shown; read ").unwrap();
            let missing = sizes.rsplit_once(", ").unwrap().1.split(" of ").next().unwrap();
            used += text.len() - missing.replace(',', "").parse::<usize>().unwrap();
            // What the address shows first is what the head ends before.
            let name = format!("nb.ipynb#0.{number}");
            let lines = Selector::parse(way.strip_prefix(&name).unwrap()).unwrap().lines;
            let whole = view(&notebook, &format!("#0.{number}"), OutputView::None).text;
            let rest = page::lines("", &whole, &lines[..1], usize::MAX).unwrap().text();
            let head = if text.starts_with(head) { head } else { head.trim_end_matches('\n') };
            prop_assert!(text.starts_with(head));
            let expected = format!("{text}\n");
            prop_assert!(expected[head.len()..].starts_with(rest.trim_end_matches('\n')), "{} {:?}", way, rest);
            let tail = tail.strip_prefix('…').unwrap_or(tail);
            prop_assert!(text.trim_end_matches('\n').ends_with(tail.trim_end_matches('\n')));
        }
        prop_assert!(used <= budget, "{} of {}", used, budget);
    }
}
