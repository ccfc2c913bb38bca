//! `cellwright export` through the door users use.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// One pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn write(folder: &Path, name: &str, language: &str, cells: &[Value]) {
    let notebook = json!({"cells": cells, "nbformat": 4, "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "python3", "language": language, "display_name": "Python"}}});
    fs::write(folder.join(name), serde_json::to_vec_pretty(&notebook).unwrap()).unwrap();
}

fn code(source: &str, tags: &[&str], outputs: &[Value]) -> Value {
    json!({"cell_type": "code", "id": "c", "metadata": {"tags": tags}, "execution_count": 3, "outputs": outputs,
        "source": source})
}

fn prose(source: &str) -> Value {
    json!({"cell_type": "markdown", "id": "m", "metadata": {}, "source": source})
}

fn shown(data: &Value) -> Value {
    json!({"output_type": "display_data", "metadata": {}, "data": data})
}

fn export(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cellwright"));
    command.arg("export").args(arguments).current_dir(folder).stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().expect("it was not killed"), text(output.stdout), text(output.stderr))
}

/// The text of the page of one notebook with these cells.
fn page(cells: &[Value]) -> String {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.ipynb", "python", cells);
    fs::write(folder.path().join("local.png"), b"\x89PNG local").unwrap();
    let (exit, text, error) = export(folder.path(), &["a.ipynb", "-o", "-"]);
    assert_eq!((exit, error.as_str()), (0, ""));
    text
}

#[test]
fn a_page_loads_nothing_and_runs_nothing_of_the_notebook() {
    let html = "<script>alert(1)</script><img src=https://t.example/x.png onerror=a()><iframe src=https://t.example></iframe>\
                <style>@import 'https://t.example/a.css'; td {background: url(https://t.example/b)} td {color: red}</style>\
                <td onclick='x()'>cell</td></div></main>";
    let markdown = "![p](https://t.example/y.png) <script>alert(2)</script> [l](javascript:alert(3)) <a href='https://ok.example'>o</a>";
    let text = page(&[
        prose(markdown),
        code("x", &[], &[shown(&json!({"text/html": html})), shown(&json!({"text/markdown": markdown}))]),
        code(
            "y",
            &[],
            &[shown(
                &json!({"image/svg+xml": "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(4)</script></svg>"}),
            )],
        ),
    ]);
    assert!(text.contains("default-src 'none'; img-src data:; style-src 'unsafe-inline'"));
    for harm in [
        "<script",
        "<iframe",
        "onerror",
        "onclick",
        "@import",
        "url(http",
        "javascript:",
        "src=\"http",
        "src='http",
    ] {
        assert!(!text.contains(harm), "{harm} in {text}");
    }
    // What may stay does: words, colours, links.
    assert!(text.contains("#output-1-0 td{color:red;}"), "{text}");
    assert!(
        text.contains("<a href=\"https://t.example/y.png\" rel=\"noopener noreferrer\">[p]</a>"),
        "{text}"
    );
    assert!(text.contains("<a href=\"https://ok.example\" rel=\"noopener noreferrer\">o</a>"), "{text}");
    // A drawing is a picture, where its scripts do not run.
    assert!(
        text.contains("<img class=\"image-svg-xml\" alt=\"\" src=\"data:image/svg+xml;base64,"),
        "{text}"
    );
    // The notebook did not end our elements.
    assert_eq!(text.matches("</main>").count(), 1);
    assert_eq!(text.matches("<div").count(), text.matches("</div>").count());
}

#[test]
fn a_page_holds_prose_code_and_every_kind_of_output() {
    let stream =
        json!({"output_type": "stream", "name": "stdout", "text": "1%\r100% \u{1b}[31mred\u{1b}[0m <b>\n"});
    let error = json!({"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\u{1b}[1;31mE\u{1b}[0m: v"]});
    let mut attached = prose("![a](attachment:p.png) ![l](local.png) ![outside](../local.png)");
    attached["attachments"] = json!({"p.png": {"image/png": PNG}});
    let text = page(&[
        prose("# A title\n\n| a |\n|---|\n| 1 |\n\n```python\nif x: pass\n```\n\n$x^2$"),
        attached,
        code("def f(): # note\n    return 'text'", &[], &[stream, error]),
        code("p", &[], &[shown(&json!({"image/png": PNG, "text/plain": "<Figure>"}))]),
        code(
            "t",
            &[],
            &[shown(
                &json!({"text/html": "<table class=dataframe><tr><td>7</table>", "text/plain": "plain"}),
            )],
        ),
        code("s", &[], &[shown(&json!({"text/html": "<p style='background: gold'>own colours</p>"}))]),
        code(
            "v",
            &[],
            &[shown(
                &json!({"text/html": "<div id=v></div><script>draw()</script>", "text/plain": "a chart"}),
            )],
        ),
        code("h", &["hide-input"], &[]),
        code("secret_source", &["remove-input"], &[]),
        code("gone_cell", &["remove_cell"], &[]),
    ]);
    for part in [
        "<title>A title</title>",
        "<h1 id=\"A-title\">A title</h1>",
        "<table><thead><tr><th>a</th></tr></thead>",
        "<span class=\"s35\">if</span>",
        "<span class=\"math math-inline\">x^2</span>",
        "data:image/png;base64,iVBORw0KGgo",
        "data:image/png;base64,iVBORyBsb2NhbA==",
        "<a href=\"../local.png\" rel=\"noopener noreferrer\">[outside]</a>",
        "<span class=\"s35\">def</span> <span class=\"s1 s34\">f</span>",
        "<pre>100% <span class=\"s31\">red</span> &lt;b&gt;</pre>",
        "<span class=\"s1 s31\">E</span>: v",
        "<table class=\"dataframe\"><tr><td>7</td></tr></table>",
        "<div class=\"html paper\"><p style=\"background:gold;\">own colours</p></div>",
        "<pre>a chart</pre>",
        "<details><summary>Code</summary>",
        "<div class=\"count\">3</div>",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    for part in ["secret_source", "gone_cell", "&lt;Figure&gt;", "<pre>plain</pre>"] {
        assert!(!text.contains(part), "{part} is in {text}");
    }
}

#[test]
fn markdown_has_pictures_in_a_folder_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let table = "<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>";
    write(
        folder.path(),
        "my nb.ipynb",
        "python",
        &[
            prose("# T"),
            code(
                "print('```')",
                &[],
                &[shown(&json!({"image/png": PNG})), shown(&json!({"text/html": table}))],
            ),
        ],
    );
    let (exit, said, error) = export(folder.path(), &["my nb.ipynb", "--to", "md"]);
    assert_eq!((exit, said.as_str(), error.as_str()), (0, "my nb.md, with 1 picture\n", ""));
    let text = fs::read_to_string(folder.path().join("my nb.md")).unwrap();
    assert_eq!(
        text,
        "# T\n\n````python\nprint('```')\n````\n\n![output 0 of cell 1](my%20nb_files/output_1_0.png)\n\n| a   |\n| --- |\n| 1   |\n"
    );
    assert!(folder.path().join("my nb_files/output_1_0.png").is_file());
}

#[test]
fn a_notebook_of_prompts_becomes_one_that_runs_without_an_agent() {
    let folder = tempfile::tempdir().unwrap();
    let ran = json!({"language": "python", "source": "y = x + 1\nprint(y)"});
    let card = shown(
        &json!({"text/html": "<div>", "text/plain": "card", "application/vnd.cellwright.code+json": ran}),
    );
    let printed = json!({"output_type": "stream", "name": "stdout", "text": "42\n"});
    let answer = shown(&json!({"text/markdown": "It is 42.", "text/plain": "It is 42."}));
    let prompt = code("What is x + 1?", &[], &[card, printed, answer]);
    let cells =
        [prose("# Title"), code("%permissions auto", &[], &[]), code("%%python\nx = 41", &[], &[]), prompt];
    write(folder.path(), "nb.ipynb", "agent", &cells);
    let (status, told, error) = export(folder.path(), &["nb.ipynb", "--plain"]);
    assert_eq!(
        (status, &*told),
        (0, "nb-plain.ipynb: 1 prompt became text, with 1 cell of the agent's code\n"),
        "{error}"
    );
    let plain: Value =
        serde_json::from_slice(&fs::read(folder.path().join("nb-plain.ipynb")).unwrap()).unwrap();
    let sources: Vec<_> =
        plain["cells"].as_array().unwrap().iter().map(|cell| cell["source"].as_str().unwrap()).collect();
    assert_eq!(sources, ["# Title", "x = 41", "> What is x + 1?", "y = x + 1\nprint(y)", "It is 42."]);
    assert_eq!(plain["cells"][3]["outputs"][0]["text"], "42\n");
    assert_eq!(plain["metadata"]["kernelspec"]["name"], "python3");
    let (status, _, error) = export(folder.path(), &["nb.ipynb", "--plain"]);
    assert!(status != 0 && error.contains("--force replaces it"), "{error}");
}

#[test]
fn a_file_that_is_there_is_only_replaced_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.ipynb", "python", &[code("x = 1", &[], &[])]);
    fs::write(folder.path().join("a.py"), "mine").unwrap();
    let (exit, _, error) = export(folder.path(), &["a.ipynb", "--to", "py"]);
    assert_eq!(
        (exit, error.as_str()),
        (1, "error: a.py exists; --force replaces it, and --output names another file\n")
    );
    assert_eq!(fs::read_to_string(folder.path().join("a.py")).unwrap(), "mine");
    assert_eq!(export(folder.path(), &["a.ipynb", "--to", "py", "--force"]).0, 0);
    assert_eq!(fs::read_to_string(folder.path().join("a.py")).unwrap(), "# %%\nx = 1\n");
    assert_eq!(export(folder.path(), &["a.ipynb", "-o", "b.py"]).0, 0);
    assert!(folder.path().join("b.py").is_file());
}

#[test]
fn a_script_keeps_the_meaning_of_cells() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "a.ipynb",
        "python",
        &[
            prose("# T\n\nwords"),
            code("%matplotlib inline\nx = '''\n%no magic\n'''\n!ls", &["parameters"], &[]),
            code("%%bash\nls -l", &[], &[]),
            code("%%html\n<b>", &[], &[]),
        ],
    );
    let (exit, text, _) = export(folder.path(), &["a.ipynb", "--to", "py", "-o", "-"]);
    assert_eq!(exit, 0);
    assert_eq!(
        text,
        "# %% [markdown]\n# # T\n#\n# words\n\n# %% tags=[\"parameters\"]\n# %matplotlib inline\nx = '''\n%no magic\n'''\n# !ls\n\n\
         # %% language=\"bash\"\n# ls -l\n\n# %% language=\"html\"\n# <b>\n"
    );
    write(folder.path(), "r.ipynb", "R", &[code("x <- 1", &[], &[])]);
    let (exit, _, error) = export(folder.path(), &["r.ipynb", "--to", "py"]);
    assert_eq!(exit, 1);
    assert!(error.contains("this one is of `R`; use `--to md` or `--to html`"), "{error}");
}
