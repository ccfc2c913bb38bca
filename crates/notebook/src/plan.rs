//! What becomes of each cell: every edit of a notebook is a list of [`CellSlot`]s, and one function writes it.

use std::collections::HashSet;
use std::sync::Arc;

use cellwright_cell::MimeBundle;
use serde_json::{Value, json};

use crate::cell::{CellKind, CellSpans, NewCell, NotebookCell};
use crate::cell_json::CellJson;
use crate::json::{JsonKind, JsonSequence, TextSpan, string::JsonEscapes};
use crate::notebook::{Notebook, PlacedCell};
use crate::pieces::Splice;
use crate::print::JsonNode;
use crate::recording::{self, Results};
use crate::results::CellResults;
use crate::source::SourceForm;
use crate::splice::{Layout, Spacing, SpliceItem, SplicePart, parts, with_members};

/// A cell of the notebook to be.
#[derive(Debug)]
pub(crate) enum CellSlot<'a> {
    Keep(usize),
    Rework(usize, CellRework<'a>),
    New(&'a NewCell),
}

/// A cell of the notebook to be, as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RawCell<'a> {
    /// The cell at this index, as it is.
    Kept(usize),
    /// This JSON in the place of the cell at this index.
    Replaced(usize, &'a str),
    /// A cell that the notebook does not have.
    New(&'a str),
}

/// JSON that is not that of a cell.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is not the JSON of a cell")]
pub struct NotACell;

fn checked(raw: &str) -> Result<String, NotACell> {
    CellJson::parse(raw).map(|_| raw.to_owned())
}

/// What changes in a cell.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CellRework<'a> {
    pub(crate) kind: Option<CellKind>,
    pub(crate) source: Option<&'a str>,
    pub(crate) clear: bool,
}

impl Notebook {
    /// The notebook with these cells; `None` when they are the ones it has.
    pub(crate) fn rebuilt(&self, slots: &[CellSlot<'_>]) -> Option<Notebook> {
        let in_place =
            |(place, slot): (usize, &CellSlot<'_>)| matches!(slot, CellSlot::Keep(index) if *index == place);
        if slots.len() == self.len() && slots.iter().enumerate().all(in_place) {
            return None;
        }
        Some(self.flat().rebuilt_flat(slots))
    }

    fn rebuilt_flat(&self, slots: &[CellSlot<'_>]) -> Notebook {
        let mut ids = NewIds::beside(self);
        let mut last_old = None;
        let items = slots
            .iter()
            .map(|slot| match slot {
                CellSlot::Keep(index) => {
                    last_old = Some(*index);
                    SpliceItem::Kept(*index)
                }
                CellSlot::Rework(index, rework) => {
                    last_old = Some(*index);
                    SpliceItem::Changed(*index, self.reworked(&self.cell(*index), *rework))
                }
                CellSlot::New(cell) => {
                    let model =
                        last_old.or_else(|| (!self.is_empty()).then_some(0)).map(|index| self.cell(index));
                    SpliceItem::New(self.written(cell, model.as_ref(), ids.next()))
                }
            })
            .collect();
        self.assembled(items)
    }

    /// The notebook with these cells: those it has, and others given as the JSON that a notebook had for them.
    pub fn with_raw_cells(&self, cells: &[RawCell<'_>]) -> Result<Self, NotACell> {
        let flat = self.flat();
        let items = cells.iter().map(|cell| match cell {
            RawCell::Kept(index) => Ok(SpliceItem::Kept(*index)),
            RawCell::Replaced(index, raw) => checked(raw).map(|raw| SpliceItem::Changed(*index, raw)),
            RawCell::New(raw) => checked(raw).map(SpliceItem::New),
        });
        Ok(flat.assembled(items.collect::<Result<_, _>>()?))
    }

    /// The notebook with what a run left of some of its cells, which must be code.
    #[must_use]
    pub fn with_results<'a>(&self, results: impl IntoIterator<Item = (usize, &'a Results)>) -> Self {
        let flat = self.flat();
        let mut items: Vec<_> = (0..flat.len()).map(SpliceItem::Kept).collect();
        for (index, results) in results {
            let cell = flat.cell(index);
            assert_eq!(cell.kind(), CellKind::Code, "only code cells have results");
            items[index] = SpliceItem::Changed(index, flat.recorded(&cell, results));
        }
        flat.assembled(items)
    }

    /// The notebook with new ids for these cells, if its cells have ids.
    #[must_use]
    pub fn with_new_ids(&self, cells: &[usize]) -> Self {
        let flat = self.flat();
        let mut ids = NewIds::beside(&flat);
        let mut items: Vec<_> = (0..flat.len()).map(SpliceItem::Kept).collect();
        for index in cells {
            let json = flat.cell(*index).json();
            if let Some(id) = ids.next() {
                let id = format!("\"{id}\"");
                items[*index] = SpliceItem::Changed(
                    *index,
                    with_members(&json, &Layout::of(&json), vec![("id", Some(id))]),
                );
            }
        }
        flat.assembled(items)
    }

    /// The notebook with other content in one of a cell's outputs. `None` if that output is not a display.
    #[must_use]
    pub fn with_display(&self, cell: usize, output: usize, content: &MimeBundle) -> Option<Self> {
        let flat = self.flat();
        let cell = flat.cell(cell);
        let outputs = cell.json().get("outputs")?.elements();
        let output = outputs.get(output)?;
        output.get("output_type")?.string().filter(|kind| kind == "display_data")?;
        let layout = Layout::of(output);
        let data = flat.escaped(&layout, &cell, &recording::data(content));
        let metadata = flat.escaped(&layout, &cell, &JsonNode::Value(content.metadata.clone().into()));
        let changed = with_members(output, &layout, vec![("data", Some(data)), ("metadata", Some(metadata))]);
        let mut text = flat.text().to_owned();
        text.replace_range(output.span.clone(), &changed);
        Some(Self::parse(text.into_bytes()).expect("a spliced notebook is a notebook"))
    }

    /// The text of a value in an object with this `layout`, with escapes as `cell` has them.
    fn escaped(&self, layout: &Layout, cell: &NotebookCell<'_>, node: &JsonNode) -> String {
        let mut printer = layout.printer(JsonEscapes::Needed);
        let written = printer.node(node);
        if written.is_ascii() {
            return written;
        }
        printer.escapes = self.escapes(&written, Some(cell));
        printer.node(node)
    }

    /// The notebook with another value for one key of its metadata.
    #[must_use]
    pub fn with_metadata(&self, key: &str, value: &Value) -> Self {
        let root = self.root();
        let Some(metadata) = root.get("metadata").filter(|metadata| metadata.kind() == JsonKind::Object)
        else {
            return self.clone();
        };
        let layout = Layout::of(&root).of_value(&metadata);
        let value = layout.printer(JsonEscapes::Needed).value(value);
        let changed = with_members(&metadata, &layout, vec![(key, Some(value))]);
        let mut text = self.text().to_owned();
        text.replace_range(metadata.span.clone(), &changed);
        Self::parse(text.into_bytes()).expect("a spliced notebook is a notebook")
    }

    /// The notebook, which is in one piece, with these cells: those that were kept stay where they are, the others are read.
    fn assembled(&self, items: Vec<SpliceItem>) -> Notebook {
        assert!(self.pieces.is_one(), "its cells speak of one text");
        let old = self.pieces.whole();
        let sequence = JsonSequence {
            open: self.cells_array.start + 1,
            close: self.cells_array.end - 1,
            items: self.cells.iter().map(|cell| cell.spans.whole.clone()).collect(),
        };
        let spacing = Spacing::of(old, &sequence, || Layout::of(&self.root()).nested());
        let mut made = Splice::of(old);
        let mut cells = Vec::with_capacity(items.len());
        made.keep(0..sequence.open);
        for part in parts(old, &sequence, items, &spacing) {
            let at = made.len();
            match part {
                SplicePart::Between(text) => made.push(text),
                SplicePart::Item(SpliceItem::Kept(kept)) => {
                    made.keep(sequence.items[kept].clone());
                    cells.push(PlacedCell { at, ..self.cells[kept].clone() });
                }
                SplicePart::Item(SpliceItem::Changed(_, body) | SpliceItem::New(body)) => {
                    let spans = CellSpans::read(&body, 0, cells.len()).expect("a spliced cell is a cell");
                    let text = Arc::new(body);
                    made.add(Arc::clone(&text));
                    cells.push(PlacedCell { at, text, spans });
                }
            }
        }
        made.keep(sequence.close..old.len());
        let pieces = made.done();
        // Everything after the cells moved by as much as the text grew or shrank.
        let end = |span: &TextSpan| span.start..pieces.len() - (old.len() - span.end);
        let (root, cells_array) = (end(&self.root), end(&self.cells_array));
        Notebook { pieces, root, cells_array, cells, minor: self.minor }
    }

    /// The JSON of `cell` after a run.
    fn recorded(&self, cell: &NotebookCell<'_>, results: &Results) -> String {
        let json = cell.json();
        let layout = Layout::of(&json);
        let outputs = self.escaped(&layout, cell, &results.outputs());
        let count = results.execution_count.map_or_else(|| "null".to_owned(), |count| count.to_string());
        let metadata = json.get("metadata");
        let times = metadata
            .zip(results.execution())
            .map(|(metadata, times)| layout.of_value(&metadata).printer(JsonEscapes::Needed).value(&times));
        cell.with_results_of(&CellResults {
            outputs: &outputs,
            execution_count: &count,
            execution: times.as_deref(),
        })
    }

    /// The JSON of `cell` after `rework`.
    fn reworked(&self, cell: &NotebookCell<'_>, rework: CellRework<'_>) -> String {
        let json = cell.json();
        let layout = Layout::of(&json);
        let kind = rework.kind.unwrap_or(cell.kind());
        let is_code = kind == CellKind::Code;
        let becomes_code = is_code && cell.kind() != CellKind::Code;
        // A cell whose type or source changes gets what its type requires and loses what it forbids. What the type of
        // another program requires is not known.
        let is_known = cell.unknown_type().is_none();
        let conforms = rework.kind.is_some() || (rework.source.is_some() && is_known);
        let members = json.members();
        let mut changes = Vec::new();
        if let Some(kind) = rework.kind {
            changes.push(("cell_type", Some(format!("\"{kind}\""))));
        }
        if becomes_code {
            changes.push(("attachments", None));
        }
        for (key, empty) in [("execution_count", "null"), ("outputs", "[]")] {
            let value = members.iter().rfind(|member| member.key == key).map(|member| &member.value);
            let has_results = || {
                value.is_some_and(|value| match key {
                    "outputs" => !value.elements().is_empty(),
                    _ => value.raw() != empty,
                })
            };
            if becomes_code || (conforms && !is_code) {
                changes.push((key, None)); // of the old type
            }
            let is_missing = becomes_code || (conforms && value.is_none());
            if is_code && (is_missing || (rework.clear && has_results())) {
                changes.push((key, Some(empty.to_owned())));
            }
        }
        if let Some(source) = rework.source {
            let old = cell.source_json();
            let form = SourceForm::of(&old, &layout);
            changes.push(("source", Some(form.rewrite(&old, source, self.escapes(source, Some(cell))))));
        }
        with_members(&json, &layout, changes)
    }

    /// The JSON of a new cell, set like `model`.
    fn written(&self, cell: &NewCell, model: Option<&NotebookCell<'_>>, id: Option<String>) -> String {
        let layout = match model {
            Some(model) => Layout::of(&model.json()),
            None => Layout::of(&self.root()).of_element(),
        };
        let form = match model {
            Some(model) => SourceForm::of(&model.source_json(), &layout),
            None => SourceForm::Lines(layout.nested()),
        };
        let mut members = vec![layout.member("cell_type", &format!("\"{}\"", cell.kind))];
        if cell.kind == CellKind::Code {
            members.push(layout.member("execution_count", "null"));
        }
        if let Some(id) = id {
            members.push(layout.member("id", &format!("\"{id}\"")));
        }
        let metadata = if cell.tags.is_empty() { json!({}) } else { json!({ "tags": cell.tags }) };
        members.push(layout.member("metadata", &layout.printer(JsonEscapes::Needed).value(&metadata)));
        if cell.kind == CellKind::Code {
            members.push(layout.member("outputs", "[]"));
        }
        let source = form.write(&cell.source, self.escapes(&cell.source, model));
        members.push(layout.member("source", &source));
        layout.object(members)
    }

    /// How to write `source`: as the cell it belongs to is written, or else as the file is.
    fn escapes(&self, source: &str, model: Option<&NotebookCell<'_>>) -> JsonEscapes {
        if source.is_ascii() {
            return JsonEscapes::Needed;
        }
        let of_cell = model.and_then(|cell| {
            JsonEscapes::of(cell.source_json().raw()).or_else(|| JsonEscapes::of(cell.raw()))
        });
        of_cell.or_else(|| JsonEscapes::of(self.text())).unwrap_or(JsonEscapes::Needed)
    }
}

/// Ids for new cells: none before nbformat 4.5, unique from then on.
struct NewIds<'a> {
    notebook: &'a Notebook,
    taken: Option<HashSet<String>>,
}

impl<'a> NewIds<'a> {
    fn beside(notebook: &'a Notebook) -> Self {
        Self { notebook, taken: None }
    }

    fn next(&mut self) -> Option<String> {
        if !self.notebook.has_ids() {
            return None;
        }
        let taken = self.taken.get_or_insert_with(|| {
            self.notebook.cells().filter_map(|cell| cell.id()).map(std::borrow::Cow::into_owned).collect()
        });
        loop {
            let id = format!("{:08x}", getrandom::u32().expect("the system gives random numbers"));
            if taken.insert(id.clone()) {
                return Some(id);
            }
        }
    }
}
