use super::*;

fn history(entries: &[&str]) -> LineHistory {
    let mut history = LineHistory::default();
    for entry in entries {
        history.add(entry).unwrap();
    }
    history
}

/// Presses the keys that a terminal sends as these bytes. Returns what the last one asks for.
fn press(editor: &mut LineEditor, history: &LineHistory, bytes: &str) -> KeyEffect {
    let mut parser = KeyParser::default();
    let mut keys = parser.take(bytes.as_bytes());
    keys.extend(parser.give_up());
    keys.into_iter().map(|key| editor.press(key, history)).last().expect("there is a key")
}

fn rows(editor: &LineEditor, history: &LineHistory, columns: usize) -> Vec<String> {
    let prompt = LinePrompt {
        first: "[1]: ",
        style: TextStyle::PLAIN,
        next: "   > ",
        colours: &|text| vec![(TextStyle::PLAIN, text)],
    };
    let layout = editor.layout(&prompt, history, columns, TextPen::Plain);
    let (row, column) = layout.cursor;
    let mut rows: Vec<_> = layout.rows.into_iter().map(|row| row.painted).collect();
    rows.push(format!("cursor {row} {column}"));
    rows
}

#[test]
fn a_text_of_several_lines_is_edited_where_the_cursor_is() {
    let (mut editor, history) = (LineEditor::new(LineMode::Code), history(&[]));
    assert_eq!(press(&mut editor, &history, "def f():\r"), KeyEffect::Enter);
    editor.break_line("    ");
    press(&mut editor, &history, "return x\x1b[A\x1b[D\x1b[Da, ");
    assert_eq!(rows(&editor, &history, 40), ["[1]: def f(a, ):", "   >     return x", "cursor 0 14"]);
    // Enter within the text breaks the line.
    assert_eq!(press(&mut editor, &history, "\r"), KeyEffect::Redraw);
    assert_eq!(editor.text(), "def f(a, \n):\n    return x");
}

#[test]
fn history_is_walked_by_what_was_typed() {
    let history = history(&["x = 1", "y = 2", "x = 3\nx"]);
    let mut editor = LineEditor::new(LineMode::Code);
    press(&mut editor, &history, "x\x1b[A");
    assert_eq!(editor.text(), "x = 3\nx");
    press(&mut editor, &history, "\x1b[A");
    assert_eq!(editor.text(), "x = 1");
    press(&mut editor, &history, "\x1b[B\x1b[B");
    assert_eq!(editor.text(), "x");
}

#[test]
fn history_is_searched_backwards() {
    let history = history(&["import os", "os.getcwd()", "print(1)"]);
    let mut editor = LineEditor::new(LineMode::Code);
    press(&mut editor, &history, "draft\x12os");
    assert_eq!(rows(&editor, &history, 40), ["(earlier `os`) os.getcwd()", "cursor 0 26"]);
    press(&mut editor, &history, "\x12");
    assert_eq!(editor.text(), "import os");
    press(&mut editor, &history, "z");
    assert_eq!(rows(&editor, &history, 40)[0], "(no earlier `osz`) import os");
    press(&mut editor, &history, "\x07");
    assert_eq!(editor.text(), "draft");
}

#[test]
fn an_earlier_entry_is_suggested_and_taken_with_the_arrow() {
    let history = history(&["df.describe()"]);
    let mut editor = LineEditor::new(LineMode::Code);
    press(&mut editor, &history, "df");
    assert_eq!(rows(&editor, &history, 40), ["[1]: df.describe()", "cursor 0 7"]);
    press(&mut editor, &history, "\x1b[C");
    assert_eq!(editor.text(), "df.describe()");
}

#[test]
fn completions_are_taken_or_chosen() {
    let (mut editor, history) = (LineEditor::new(LineMode::Code), history(&[]));
    assert_eq!(press(&mut editor, &history, "x = df.he\t"), KeyEffect::Complete);
    editor.complete(4, 9, vec!["df.head".into()]);
    assert_eq!(editor.text(), "x = df.head");
    press(&mut editor, &history, "\x17df.i");
    let names = ["df.iat", "df.iloc", "df.isna"].map(String::from);
    editor.complete(4, 8, names.to_vec());
    assert_eq!(rows(&editor, &history, 40), ["[1]: x = df.i", "iat   iloc  isna  ", "cursor 0 13"]);
    press(&mut editor, &history, "\t\t");
    assert_eq!(editor.text(), "x = df.iloc");
    // Enter takes the choice; only another Enter runs it.
    assert_eq!(press(&mut editor, &history, "\r"), KeyEffect::Redraw);
    assert_eq!(press(&mut editor, &history, "\r"), KeyEffect::Enter);
    // An answer that comes when the text has changed is of no use.
    editor.complete(0, 3, vec!["late".into()]);
    assert_eq!(editor.text(), "x = df.iloc");
}

#[test]
fn a_menu_that_is_left_leaves_what_was_typed() {
    let (mut editor, history) = (LineEditor::new(LineMode::Code), history(&[]));
    press(&mut editor, &history, "pri");
    editor.complete(0, 3, vec!["print".into(), "private".into()]);
    press(&mut editor, &history, "\t\x1b");
    assert_eq!(rows(&editor, &history, 40), ["[1]: pri", "cursor 0 8"]);
}

#[test]
fn tab_and_backspace_indent_by_four() {
    let (mut editor, history) = (LineEditor::new(LineMode::Code), history(&[]));
    press(&mut editor, &history, " \t\tx\x7f");
    assert_eq!(editor.text(), "        ");
    press(&mut editor, &history, "\x7f");
    assert_eq!(editor.text(), "    ");
    press(&mut editor, &history, "\x1b[Z");
    assert_eq!(editor.text(), "");
    assert_eq!(press(&mut editor, &history, "\x04"), KeyEffect::End);
}

#[test]
fn a_secret_is_not_shown_and_an_answer_is_one_line() {
    let history = history(&["old"]);
    let mut secret = LineEditor::new(LineMode::Secret);
    press(&mut secret, &history, "hunter2");
    assert_eq!(rows(&secret, &history, 40), ["[1]: ", "cursor 0 5"]);
    assert_eq!(secret.take(), "hunter2");
    let mut answer = LineEditor::new(LineMode::Answer);
    press(&mut answer, &history, "\x1b[200~a\nb\x1b[201~\x1b[A");
    assert_eq!(answer.take(), "a");
}

#[test]
fn long_texts_are_wrapped_and_the_cursor_is_where_it_belongs() {
    let (mut editor, history) = (LineEditor::new(LineMode::Code), history(&[]));
    press(&mut editor, &history, "0123456789中文");
    assert_eq!(rows(&editor, &history, 11), ["[1]: 01234", "56789中文", "cursor 1 9"]);
}
