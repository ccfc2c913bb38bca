//! Work in the background.

use std::time::Duration;

use cellwright_tools::Background;
use serde_json::json;

use crate::support::Fixture;

const UNTIL_TOLD: &str =
    "import time, os\nprint('begun', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)\n";

#[tokio::test]
async fn a_background_cell_is_followed_to_its_end() {
    let fixture = Fixture::new();
    let code = format!("{UNTIL_TOLD}print('over')\n42");
    let reply = fixture.call("eval", json!({ "code": code, "background": true })).await;
    let handle = reply.structured.unwrap()["handle"].as_str().unwrap().to_owned();
    let mut so_far = String::new();
    while !so_far.contains("begun") {
        so_far = fixture.ok("kernel", json!({ "action": "output", "handle": handle })).await;
    }
    assert!(so_far.contains("is still running"), "{so_far}");
    fixture.put("go", "");
    let over = fixture.ok("kernel", json!({ "action": "wait", "handle": handle })).await;
    assert!(over.starts_with("begun\nover\n42\n"), "{over}");
    // A result is not lost for having been looked at.
    assert!(fixture.ok("kernel", json!({ "action": "wait", "handle": handle })).await.contains("42"));
}

#[tokio::test]
async fn a_call_that_takes_long_goes_on_in_the_background() {
    let fixture =
        Fixture::changed(|settings| settings.background = Background::After(Duration::from_millis(300)));
    let code = format!("{UNTIL_TOLD}'done'");
    let reply = fixture.call("eval", json!({ "code": code, "timeout": 60 })).await;
    let told = reply.to_text();
    assert!(!reply.is_error && told.contains("goes on in the background"), "{told}");
    let handle = reply.structured.unwrap()["handle"].as_str().unwrap().to_owned();
    let command = "echo begun; while [ ! -e go ]; do sleep 0.02; done; echo done";
    let shell = fixture.call("bash", json!({ "command": command, "timeout": 60 })).await;
    assert!(shell.to_text().starts_with("begun\n") && !shell.is_error, "{}", shell.to_text());
    let shell = shell.structured.unwrap()["handle"].as_str().unwrap().to_owned();
    fixture.put("go", "");
    assert!(fixture.ok("kernel", json!({ "action": "wait", "handle": handle })).await.contains("'done'"));
    assert!(fixture.ok("kernel", json!({ "action": "wait", "handle": shell })).await.starts_with("done\n"));
}

#[tokio::test]
async fn background_work_is_listed_and_stopped() {
    let fixture = Fixture::new();
    let code = "import time\ntime.sleep(300)";
    let cell = fixture.call("eval", json!({ "code": code, "background": true })).await;
    let shell = fixture.call("bash", json!({ "command": "sleep 300", "background": true })).await;
    for (reply, line) in [(&cell, " in session default: running"), (&shell, ": running, started")] {
        let handle = reply.structured.as_ref().unwrap()["handle"].as_str().unwrap();
        let list = fixture.ok("kernel", json!({ "action": "list" })).await;
        assert!(list.contains(&format!("{handle}{line}")), "{list}");
        fixture.ok("kernel", json!({ "action": "interrupt", "handle": handle })).await;
        let end = fixture.error("kernel", json!({ "action": "wait", "handle": handle })).await;
        assert!(["was cancelled", "was stopped", "was not run"].iter().any(|how| end.contains(how)), "{end}");
    }
    let unknown = fixture.error("kernel", json!({ "action": "wait", "handle": "py-99" })).await;
    assert!(unknown.starts_with("there is no background call 99"), "{unknown}");
    assert!(
        fixture.error("kernel", json!({ "action": "wait", "handle": "x" })).await.contains("is not a handle")
    );
    assert!(fixture.error("kernel", json!({ "action": "wait" })).await.contains("needs `handle`"));
}
