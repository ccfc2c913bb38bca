//! The table of `doors.rs`: what callers and others do, and how each call is answered at every door.

use self::Step::{Call, Edit, Others, OthersText, Read, Write};
use self::Verdict::{Done, Moved, NeverRead, NoSuchCell, PartlyRead, Stale, Wrong};

/// A sequence of calls and of changes by others.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) file: &'static str,
    /// The cells of the notebook before it, each as `id: source`; none for no file.
    pub(super) start: &'static [&'static str],
    pub(super) steps: &'static [Step],
}

pub(super) enum Step {
    /// Others save the notebook with these cells.
    Others(&'static [&'static str]),
    /// Others save the file with this text.
    OthersText(&'static str),
    /// `read` with this selector.
    Read(&'static str, Verdict),
    Write(&'static str, Verdict),
    Edit(&'static str, &'static str, Verdict),
    /// Any tool with these arguments; the path is added.
    Call(&'static str, &'static str, Verdict),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Done,
    Stale,
    NeverRead,
    PartlyRead,
    Moved,
    NoSuchCell,
    /// The call itself makes no sense.
    Wrong,
}

impl Verdict {
    pub(super) fn of(is_error: bool, text: &str) -> Self {
        match () {
            () if !is_error => Done,
            () if text.contains("another cell is at") => Moved,
            () if text.contains("you have not read this file") => NeverRead,
            () if text.contains("you have not seen all of") || text.contains("only a part of it") => {
                PartlyRead
            }
            () if text.contains("changed since") => Stale,
            () if text.contains("there is no cell") || text.contains("no cell has the id") => NoSuchCell,
            () => Wrong,
        }
    }
}

const NB: &str = "nb.ipynb";

const ABC: &[&str] = &["a: 1", "b: 2", "c: 3"];

/// A text of `ABC` in which cell 0 is edited.
const ABC_EDITED: &str = "# %% [code] cell:0\n10\n# %% [code] cell:1\n2\n# %% [code] cell:2\n3\n";

const fn case(name: &'static str, start: &'static [&'static str], steps: &'static [Step]) -> Case {
    Case { name, file: NB, start, steps }
}

const fn text_case(name: &'static str, steps: &'static [Step]) -> Case {
    Case { name, file: "a.txt", start: &[], steps }
}

pub(super) const CASES: &[Case] = &[
    case("a whole text after a whole read", ABC, &[Read("", Done), Write(ABC_EDITED, Done)]),
    case("a text that names cells of a notebook never read", ABC, &[Write(ABC_EDITED, NeverRead)]),
    case("a text without names over a notebook never read", ABC, &[Write("# %% [code]\nx\n", NeverRead)]),
    case(
        "a text after a part was read",
        ABC,
        &[Read("#0", Done), Write("# %% [code] cell:0\n10\n", PartlyRead)],
    ),
    case(
        "a text without names after a part was read",
        ABC,
        &[Read("#1", Done), Write("# %% [code]\nx\n", PartlyRead)],
    ),
    case(
        "parts that make up the whole were read",
        ABC,
        &[Read("#0", Done), Read("#1-2", Done), Write(ABC_EDITED, Done)],
    ),
    case(
        "others edited another cell",
        ABC,
        &[Read("", Done), Others(&["a: 1", "b: 2", "c: 30"]), Write(ABC_EDITED, Done)],
    ),
    case(
        "others edited the same cell",
        ABC,
        &[Read("", Done), Others(&["a: 11", "b: 2", "c: 3"]), Write(ABC_EDITED, Stale)],
    ),
    case(
        "others added a cell",
        ABC,
        &[Read("", Done), Others(&["a: 1", "n: 9", "b: 2", "c: 3"]), Write(ABC_EDITED, Done)],
    ),
    case(
        "others edited, and the text names no cell",
        ABC,
        &[Read("", Done), Others(&["a: 1", "b: 20", "c: 3"]), Write("# %% [code]\nx\n", Stale)],
    ),
    case(
        "a stale text with force",
        ABC,
        &[
            Read("", Done),
            Others(&["a: 11", "b: 2", "c: 3"]),
            Call("write", r##"{"content": "# %% [code] cell:0\n10\n", "force": true}"##, Done),
        ],
    ),
    case(
        "a string in a cell that others left alone",
        ABC,
        &[Read("", Done), Others(&["a: 1", "b: 2", "c: 30"]), Edit("2", "22", Done)],
    ),
    case(
        "a string in a cell that others edited",
        ABC,
        &[Read("", Done), Others(&["a: 1", "b: 2 + 2", "c: 3"]), Edit("2 + 2", "4", Stale)],
    ),
    case("a string in a notebook never read", ABC, &[Edit("2", "22", Done)]),
    case("a string that is not there", ABC, &[Read("", Done), Edit("7", "8", Wrong)]),
    case(
        "a cell that others edited, by number and by id",
        ABC,
        &[
            Read("", Done),
            Others(&["a: 1", "b: 20", "c: 3"]),
            Call("notebook", r#"{"action": "edit", "cell": 1, "source": "mine"}"#, Stale),
            Call("notebook", r#"{"action": "edit", "cell": "id:b", "source": "mine"}"#, Stale),
            Call("notebook", r#"{"action": "edit", "cell": "id:a", "source": "mine"}"#, Done),
        ],
    ),
    case(
        "a number that means another cell now",
        ABC,
        &[
            Read("", Done),
            Others(&["n: 9", "a: 1", "b: 2", "c: 3"]),
            Call("notebook", r#"{"action": "delete", "cell": 1}"#, Moved),
            Call("notebook", r#"{"action": "retype", "cell": 1, "type": "raw"}"#, Moved),
            Call("notebook", r#"{"action": "insert", "at": 1, "source": "x"}"#, Moved),
            Call("notebook", r#"{"action": "insert", "at": 3, "source": "after the last"}"#, Moved),
            Call("notebook", r#"{"action": "delete", "cell": "id:a"}"#, Done),
        ],
    ),
    case(
        "a cell that others edited is not retyped",
        ABC,
        &[
            Read("", Done),
            Others(&["a: 1", "b: 2 and more", "c: 3"]),
            Call("notebook", r#"{"action": "retype", "cell": 1, "type": "raw"}"#, Stale),
            Call("notebook", r#"{"action": "retype", "cell": "id:b", "type": "raw"}"#, Stale),
            Call("notebook", r#"{"action": "retype", "cell": "id:c", "type": "raw"}"#, Done),
        ],
    ),
    case(
        "one cell that was read again",
        ABC,
        &[
            Read("", Done),
            Others(&["n: 9", "a: 1", "b: 2", "c: 3"]),
            Read("#3", Done),
            Call("notebook", r#"{"action": "delete", "cell": 1}"#, Moved),
            Call("notebook", r#"{"action": "delete", "cell": 3}"#, Done),
        ],
    ),
    case(
        "an append whatever others did",
        ABC,
        &[
            Read("", Done),
            Others(&["n: 9", "a: 10", "b: 2"]),
            Call("notebook", r##"{"action": "insert", "source": "# End", "type": "markdown"}"##, Done),
        ],
    ),
    case(
        "an action on a notebook never read",
        ABC,
        &[
            Call("notebook", r#"{"action": "delete", "cell": 1}"#, Done),
            Call("notebook", r#"{"action": "delete", "cell": 5}"#, NoSuchCell),
            Call("notebook", r#"{"action": "clear", "cell": "id:none"}"#, NoSuchCell),
        ],
    ),
    case(
        "a range without an end to which others added a cell",
        ABC,
        &[
            Read("", Done),
            Others(&["a: 1", "b: 2", "c: 3", "n: 9"]),
            Call("notebook", r#"{"action": "delete", "cell": "1-"}"#, Stale),
            Call("notebook", r#"{"action": "delete", "cell": "1-", "force": true}"#, Done),
        ],
    ),
    case(
        "a section",
        &["h: # Part", "a: 1", "i: # Other", "b: 2"],
        &[
            Read("#\"Part\"", Done),
            Call("notebook", r#"{"action": "delete", "cell": "\"Part\""}"#, Done),
            Read("#\"Part\"", Wrong),
        ],
    ),
    case(
        "a change is undone",
        ABC,
        &[
            Call("notebook", r#"{"action": "delete", "cell": "0-1"}"#, Done),
            Call("notebook", r#"{"action": "undo"}"#, Done),
        ],
    ),
    case(
        "a change is not undone after others edited its cell",
        ABC,
        &[
            Call("notebook", r#"{"action": "edit", "cell": 0, "source": "mine"}"#, Done),
            Others(&["a: theirs", "b: 2", "c: 3"]),
            Call("notebook", r#"{"action": "undo"}"#, Stale),
        ],
    ),
    case(
        "a wrong fingerprint",
        ABC,
        &[
            Read("", Done),
            Call("notebook", r#"{"action": "clear", "expect": "00000000000000000000000000000000"}"#, Stale),
            Call("notebook", r#"{"action": "clear", "expect": "nonsense"}"#, Wrong),
        ],
    ),
    case(
        "a notebook is created, and an empty text creates none",
        &[],
        &[
            Write("", Wrong),
            Write("# %% [code]\nx\n# %% [markdown]\ny\n", Done),
            Write("# %% [code] cell:0\nz\n# %% [markdown] cell:1\ny\n", Done),
        ],
    ),
    case(
        "others emptied the file, which is then no notebook",
        ABC,
        &[Read("", Done), OthersText(""), Write(ABC_EDITED, Wrong)],
    ),
    case(
        "a text with an almost right marker, and one with outputs",
        ABC,
        &[
            Read("", Done),
            Write("#%%\n1\n", Wrong),
            Write("# %% [code] cell:0\n1\n# %% [output 0] x\n", Wrong),
        ],
    ),
    case(
        "JSON that is no notebook, and JSON over a notebook that others changed",
        ABC,
        &[
            Read("", Done),
            Write("{\"cells\": 5}", Wrong),
            Others(&["a: 1", "b: 2", "c: 30"]),
            Write(r#"{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"#, Stale),
        ],
    ),
    case(
        "a wrong selector and an output by its address",
        ABC,
        &[Read("#x", Wrong), Read("#7", NoSuchCell), Read("#1.0", Done), Read("#1:none.png", Wrong)],
    ),
    case(
        "cells are moved and retyped by lists",
        ABC,
        &[
            Read("", Done),
            Call("notebook", r#"{"action": "move", "cell": "[1,2]", "at": 0}"#, Done),
            Call("notebook", r#"{"action": "retype", "cell": "1-", "type": "markdown"}"#, Done),
        ],
    ),
    case(
        "a number is not run after others moved or edited its cell",
        &["a: print(1)", "b: print(2)"],
        &[
            Read("", Done),
            Others(&["n: print(9)", "a: print(1)", "b: print(2)"]),
            Call("notebook", r#"{"action": "run", "cell": 1}"#, Moved),
            Call("notebook", r#"{"action": "run", "cell": "id:b"}"#, Done),
            Others(&["a: print(10)", "b: print(2)"]),
            Call("notebook", r#"{"action": "run", "cell": 0}"#, Stale),
            Call("notebook", r#"{"action": "run", "cell": 0, "force": true}"#, Done),
        ],
    ),
    case(
        "a run is undone",
        &["a: print(1)", "b: print(2)"],
        &[Call("notebook", r#"{"action": "run"}"#, Done), Call("notebook", r#"{"action": "undo"}"#, Done)],
    ),
    text_case(
        "a text file that was never read",
        &[OthersText("one\n"), Write("mine\n", NeverRead), Edit("one", "1", Done)],
    ),
    text_case(
        "a text file that others changed",
        &[
            OthersText("one\n"),
            Read("", Done),
            OthersText("two\n"),
            Write("mine\n", Stale),
            Edit("two", "2", Stale),
            Read("", Done),
            Write("mine\n", Done),
            Edit("mine", "ours", Done),
        ],
    ),
    text_case(
        "a text file of which some lines were read",
        &[
            OthersText("one\ntwo\n"),
            Read(":1", Done),
            Write("mine\n", PartlyRead),
            Read(":2", Done),
            Write("mine\n", Done),
        ],
    ),
    text_case(
        "marked text for a file that is no notebook",
        &[
            Write("# %% [code]\nx\n", Done),
            Read("#0", Wrong),
            Call("notebook", r#"{"action": "clear"}"#, Wrong),
        ],
    ),
];
