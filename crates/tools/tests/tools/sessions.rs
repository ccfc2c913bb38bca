//! Which session a call means, and what becomes of it.

use std::fs;

use serde_json::{Value, json};

use crate::support::Fixture;

const NOTEBOOK: &str = r#"{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"#;

async fn eval(fixture: &Fixture, session: &str, code: &str) -> String {
    fixture.text("eval", json!({ "code": code, "session": session })).await
}

fn kernel(action: &str, session: &str) -> Value {
    json!({ "action": action, "session": session })
}

#[tokio::test]
async fn kernel_means_the_notebook_that_eval_would_use() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path().join("sub")).unwrap();
    fixture.put("analysis.ipynb", NOTEBOOK);
    fixture.put("sub/analysis.ipynb", NOTEBOOK);
    eval(&fixture, "analysis.ipynb", "x = 'root'").await;
    // Used last, so the first of any list.
    eval(&fixture, "sub/analysis.ipynb", "x = 'sub'").await;
    let told = fixture.ok("kernel", kernel("status", "analysis.ipynb")).await;
    assert!(told.contains("'root'"), "{told}");
    let absolute = fixture.path().canonicalize().unwrap().join("sub/analysis.ipynb");
    for path in ["sub/analysis.ipynb", "./sub/analysis.ipynb", absolute.to_str().unwrap()] {
        let told = fixture.ok("kernel", kernel("status", path)).await;
        assert!(told.contains("'sub'"), "{path}: {told}");
    }
    fixture.ok("kernel", kernel("restart", "./analysis.ipynb")).await;
    assert_eq!(eval(&fixture, "sub/analysis.ipynb", "x").await, "'sub'\n");
    assert_eq!(eval(&fixture, "analysis.ipynb", "'x' in dir()").await, "False\n");
    // A notebook that was removed can still be named; one without a session is not mistaken for another.
    fs::remove_file(&absolute).unwrap();
    fixture.ok("kernel", kernel("shutdown", "sub/analysis.ipynb")).await;
    fixture.put("other.ipynb", NOTEBOOK);
    let told = fixture.error("kernel", kernel("status", "other.ipynb")).await;
    assert!(told.contains("there is no session `other.ipynb`"), "{told}");
}

#[tokio::test]
async fn a_name_in_several_folders_means_the_one_here_or_is_refused() {
    let fixture = Fixture::new();
    for folder in ["one", "two"] {
        fs::create_dir(fixture.path().join(folder)).unwrap();
        fixture.ok("eval", json!({ "code": format!("x = '{folder}'"), "session": "s", "cwd": folder })).await;
    }
    let told = fixture.error("kernel", kernel("restart", "s")).await;
    assert!(told.contains("`s` names several sessions") && told.contains("/two (python)"), "{told}");
    let mut in_one = kernel("status", "s");
    in_one["cwd"] = "one".into();
    assert!(fixture.ok("kernel", in_one).await.contains("'one'"));
    fixture.ok("eval", json!({ "code": "x = 'here'", "session": "s" })).await;
    assert!(fixture.ok("kernel", kernel("status", "s")).await.contains("'here'"));
    let mut in_three = kernel("status", "s");
    in_three["cwd"] = "three".into();
    let told = fixture.error("kernel", in_three).await;
    assert!(told.contains("there is no session `s`"), "{told}");
}

#[tokio::test]
async fn unknown_languages_cost_nobody_their_variables() {
    let fixture = Fixture::new();
    fixture.ok("eval", json!({ "code": "precious = 42" })).await;
    for language in ["js", "javascript", "node", "typescript", "cobol"] {
        fixture.error("eval", json!({ "code": "1", "language": language })).await;
    }
    assert_eq!(fixture.text("eval", json!({ "code": "precious" })).await, "42\n");
    let listed = fixture.ok("kernel", json!({ "action": "list" })).await;
    assert_eq!(listed.lines().count(), 1, "{listed}");
}

#[tokio::test]
async fn the_call_that_ends_another_kernel_says_so() {
    let fixture = Fixture::new();
    for name in ["a", "b", "c", "d"] {
        eval(&fixture, name, "x = 1").await;
    }
    let told = fixture.ok("eval", json!({ "code": "x = 1", "session": "e" })).await;
    assert!(told.contains("ended with its variables: session `a`"), "{told}");
    let told = fixture.ok("eval", json!({ "code": "'x' in dir()", "session": "a" })).await;
    assert!(told.contains("earlier kernel is gone with its variables"), "{told}");
}
