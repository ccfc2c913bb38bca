//! One test for each way notebooks were seen to break (N1 to N21), named after what the user saw.
//! N10 and N11 sit with the marker text; N21, which needs several processes, with the command line.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use cellwright_notebook::file::{self, FileError, FoundFile, IfMissing, ReadNeed, SaveSettings, UpdatedFile};
use cellwright_notebook::{
    Action, CellChange, CellKind, CellRef, EditedNotebook, Fingerprint, NewCell, Notebook, OutputsAfterEdit,
    ParseError, text,
};

#[track_caller]
fn notebook(text: &str) -> Notebook {
    Notebook::parse(text.as_bytes().to_vec()).expect("a notebook")
}

/// Edits cell 0 of `before` to read `y`, and compares the whole file.
#[track_caller]
fn editing(before: &str, after: &str) {
    let edited = edit(&notebook(before), 0, "y");
    assert_eq!(edited.notebook.expect("it changed").text(), after);
}

fn edit(notebook: &Notebook, cell: usize, source: &str) -> EditedNotebook {
    let action = Action::Edit { cell: CellRef::Index(cell), source: source.to_owned() };
    notebook.act(&action, OutputsAfterEdit::Clear).expect("the cell is there")
}

fn act(notebook: &Notebook, action: &Action) -> EditedNotebook {
    notebook.act(action, OutputsAfterEdit::Clear).expect("it can be done")
}

/// A notebook on one line with these cells.
fn with_cells(cells: &str, minor: u8) -> String {
    format!(r#"{{"cells":[{cells}],"metadata":{{}},"nbformat":4,"nbformat_minor":{minor}}}"#)
}

const MARKDOWN: &str = r#"{"cell_type":"markdown","metadata":{},"source":["x"]}"#;
const CODE: &str = r#"{"cell_type":"code","execution_count":3,"metadata":{},"outputs":[{"output_type":"stream","name":"stdout","text":"1\n"}],"source":["x"]}"#;

#[test]
fn n1_indentation_and_the_final_newline_stay() {
    for (indent, end) in [(" ", "\n"), ("  ", ""), ("\t", "\n\n"), ("    ", "\r\n")] {
        let file = |source: &str| {
            format!(
                "{{\n{indent}\"cells\": [\n{indent}{indent}{{\n{indent}{indent}{indent}\"cell_type\": \"raw\",\n{indent}{indent}{indent}\"source\": [\n{indent}{indent}{indent}{indent}\"{source}\"\n{indent}{indent}{indent}]\n{indent}{indent}}}\n{indent}],\n{indent}\"nbformat\": 4\n}}{end}"
            )
        };
        editing(&file("x"), &file("y"));
    }
}

#[test]
fn n2_escapes_stay_as_they_were_written() {
    let file = |source: &str| {
        with_cells(
            &format!(
                r#"{{"cell_type":"raw","metadata":{{"a":"\u00e9\ud83d\ude00\/"}},"source":[{source}]}}"#
            ),
            4,
        )
    };
    editing(&file(r#""x""#), &file(r#""y""#));
    // Lines of the edited cell that were not edited keep their spelling, and new ones follow it.
    let edited = edit(&notebook(&file(r#""caf\u00e9 \/\n","x""#)), 0, "café /\nnaïve");
    assert_eq!(edited.notebook.unwrap().text(), file(r#""caf\u00e9 \/\n","na\u00efve""#));
}

#[test]
fn n3_numbers_keep_every_digit() {
    let file = |source: &str| {
        with_cells(
            &format!(
                r#"{{"cell_type":"raw","metadata":{{"n":[1.0,-0.0,1E5,0.1000000000000000055,12345678901234567890,1e400]}},"source":"{source}"}}"#
            ),
            4,
        )
    };
    editing(&file("x"), &file("y"));
}

#[test]
fn n4_keys_keep_their_order_and_their_doubles() {
    let file = |source: &str| {
        format!(
            r#"{{"nbformat":4,"z":1,"cells":[{{"source":"{source}","7":1,"a":1,"a":2,"cell_type":"raw"}}],"10":0,"2":0}}"#
        )
    };
    editing(&file("x"), &file("y"));
}

#[test]
fn n5_what_python_writes_beyond_json_can_be_opened() {
    let file = |source: &str| {
        with_cells(
            &format!(
                r#"{{"cell_type":"raw","metadata":{{"n":[NaN,Infinity,-Infinity,"\ud800"]}},"source":"{source}"}}"#
            ),
            4,
        )
    };
    editing(&file("x"), &file("y"));
}

#[test]
fn n5_lone_surrogates_in_lines_nobody_edited_stay_and_others_are_reported() {
    let file = |source: &str| with_cells(&format!(r#"{{"cell_type":"raw","source":{source}}}"#), 4);
    let check = |before: &str, source: &str, after: &str, notes: &str| {
        let edited = edit(&notebook(&file(before)), 0, source);
        assert_eq!(edited.notebook.expect("it changed").text(), file(after));
        let told = edited.report.notes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        assert_eq!(told, notes, "{before} to {source:?}");
    };
    let replaced = "a lone surrogate in an edited line of cell 0 became U+FFFD";
    // The line between two edits, as a string and as an array, and cut where no line ends.
    check(r#""a\n\ud800mid\nc""#, "A\n\u{fffd}mid\nC", r#""A\n\ud800mid\nC""#, "");
    check(r#"["a\n", "\ud800mid\n", "c"]"#, "A\n\u{fffd}mid\nC", r#"["A\n", "\ud800mid\n", "C"]"#, "");
    check(
        r#"["a\n\ud83d","\ude00mid\nc"]"#,
        "A\n\u{fffd}\u{fffd}mid\nc",
        r#"["A\n","\ud83d","\ude00mid\nc"]"#,
        "",
    );
    // The last line, when another comes after it, and the other way round.
    check(r#"["a\n", "\ud800"]"#, "a\n\u{fffd}\nb", r#"["a\n", "\ud800\n", "b"]"#, "");
    check(r#"["\ud800\n", "b"]"#, "\u{fffd}", r#"["\ud800"]"#, "");
    // Strings of which all lines stay are not cut anew.
    check(r#"["x\n\u0079\n", "b"]"#, "x\ny\nc", r#"["x\n\u0079\n", "c"]"#, "");
    // Edited lines, whatever else the cell holds; a line that goes takes its surrogate along.
    check(r#""a\ud800\n\ufffd""#, "b\u{fffd}\n\u{fffd}", r#""b\ufffd\n\ufffd""#, replaced);
    check("\"a\\ud800\\n\u{fffd}\"", "b\u{fffd}\n\u{fffd}", "\"b\u{fffd}\\n\u{fffd}\"", replaced);
    check(r#""a\ud800\nb""#, "b", r#""b""#, "");
}

#[test]
fn n6_a_source_keeps_its_form() {
    let string = |source: &str| {
        with_cells(
            &format!(
                r#"{{"cell_type":"raw","source":"{source}"}},{{"cell_type":"raw","source":["a","b\nc"]}}"#
            ),
            4,
        )
    };
    editing(&string("x"), &string("y"));
    let empty = with_cells(r#"{"cell_type":"raw","source":[]}"#, 4);
    editing(&empty, &with_cells(r#"{"cell_type":"raw","source":["y"]}"#, 4));
}

#[test]
fn n7_line_ends_inside_sources_and_the_byte_order_mark_stay() {
    let file = |source: &str| {
        format!(
            "\u{feff}{}",
            with_cells(
                &format!(
                    r#"{{"cell_type":"raw","source":"{source}"}},{{"cell_type":"raw","source":"a\r\nb\rc"}}"#
                ),
                4
            )
        )
    };
    editing(&file("x"), &file("y"));
    let before = notebook(&file("x"));
    let unedited = text::parse(&before.to_marked_text()).unwrap();
    assert!(before.write(&unedited, OutputsAfterEdit::Clear).unwrap().notebook.is_none());
}

#[test]
fn n8_new_cells_have_an_id_just_where_the_format_has_them() {
    for (minor, has_id) in [(4, false), (5, true), (9, true)] {
        let inserted = act(
            &notebook(&with_cells(MARKDOWN, minor)),
            &Action::Insert { at: None, cells: vec![NewCell::new(CellKind::Code, "x"); 3] },
        );
        let after = inserted.notebook.unwrap();
        let ids: std::collections::HashSet<_> = after.cells().filter_map(|cell| cell.id()).collect();
        assert_eq!(ids.len(), if has_id { 3 } else { 0 });
        assert!(ids.iter().all(|id| id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit())));
        assert_eq!(inserted.report.cells[0].id.is_some(), has_id);
    }
}

#[test]
fn n9_a_repeated_cell_number_makes_a_new_cell_and_says_so() {
    let before = notebook(&with_cells(CODE, 4));
    let cells = text::parse("# %% [code] cell:0\nx\n# %% [code] cell:0\nx\n# %% [raw] cell:9\nz\n").unwrap();
    let EditedNotebook { notebook: after, report, .. } =
        before.write(&cells, OutputsAfterEdit::Clear).unwrap();
    let after = after.unwrap();
    assert_eq!(after.cell(0).raw(), before.cell(0).raw());
    assert_eq!(after.len(), 3);
    insta::assert_snapshot!(report, @r"
    inserted cells 1-2 (3 cells now)
    note: line 3: cell:0 was used before, so this became a new cell without its metadata and outputs
    note: line 5: there is no cell 9, so this became a new cell
    ");
}

#[test]
fn n12_an_empty_text_does_not_delete_every_cell() {
    let error = notebook(&with_cells(MARKDOWN, 4)).write(&[], OutputsAfterEdit::Clear).unwrap_err();
    insta::assert_snapshot!(error, @"the text has no cells and would delete all 1; to do that, use the delete action");
}

#[test]
fn n13_retyping_says_what_it_drops_and_leaves_a_valid_cell() {
    let retype = |cells: &str, kind| {
        let edited =
            act(&notebook(&with_cells(cells, 4)), &Action::Retype { cells: vec![CellRef::Index(0)], kind });
        (edited.notebook.unwrap().cell(0).raw().to_owned(), edited.report.to_string())
    };
    let (cell, report) = retype(CODE, CellKind::Markdown);
    assert_eq!(cell, MARKDOWN);
    insta::assert_snapshot!(report, @r"
    retyped markdown cell 0 (1 cell now)
    note: the output of cell 0 was removed
    ");
    let attached =
        r#"{"attachments":{"a.png":{"image/png":"aa"}},"cell_type":"markdown","metadata":{},"source":["x"]}"#;
    let (cell, report) = retype(attached, CellKind::Code);
    assert_eq!(
        cell,
        r#"{"cell_type":"code","execution_count":null,"metadata":{},"outputs":[],"source":["x"]}"#
    );
    insta::assert_snapshot!(report, @r"
    retyped code cell 0 (1 cell now)
    note: code cells have no attachments; those of cell 0 were removed: a.png
    ");
}

#[test]
fn a_move_answers_with_the_cell_that_was_asked_for() {
    let cell = |id: usize| format!(r#"{{"cell_type":"raw","id":"{id}","metadata":{{}},"source":[]}}"#);
    let notebook = notebook(&with_cells(&(0..4).map(cell).collect::<Vec<_>>().join(","), 5));
    for (from, to) in (0..4).flat_map(|from| (0..4).map(move |to| (from, to))) {
        let edited = act(&notebook, &Action::Move { cells: vec![CellRef::Id(from.to_string())], to });
        let told: Vec<_> =
            edited.report.cells.iter().map(|cell| (cell.change, cell.index, cell.id.clone())).collect();
        let moved = (from != to).then(|| (CellChange::Moved, to, Some(from.to_string())));
        assert_eq!(told, Vec::from_iter(moved), "{from} to {to}");
    }
}

#[test]
fn n14_an_edited_cell_does_not_keep_results_that_are_not_its_own() {
    let edited = edit(&notebook(&with_cells(CODE, 4)), 0, "y");
    let expected = r#"{"cell_type":"code","execution_count":null,"metadata":{},"outputs":[],"source":["y"]}"#;
    assert_eq!(edited.notebook.unwrap().cell(0).raw(), expected);
    insta::assert_snapshot!(edited.report, @r"
    edited code cell 0 (1 cell now)
    note: the output of cell 0 was removed
    ");
    let action = Action::Edit { cell: CellRef::Index(0), source: "y".into() };
    let kept = notebook(&with_cells(CODE, 4)).act(&action, OutputsAfterEdit::Keep).unwrap().notebook.unwrap();
    assert_eq!((kept.cell(0).outputs().len(), kept.cell(0).execution_count()), (1, Some(3)));
}

#[test]
fn an_edited_cell_gets_what_its_type_requires_and_loses_what_it_forbids() {
    let odd = |cells: &str| with_cells(cells, 4);
    editing(
        &odd(r#"{"cell_type":"code","attachments":{"a":{}},"source":"x"}"#),
        &odd(
            r#"{"cell_type":"code","attachments":{"a":{}},"execution_count":null,"outputs":[],"source":"y"}"#,
        ),
    );
    editing(
        &odd(r#"{"cell_type":"code","outputs":[],"source":"x","z":1}"#),
        &odd(r#"{"cell_type":"code","execution_count":null,"outputs":[],"source":"y","z":1}"#),
    );
    for kind in ["markdown", "raw"] {
        editing(
            &odd(&format!(r#"{{"cell_type":"{kind}","outputs":[1],"execution_count":7,"source":"x"}}"#)),
            &odd(&format!(r#"{{"cell_type":"{kind}","source":"y"}}"#)),
        );
    }
}

#[test]
fn a_cell_that_is_not_edited_keeps_even_what_it_should_not_have() {
    let odd = r#"{"cell_type":"markdown","outputs":[1],"execution_count":7,"source":"z"}"#;
    let bare = r#"{"cell_type":"code","source":"z"}"#;
    let cells = |first: &str| with_cells(&format!("{first},{odd},{bare}"), 4);
    editing(
        &cells(r#"{"cell_type":"markdown","metadata":{},"source":"x"}"#),
        &cells(r#"{"cell_type":"markdown","metadata":{},"source":"y"}"#),
    );
}

#[test]
fn n15_a_save_by_another_program_between_read_and_write_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nb.ipynb");
    fs::write(&path, with_cells(MARKDOWN, 4)).unwrap();
    let theirs = with_cells(&format!("{CODE},{MARKDOWN}"), 4);
    let error = update_with(&path, |notebook| {
        fs::write(&path, &theirs).unwrap(); // a program that ignores our lock
        edit(notebook, 0, "y").notebook
    });
    let message = error.unwrap_err().to_string().replace(&*path.to_string_lossy(), "nb.ipynb");
    assert_eq!(fs::read_to_string(&path).unwrap(), theirs);
    insta::assert_snapshot!(message, @"nb.ipynb: changed since it was read, so nothing was written (cell 0 has other outputs or metadata; 1 cell was added); read it again");
}

#[test]
fn n15_a_save_during_the_edit_itself_wins() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nb.ipynb");
    fs::write(&path, with_cells(MARKDOWN, 4)).unwrap();
    let theirs = with_cells(CODE, 4);
    let error = update_with(&path, |notebook| {
        fs::write(&path, &theirs).unwrap(); // a program that ignores our lock
        edit(notebook, 0, "y").notebook
    });
    assert!(matches!(error, Err(FileError::Changed { .. })), "{error:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), theirs);
    assert_eq!(entries(folder.path()), ["nb.ipynb"], "no temporary file is left");
}

#[test]
fn n21_of_two_that_create_a_notebook_one_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nb.ipynb");
    let create = |meanwhile: &dyn Fn()| {
        let insert = Action::Insert { at: None, cells: vec![NewCell::new(CellKind::Raw, "x")] };
        let updated = file::update_with::<_, FileError>(
            &SaveSettings::default(),
            &path,
            IfMissing::Create,
            |notebook| {
                meanwhile();
                Ok((act(notebook, &insert).notebook, notebook.len()))
            },
        );
        updated.map(|UpdatedFile { outcome, found, .. }| (outcome, found))
    };
    // The first finds no file, and one when it is about to create it.
    let second = std::cell::OnceCell::new();
    let first = create(&|| {
        second.get_or_init(|| create(&|| {}).unwrap());
    });
    assert_eq!((second.into_inner(), first.unwrap()), (Some((0, FoundFile::Nothing)), (1, FoundFile::File)));
    assert_eq!(file::read(&path).unwrap().len(), 2);
}

#[test]
fn n18_a_program_of_several_lines_stays_one() {
    let cell = NewCell::new(CellKind::Code, "a = 1\nb = 2\n\nprint(a)");
    let after = act(&notebook(&with_cells(MARKDOWN, 4)), &Action::Insert { at: None, cells: vec![cell] });
    let raw = after.notebook.unwrap().cell(1).raw().to_owned();
    assert!(raw.ends_with(r#""source":["a = 1\n","b = 2\n","\n","print(a)"]}"#), "{raw}");
}

#[test]
fn n19_permissions_owner_and_symlinks_survive_a_save() {
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("real.ipynb"), folder.path().join("link.ipynb"));
    fs::write(&real, with_cells(MARKDOWN, 4)).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    if nix::unistd::geteuid().is_root() {
        std::os::unix::fs::chown(&real, Some(1234), Some(4321)).unwrap();
    }
    let before = fs::metadata(&real).unwrap();
    symlink("real.ipynb", &link).unwrap();
    update_with(&link, |notebook| edit(notebook, 0, "y").notebook).unwrap();
    let after = fs::metadata(&real).unwrap();
    assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(file::read(&real).unwrap().cell(0).source(), "y");
    assert_eq!(entries(folder.path()), ["link.ipynb", "real.ipynb"]);
}

#[test]
fn n19_a_notebook_with_any_name_can_be_saved() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = tempfile::tempdir().unwrap();
    let longest = format!("{}.ipynb", "n".repeat(249));
    for name in [longest.as_bytes(), b"\xff\xfe.ipynb"] {
        let path = folder.path().join(std::ffi::OsStr::from_bytes(name));
        fs::write(&path, with_cells(MARKDOWN, 4)).unwrap();
        update_with(&path, |notebook| edit(notebook, 0, "y").notebook).unwrap();
        assert_eq!(file::read(&path).unwrap().cell(0).source(), "y");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn n20_each_kind_of_wrong_file_gets_its_own_answer() {
    let parsed = |text: &str| Notebook::parse(text.as_bytes().to_vec()).unwrap_err().to_string();
    assert_eq!(
        Notebook::parse(br#"{"metadata":{},"nbformat":3,"nbformat_minor":0,"worksheets":[]}"#.to_vec())
            .unwrap_err(),
        ParseError::OldFormat { major: 3, file: None }
    );
    insta::assert_snapshot!(parsed(r#"{"worksheets":[]}"#), @"it has nbformat 3; convert it first: jupyter nbconvert --to notebook --nbformat 4 --inplace FILE");
    insta::assert_snapshot!(parsed(r#"{"nbformat":5,"cells":[]}"#), @"it has nbformat 5, newer than this program knows; update cellwright, or save the notebook as nbformat 4");
    for nothing in ["", " \n\t", "\u{feff}\n"] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(parsed(nothing), @"it is empty, as after a save that did not finish: restore it from version control, a backup or Jupyter's checkpoint, or write a whole new notebook over it");
        }
    }
    insta::assert_snapshot!(parsed("hello"), @"line 1, column 1: expected a value");
    insta::assert_snapshot!(parsed("[1, 2]"), @"line 1, column 1: a notebook is a JSON object, this is another value");
    insta::assert_snapshot!(parsed("{\"nbformat\": 4}"), @"line 1, column 1: it has no `cells`");
    insta::assert_snapshot!(parsed("{\"cells\": []}"), @"line 1, column 1: it has no whole number `nbformat`");
    insta::assert_snapshot!(parsed("{\"nbformat\": 4,\n\"cells\": {}}"), @"line 2, column 10: `cells` must be an array");
    insta::assert_snapshot!(parsed(r#"{"cells":[1]}"#), @"line 1, column 11: cell 0: a cell must be an object");
    insta::assert_snapshot!(parsed(r#"{"cells":[{"source":""}]}"#), @"line 1, column 11: cell 0: it has no `cell_type`");
    insta::assert_snapshot!(parsed(r#"{"cells":[{"cell_type":7,"source":""}]}"#), @"line 1, column 24: cell 0: `cell_type` must be a string");
    insta::assert_snapshot!(parsed(r#"{"cells":[{"cell_type":"raw"}]}"#), @"line 1, column 11: cell 0: it has no `source`");
    insta::assert_snapshot!(parsed(r#"{"cells":[{"cell_type":"raw","source":[1]}]}"#), @"line 1, column 39: cell 0: `source` must be a string or an array of strings");
    insta::assert_snapshot!(parsed("{\"cells\": [\n  {\"cell_type\": \"raw\", \"source\": \"é"), @"line 2, column 34: a string that never ends; the rest of the file is missing: restore it from version control, a backup or Jupyter's checkpoint");
    insta::assert_snapshot!(parsed("{\"nbformat\":4,\"cells\":[]} x"), @"line 1, column 27: text after the end of the notebook");
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";
    insta::assert_snapshot!(parsed(pointer), @"it is a Git LFS pointer: the notebook itself (12345 bytes) was not downloaded; get it with: git lfs pull");
    let merge = "{\n \"cells\": [\n<<<<<<< HEAD\n  1\n=======\n  2\n>>>>>>> theirs\n ]\n}\n";
    insta::assert_snapshot!(parsed(merge), @"line 3: it has the conflict markers of a merge (`<<<<<<< HEAD`); resolve the merge first, with git checkout --ours FILE, git checkout --theirs FILE, or nbdime");
    insta::assert_snapshot!(parsed("{\n<<<<<<< HEAD\n"), @"line 2, column 1: expected a key in double quotes");
    let latin1 = Notebook::parse(b"{\n\"\xe9\"}".to_vec()).unwrap_err();
    insta::assert_snapshot!(latin1, @"line 2, column 2: not UTF-8 from here on; notebooks are UTF-8 files");
}

#[test]
fn a_large_file_is_read_and_replaced_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.ipynb");
    // Every line is its own, so that no part of it can stand in another's place; the size splits characters.
    let cell = |number: usize| {
        let line = |at: usize| format!("{:?}", format!("{number}.{at} größe ☕\n"));
        let lines: Vec<_> = (0..1000).map(line).collect();
        let outputs =
            format!(r#"[{{"name": "stdout", "output_type": "stream", "text": [{}]}}]"#, lines.join(", "));
        format!(
            "  {{\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"outputs\": {outputs},\n   \"source\": [\"größe\\n\", \"{number}\"]\n  }}"
        )
    };
    let cells: Vec<_> = (0..400).map(cell).collect();
    let text = format!("{{\n \"cells\": [\n{}\n ],\n \"nbformat\": 4\n}}\n", cells.join(",\n"));
    assert!(text.len() > 9 << 20, "{}", text.len());
    fs::write(&path, &text).unwrap();
    let read = file::read(&path).unwrap();
    assert!(read.text() == text && read.len() == 400);
    assert!(read.cells().enumerate().all(|(at, cell)| cell.source() == format!("größe\n{at}")));
    // Its sources alone are the same, and so is what is known of the file.
    let (sources, fingerprint) = file::read_fingerprinted(&path, ReadNeed::Sources).unwrap();
    assert_eq!(sources.to_marked_text(), read.to_marked_text());
    assert_eq!(fingerprint, Fingerprint::of_file(&read));
    assert!(sources.size() < text.len() / 10, "{}", sources.size());
    let edit = |at: usize, source: &str| {
        let action = Action::Edit { cell: CellRef::Index(at), source: source.to_owned() };
        update_with(&path, |notebook| notebook.act(&action, OutputsAfterEdit::Keep).unwrap().notebook)
            .unwrap();
    };
    edit(200, "größe\nchanged");
    edit(399, "größe");
    let expected = text.replace("\"200\"", "\"changed\"").replace("\"größe\\n\", \"399\"", "\"größe\"");
    assert!(fs::read_to_string(&path).unwrap() == expected);
    // What is wrong with it is said as of a small one.
    fs::write(&path, &expected[..expected.len() - 4]).unwrap();
    let (cut, whole) =
        (file::read_fingerprinted(&path, ReadNeed::Sources).unwrap_err(), file::read(&path).unwrap_err());
    assert_eq!(format!("{cut:?}"), format!("{whole:?}"));
}

fn update_with(path: &Path, change: impl Fn(&Notebook) -> Option<Notebook>) -> Result<(), FileError> {
    file::update(path, IfMissing::Fail, |notebook| Ok((change(notebook), ())))
}

fn entries(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
