//! Work in the background.

use std::sync::Arc;
use std::time::Duration;

use cellwright_tools::{BackgroundPolicy, InputPrompter, NoAnswer, ReplyReader};
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::sync::Notify;

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
    let fixture = Fixture::changed(|settings| {
        settings.background = BackgroundPolicy::After(Duration::from_millis(300));
    });
    let code = format!("{UNTIL_TOLD}'done'");
    let reply = fixture.call("eval", json!({ "code": code, "timeout": 60 })).await;
    let told = reply.to_text();
    assert!(!reply.is_error && told.contains("continues in the background"), "{told}");
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
async fn a_program_waits_for_the_whole_output_however_long_it_takes() {
    let fixture = Fixture::changed(|settings| {
        settings.background = BackgroundPolicy::After(Duration::from_millis(300));
    });
    let mut program = fixture.context();
    program.reader = ReplyReader::Program;
    let command = json!({ "command": "echo begun; while [ ! -e go ]; do sleep 0.02; done; echo done" });
    let all = fixture.call_in("bash", command.clone(), &program);
    let model = async {
        let told = fixture.ok("bash", command).await;
        assert!(told.contains("continues in the background"), "{told}");
        fixture.put("go", "");
    };
    let (reply, ()) = tokio::join!(all, model);
    assert_eq!(reply.to_text(), "begun\ndone\n");
}

#[tokio::test]
async fn a_command_that_goes_on_by_itself_keeps_its_time_limit() {
    let fixture = Fixture::changed(|settings| {
        settings.background = BackgroundPolicy::After(Duration::from_millis(300));
    });
    let told = fixture.ok("bash", json!({ "command": "sleep 300", "timeout": 1 })).await;
    assert!(told.contains("sh-1 continues in the background"), "{told}");
    let over = fixture.error("kernel", json!({ "action": "wait", "handle": "sh-1" })).await;
    assert!(over.contains("took longer than 1 s and was stopped"), "{over}");
}

/// A user who answers when told to.
struct Slow(Notify);

impl InputPrompter for Slow {
    fn ask(&self, _prompt: String, _password: bool) -> BoxFuture<'_, Result<String, NoAnswer>> {
        Box::pin(async {
            self.0.notified().await;
            Ok("Ada".to_owned())
        })
    }
}

#[tokio::test]
async fn a_call_that_waits_for_its_user_does_not_go_on_in_the_background() {
    let fixture =
        Fixture::changed(|settings| settings.background = BackgroundPolicy::After(Duration::from_secs(2)));
    let user = Arc::new(Slow(Notify::new()));
    let mut context = fixture.context();
    context.ask = Some(Arc::clone(&user) as _);
    let asks = fixture.call_in("eval", json!({ "code": "input('who? ')" }), &context);
    let others = async {
        let told = fixture.ok("bash", json!({ "command": "while [ ! -e go ]; do sleep 0.02; done" })).await;
        assert!(told.contains("continues in the background"), "{told}");
        fixture.put("go", "");
        user.0.notify_one();
    };
    let (reply, ()) = tokio::join!(asks, others);
    assert!(reply.to_text().starts_with("'Ada'\n"), "{}", reply.to_text());
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
    assert!(unknown.starts_with("there is no py-99"), "{unknown}");
    assert!(
        fixture.error("kernel", json!({ "action": "wait", "handle": "x" })).await.contains("is not a handle")
    );
    assert!(fixture.error("kernel", json!({ "action": "wait" })).await.contains("needs `handle`"));
    let no_time = json!({ "action": "wait", "handle": "py-99", "timeout": 0 });
    assert!(fixture.error("kernel", no_time).await.contains("`output` shows what there is without waiting"));
}
