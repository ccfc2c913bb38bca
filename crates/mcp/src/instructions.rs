//! What a model reads about the server before it has seen any tool.
//!
//! Some clients show their models the tools only when they search for them, and these lines at once.

use std::fmt::Write as _;

use cellwright_tools::ToolSpec;

const FIRST: &str = "\
Live Python kernels and Jupyter notebooks. For .ipynb files use these tools instead of your own notebook tools, and never \
write notebook JSON by hand.";

/// What each tool is for.
const TOOLS: [(&str, &str); 7] = [
    (
        "eval",
        "runs code in a kernel that keeps its variables between calls; `session` may name a .ipynb to use its kernel",
    ),
    (
        "notebook",
        "edits, inserts, moves, deletes and runs cells; the outputs are saved in the file; undo brings back",
    ),
    (
        "read",
        "shows a notebook as text with a line `# %%` per cell, text files, images, and stored outputs (`artifact://ID`)",
    ),
    ("edit", "replaces an exact string in a file or a notebook's text"),
    ("write", "creates or replaces a file, or a notebook from its text"),
    ("bash", "runs a shell command; its folder and exported variables stay"),
    (
        "kernel",
        "lists, interrupts and restarts kernels, shows variables, and follows work in the background: a long call returns a \
         handle such as `py-3`, and {\"action\": \"wait\", \"handle\": \"py-3\"} waits for it",
    ),
];

const LAST: &str = "Long outputs are shortened; a notice first and last names the `artifact://ID` that `read` opens in parts or searches.";

/// A few lines about the tools that are offered.
pub(crate) fn of(offered: &[ToolSpec]) -> String {
    let mut text = format!("{FIRST}\n");
    let is_offered = |name: &str| offered.iter().any(|spec| spec.name == name);
    for (name, purpose) in TOOLS.iter().filter(|(name, _)| is_offered(name)) {
        writeln!(text, "- `{name}` {purpose}.").expect("a String takes everything");
    }
    text.push_str(LAST);
    text
}
