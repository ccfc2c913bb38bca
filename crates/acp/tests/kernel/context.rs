//! What a prompt takes along of what the person did since the last turn, and the variables that it names.

use serde_json::{Value, json};

use super::client::TestKernel;

const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// What the agent got with a prompt, besides its text.
async fn sent_with(kernel: &mut TestKernel, prompt: &str) -> Vec<Value> {
    // A long answer is several outputs.
    let text = kernel.run(&format!("echo {prompt}")).await.outputs.concat();
    let from = text.find("[{").or_else(|| text.find("[]")).unwrap_or_else(|| panic!("{text}"));
    serde_json::from_str(text[from..].trim()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The text of the only resource with this address.
fn resource(sent: &[Value], uri: &str) -> Option<String> {
    let named = sent.iter().filter(|block| block["resource"]["uri"] == uri);
    named.map(|block| block["resource"]["text"].as_str().expect("a text").to_owned()).next()
}

fn context(sent: &[Value]) -> Option<String> {
    resource(sent, "notebook-context:")
}

#[tokio::test]
async fn a_prompt_takes_along_what_ran_and_the_variables_that_changed() {
    let mut kernel = TestKernel::start(&[]).await;
    kernel.run("%%python\nx = 41\nprint('made')").await;
    kernel.run("%%python\nprint(missing)").await;
    let text = context(&sent_with(&mut kernel, "what happened?").await).expect("it is sent");
    for expected in [
        "In [1]:\n%%python\nx = 41",
        "It showed:\nmade",
        "NameError: name 'missing' is not defined",
        "x: int = 41",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    // The agent knows it now.
    assert_eq!(context(&sent_with(&mut kernel, "and now?").await), None);
    kernel.run("%%python\ny = 'new'\nx = 42").await;
    let text = context(&sent_with(&mut kernel, "and then?").await).expect("it is sent");
    assert!(text.contains("x: int = 42") && text.contains("y: str of 3 = 'new'"), "{text}");
    assert!(!text.contains("made"), "{text}");
    // Another session knows nothing.
    kernel.run("%session new").await;
    let text = context(&sent_with(&mut kernel, "and you?").await).expect("it is sent");
    assert!(text.contains("made") && text.contains("x: int = 42"), "{text}");
    kernel.shut_down().await;
}

#[tokio::test]
async fn the_context_is_shown_on_request_and_can_be_switched_off() {
    let mut kernel = TestKernel::start(&[]).await;
    let nothing = "prompts take along what you did since the last turn: nothing so far";
    assert_eq!(kernel.run("%context").await.text(), nothing);
    kernel.run("%%python\nx = 41").await;
    let shown = kernel.run("%context").await.text();
    assert!(
        shown.starts_with("the next prompt takes this along") && shown.contains("x: int = 41"),
        "{shown}"
    );
    let first = kernel.run("say one").await.text();
    let hint = "prompts take along what you did since the last turn (now: 1 cell that ran, 1 variable); `%context` \
                shows it, and `%context off` stops it\n";
    assert_eq!(first, format!("{hint}one\n"));
    kernel.run("%%python\nx = 42").await;
    assert_eq!(kernel.run("say two").await.text(), "two\n");
    kernel.run("%%python\nx = 43").await;
    kernel.run("%context off").await;
    assert_eq!(context(&sent_with(&mut kernel, "x?").await), None);
    kernel.run("%context on").await;
    assert!(context(&sent_with(&mut kernel, "x?").await).expect("it is sent").contains("x: int = 43"));
    kernel.shut_down().await;
}

#[tokio::test]
async fn a_prompt_takes_along_the_outline_once_and_edits_after_that() {
    let home = tempfile::tempdir().expect("a folder");
    let cell = |id: &str, kind: &str, source: &str| {
        let mut cell = json!({"cell_type": kind, "id": id, "metadata": {}, "source": source});
        if kind == "code" {
            cell["outputs"] = json!([]);
            cell["execution_count"] = Value::Null;
        }
        cell
    };
    let write = |cells: &[Value]| {
        let notebook = json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
        std::fs::write(home.path().join("nb.ipynb"), notebook.to_string()).expect("written");
    };
    write(&[
        cell("a", "markdown", "# Sales\nby region"),
        cell("b", "code", "%%python\nx = 1"),
        cell("c", "code", "why?"),
    ]);
    let mut kernel = TestKernel::start_for_notebook(home.path(), &[]).await;
    let text = context(&sent_with(&mut kernel, "look").await).expect("it is sent");
    assert!(text.contains("Outline:\n#0 [markdown] # Sales\n#1 [code] %%python\n#2 [prompt] why?"), "{text}");
    assert_eq!(context(&sent_with(&mut kernel, "look").await), None);
    write(&[
        cell("a", "markdown", "# Sales of 2026"),
        cell("b", "code", "%%python\nx = 2"),
        cell("d", "code", "new"),
    ]);
    let text = context(&sent_with(&mut kernel, "look").await).expect("it is sent");
    for expected in [
        "#0 [markdown]\n# Sales of 2026",
        "#1 [code]\n%%python\nx = 2",
        "#2 [prompt]\nnew",
        "1 cell was deleted.",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    assert!(!text.contains("Outline"), "{text}");
    kernel.shut_down().await;
}

#[tokio::test]
async fn a_variable_that_a_prompt_names_is_sent_as_what_it_is() {
    let mut kernel = TestKernel::start(&[]).await;
    let code = format!(
        "%%python\nimport base64, numpy, pandas\n\
         df = pandas.DataFrame({{'region': ['north', 'south'] * 50, 'sales': range(100)}})\n\
         grid = numpy.arange(6).reshape(2, 3)\nwords = list(range(1000))\n\
         class Plot:\n    def _repr_png_(self):\n        return base64.b64decode('{PIXEL}')\n\
         class Broken:\n    def __repr__(self):\n        1 / 0\nplot, broken = Plot(), Broken()"
    );
    kernel.run(&code).await;
    let sent = sent_with(&mut kernel, "explain $df, $grid, $words, $plot, $broken and $HOME").await;
    let variable = |name: &str| resource(&sent, &format!("notebook-variable:{name}")).unwrap_or_default();
    let table = variable("df");
    assert!(table.contains("100 rows x 2 columns") && table.contains("  sales: int64"), "{table}");
    assert!(table.contains("first rows:") && table.contains("north") && table.len() < 1000, "{table}");
    assert!(variable("grid").contains("shape (2, 3), dtype int64, min 0, max 5, mean 2.5"), "{sent:?}");
    assert!(
        variable("words").starts_with("words: builtins.list\nlist of 1,000: [0, 1, 2,"),
        "{}",
        variable("words")
    );
    assert!(variable("broken").contains("it cannot be shown: ZeroDivisionError"), "{}", variable("broken"));
    assert_eq!(variable("HOME"), "");
    let pictures: Vec<_> =
        sent.iter().filter(|block| block["type"] == "image").map(|block| &block["data"]).collect();
    assert_eq!(pictures, [&json!(PIXEL)]);
    // Describing them leaves nothing behind.
    assert_eq!(
        kernel.run("%%python\n'describe' in globals() or 'reprlib' in globals()").await.text(),
        "False"
    );
    kernel.shut_down().await;
}
