//! What clients are told of the tools.

use serde_json::{Value, json};

use crate::support::Fixture;

/// Paid in every conversation.
const MOST: usize = 12 * 1024;

#[tokio::test]
async fn the_whole_list_is_small_and_flat() {
    let specs = Fixture::new().specs();
    let list: Vec<_> = specs
        .iter()
        .map(|spec| json!({ "name": spec.name, "title": spec.title, "description": spec.description, "inputSchema": spec.schema }))
        .collect();
    let text = serde_json::to_string(&list).unwrap();
    assert!(text.len() <= MOST, "{} bytes:\n{text}", text.len());
    assert!(!text.contains("$ref") && !text.contains("\"null\"") && !text.contains("$defs"), "{text}");
}

#[tokio::test]
async fn every_tool_and_parameter_is_described_and_every_example_is_valid() {
    for spec in Fixture::new().specs() {
        let (_, example) = spec.description.split_once("Example: ").expect("an example");
        let example: Value = serde_json::from_str(example).expect("the example is JSON");
        let properties = spec.schema["properties"].as_object().unwrap();
        for name in example.as_object().unwrap().keys() {
            assert!(properties.contains_key(name), "{}: {name}", spec.name);
        }
        for required in spec.schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            assert!(example.get(required.as_str().unwrap()).is_some(), "{}: {required}", spec.name);
        }
    }
}
