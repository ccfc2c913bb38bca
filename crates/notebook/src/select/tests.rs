use proptest::prelude::*;

use super::LineRange::{FromTo, Last, Within};
use super::*;
use crate::notebook::Notebook;

fn cells(text: &str) -> NotebookPart {
    NotebookPart::Cells(text.parse().unwrap())
}

fn output(cell: CellRef, output: usize) -> NotebookPart {
    NotebookPart::Output { cell, output }
}

#[track_caller]
fn check(target: &str, path: &str, part: NotebookPart, raw: bool, lines: &[LineRange]) {
    let expected = Selector { part, raw, lines: lines.to_vec() };
    assert_eq!(Selector::split(target), (path, expected));
}

#[test]
fn every_selector_of_the_manual_is_read() {
    let whole = || NotebookPart::Whole;
    check("nb.ipynb", "nb.ipynb", whole(), false, &[]);
    check("nb.ipynb:10-40", "nb.ipynb", whole(), false, &[FromTo(10, Some(40))]);
    check("nb.ipynb:5-16,90-97", "nb.ipynb", whole(), false, &[FromTo(5, Some(16)), FromTo(90, Some(97))]);
    check("nb.ipynb:50+20", "nb.ipynb", whole(), false, &[FromTo(50, Some(69))]);
    check("nb.ipynb:-30", "nb.ipynb", whole(), false, &[Last(30)]);
    check("nb.ipynb:7-", "nb.ipynb", whole(), false, &[FromTo(7, None)]);
    check("nb.ipynb:12@4001", "nb.ipynb", whole(), false, &[Within { line: 12, byte: 4001 }]);
    check("nb.ipynb#3", "nb.ipynb", cells("3"), false, &[]);
    check("nb.ipynb#3-7:2", "nb.ipynb", cells("3-7"), false, &[FromTo(2, Some(2))]);
    check("nb.ipynb#2,5-7", "nb.ipynb", cells("2,5-7"), false, &[]);
    check("nb.ipynb#5-", "nb.ipynb", cells("5-"), false, &[]);
    check("nb.ipynb#cell:2", "nb.ipynb", cells("2"), false, &[]);
    check("nb.ipynb#cell:2-4,cell:7:3", "nb.ipynb", cells("2-4,7"), false, &[FromTo(3, Some(3))]);
    check("nb.ipynb#5-:7-", "nb.ipynb", cells("5-"), false, &[FromTo(7, None)]);
    check("nb.ipynb#id:12345678", "nb.ipynb", cells("id:12345678"), false, &[]);
    check("nb.ipynb#id:a-b,3:raw", "nb.ipynb", cells("id:a-b,3"), true, &[]);
    check("nb.ipynb#\"Data cleaning\"", "nb.ipynb", cells("\"Data cleaning\""), false, &[]);
    check(
        "nb.ipynb#0,\"C#: a, \\\"b\\\"\":3",
        "nb.ipynb",
        cells("0,\"C#: a, \\\"b\\\"\""),
        false,
        &[FromTo(3, Some(3))],
    );
    check("nb.ipynb#7.0", "nb.ipynb", output(CellRef::Index(7), 0), false, &[]);
    check(
        "nb.ipynb#id:abc.2:10-40",
        "nb.ipynb",
        output(CellRef::Id("abc".into()), 2),
        false,
        &[FromTo(10, Some(40))],
    );
    check("nb.ipynb#3:raw", "nb.ipynb", cells("3"), true, &[]);
    let image = NotebookPart::Image(ImageAddress::Output { cell: CellRef::Index(7), output: 0, image: 1 });
    check("nb.ipynb#7.0.1", "nb.ipynb", image, false, &[]);
    for (written, name) in [
        ("plot.png", "plot.png"),
        ("1 (2).png", "1 (2).png"),
        ("a:b,c#d.png", "a:b,c#d.png"),
        ("\"12\"", "12"),
        ("\"raw\"", "raw"),
    ] {
        let attached =
            NotebookPart::Image(ImageAddress::Attachment { cell: CellRef::Index(10), name: name.to_owned() });
        assert_eq!(attached.to_string(), format!("#10:{written}"));
        check(&format!("nb.ipynb#10:{written}"), "nb.ipynb", attached, false, &[]);
    }
    check("nb.ipynb:raw", "nb.ipynb", whole(), true, &[]);
    check("nb.ipynb:raw:1-5", "nb.ipynb", whole(), true, &[FromTo(1, Some(5))]);
}

#[test]
fn text_that_is_not_a_selector_is_part_of_the_path() {
    for path in
        ["a:b.ipynb", "nb#x.ipynb", "nb.ipynb:", "nb.ipynb:0", "nb.ipynb:9-3", "nb.ipynb#7-3", "nb.ipynb#id:"]
    {
        check(path, path, NotebookPart::Whole, false, &[]);
    }
    check("c#:x.ipynb:3", "c#:x.ipynb", NotebookPart::Whole, false, &[FromTo(3, Some(3))]);
}

#[test]
fn a_file_whose_name_looks_like_a_selector_is_that_file() {
    let parse = |text: &str, files: &[&str]| {
        let target = Target::parse(text, |path| files.contains(&path)).unwrap();
        (target.path, target.selector.name_in(""), target.selector.lines.len())
    };
    let files = ["nb.ipynb", "nb.ipynb#3"];
    assert_eq!(parse("nb.ipynb#3", &files), ("nb.ipynb#3".into(), String::new(), 0));
    assert_eq!(parse("nb.ipynb#3:raw:1-2", &files), ("nb.ipynb#3".into(), ":raw".into(), 1));
    assert_eq!(parse("nb.ipynb#4", &files), ("nb.ipynb".into(), "#4".into(), 0));
    assert_eq!(parse("nb.ipynb#\"C# 3:raw\"", &files), ("nb.ipynb".into(), "#\"C# 3:raw\"".into(), 0));
    assert_eq!(parse("none.ipynb#3", &files), ("none.ipynb".into(), "#3".into(), 0));
    assert_eq!(parse("none.ipynb#x", &files), ("none.ipynb#x".into(), String::new(), 0));
    assert_eq!(parse("a:1/b.txt:2", &["a:1/b.txt", "a"]), ("a:1/b.txt".into(), String::new(), 1));
}

#[test]
fn a_wrong_selector_is_a_selector_error_and_never_no_such_file() {
    let files = ["a.ipynb", "a.txt"];
    let told = |text: &str| Target::parse(text, |path| files.contains(&path)).unwrap_err().to_string();
    insta::assert_snapshot!(told("a.ipynb#x"), @r#"a.ipynb: `#x` is not a selector: `x` is not a cell. Cells are `#3`, `#3-7`, `#2,5-7`, `#5-`, `#id:abcd1234` or `#"A heading"`, an output `#7.0`, an attachment `#3:plot.png`; then `:raw` or lines, which count from 1: `:10-40`, `:10-`, `:50+20`, `:-30`"#);
    insta::assert_snapshot!(told("a.txt:5-2"), @"a.txt: `:5-2` is not a selector: `5-2` ends before it begins; `2-5` would be a range. Lines count from 1: `:10-40`, `:10-`, `:50+20`, `:-30`, `:5-16,90-97`");
    let notebook_forms = told("a.ipynb#x").split_once(". ").unwrap().1.to_owned();
    for (text, reason) in [
        ("a.ipynb#2-1", "`#2-1` is not a selector: `2-1` ends before it begins; `1-2` would be a range"),
        ("a.ipynb#", "`#` is not a selector: a cell is missing"),
        ("a.ipynb#1,", "`#1,` is not a selector: a cell is missing"),
        ("a.ipynb#id:", "`#id:` is not a selector: `id:` needs the cell's id after it"),
        ("a.ipynb#7.x", "`#7.x` is not a selector: `x` is not the number of an output"),
        ("a.ipynb#1-2.0", "`#1-2.0` is not a selector: an output is of one cell, as in `#7.0`"),
        ("a.ipynb#1,2.0", "`#1,2.0` is not a selector: an output is named alone, as in `#7.0`"),
        ("a.ipynb#\"A", "`#\"A` is not a selector: `\"A` has no closing quote"),
        ("a.ipynb#\"\"", "`#\"\"` is not a selector: the heading is empty"),
        ("a.ipynb#\"A\"b", "`#\"A\"b` is not a selector: `b` cannot follow"),
        ("a.ipynb:abc", "`:abc` is not a selector: `abc` is not a range of lines"),
        ("a.ipynb#3:0", "`#3:0` is not a selector: `0` counts from 0, but lines count from 1"),
        ("a.ipynb:", "`:` is not a selector: `` is not a range of lines"),
    ] {
        assert_eq!(told(text), format!("a.ipynb: {reason}. {notebook_forms}"), "{text}");
    }
}

#[test]
fn lines_are_cut_with_their_ends() {
    let text = "1\n2\n3\n4";
    let cut = |ranges: &[LineRange]| {
        excerpts(text, ranges).map(|found| found.iter().map(|e| (e.start, e.end, e.text)).collect::<Vec<_>>())
    };
    assert_eq!(cut(&[FromTo(2, Some(3)), Last(1)]).unwrap(), [(2, 3, "2\n3\n"), (4, 4, "4")]);
    assert_eq!(cut(&[FromTo(3, Some(99))]).unwrap(), [(3, 4, "3\n4")]);
    assert_eq!(cut(&[Last(99)]).unwrap(), [(1, 4, text)]);
    assert_eq!(cut(&[FromTo(5, None)]).unwrap_err().to_string(), "line 5 is past the end; there are 4 lines");
    assert_eq!(excerpts("", &[Last(3)]).unwrap(), [Excerpt { start: 1, end: 0, skipped: 0, text: "" }]);
}

#[test]
fn a_long_line_can_be_read_from_its_middle() {
    let within = |byte| {
        excerpts("a\nbéd\n", &[Within { line: 2, byte }]).map(|found| (found[0].skipped, found[0].text))
    };
    assert_eq!(within(1), Ok((0, "béd\n")));
    assert_eq!(within(2), Ok((1, "éd\n")));
    assert_eq!(within(3), Ok((1, "éd\n")), "a character is never cut");
    assert_eq!(within(4), Ok((3, "d\n")));
    assert_eq!(within(5).unwrap_err().to_string(), "line 2 has no byte 5; it has 4 bytes");
}

fn notebook(sources: &[&str]) -> Notebook {
    let cells = sources.iter().enumerate().map(|(index, source)| {
        let kind = if source.starts_with("x = ") { "code" } else { "markdown" };
        let source = source.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!(r#"{{"cell_type":"{kind}","id":"id{index}","metadata":{{}},"source":"{source}"}}"#)
    });
    let cells = cells.collect::<Vec<_>>().join(",");
    Notebook::parse(
        format!(r#"{{"cells":[{cells}],"metadata":{{}},"nbformat":4,"nbformat_minor":5}}"#).into(),
    )
    .unwrap()
}

#[track_caller]
fn chosen(notebook: &Notebook, text: &str) -> Result<Vec<usize>, String> {
    let NotebookPart::Cells(cells) = Selector::parse(text).unwrap().part else {
        panic!("{text} does not select cells");
    };
    assert_eq!(format!("#{cells}"), text, "printed as it was written");
    cells.resolve(notebook).map_err(|error| error.to_string())
}

#[test]
fn cells_come_in_the_order_asked_for_and_each_once() {
    let notebook = notebook(&["x = 0"; 8]);
    assert_eq!(chosen(&notebook, "#5-,2,0-2,id:id4"), Ok(vec![5, 6, 7, 2, 0, 1, 4]));
    assert_eq!(chosen(&notebook, "#7-7,7"), Ok(vec![7]));
    assert_eq!(chosen(&notebook, "#8-").unwrap_err(), "there is no cell 8; the notebook has cells 0 to 7");
    assert_eq!(chosen(&notebook, "#3-99").unwrap_err(), "there is no cell 99; the notebook has cells 0 to 7");
    assert_eq!(chosen(&notebook, "#id:no").unwrap_err(), "no cell has the id `no`");
}

#[test]
fn a_heading_selects_its_section() {
    let without_headings = notebook(&["x = 1"]);
    let notebook = notebook(&[
        "# Study",                                  // 0
        "x = 1",                                    // 1
        "Words\n## Data *cleaning*\nmore",          // 2
        "x = 2",                                    // 3
        "### Missing `values`",                     // 4
        "```\n# Not a heading\n```\n    # Neither", // 5
        "Results\n-------",                         // 6
        "## One\n## Two",                           // 7
        "x = 3",                                    // 8
        "# Setup",                                  // 9
        "## Setup",                                 // 10
    ]);
    let section = |heading: &str| chosen(&notebook, &format!("#\"{heading}\""));
    assert_eq!(section("Study"), Ok((0..=8).collect()));
    assert_eq!(section("data CLEANING"), Ok(vec![2, 3, 4, 5]));
    assert_eq!(section("Missing values"), Ok(vec![4, 5]));
    assert_eq!(section("Missing `values`"), Ok(vec![4, 5]));
    assert_eq!(section("Results"), Ok(vec![6]));
    assert_eq!(section("One"), Ok(vec![7]));
    assert_eq!(section("Two"), Ok(vec![7, 8]));
    insta::assert_snapshot!(section("Setup").unwrap_err(), @r#"2 headings read "Setup" (cells 9, 10); name the cells instead, such as `#9-`"#);
    insta::assert_snapshot!(section("Not a heading").unwrap_err(), @r#"no heading reads "Not a heading"; the headings are "Study" (cell 0), "Data cleaning" (cell 2), "Missing values" (cell 4), "Results" (cell 6), "One" (cell 7), "Two" (cell 7), "Setup" (cell 9), "Setup" (cell 10)"#);
    assert_eq!(
        chosen(&without_headings, "#\"A\"").unwrap_err(),
        "no heading reads \"A\"; the notebook has no headings"
    );
}

#[test]
fn cell_arguments_mean_what_a_model_means_by_them() {
    let list = |text: &str| text.parse::<CellSelection>().map(|cells| cells.to_string());
    for (text, meant) in [
        ("2", "2"),
        ("cell:2", "2"),
        ("#2", "2"),
        ("2.0", "2"),
        ("id:abc", "id:abc"),
        ("#id:abc", "id:abc"),
        ("abc", "id:abc"),
        ("2, 5-7,id:3-1,x-y", "2,5-7,id:3-1,id:x-y"),
        ("#2,5-", "2,5-"),
        ("#5-7", "5-7"),
        ("#\"A\", #3", "\"A\",3"),
        ("\"Data, cleaned\" , 3", "\"Data, cleaned\",3"),
        ("cell:5-", "5-"),
        ("cell:2-4", "2-4"),
        ("[0,1]", "0,1"),
        (" [0, 2.0, \"id:abc\", \"5-7\"] ", "0,2,id:abc,5-7"),
    ] {
        assert_eq!(list(text).as_deref(), Ok(meant), "{text}");
    }
    let several: CellSelection = ["2", "5-7", "abc"].map(|text| text.parse().unwrap()).into_iter().collect();
    assert_eq!(several.to_string(), "2,5-7,id:abc");
    assert_eq!(list("7-3").unwrap_err().to_string(), "`7-3` ends before it begins; `3-7` would be a range");
    assert_eq!(list("1,").unwrap_err().to_string(), "a cell is named by its index or its id");
    assert_eq!(list("\"A\" b").unwrap_err().to_string(), "`b` cannot follow a heading");
}

proptest! {
    /// Printing a selector and reading it gives it back.
    #[test]
    fn a_selector_is_read_as_it_is_printed(
        parts in prop::collection::vec(prop_oneof![
            (0usize..99).prop_map(|index| index.to_string()),
            (0usize..99, 0usize..9).prop_map(|(first, more)| format!("{first}-{}", first + more)),
            (0usize..99).prop_map(|first| format!("{first}-")),
            "id:[a-zA-Z0-9_-]{1,8}",
            "[ -~é]{1,12}".prop_filter("blank", |text| !text.trim().is_empty())
                .prop_map(|text| CellSelection::section(&text).to_string()),
        ], 1..4),
        raw: bool,
        line in 1usize..100,
    ) {
        let text = format!("#{}{}:{line}-", parts.join(","), if raw { ":raw" } else { "" });
        let selector = Selector::parse(&text).unwrap();
        prop_assert_eq!(format!("{}:{}", selector.name_in(""), selector.lines[0]), text.clone());
        let (path, split) = Selector::split(&text);
        prop_assert_eq!((path, split), ("", selector));
    }

    /// Whatever follows a path is answered without a panic. What is accepted prints as something with the same meaning.
    #[test]
    fn any_text_is_answered(text in "[#:.,0-9a-z\"@+ -]{0,12}") {
        if let Ok(selector) = Selector::parse(&text) {
            let lines = selector.lines.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            let printed = format!("{}{}{lines}", selector.name_in(""), if lines.is_empty() { "" } else { ":" });
            prop_assert_eq!(Selector::parse(&printed), Ok(selector));
        }
    }
}

#[test]
fn an_address_of_an_image_reads_as_a_selector_does() {
    for address in
        ["3.0", "3.0.1", "id:abc.2", "3:plot.png", "id:abc:plot.png", "3:\"12\"", "3:\"raw\"", "3:a b.png"]
    {
        assert_eq!(address.parse::<ImageAddress>().unwrap().to_string(), address);
        assert_eq!(format!("#{address}").parse::<ImageAddress>().unwrap().to_string(), address);
    }
    let quoted: ImageAddress = "3:\"plot.png\"".parse().unwrap();
    assert_eq!(quoted, ImageAddress::Attachment { cell: CellRef::Index(3), name: "plot.png".to_owned() });
    let lines = "3:12".parse::<ImageAddress>().unwrap_err().to_string();
    assert!(lines.ends_with("a name that reads as lines is put in quotes, as in 3:\"12\""), "{lines}");
    for wrong in ["", "3", "3-4", "3.x", "3.0:raw", "3.0:1-2", "nb.ipynb#3.0"] {
        let reason = wrong.parse::<ImageAddress>().unwrap_err().to_string();
        assert!(reason.contains("an image is named CELL.OUTPUT, as in 3.0"), "{wrong}: {reason}");
    }
}
