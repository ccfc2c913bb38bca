//! The laws over generated notebooks, in every layout, and over generated edits.

use cellwright_notebook::replace::Matches;
use cellwright_notebook::{Action, CellKind, CellRef, NewCell, Notebook, OutputsAfterEdit, text};
use proptest::prelude::*;
use proptest::sample::select;

use super::law;

/// JSON as a shape that can be written in any layout.
#[derive(Debug, Clone)]
enum Shape {
    Raw(String),
    Array(Vec<Shape>),
    Object(Vec<(&'static str, Shape)>),
}

#[derive(Debug, Clone)]
struct Style {
    /// None: all on one line.
    indent: Option<&'static str>,
    line_end: &'static str,
    colon: &'static str,
    comma: &'static str,
    bom: bool,
    end: &'static str,
}

impl Style {
    fn write(&self, shape: &Shape) -> String {
        let mut out = if self.bom { "\u{feff}".to_owned() } else { String::new() };
        self.value(&mut out, shape, 0);
        out + self.end
    }

    fn value(&self, out: &mut String, shape: &Shape, depth: usize) {
        match shape {
            Shape::Raw(raw) => out.push_str(raw),
            Shape::Array(items) => {
                self.items(out, ['[', ']'], items, depth, |out, item| self.value(out, item, depth + 1));
            }
            Shape::Object(members) => self.items(out, ['{', '}'], members, depth, |out, (key, value)| {
                out.extend(["\"", key, "\"", self.colon]);
                self.value(out, value, depth + 1);
            }),
        }
    }

    fn items<T>(
        &self,
        out: &mut String,
        brackets: [char; 2],
        items: &[T],
        depth: usize,
        write: impl Fn(&mut String, &T),
    ) {
        let line = |out: &mut String, depth: usize| {
            if let Some(indent) = self.indent {
                out.push_str(self.line_end);
                out.push_str(&indent.repeat(depth));
            }
        };
        out.push(brackets[0]);
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                out.push(',');
                if self.indent.is_none() {
                    out.push_str(self.comma);
                }
            }
            line(out, depth + 1);
            write(out, item);
        }
        if !items.is_empty() {
            line(out, depth);
        }
        out.push(brackets[1]);
    }
}

fn styles() -> impl Strategy<Value = Style> {
    (
        select(vec![None, Some(""), Some(" "), Some("  "), Some("\t"), Some("    ")]),
        select(vec!["\n", "\r\n", "\n\n"]),
        select(vec![":", ": ", " : "]),
        select(vec!["", " "]),
        any::<bool>(),
        select(vec!["", "\n", "\r\n\n", "  "]),
    )
        .prop_map(|(indent, line_end, colon, comma, bom, end)| Style {
            indent,
            line_end,
            colon,
            comma,
            bom,
            end,
        })
}

fn literals() -> impl Strategy<Value = String> {
    let oddities = [
        "1.0",
        "-0.0",
        "1E5",
        "1e400",
        "0.1000000000000000055",
        "123456789012345678901234567890",
        "NaN",
        "-Infinity",
        "true",
        "null",
        "{}",
        "[ ]",
        r#""\u00e9\/""#,
        r#""\ud800""#,
        r#""😀""#,
        r#"{"a":1,"a":2, "7": 1}"#,
    ];
    select(oddities.map(str::to_owned).to_vec())
}

/// A source as JSON: a string, or an array cut anywhere, with every way of escaping.
fn sources() -> impl Strategy<Value = Shape> {
    let fragment = prop_oneof![
        4 => "[a-z =#%]{0,8}",
        1 => select(vec!["# %% [code]", "#%%", "# %%% [raw]", r"\u00e9", r"\ud83d\ude00", r"\ud83d", r"\/", r#"\""#, r"\\", "é😀", r"\u000a"])
            .prop_map(str::to_owned),
    ];
    let line = (prop::collection::vec(fragment, 0..3), select(vec![r"\n", r"\n", r"\r\n", r"\r", ""]))
        .prop_map(|(fragments, end)| format!("\"{}{end}\"", fragments.concat()));
    prop_oneof![
        line.clone().prop_map(Shape::Raw),
        prop::collection::vec(line.prop_map(Shape::Raw), 0..5).prop_map(Shape::Array),
    ]
}

fn cells(has_ids: bool) -> impl Strategy<Value = Shape> {
    let kinds = select(vec!["code", "code", "markdown", "raw"]);
    (
        kinds,
        sources(),
        literals(),
        prop::collection::vec(literals(), 0..3),
        any::<u32>(),
        any::<prop::sample::Index>(),
    )
        .prop_map(move |(kind, source, literal, outputs, id, turn)| {
            let raw = |text: &str| Shape::Raw(text.to_owned());
            let mut members = vec![("cell_type", raw(&format!("\"{kind}\""))), ("source", source)];
            members.push(("metadata", Shape::Object(vec![("odd", Shape::Raw(literal))])));
            if has_ids {
                members.push(("id", raw(&format!("\"{id:08x}\""))));
            }
            if kind == "code" {
                members.push(("execution_count", raw("7")));
                members.push(("outputs", Shape::Array(outputs.into_iter().map(Shape::Raw).collect())));
            } else if kind == "markdown" {
                members.push(("attachments", Shape::Object(vec![("a.png", raw("{}"))])));
            }
            let turn = turn.index(members.len());
            members.rotate_left(turn);
            Shape::Object(members)
        })
}

fn notebooks() -> impl Strategy<Value = Notebook> {
    (0..6_u8, styles(), literals()).prop_flat_map(|(minor, style, literal)| {
        (prop::collection::vec(cells(minor >= 5), 0..6), any::<bool>()).prop_map(
            move |(cells, cells_last)| {
                let raw = |text: &str| Shape::Raw(text.to_owned());
                let mut members = vec![
                    ("cells", Shape::Array(cells)),
                    ("metadata", Shape::Object(vec![("odd", Shape::Raw(literal.clone()))])),
                    ("nbformat", raw("4")),
                    ("nbformat_minor", raw(&minor.to_string())),
                ];
                if cells_last {
                    members.reverse();
                }
                Notebook::parse(style.write(&Shape::Object(members)).into_bytes())
                    .expect("a generated notebook")
            },
        )
    })
}

#[derive(Debug, Clone)]
enum Edit {
    Source(prop::sample::Index, String),
    Insert(prop::sample::Index, CellKind, String),
    Delete(prop::sample::Index),
    Move(prop::sample::Index, prop::sample::Index),
    Retype(prop::sample::Index, CellKind),
    Text(prop::sample::Index, String),
    /// A piece of the marked text, by its start and its length, and what comes in its place.
    Replace(prop::sample::Index, usize, String, Matches),
}

fn edits() -> impl Strategy<Value = Edit> {
    let kinds = || select(vec![CellKind::Code, CellKind::Markdown, CellKind::Raw]);
    let source = || prop_oneof!["[a-z#% \n\r]{0,20}", any::<String>()];
    let index = any::<prop::sample::Index>;
    prop_oneof![
        (index(), source()).prop_map(|(at, source)| Edit::Source(at, source)),
        (index(), kinds(), source()).prop_map(|(at, kind, source)| Edit::Insert(at, kind, source)),
        index().prop_map(Edit::Delete),
        (index(), index()).prop_map(|(from, to)| Edit::Move(from, to)),
        (index(), kinds()).prop_map(|(at, kind)| Edit::Retype(at, kind)),
        (index(), source()).prop_map(|(at, source)| Edit::Text(at, source)),
        (index(), 1..6_usize, "[a-z#% \n]{0,4}", select(vec![Matches::One, Matches::All]))
            .prop_map(|(at, length, new, matches)| Edit::Replace(at, length, new, matches)),
    ]
}

/// Makes the edit on the notebook and on a plain list of cells.
fn make(edit: Edit, notebook: &Notebook, model: &mut Vec<NewCell>) -> Option<Notebook> {
    let cell = |at: usize| CellRef::Index(at);
    let action = match edit {
        Edit::Insert(at, kind, source) => {
            let (at, new) = (at.index(model.len() + 1), NewCell::new(kind, source));
            model.insert(at, new.clone());
            Action::Insert { at: Some(at), cells: vec![new] }
        }
        _ if model.is_empty() => return None,
        Edit::Source(at, source) => {
            let at = at.index(model.len());
            model[at].source.clone_from(&source);
            Action::Edit { cell: cell(at), source }
        }
        Edit::Delete(at) => {
            let at = at.index(model.len());
            model.remove(at);
            Action::Delete { cells: vec![cell(at)] }
        }
        Edit::Move(from, to) => {
            let (from, to) = (from.index(model.len()), to.index(model.len()));
            let moved = model.remove(from);
            model.insert(to, moved);
            Action::Move { cells: vec![cell(from)], to }
        }
        Edit::Retype(at, kind) => {
            let at = at.index(model.len());
            model[at].kind = kind;
            Action::Retype { cells: vec![cell(at)], kind }
        }
        Edit::Text(at, source) => {
            let at = at.index(model.len());
            model[at].source.clone_from(&source);
            let mut cells = text::parse(&notebook.to_marked_text()).unwrap();
            cells[at].cell.source = source;
            return notebook.write(&cells, OutputsAfterEdit::Clear).unwrap().notebook;
        }
        Edit::Replace(at, length, new, matches) => {
            let text = notebook.to_marked_text();
            let characters: Vec<_> = text.chars().collect();
            let old: String = characters.iter().skip(at.index(characters.len())).take(length).collect();
            let shows_marker = |text: &str| text.contains("# %% [");
            if shows_marker(&old) || shows_marker(&new) {
                return None;
            }
            let edited = law::replacing_keeps_every_cell(notebook, &old, &new, matches)?;
            *model = contents(&edited);
            return Some(edited);
        }
    };
    notebook.act(&action, OutputsAfterEdit::Clear).unwrap().notebook
}

fn contents(notebook: &Notebook) -> Vec<NewCell> {
    notebook.cells().map(|cell| NewCell::new(cell.kind(), cell.source())).collect()
}

/// The file's text before and after its cells, as far as it can be found without trusting the parser.
fn around_cells(notebook: &Notebook) -> (&str, &str) {
    let text = notebook.text();
    let cells = text.find("\"cells\"").unwrap();
    let metadata = text.rfind("\"metadata\"").unwrap();
    let is_first = text.find("\"nbformat\"").unwrap() > cells;
    (&text[..cells], if is_first { &text[metadata..] } else { "" })
}

proptest! {
    #[test]
    fn the_laws_hold_for_generated_notebooks(notebook in notebooks()) {
        law::hold_for(&notebook);
    }

    #[test]
    fn any_series_of_edits_gives_the_cells_it_should_and_keeps_the_rest(
        notebook in notebooks(),
        edits in prop::collection::vec(edits(), 1..8),
    ) {
        let mut model = contents(&notebook);
        let mut now = notebook.clone();
        for edit in edits {
            if let Some(edited) = make(edit, &now, &mut model) {
                now = edited;
            }
            prop_assert_eq!(contents(&now), model.clone());
        }
        prop_assert_eq!(around_cells(&now), around_cells(&notebook));
        law::hold_for(&now);
    }
}
