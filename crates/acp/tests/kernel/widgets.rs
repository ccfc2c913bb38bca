//! Questions and menus in clients that show widgets, and the same where they do not.

use serde_json::json;

use super::client::TestKernel;

#[tokio::test]
async fn a_form_is_filled_in_with_widgets_and_refuses_wrong_answers_with_the_reason() {
    let mut kernel = TestKernel::start(&[]).await;
    kernel.show_widgets().await;
    let cell = kernel.begin("survey").await;
    kernel.wait_until_buttons("Send", 1).await;
    kernel.wait_for_output(&cell, "[a form to fill in]").await;
    let label = kernel.widget("HTML", 0)["value"].to_string();
    assert!(label.contains("Your name") && label.contains("As on &lt;b&gt;your&lt;/b&gt; card"), "{label}");
    assert_eq!(kernel.widget("Text", 1)["value"], "5432");
    assert_eq!(kernel.widget("Dropdown", 0)["_options_labels"], json!(["–", "Small", "Large"]));
    assert_eq!(kernel.widget("Checkbox", 0)["value"], true);

    kernel.change("Text", 1, json!({"value": "70000"})).await;
    kernel.click("Send").await;
    kernel.wait_for_widget_text("an answer is required").await;
    kernel.wait_for_widget_text("70000 is above 65535").await;
    kernel.wait_for_widget_text("choose one").await;

    kernel.change("Text", 0, json!({"value": "Bob"})).await;
    kernel.change("Text", 1, json!({"value": "80"})).await;
    kernel.change("Dropdown", 0, json!({"index": 2})).await;
    kernel.change("SelectMultiple", 0, json!({"index": [1]})).await;
    kernel.change("Checkbox", 0, json!({"value": false})).await;
    kernel.click("Send").await;
    let text = kernel.end_of(cell).await.text();
    let answer = json!({
        "action": "accept",
        "content": {"a_name": "Bob", "b_port": 80, "c_size": "l", "d_parts": ["y"], "e_sure": false},
    });
    assert!(text.ends_with(&format!("{}\n", spaced(&answer))), "{text}");
    let summary = "answered: Your name: Bob · Port: 80 · Size: Large · Parts: y · Are you sure?: no\n";
    assert!(text.contains(summary), "{text}");
    kernel.wait_until_buttons("Send", 0).await;
    kernel.shut_down().await;
}

/// JSON as the agent writes it.
fn spaced(value: &serde_json::Value) -> String {
    value.to_string().replace("\":", "\": ").replace(",\"", ", \"")
}

#[tokio::test]
async fn a_form_is_declined_and_one_that_nobody_answers_leaves_with_its_turn() {
    let mut kernel = TestKernel::start(&[]).await;
    kernel.show_widgets().await;
    let cell = kernel.begin("survey").await;
    kernel.wait_until_buttons("Decline", 1).await;
    kernel.click("Decline").await;
    let text = kernel.end_of(cell).await.text();
    assert!(text.contains("declined by you\n{\"action\": \"decline\"}"), "{text}");

    let cell = kernel.begin("survey").await;
    kernel.wait_until_buttons("Decline", 1).await;
    kernel.interrupt().await;
    let text = kernel.end_of(cell).await.text();
    assert!(text.contains("not answered") && !text.contains("[a form"), "{text}");
    kernel.wait_until_buttons("Decline", 0).await;
    kernel.shut_down().await;
}

#[tokio::test]
async fn a_typed_form_shows_defaults_and_why_an_answer_was_refused() {
    let mut kernel = TestKernel::start(&[]).await;
    let cell = kernel.begin_with_stdin("survey").await;
    let mut prompts = Vec::new();
    for typed in ["", "Bob", "x", "", "3", "Large", "", "maybe", ""] {
        let question = kernel.question().await;
        let content = question.parse::<cellwright_jupyter::content::InputRequest>();
        prompts.push(content.expect("it is a question").prompt);
        kernel.answer(&question, typed).await;
    }
    let name = "Your name\n  As on <b>your</b> card: ";
    let port = "Port [a whole number from 1 to 65535; empty means 5432]: ";
    let size = "Size\n  1) Small: for trying things out\n  2) Large: ";
    let parts = "Parts\n  1) x\n  2) y [several, separated by commas; may be empty]: ";
    let sure = "Are you sure? [y or n; empty means yes]: ";
    let expected = [
        name.to_owned(),
        format!("an answer is required\n{name}"),
        port.to_owned(),
        format!("`x` is not a whole number\n{port}"),
        size.to_owned(),
        format!("`3` is not among the choices\n{size}"),
        parts.to_owned(),
        sure.to_owned(),
        format!("`maybe` is neither yes nor no\n{sure}"),
    ];
    assert_eq!(prompts, expected);
    let text = kernel.end_of(cell).await.text();
    let content = json!({"a_name": "Bob", "b_port": 5432, "c_size": "l", "e_sure": true});
    let answer = spaced(&json!({"action": "accept", "content": content}));
    assert!(text.contains(&answer), "{text}");
    kernel.shut_down().await;
}

#[tokio::test]
async fn a_question_of_a_turn_in_the_background_says_why_it_was_cancelled() {
    let mut kernel = TestKernel::start(&[]).await;
    let cell = kernel.begin_with_stdin("%%agent --background\nsurvey").await;
    kernel.wait_for_output(&cell, "a turn in the background cannot ask by typing").await;
    kernel.shut_down().await;
}

#[tokio::test]
async fn the_options_are_a_menu_that_sets_them() {
    let mut kernel = TestKernel::start(&[]).await;
    let listed = "mode   plan  Mode\nmodel  small  Model";
    assert_eq!(kernel.run("%agent options").await.text(), listed);
    kernel.show_widgets().await;
    let cell = kernel.begin("%agent options").await;
    kernel.end_of(cell.clone()).await;
    assert_eq!(kernel.widget("Dropdown", 0)["_options_labels"], json!(["Plan", "Act"]));
    assert_eq!(kernel.widget("Dropdown", 1)["index"], 0);
    kernel.change("Dropdown", 1, json!({"index": 1})).await;
    kernel.wait_for_widget_text("Model: large").await;
    kernel.change("Dropdown", 0, json!({"index": 1})).await;
    kernel.wait_for_widget_text("mode: Act").await;

    // Another menu takes its place, and shows what is set now.
    let next = kernel.begin("%agent options").await;
    kernel.end_of(next.clone()).await;
    assert_eq!(kernel.widget("Dropdown", 0)["index"], 1);
    assert_eq!(kernel.shown(&cell).text(), "mode   act  Mode\nmodel  large  Model");
    assert_eq!(kernel.run("%agent options mode plan").await.text(), "mode: Plan");
    kernel.shut_down().await;
}
