//! Cells that call tools.

use std::sync::Arc;

use cellwright_session::bridge::{ToolAnswer, ToolCallError, ToolHost, ToolScope};
use serde_json::{Value, json};

use super::support::Fixture;

/// Says who called what.
pub(crate) struct Echo;

impl ToolHost for Echo {
    fn call(&self, scope: ToolScope, name: String, args: Value) -> ToolAnswer<'_> {
        Box::pin(async move {
            match name.as_str() {
                "echo" => Ok(json!({"session": scope.session.session.as_str(), "args": args})),
                "large" => Ok(json!("x".repeat(5_000_000))),
                other => Err(ToolCallError(format!("there is no tool {other}"))),
            }
        })
    }
}

fn fixture() -> Fixture {
    Fixture::with(|settings, _| settings.tools = Some(Arc::new(Echo)))
}

#[tokio::test]
async fn k29_a_cell_gets_the_typed_and_whole_result_of_a_tool() {
    let fixture = fixture();
    let code = "r = tool.echo(path='a', n=[1, 2.5, None, {'deep': True}])\nprint(r['session'], r['args'] == {'path': 'a', 'n': [1, 2.5, None, {'deep': True}]})\nlen(tool.large())";
    assert_eq!(fixture.text(code).await, "a True\n5000000\n");
    // It still works in the kernel after a reset, through the same access.
    fixture.client.restart(&fixture.key(), cellwright_session::Force::No).await.unwrap();
    assert_eq!(fixture.text("tool.echo()['session']").await, "'a'\n");
}

#[tokio::test]
async fn a_tool_that_fails_raises_in_the_cell() {
    let fixture = fixture();
    let report = fixture.run(&["tool.nothing()"]).await;
    let told = &report.cells[0].output.text.text;
    assert!(told.trim_end().ends_with("tool.nothing(): there is no tool nothing"), "{told}");
}

#[tokio::test]
async fn the_bridge_refuses_strangers() {
    let fixture = fixture();
    let code = r#"
import os, json, urllib.request, urllib.error
def ask(body=None, path="/v1/tool", **headers):
    body = json.dumps(body or {"session": os.environ["PI_TOOL_BRIDGE_SESSION"], "name": "echo", "args": {}}).encode()
    headers = {"Authorization": "Bearer " + os.environ["PI_TOOL_BRIDGE_TOKEN"], "Content-Type": "application/json", **headers}
    request = urllib.request.Request(os.environ["PI_TOOL_BRIDGE_URL"] + path, body, headers)
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        return error.code
print(ask(), ask(Authorization="Bearer wrong"), ask({"session": "other", "name": "echo"}), ask(Origin="http://evil.example"),
      ask(Host="evil.example"), ask(path="/"), ask({"session": 1}))
print(os.environ["CELLWRIGHT_TOOL_BRIDGE_URL"].startswith("http://127.0.0.1:"))
"#;
    assert_eq!(fixture.text(code).await, "200 401 401 403 403 404 422\nTrue\n");
}
