//! Reading and changing notebooks, and what is told of it.

use std::fs;

use super::{Folder, NOTEBOOK, Ran};

#[test]
fn a_notebook_is_read_edited_and_written() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    let text = "# %% [code] cell:0\nn = 10\nprint(n)\n# %% [markdown] cell:1\n# Title\n";
    assert_eq!(
        folder.run(&["read", "nb.ipynb"], ""),
        Ran { code: 0, stdout: text.into(), stderr: String::new() }
    );
    assert_eq!(folder.run(&["read", "nb.ipynb#id:bbbb2222"], "").stdout, "# %% [markdown] cell:1\n# Title\n");
    assert_eq!(folder.run(&["read", "nb.ipynb:2-3", "-n"], "").stdout, "    2  n = 10\n    3  print(n)\n");
    assert_eq!(folder.run(&["read", "nb.ipynb:1,-1"], "").stdout, "# %% [code] cell:0\n⋯ line 5\n# Title\n");
    assert_eq!(folder.run(&["read", "nb.ipynb:raw"], "").stdout, NOTEBOOK);

    let unchanged = folder.run(&["write", "nb.ipynb", "-"], text);
    assert_eq!((unchanged.code, unchanged.stdout.as_str()), (0, "no cell changed (2 cells now)\n"));
    assert_eq!(folder.read("nb.ipynb"), NOTEBOOK);

    let edited = folder.run(&["edit", "nb.ipynb", "--old", "n = 10", "--new", "n = 11"], "");
    let told = "edited code cell 0 (2 cells now)\nnote: the execution count of cell 0 was removed\n";
    assert_eq!((edited.code, edited.stdout.as_str()), (0, told));
    let expected =
        NOTEBOOK.replace("n = 10", "n = 11").replace("\"execution_count\": 2", "\"execution_count\": null");
    assert_eq!(folder.read("nb.ipynb"), expected);
}

#[test]
fn every_action_answers_with_its_details() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    let mut answers = String::new();
    for arguments in [
        &["edit", "nb.ipynb", "1", "--source", "## Title"][..],
        &["insert", "nb.ipynb", "--at", "1", "--type", "raw", "--source", "r", "--source", "s"],
        &["move", "nb.ipynb", "id:bbbb2222", "0"],
        &["retype", "nb.ipynb", "bbbb2222", "code"],
        &["clear", "nb.ipynb", "0-3"],
        &["delete", "nb.ipynb", "2-3"],
    ] {
        let ran = folder.run(&[&["notebook"], arguments, &["--json"]].concat(), "");
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{arguments:?}");
        answers.push_str(&ran.stdout);
    }
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r#""fingerprint":"[0-9a-f]{32}""#, r#""fingerprint":"…""#);
    settings.add_filter(r#""id":"[0-9a-f]{8}","type":"raw""#, r#""id":"…","type":"raw""#);
    settings.bind(|| insta::assert_snapshot!(answers, @r###"
    {"path":"nb.ipynb","action":"edit","cells":[{"change":"edited","index":1,"id":"bbbb2222","type":"markdown","source":"## Title"}],"total_cells":2,"notes":[],"fingerprint":"…"}
    {"path":"nb.ipynb","action":"insert","cells":[{"change":"inserted","index":1,"id":"…","type":"raw","source":"r"},{"change":"inserted","index":2,"id":"…","type":"raw","source":"s"}],"total_cells":4,"notes":[],"fingerprint":"…"}
    {"path":"nb.ipynb","action":"move","cells":[{"change":"moved","index":0,"id":"bbbb2222","type":"markdown","source":"## Title"}],"total_cells":4,"notes":[],"fingerprint":"…"}
    {"path":"nb.ipynb","action":"retype","cells":[{"change":"retyped","index":0,"id":"bbbb2222","type":"code","source":"## Title"}],"total_cells":4,"notes":[],"fingerprint":"…"}
    {"path":"nb.ipynb","action":"clear","cells":[{"change":"cleared","index":1,"id":"aaaa1111","type":"code","source":"n = 10\nprint(n)"}],"total_cells":4,"notes":[],"fingerprint":"…"}
    {"path":"nb.ipynb","action":"delete","cells":[{"change":"deleted","index":2,"id":"…","type":"raw","source":"r"},{"change":"deleted","index":3,"id":"…","type":"raw","source":"s"}],"total_cells":2,"notes":[],"fingerprint":"…"}
    "###));
}

#[test]
fn refusals_say_what_to_do_and_change_nothing() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    let mut refusals = String::new();
    for (arguments, stdin) in [
        (&["read", "other.ipynb"][..], ""),
        (&["read", "nb.ipynb:100-"], ""),
        (&["read", "nb.ipynb#7"], ""),
        (&["read", "nb.ipynb#x"], ""),
        (&["read", "nb.ipynb", "--image", "0.0", "--to", "-"], ""),
        (&["write", "nb.ipynb", "-"], ""),
        (&["write", "nb.ipynb", "-"], "print(1)\n"),
        (&["write", "nb.ipynb", "-"], "# %% [code] cell:0\nx\n#%%\ny\n"),
        (&["write", "nb.ipynb", "-"], "{\"cells\": 1}"),
        (&["edit", "nb.ipynb", "--old", "n", "--new", "m"], ""),
        (&["edit", "nb.ipynb", "--old", "print( n )", "--new", "m"], ""),
        (&["edit", "nb.ipynb", "--edits", "-"], "[{\"old\": 1}]"),
        (&["notebook", "insert", "nb.ipynb", "--at", "9", "--source", "x"], ""),
        (&["notebook", "delete", "nb.ipynb", "2"], ""),
        (&["notebook", "edit", "nb.ipynb", "id:nope", "--source", "x"], ""),
        (&["notebook", "edit", "other.ipynb", "0", "--source", "x"], ""),
    ] {
        let ran = folder.run(arguments, stdin);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{arguments:?}");
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
        refusals.push_str(&ran.stderr);
    }
    assert_eq!(folder.read("nb.ipynb"), NOTEBOOK);
    insta::assert_snapshot!(refusals, @r##"
    error: other.ipynb: no such file
    error: nb.ipynb: line 100 is past the end; there are 5 lines
    error: nb.ipynb: there is no cell 7; the notebook has cells 0 to 1
    error: nb.ipynb: `#x` is not a selector: `x` is not a cell. Cells are `#3`, `#3-7`, `#2,5-7`, `#5-`, `#id:abcd1234` or `#"A heading"`, an output `#7.0`, an attachment `#3:plot.png`; then `:raw` or lines, which count from 1: `:10-40`, `:10-`, `:50+20`, `:-30`
    error: nb.ipynb: cell 0 has no image 0.0; a summary of the outputs lists those it has
    error: nb.ipynb: the text has no cells and would delete all 2; to do that, use the delete action
    error: stdin: line 1: the text must start with a cell marker such as `# %% [code]`, but starts with "print(1)"
    error: stdin: line 3: "#%%" looks like a cell marker but is not one; write `# %% [code]`, `# %% [markdown]` or `# %% [raw]` to start a cell, or add one `%` to keep this line as text
    error: nb.ipynb: line 1, column 11: `cells` must be an array
    error: nb.ipynb: 3 matches for "n", on lines 2, 3, 3; add text around it until it is unique, or replace all
    error: nb.ipynb: no match for "print( n )"; line 3 is close: check white space and line ends
    error: stdin is not a list of edits: invalid type: integer `1`, expected a string at line 1 column 10
    error: nb.ipynb: cannot insert at 9; the notebook has 2 cells, so 0 to 2 are possible
    error: nb.ipynb: there is no cell 2; the notebook has cells 0 to 1
    error: nb.ipynb: no cell has the id `nope`
    error: other.ipynb: no such file
    "##);
}

#[test]
fn n16_a_text_that_is_no_notebook_never_replaces_one() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    for text in ["x = 1\n", "# Title\n", "[]", "\"text\"", "{}", "{\"nbformat\": 4}", " # %% [code]\n"] {
        let ran = folder.run(&["write", "nb.ipynb", "-"], text);
        assert_eq!(ran.code, 1, "{text:?}");
        assert_eq!(folder.read("nb.ipynb"), NOTEBOOK);
    }
    // JSON replaces what was read, and nothing else.
    let json = NOTEBOOK.replace("n = 10", "n = 12");
    let refused = folder.run(&["write", "nb.ipynb", "-"], &json);
    assert!(
        refused.code == 1 && refused.stderr.contains("you have not read this file"),
        "{}",
        refused.stderr
    );
    folder.run(&["read", "nb.ipynb:raw"], "");
    assert_eq!(folder.run(&["write", "nb.ipynb", "-"], &json).stdout, "edited code cell 0 (2 cells now)\n");
    assert_eq!(folder.read("nb.ipynb"), json);
}

#[test]
fn a_write_over_a_file_that_changed_is_refused_with_its_own_exit_code() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    let read = folder.run(&["read", "nb.ipynb", "--json"], "").stdout;
    let fingerprint = read.split("\"fingerprint\":\"").nth(1).unwrap()[..32].to_owned();
    let edit = |expect: &str| {
        folder.run(&["edit", "nb.ipynb", "--old", "n = 1", "--new", "n = 2", "--expect", expect], "")
    };
    assert_eq!(edit(&fingerprint).code, 0);
    let refused = edit(&fingerprint);
    assert_eq!(refused.code, 3);
    assert!(refused.stderr.contains("changed since it was read"), "{}", refused.stderr);
}

#[test]
fn errors_are_json_where_answers_are() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    let failed = folder.run(&["read", "none.ipynb", "--json"], "");
    assert_eq!((failed.code, failed.stdout.as_str()), (1, ""));
    let told: serde_json::Value = serde_json::from_str(&failed.stderr).unwrap();
    assert_eq!(told, serde_json::json!({ "error": "none.ipynb: no such file", "exit": 1 }));
    let below = folder.run(&["notebook", "delete", "nb.ipynb", "9", "--json"], "");
    assert!(below.stderr.starts_with("{\"error\":"), "{}", below.stderr);
}

#[test]
fn wrong_arguments_have_their_own_exit_code_and_are_json_where_answers_are() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    for (arguments, told) in [
        (&["edit", "nb.ipynb", "--old", "n"][..], "each --old needs a --new, and each --new an --old"),
        (
            &["notebook", "insert", "nb.ipynb"],
            "the following required arguments were not provided: --source <SOURCE>",
        ),
        (
            &["notebook", "edit", "nb.ipynb", "0"],
            "the following required arguments were not provided: --source <SOURCE>",
        ),
        (
            &["notebook", "delete", "nb.ipynb", "7-3"],
            "invalid value '7-3' for '<CELLS>...': `7-3` ends before it begins; `3-7` would be a range",
        ),
    ] {
        let plain = folder.run(arguments, "");
        assert_eq!((plain.code, plain.stdout.as_str()), (2, ""), "{arguments:?}");
        let json = folder.run(&[arguments, &["--json"]].concat(), "");
        let said: serde_json::Value = serde_json::from_str(&json.stderr).unwrap();
        assert_eq!((json.code, said), (2, serde_json::json!({ "error": told, "exit": 2 })));
    }
}

#[test]
fn n15_a_text_that_speaks_of_another_file_is_refused() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    let text = folder.run(&["read", "nb.ipynb"], "").stdout;
    // Edits that move no cell leave the text's numbers right.
    let edited = text.replace("n = 10", "n = 20");
    assert_eq!(folder.run(&["write", "nb.ipynb"], &edited).code, 0);
    assert_eq!(folder.run(&["write", "nb.ipynb"], &edited.replace("20", "30")).code, 0);
    // Another program puts a cell in front.
    let theirs = folder.read("nb.ipynb").replacen(
        "  {\n",
        "  {\"cell_type\": \"raw\", \"id\": \"c\", \"metadata\": {}, \"source\": []},\n  {\n",
        1,
    );
    fs::write(folder.path("nb.ipynb"), &theirs).unwrap();
    // What they did to other cells stays, wherever their cells stand now.
    let merged = folder.run(&["write", "nb.ipynb"], &edited.replace("20", "40"));
    let said = "edited code cell 1 (3 cells now)\n\
        note: merged with what others changed since you read it: 1 cell was added\n";
    assert_eq!((merged.code, merged.stderr.as_str(), merged.stdout.as_str()), (0, "", said));
    assert!(folder.read("nb.ipynb").contains("\"id\": \"c\""));
    // A text that names no cell replaces all that was seen; the cell of the others was not.
    let refused = folder.run(&["write", "nb.ipynb"], "# %% [code]\nnew\n");
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    folder.run(&["read", "nb.ipynb"], "");
    assert_eq!(folder.run(&["write", "nb.ipynb"], "# %% [code]\nnew\n").code, 0);
}

#[test]
fn n15_json_written_over_what_others_did_since_it_was_read_is_refused() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    let json = folder.run(&["read", "nb.ipynb:raw"], "").stdout.replace("10", "11");
    let text = folder.run(&["read", "nb.ipynb"], "").stdout;
    folder.run(&["read", "nb.ipynb:raw"], "");
    let other = [("CELLWRIGHT_CALLER", "another")];
    assert_eq!(
        folder.run_with(&["notebook", "insert", "nb.ipynb", "--source", "theirs"], "", &other).code,
        0
    );
    let theirs = folder.read("nb.ipynb");
    let refused = folder.run(&["write", "nb.ipynb"], &json);
    let said = "error: nb.ipynb: changed since you read it, so nothing was done (cell 2 edited or added); read it again\n";
    assert_eq!((refused.code, refused.stderr.as_str()), (3, said));
    assert_eq!(folder.read("nb.ipynb"), theirs);
    // What was written is known, so it can be written again; a marked text from before does not speak of it.
    assert_eq!(folder.run(&["write", "nb.ipynb", "--force"], &json).code, 0);
    assert_eq!(folder.run(&["write", "nb.ipynb"], &json.replace("11", "12")).code, 0);
    assert_eq!(folder.run(&["write", "nb.ipynb"], &json.replace("11", "13")).code, 0);
    assert_eq!(folder.run(&["write", "nb.ipynb"], &text).code, 3);
}

#[test]
fn n15_what_was_read_of_a_part_does_not_vouch_for_the_rest() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    let text = folder.run(&["read", "nb.ipynb"], "").stdout;
    let theirs = NOTEBOOK.replace("n = 10", "n = 11");
    assert_ne!(theirs, NOTEBOOK);
    fs::write(folder.path("nb.ipynb"), &theirs).unwrap();
    for (part, code) in [("nb.ipynb#0", 0), ("nb.ipynb:1-2", 0), ("nb.ipynb:100000", 1), ("nb.ipynb#99", 1)] {
        assert_eq!(folder.run(&["read", part], "").code, code);
        // The text is based on what was read whole: it does not take their edit back.
        assert_eq!(folder.run(&["write", "nb.ipynb"], &text).code, 0, "after {part}");
        assert_eq!(folder.read("nb.ipynb"), theirs);
    }
    folder.run(&["read", "nb.ipynb"], "");
    assert_eq!(folder.run(&["write", "nb.ipynb"], &text).code, 0);
    assert_ne!(folder.read("nb.ipynb"), theirs);
}

#[test]
fn n15_a_text_that_names_cells_of_a_notebook_nobody_read_is_refused() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    let text = "# %% [code] cell:0\nx\n";
    let refused = folder.run(&["write", "nb.ipynb"], text);
    let told = "error: nb.ipynb: you have not read this file, so nothing was done; read it first, or use force to \
                overwrite it\n";
    assert_eq!((refused.code, refused.stderr.as_str()), (1, told));
    assert_eq!(folder.read("nb.ipynb"), NOTEBOOK);
    let json: serde_json::Value =
        serde_json::from_str(&folder.run(&["read", "nb.ipynb", "--json"], "").stdout).unwrap();
    let expect = json["fingerprint"].as_str().unwrap();
    // Where nothing can be noted, `read` says so and `write` asks.
    let nowhere = [("XDG_STATE_HOME", "/proc/none")];
    let read = folder.run_with(&["read", "nb.ipynb"], "", &nowhere);
    assert!(
        read.code == 0 && read.stderr.starts_with("note: it could not be remembered what you read ("),
        "{}",
        read.stderr
    );
    assert_eq!(folder.run_with(&["write", "nb.ipynb"], text, &nowhere).code, 1);
    // Nor can it be undone there, so only force makes the change.
    let refused = folder.run_with(&["write", "nb.ipynb", "--expect", expect], text, &nowhere);
    assert!(refused.code == 1 && refused.stderr.contains("undo could not keep what"), "{}", refused.stderr);
    let forced = folder.run_with(&["write", "nb.ipynb", "--force"], text, &nowhere);
    assert!(forced.code == 0 && forced.stdout.contains("this change cannot be undone"), "{}", forced.stdout);
}

#[test]
fn n15_a_cell_named_by_its_place_is_left_alone_when_it_is_another_one_now() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    folder.run(&["read", "nb.ipynb#0"], "");
    // What we change ourselves, we know.
    assert_eq!(folder.run(&["notebook", "insert", "nb.ipynb", "--at", "0", "--source", "mine"], "").code, 0);
    assert_eq!(folder.run(&["notebook", "edit", "nb.ipynb", "0", "--source", "mine too"], "").code, 0);
    let first = "  {\"cell_type\": \"raw\", \"id\": \"c\", \"metadata\": {}, \"source\": []},\n  {\n";
    let theirs = folder.read("nb.ipynb").replacen("  {\n", first, 1);
    fs::write(folder.path("nb.ipynb"), &theirs).unwrap();
    let told = "error: nb.ipynb: changed since you read it, so nothing was done: another cell is at 1 now, \
                the one you read is at 2; name it by its id (id:aaaa1111), or read it again\n";
    for action in [
        &["delete", "nb.ipynb", "1"][..],
        &["edit", "nb.ipynb", "1", "--source", "x"],
        &["move", "nb.ipynb", "1", "0"],
        &["retype", "nb.ipynb", "1", "raw"],
        &["clear", "nb.ipynb", "1"],
    ] {
        let refused = folder.run(&[&["notebook"], action].concat(), "");
        assert_eq!((refused.code, refused.stderr.as_str()), (3, told), "{action:?}");
    }
    assert_eq!(folder.read("nb.ipynb"), theirs);
    // Neither a change of ours nor a look at another cell tells which one was meant.
    assert_eq!(folder.run(&["edit", "nb.ipynb", "--old", "mine too", "--new", "mine"], "").code, 0);
    assert_eq!(folder.run(&["read", "nb.ipynb#0"], "").code, 0);
    assert_eq!(folder.run(&["read", "nb.ipynb:1-2"], "").code, 0);
    assert_eq!(folder.run(&["notebook", "delete", "nb.ipynb", "1"], "").code, 3);
    assert_eq!(folder.run(&["notebook", "clear", "nb.ipynb", "0"], "").code, 0);
    assert_eq!(folder.run(&["read", "nb.ipynb#1"], "").code, 0);
    assert_eq!(folder.run(&["notebook", "clear", "nb.ipynb", "1"], "").code, 0);
    // An id is an id, and who has looked again may.
    assert_eq!(folder.run(&["notebook", "delete", "nb.ipynb", "id:c"], "").code, 0);
    fs::write(folder.path("nb.ipynb"), &theirs).unwrap();
    folder.run(&["read", "nb.ipynb"], "");
    assert_eq!(folder.run(&["notebook", "delete", "nb.ipynb", "1"], "").code, 0);
}

#[test]
fn n15_cells_without_ids_are_matched_by_their_text() {
    let cell = |source: &str| format!(r#"{{"cell_type": "raw", "metadata": {{}}, "source": "{source}"}}"#);
    let file =
        |sources: [&str; 3]| format!(r#"{{"cells": [{}], "nbformat": 4}}"#, sources.map(cell).join(", "));
    let folder = Folder::with("nb.ipynb", file(["a", "b", "c"]));
    folder.run(&["read", "nb.ipynb"], "");
    assert_eq!(folder.run(&["notebook", "edit", "nb.ipynb", "1", "--source", "B"], "").code, 0);
    assert_eq!(folder.run(&["notebook", "move", "nb.ipynb", "1", "2"], "").code, 0);
    assert_eq!(folder.read("nb.ipynb"), file(["a", "c", "B"]));
    fs::write(folder.path("nb.ipynb"), file(["c", "a", "B"])).unwrap();
    assert_eq!(folder.run(&["notebook", "delete", "nb.ipynb", "0"], "").code, 3);
    assert_eq!(folder.run(&["notebook", "delete", "nb.ipynb", "2"], "").code, 0);
}

#[test]
fn a_notebook_can_be_made_anew_again_and_again() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    let (made, copied) = ("# %% [code]\nx\n", folder.run(&["read", "nb.ipynb"], "").stdout);
    for _ in 0..2 {
        assert_eq!(folder.run(&["write", "copy.ipynb"], &copied).code, 0);
        assert_eq!(folder.run(&["write", "made.ipynb"], made).code, 0);
        folder.run(&["read", "made.ipynb"], "");
    }
    folder.run(&["read", "made.ipynb#0"], "");
    fs::remove_file(folder.path("made.ipynb")).unwrap();
    assert_eq!(folder.run(&["write", "made.ipynb"], made).code, 0);
    assert_eq!(folder.run(&["write", "made.ipynb"], made).code, 0);
    // Parts that were read one after the other, of all there is.
    for _ in 0..2 {
        let all = folder.run(&["read", "nb.ipynb#0-1"], "").stdout;
        assert_eq!(folder.run(&["edit", "nb.ipynb", "--old", "Title", "--new", "A title"], "").code, 0);
        // A text from before the edit does not take it back.
        assert_eq!(folder.run(&["write", "nb.ipynb"], &all).code, 0);
        assert!(folder.read("nb.ipynb").contains("A title"));
        let all = folder.run(&["read", "nb.ipynb#0-1"], "").stdout;
        assert_eq!(folder.run(&["write", "nb.ipynb"], &all.replace("A title", "Title")).code, 0);
    }
}

#[test]
fn n12_a_part_of_a_notebook_written_back_does_not_delete_the_rest() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    let part = folder.run(&["read", "nb.ipynb#1"], "").stdout;
    let refused = folder.run(&["write", "nb.ipynb"], &part);
    let told = "error: nb.ipynb: you have not seen all of cell 0, which this would replace or delete, so nothing was \
                done; read #0 first, or use force\n";
    assert_eq!((refused.code, refused.stderr.as_str()), (1, told));
    assert_eq!(folder.read("nb.ipynb"), NOTEBOOK);
    assert_eq!(folder.run(&["write", "nb.ipynb"], "# %% [code]\nnew\n").code, 1);
    assert_eq!(folder.read("nb.ipynb"), NOTEBOOK);
    assert_eq!(folder.run(&["write", "nb.ipynb", "--force"], &part).code, 0);
}

#[test]
fn an_image_of_an_output_becomes_a_file() {
    // "image" in base64, broken into lines as Python does.
    let output = r#"{"data": {"image/png": "aW1h\nZ2U=\n"}, "metadata": {}, "output_type": "display_data"}"#;
    let cell = format!(r#"{{"cell_type": "code", "source": "", "outputs": [{output}]}}"#);
    let folder = Folder::with("nb.ipynb", format!(r#"{{"cells": [{cell}], "nbformat": 4}}"#));
    assert_eq!(folder.run(&["read", "nb.ipynb", "--image", "0.0", "--to", "plot.png"], "").code, 0);
    assert_eq!(folder.read("plot.png"), "image");
    assert_eq!(folder.run(&["read", "nb.ipynb", "--image", "0.0.0", "--to", "-"], "").stdout, "image");
    let none = folder.run(&["read", "nb.ipynb", "--image", "0.1", "--to", "other.png"], "");
    assert_eq!(none.code, 1);
    assert!(none.stderr.contains("cell 0 has no image 0.1"), "{}", none.stderr);
    assert!(!folder.path("other.png").exists());
}

#[test]
fn what_is_created_or_changed_outside_cells_is_reported() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    let created = folder.run(&["write", "new.ipynb"], "# %% [code]\nx\n");
    assert_eq!(
        created.stdout,
        "inserted code cell 0 (1 cell now)\nnote: there was no such file; it was created\n"
    );
    assert_eq!(folder.run(&["write", "none.ipynb"], "").stderr, "error: none.ipynb: no such file\n");
    let metadata =
        NOTEBOOK.replace("\"metadata\": {},\n \"nbformat\"", "\"metadata\": {\"a\": 1},\n \"nbformat\"");
    folder.run(&["read", "nb.ipynb"], "");
    let changed = folder.run(&["write", "nb.ipynb"], &metadata);
    assert_eq!(
        changed.stdout,
        "no cell changed (2 cells now)\nnote: the notebook's metadata or layout changed\n"
    );
    std::os::unix::fs::symlink("nowhere", folder.path("dangling.ipynb")).unwrap();
    let dangling = folder.run(&["notebook", "insert", "dangling.ipynb", "--source", "x"], "");
    assert_eq!(
        dangling.stderr,
        "error: dangling.ipynb: a symlink to a file that is not there, not a notebook file\n"
    );
}

#[test]
fn the_json_of_one_cell_is_only_that_cells() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    let raw = folder.run(&["read", "nb.ipynb#1:raw"], "").stdout;
    assert!(raw.starts_with("{\n   \"cell_type\": \"markdown\"") && raw.ends_with("}\n"), "{raw}");
}

#[test]
fn undoing_json_brings_back_cells_and_metadata() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    folder.run(&["read", "nb.ipynb"], "");
    let json = NOTEBOOK
        .replace("n = 10", "n = 12")
        .replace("\"metadata\": {},\n \"nbformat\"", "\"metadata\": {\"a\": 1},\n \"nbformat\"");
    assert_eq!(folder.run(&["write", "nb.ipynb"], &json).code, 0);
    assert_eq!(folder.run(&["notebook", "undo", "nb.ipynb"], "").code, 0);
    assert_eq!(folder.read("nb.ipynb"), NOTEBOOK);
    assert_eq!(folder.run(&["notebook", "undo", "nb.ipynb", "2"], "").code, 0);
    assert_eq!(folder.read("nb.ipynb"), json);
}

#[test]
fn history_takes_the_session_that_every_other_action_takes() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    folder.run(&["notebook", "clear", "nb.ipynb", "--session", "work"], "");
    let ran = folder.run(&["notebook", "history", "nb.ipynb", "--session", "work"], "");
    assert!(ran.stdout.contains("cleared"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn json_without_its_first_cell_was_reported_as_json_without_its_last() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    let json = folder.run(&["read", "nb.ipynb:raw"], "").stdout;
    let mut notebook: serde_json::Value = serde_json::from_str(&json).unwrap();
    notebook["cells"].as_array_mut().unwrap().remove(0);
    let written = folder.run(&["write", "nb.ipynb"], &notebook.to_string());
    let deleted = "; deleted code cell 0 (1 cell now)\n# %% [code] cell:0\nn = 10\nprint(n)\n";
    assert!(written.stdout.ends_with(deleted), "{}{}", written.stdout, written.stderr);
    folder.run(&["notebook", "undo", "nb.ipynb"], "");
    folder.run(&["read", "nb.ipynb:raw"], "");
    let mut notebook: serde_json::Value = serde_json::from_str(&json).unwrap();
    notebook["cells"].as_array_mut().unwrap().reverse();
    let written = folder.run(&["write", "nb.ipynb"], &notebook.to_string());
    assert_eq!(
        written.stdout, "moved markdown cell 0; altered code cell 1 (2 cells now)\n",
        "{}",
        written.stderr
    );
}
