//! What a prompt takes along: notebooks as text, cells with what they showed, and pictures.

use cellwright_testkit::bundle_cases;
use serde_json::{Value, json};

use super::client::TestKernel;

const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// What the agent got with a prompt, besides its text.
async fn sent_with(kernel: &mut TestKernel, prompt: &str) -> Vec<Value> {
    // A long answer is several outputs.
    let text = kernel.run(&format!("echo {prompt}")).await.outputs.concat();
    let line = text.lines().find(|line| line.starts_with('[')).unwrap_or_else(|| panic!("{text}"));
    serde_json::from_str(line).expect("the agent writes JSON")
}

fn notebook() -> String {
    let plot = json!({"output_type": "display_data", "metadata": {},
        "data": {"image/png": PIXEL, "text/plain": "<Figure>"}});
    let long = json!({"output_type": "stream", "name": "stdout", "text": "x".repeat(300_000)});
    let code = json!({"cell_type": "code", "id": "a", "metadata": {}, "source": "plot(x)",
        "execution_count": 1, "outputs": [plot, long]});
    let pasted = json!({"cell_type": "markdown", "id": "b", "metadata": {}, "source": "![](attachment:a.png)",
        "attachments": {"a.png": {"image/png": PIXEL}}});
    json!({"cells": [code, pasted], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).to_string()
}

#[tokio::test]
async fn a_notebook_is_sent_as_marked_text_with_its_outputs_and_pictures() {
    let mut kernel = TestKernel::start(&[]).await;
    std::fs::write(kernel.folder().join("nb.ipynb"), notebook()).expect("written");
    let sent = sent_with(&mut kernel, "explain @nb.ipynb").await;
    let text = sent[0]["resource"]["text"].as_str().expect("a text");
    assert!(text.starts_with("# %% [code] cell:0\nplot(x)\n# %% [output 0]"), "{text}");
    assert!(!text.contains(PIXEL) && text.len() < 80_000, "{} bytes", text.len());
    let pictures: Vec<_> = sent[1..].iter().map(|block| (&block["type"], &block["data"])).collect();
    assert_eq!(pictures, [(&json!("image"), &json!(PIXEL)); 2]);
    let part = sent_with(&mut kernel, "explain @nb.ipynb#1").await;
    let text = part[0]["resource"]["text"].as_str().expect("a text");
    assert!(text.starts_with("# %% [markdown] cell:1\n") && !text.contains("plot(x)"), "{text}");
    kernel.shut_down().await;
}

#[tokio::test]
async fn a_cell_is_sent_with_what_it_showed() {
    let mut kernel = TestKernel::start(&[]).await;
    kernel.run("say 6 times 7 is 42\nimage").await;
    let sent = sent_with(&mut kernel, "is #1 right?").await;
    let resource = &sent[0]["resource"];
    assert_eq!(resource["uri"], "notebook-cell:1");
    let text = resource["text"].as_str().expect("a text");
    assert!(text.starts_with("say 6 times 7 is 42\nimage\n# %% [output]\n6 times 7 is 42\n"), "{text}");
    assert_eq!((&sent[1]["type"], &sent[1]["data"]), (&json!("image"), &json!(PIXEL)));
    kernel.shut_down().await;
}

#[tokio::test]
async fn a_failed_cell_is_sent_with_its_error() {
    let mut kernel = TestKernel::start(&[]).await;
    kernel.run("fail out of luck").await;
    let sent = sent_with(&mut kernel, "why did #1 fail?").await;
    let text = sent[0]["resource"]["text"].as_str().expect("a text");
    assert!(text.contains("out of luck") && text.contains("[output]"), "{text}");
    kernel.shut_down().await;
}

#[tokio::test]
async fn a_picture_that_was_pasted_into_the_notebook_is_sent_by_its_name() {
    let home = tempfile::tempdir().expect("a folder");
    std::fs::write(home.path().join("nb.ipynb"), notebook()).expect("written");
    let mut kernel = TestKernel::start_for_notebook(home.path(), &[]).await;
    let sent = sent_with(&mut kernel, "what is ![](attachment:a.png)").await;
    assert_eq!((&sent[0]["type"], &sent[0]["data"]), (&json!("image"), &json!(PIXEL)));
    let text = kernel.run("say look\nsay attachment:missing.png").await.text();
    assert!(text.contains("the saved notebook has no picture `missing.png`"), "{text}");
    kernel.shut_down().await;
}

/// The table of `cli/tests/looks.rs`, at one more door.
#[tokio::test]
async fn each_kind_of_bundle_is_sent_as_other_doors_show_it() {
    let mut kernel = TestKernel::start(&[]).await;
    for case in bundle_cases() {
        let output = json!({"output_type": "display_data", "metadata": {}, "data": case.data});
        let cell = json!({"cell_type": "code", "id": "a", "metadata": {}, "source": "show()",
            "execution_count": 1, "outputs": [output]});
        let notebook = json!({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
        std::fs::write(kernel.folder().join("nb.ipynb"), notebook.to_string()).expect("written");
        let sent = sent_with(&mut kernel, "explain @nb.ipynb").await;
        case.check("the agent kernel", sent[0]["resource"]["text"].as_str().expect("a text"));
    }
    kernel.shut_down().await;
}
