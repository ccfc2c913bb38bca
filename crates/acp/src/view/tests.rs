//! Updates in, messages out.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use agent_client_protocol_schema::v1::{
    AudioContent, ContentBlock, ContentChunk, Cost, Diff, ImageContent, Notice, NoticeSeverity,
    PermissionOption, PermissionOptionKind, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus,
    ResourceLink, SessionUpdate, StopReason, Terminal, TerminalId, TextContent, ToolCall, ToolCallContent,
    ToolCallId, ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
    UsageUpdate,
};
use cellwright_cell::Stream;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::permission::{DecisionSource, PermissionDecision};
use crate::tool_calls::{PermissionAsker, TurnChange};

/// A view, and a notebook that follows it.
struct TestCell {
    calls: ToolCalls,
    view: TurnView,
    now: Instant,
    outputs: Vec<(String, OutputData)>,
    streams: String,
    messages: Vec<Instant>,
}

impl TestCell {
    fn new(style: ViewStyle) -> Self {
        let now = Instant::now();
        Self {
            calls: ToolCalls::default(),
            view: TurnView::new(style, "t", now),
            now,
            outputs: Vec::new(),
            streams: String::new(),
            messages: Vec::new(),
        }
    }

    fn update(&mut self, update: SessionUpdate) -> &mut Self {
        match self.calls.apply(update) {
            TurnChange::ToolCall(change) => self.view.tool_call(&change, &self.calls, self.now),
            TurnChange::Other(update) => self.view.update(update, self.now),
        }
        self
    }

    fn ask(&mut self, call: ToolCallUpdate, asker: PermissionAsker) -> &mut Self {
        let change = self.calls.ask_permission(call, asker);
        self.view.tool_call(&change, &self.calls, self.now);
        self
    }

    fn decide(&mut self, id: &ToolCallId, decision: &PermissionDecision) -> &mut Self {
        self.calls.decide(id, decision);
        self.view.permission_decided(id, decision, &self.calls, self.now);
        self
    }

    fn finish(&mut self, reason: StopReason) {
        let left_open = self.calls.end();
        self.view.end(&TurnEnding::Stopped(reason), &left_open, &self.calls, self.now);
    }

    fn say(&mut self, text: &str) -> &mut Self {
        self.update(SessionUpdate::AgentMessageChunk(ContentChunk::new(text.into())))
    }

    fn wait(&mut self, time: Duration) -> &mut Self {
        let until = self.now + time;
        while let Some(due) = self.view.due().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.flush();
        }
        self.now = until;
        self
    }

    fn flush(&mut self) {
        for show in self.view.flush(&self.calls, self.now) {
            self.messages.push(self.now);
            match show {
                OutputMessage::Stream { name, text } => {
                    let name = match name {
                        Stream::Stdout => "stdout",
                        Stream::Stderr => "stderr",
                    };
                    self.streams.extend([name, "|", &text]);
                }
                OutputMessage::Display { id, data } => {
                    assert!(!self.outputs.iter().any(|(known, _)| *known == id), "{id} is displayed twice");
                    self.outputs.push((id, data));
                }
                OutputMessage::Update { id, data } => {
                    let known = self.outputs.iter_mut().find(|(known, _)| *known == id);
                    known.expect("an update follows its display").1 = data;
                }
            }
        }
    }

    fn end(&mut self, reason: StopReason) -> &mut Self {
        self.finish(reason);
        while let Some(due) = self.view.due() {
            self.now = self.now.max(due);
            self.flush();
        }
        self
    }

    /// Every output in its plain form.
    fn plain(&self) -> Vec<&str> {
        self.outputs.iter().map(|(_, data)| data["text/plain"].as_str().unwrap()).collect()
    }

    /// Every output in its best form.
    fn best(&self) -> String {
        let best = |data: &OutputData| {
            let mime =
                ["text/html", "text/markdown", "image/png"].into_iter().find(|mime| data.contains_key(*mime));
            data[mime.unwrap_or("text/plain")].as_str().unwrap().to_owned()
        };
        self.outputs.iter().map(|(_, data)| best(data)).collect::<Vec<_>>().join("\n\n").replace("><", ">\n<")
    }
}

fn status(id: &'static str, status: ToolCallStatus) -> SessionUpdate {
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, ToolCallUpdateFields::new().status(status)))
}

fn call(id: &'static str, title: &str) -> ToolCall {
    ToolCall::new(id, title)
}

#[test]
fn a_tool_call_separates_paragraphs() {
    let mut cell = TestCell::new(ViewStyle::Rich);
    cell.say("I will ")
        .say("look.")
        .update(SessionUpdate::ToolCall(call("1", "Read a.py").kind(ToolKind::Read)));
    cell.say("Done").update(status("1", ToolCallStatus::Completed)).say(" now.").end(StopReason::EndTurn);
    assert_eq!(cell.plain(), ["I will look.", "✓ Read a.py (read, done)", "Done now."]);
}

#[test]
fn a_card_grows_by_id_and_titles_are_patched_later() {
    let mut cell = TestCell::new(ViewStyle::Rich);
    cell.update(SessionUpdate::ToolCall(call("1", "Edit").kind(ToolKind::Edit))).wait(Duration::from_secs(1));
    let fields = ToolCallUpdateFields::new()
        .title("Edit `src/main.rs` & <more>".to_owned())
        .status(ToolCallStatus::InProgress)
        .locations(vec![ToolCallLocation::new("src/main.rs").line(12)])
        .raw_input(json!({"path": "src/main.rs", "evil": "</pre><script>"}))
        .content(vec![
            Diff::new("src/main.rs", "fn main() {\n    new();\n}\n")
                .old_text("fn main() {\n    old();\n}\n".to_owned())
                .into(),
        ]);
    cell.update(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new("1", fields))).wait(Duration::from_secs(1));
    // A second announcement removes nothing.
    cell.update(SessionUpdate::ToolCall(
        call("1", "").kind(ToolKind::Edit).status(ToolCallStatus::Completed),
    ));
    cell.end(StopReason::EndTurn);
    assert_eq!(cell.outputs.len(), 1);
    insta::assert_snapshot!("card_with_diff_html", cell.best());
    insta::assert_snapshot!("card_with_diff_plain", cell.plain().join("\n"));
}

#[test]
fn what_a_turn_shows_is_told_from_what_code_shows() {
    let mut cell = TestCell::new(ViewStyle::Rich);
    cell.update(SessionUpdate::AgentThoughtChunk(ContentChunk::new("Hm.".into()))).say("An answer.");
    cell.update(SessionUpdate::ToolCall(call("1", "Run"))).say("<think>More</think>");
    cell.update(SessionUpdate::Notice(Notice::new(NoticeSeverity::Warning, "Slow")));
    let entry = PlanEntry::new("x", PlanEntryPriority::Low, PlanEntryStatus::Pending);
    cell.update(SessionUpdate::Plan(Plan::new(vec![entry])));
    let picture = ContentBlock::Image(ImageContent::new("iVBORw0KGgo=", "image/png"));
    cell.update(SessionUpdate::AgentMessageChunk(ContentChunk::new(picture)));
    cell.view.aside("mode: act");
    cell.end(StopReason::MaxTokens);
    for (_, data) in &cell.outputs {
        assert!(is_of_agent(data), "{data:?}");
    }
    for data in [
        json!({"text/plain": "42"}),
        json!({"text/html": "<table></table>", "text/plain": "  a"}),
        json!({"text/html": ["<div>\n", "<style scoped>"], "text/plain": "  a"}),
        json!({"image/png": "iVBORw0KGgo=", "text/plain": "<Figure size 640x480 with 1 Axes>"}),
        json!({"text/markdown": "# T", "text/plain": "<IPython.core.display.Markdown object>"}),
    ] {
        assert!(!is_of_agent(data.as_object().unwrap()), "{data:?}");
    }
}

#[test]
fn the_code_that_a_call_ran_is_kept_beside_its_card() {
    let mut cell = TestCell::new(ViewStyle::Rich);
    for number in 0..60 {
        let id = ToolCallId::new(format!("{number}"));
        if number % 2 == 0 {
            cell.calls.runs(&id, "python", &format!("x = {number}"));
        }
        let status = if number % 6 == 4 { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
        let run = ToolCall::new(id, "Run").status(status);
        cell.update(SessionUpdate::ToolCall(run)).wait(Duration::from_secs(1));
    }
    cell.end(StopReason::EndTurn);
    let kept = cell
        .outputs
        .iter()
        .filter_map(|(_, data)| Some(data.get(crate::plain::CODE_MIME)?["source"].clone()));
    let ran = (0..60).step_by(2).filter(|number| number % 6 != 4);
    let expected: Vec<_> = ran.map(|number| json!(format!("x = {number}"))).collect();
    assert_eq!(kept.collect::<Vec<_>>(), expected);
}

#[test]
fn an_edit_card_names_its_file_once() {
    let path = "/home/me/work/a.py";
    let diff = || vec![Diff::new(path, "new\n").old_text("old\n".to_owned()).into()];
    let edit = |title: &str, line: Option<u32>| {
        let place = ToolCallLocation::new(path);
        let place = if let Some(line) = line { place.line(line) } else { place };
        call("1", title).kind(ToolKind::Edit).locations(vec![place.clone(), place])
    };
    for (call, expected) in [
        (
            edit("Edit", None).content(diff()),
            "○ Edit (edit, pending)\n  /home/me/work/a.py +1 −1\n  - old\n  + new",
        ),
        (
            edit("Edit", Some(7)).content(diff()),
            "○ Edit (edit, pending)\n  line 7\n  /home/me/work/a.py +1 −1\n  - old\n  + new",
        ),
        (edit("Read `/home/me/work/a.py`", None), "○ Read `/home/me/work/a.py` (edit, pending)"),
        (
            edit("Copy to /home/me/work/a.py.bak", None),
            "○ Copy to /home/me/work/a.py.bak (edit, pending)\n  /home/me/work/a.py",
        ),
    ] {
        let mut cell = TestCell::new(ViewStyle::Rich);
        cell.update(SessionUpdate::ToolCall(call)).wait(Duration::from_secs(1));
        assert_eq!(cell.plain(), [expected]);
        let named = cell.best().matches(&format!("{path}.bak")).count();
        assert_eq!(cell.best().matches(path).count() - named, 1, "{}", cell.best());
    }
}

#[test]
fn a_client_without_a_server_gets_a_long_answer_at_once() {
    let mut cell = TestCell::new(ViewStyle::Stream);
    cell.view = TurnView::new(ViewStyle::Stream, "t", cell.now).unpaced(cell.now);
    cell.say(&"y".repeat(5_000_000)).wait(Duration::from_millis(100));
    assert_eq!((cell.streams.len(), cell.messages.len()), (5_000_000 + "stdout|".len(), 1));
}

#[test]
fn command_output_that_comes_only_in_meta_is_shown() {
    let mut cell = TestCell::new(ViewStyle::Rich);
    let meta = |value: Value| value.as_object().unwrap().clone();
    let run = call("1", "`make`").kind(ToolKind::Execute).status(ToolCallStatus::InProgress);
    cell.update(SessionUpdate::ToolCall(
        run.meta(meta(json!({"terminal_info": {"terminal_id": "t1", "cwd": "/w"}}))),
    ));
    for data in ["one\r\n", "10%\r50%\r", "100%\n", "\u{1b}[31mred\u{1b}[0m <b>\n"] {
        let update = ToolCallUpdate::new("1", ToolCallUpdateFields::new());
        let key = if data == "one\r\n" { "terminal_output" } else { "terminal_output_delta" };
        let update = update.meta(meta(json!({key: {"terminal_id": "t1", "data": data}})));
        cell.update(SessionUpdate::ToolCallUpdate(update)).wait(Duration::from_millis(50));
    }
    let failed = ToolCallUpdate::new("1", ToolCallUpdateFields::new().status(ToolCallStatus::Failed));
    let exit = meta(json!({"terminal_exit": {"terminal_id": "t1", "exit_code": 2, "signal": null}}));
    cell.update(SessionUpdate::ToolCallUpdate(failed.meta(exit))).end(StopReason::EndTurn);
    assert_eq!(cell.plain(), ["✗ `make` (execute, failed)\n  one\n  100%\n  red <b>\n  [exit 2]"]);
    insta::assert_snapshot!(cell.best());
}

#[test]
fn the_output_of_our_terminal_appears_in_its_card() {
    let mut cell = TestCell::new(ViewStyle::Rich);
    let id = TerminalId::new("term");
    let content = vec![ToolCallContent::Terminal(Terminal::new("term"))];
    cell.update(SessionUpdate::ToolCall(call("1", "Run").content(content))).wait(Duration::from_secs(1));
    cell.view.terminal_output(&id, b"hello\n", &cell.calls, cell.now);
    cell.view.terminal_exited(&id, Some(0), None, &cell.calls, cell.now);
    cell.update(status("1", ToolCallStatus::Completed)).end(StopReason::EndTurn);
    assert_eq!(cell.plain(), ["✓ Run (done)\n  hello"]);
}

#[test]
fn buttons_disappear_when_an_unannounced_call_is_decided() {
    let mut cell = TestCell::new(ViewStyle::Rich);
    let id = ToolCallId::new("new");
    let fields = ToolCallUpdateFields::new().title("Delete x".to_owned()).kind(ToolKind::Delete);
    cell.ask(ToolCallUpdate::new(id.clone(), fields), PermissionAsker::Agent);
    cell.view.buttons(&id, "model");
    // While the user has to answer, no line says that the agent works.
    cell.wait(Duration::from_mins(1));
    assert_eq!(cell.plain(), ["? Delete x (delete, waiting for permission)", "[buttons: allow or refuse]"]);
    assert_eq!(cell.outputs[1].1["application/vnd.jupyter.widget-view+json"]["model_id"], "model");
    let options = [PermissionOption::new("no", "Keep it", PermissionOptionKind::RejectOnce)];
    cell.decide(&id, &PermissionDecision::refuse(&options, DecisionSource::User));
    cell.update(status("new", ToolCallStatus::Failed)).end(StopReason::EndTurn);
    assert_eq!(cell.plain(), ["✗ Delete x (delete, refused)\n  refused by you (Keep it)", "1 min 0 s"]);
    assert!(!cell.outputs[1].1.contains_key("application/vnd.jupyter.widget-view+json"));
}

#[test]
fn cut_short_output_is_counted() {
    let mut cell = TestCell::new(ViewStyle::Stream);
    cell.say(&"y".repeat(3_000_000)).wait(Duration::from_secs(1));
    let printed = cell.streams.matches('y').count();
    cell.finish(StopReason::EndTurn);
    let text = format!(
        "\ninterrupted: the last {} bytes are not shown\n",
        words::thousands(3_000_000 - printed as u64)
    );
    assert_eq!(cell.view.cut_short(&cell.calls), [OutputMessage::Stream { name: Stream::Stderr, text }]);
    assert_eq!((cell.view.due(), cell.view.cut_short(&cell.calls)), (None, Vec::new()));

    let mut cell = TestCell::new(ViewStyle::Rich);
    cell.update(SessionUpdate::ToolCall(call("1", "Run").status(ToolCallStatus::InProgress)));
    cell.wait(Duration::from_secs(1)).say("never");
    cell.finish(StopReason::EndTurn);
    let plain = cell.view.cut_short(&cell.calls).into_iter().map(|show| match show {
        OutputMessage::Update { data, .. } | OutputMessage::Display { data, .. } => {
            data["text/plain"].clone()
        }
        OutputMessage::Stream { text, .. } => json!(text),
    });
    let plain: Vec<_> = plain.collect();
    assert_eq!(plain, ["– Run (not finished)", "interrupted: the last 1 outputs of this turn are not shown"]);
    assert_eq!(cell.view.due(), None);
}

#[test]
fn a_call_that_waits_for_permission_is_not_folded() {
    let mut cell = TestCell::new(ViewStyle::Rich);
    let id = ToolCallId::new("1");
    let fields = ToolCallUpdateFields::new()
        .title("echo hi\nrm -rf /".to_owned())
        .raw_input(serde_json::json!({"command": "rm -rf /"}));
    cell.ask(ToolCallUpdate::new(id.clone(), fields), PermissionAsker::Agent);
    cell.wait(Duration::from_secs(1));
    let html = |cell: &TestCell| cell.outputs[0].1["text/html"].as_str().unwrap().to_owned();
    assert!(html(&cell).contains("rm -rf /") && !html(&cell).contains("<details"), "{}", html(&cell));
    cell.decide(&id, &PermissionDecision::cancelled());
    cell.end(StopReason::EndTurn);
    assert!(html(&cell).contains("<details"), "{}", html(&cell));
}

#[test]
fn a_question_of_the_kernel_ends_with_its_answer() {
    for style in [ViewStyle::Rich, ViewStyle::Stream] {
        let mut cell = TestCell::new(style);
        let id = ToolCallId::new("ours");
        let fields = ToolCallUpdateFields::new().title("Run `make`".to_owned()).kind(ToolKind::Execute);
        cell.ask(ToolCallUpdate::new(id.clone(), fields), PermissionAsker::Kernel);
        let options = [PermissionOption::new("y", "Allow", PermissionOptionKind::AllowOnce)];
        cell.decide(&id, &PermissionDecision::allow(&options, DecisionSource::User));
        cell.end(StopReason::EndTurn);
        let shown = format!("{}{}", cell.streams, cell.plain().concat());
        assert!(
            shown.trim_end().ends_with("✓ Run `make` (execute, allowed)\n  allowed by you (Allow)"),
            "{shown}"
        );
    }
}

#[test]
fn an_interrupted_turn_leaves_nothing_that_looks_alive() {
    let mut cell = TestCell::new(ViewStyle::Rich);
    cell.update(SessionUpdate::ToolCall(call("1", "Run").status(ToolCallStatus::InProgress)));
    let id = ToolCallId::new("2");
    cell.ask(ToolCallUpdate::new(id.clone(), ToolCallUpdateFields::new()), PermissionAsker::Agent);
    cell.view.buttons(&id, "model");
    cell.wait(Duration::from_secs(1)).end(StopReason::Cancelled);
    assert_eq!(
        cell.plain(),
        ["– Run (not finished)", "– 2 (not finished)", "not answered", "warning: interrupted"]
    );
}

#[test]
fn the_plan_is_one_checklist_that_changes_in_place() {
    let entry = |content: &str, status| PlanEntry::new(content, PlanEntryPriority::Medium, status);
    let plan = |second| {
        SessionUpdate::Plan(Plan::new(vec![
            entry("Read <the> code", PlanEntryStatus::Completed),
            entry("Change it", second),
            entry("Test it", PlanEntryStatus::Pending),
        ]))
    };
    let mut cell = TestCell::new(ViewStyle::Rich);
    cell.update(plan(PlanEntryStatus::Pending)).say("Now.").wait(Duration::from_secs(1));
    cell.update(plan(PlanEntryStatus::InProgress)).end(StopReason::EndTurn);
    assert_eq!(cell.plain(), ["Plan (1 of 3 done)\n[x] Read <the> code\n[>] Change it\n[ ] Test it", "Now."]);
    insta::assert_snapshot!(cell.best());
}

#[test]
fn thoughts_are_folded_and_pictures_sounds_and_links_are_shown() {
    let mut cell = TestCell::new(ViewStyle::Rich);
    let thought = |text: &str| SessionUpdate::AgentThoughtChunk(ContentChunk::new(text.into()));
    cell.update(thought("**Weighing** <options>\n")).update(thought("first & second"));
    for block in [
        ContentBlock::Image(ImageContent::new("iVBORw0KGgo=", "image/png")),
        ContentBlock::Image(ImageContent::new("PHN2Zz4=", "image/svg+xml")),
        ContentBlock::Image(ImageContent::new("AA==", "image/png\" onerror=\"alert(1)")),
        ContentBlock::Audio(AudioContent::new("AAAA", "audio/wav")),
        ContentBlock::ResourceLink(ResourceLink::new("docs", "https://example.org/a?b=1&c=2")),
        ContentBlock::ResourceLink(ResourceLink::new("trap", "javascript:alert(1)")),
    ] {
        cell.update(SessionUpdate::AgentMessageChunk(ContentChunk::new(block)));
    }
    cell.update(SessionUpdate::Notice(
        Notice::new(NoticeSeverity::Warning, "Slow <model>").description("It retries.".to_owned()),
    ));
    cell.end(StopReason::MaxTokens);
    assert_eq!(cell.outputs[1].1["image/png"], "iVBORw0KGgo=");
    assert!(cell.outputs.iter().all(|(_, data)| data.contains_key("text/plain")));
    insta::assert_snapshot!(cell.best());
}

#[test]
fn a_quiet_turn_shows_how_long_it_takes_and_the_line_gives_way() {
    let mut cell = TestCell::new(ViewStyle::Rich);
    cell.wait(Duration::from_secs(9));
    assert_eq!(cell.plain(), [""; 0]);
    cell.wait(Duration::from_secs(3));
    assert_eq!(cell.plain(), ["working for 12 s"]);
    cell.say("At last.").wait(Duration::from_secs(71));
    assert_eq!(
        cell.plain(),
        ["At last.", "working for 1 min 23 s; `%agent log` shows what the agent reports"]
    );
    let usage = UsageUpdate::new(12_345, 200_000).cost(Cost::new(0.0712, "USD"));
    cell.update(SessionUpdate::UsageUpdate(usage)).end(StopReason::EndTurn);
    assert_eq!(cell.plain(), ["At last.", "1 min 23 s · 12,345 of 200,000 tokens (6 %) · 0.07 USD"]);
}

#[test]
fn a_long_turn_stays_below_fifty_outputs() {
    let mut cell = TestCell::new(ViewStyle::Rich);
    for n in 0..150 {
        let id = format!("call-{n}");
        cell.update(SessionUpdate::AgentThoughtChunk(ContentChunk::new(format!("Thought {n}.").into())));
        cell.update(SessionUpdate::ToolCall(ToolCall::new(id.clone(), format!("Step {n}."))));
        cell.wait(Duration::from_millis(40));
        let fields = ToolCallUpdateFields::new().status(ToolCallStatus::Completed);
        cell.update(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, fields)));
        // A long wait shows a temporary line, which leaves nothing behind.
        cell.wait(Duration::from_secs(if n == 100 { 15 } else { 0 }));
    }
    cell.say("That was all.").end(StopReason::EndTurn);
    assert!(cell.outputs.len() <= 50, "{} outputs", cell.outputs.len());
    let expected = (0..150).map(|n| format!("(thought) Thought {n}.\n✓ Step {n}. (done)\n"));
    let footer = format!("That was all.\n{}", cell.plain().last().unwrap());
    assert_eq!(cell.plain().join("\n"), expected.collect::<String>() + &footer);
    assert!(!cell.plain().join("\n").contains("working for"));
}

#[test]
fn a_console_gets_text_alone_with_the_answer_on_stdout() {
    let mut cell = TestCell::new(ViewStyle::Stream);
    let thought = SessionUpdate::AgentThoughtChunk(ContentChunk::new("Hm.".into()));
    cell.update(thought).say("I will look").wait(Duration::from_secs(1));
    cell.update(SessionUpdate::ToolCall(call("1", "Read a.py").kind(ToolKind::Read)));
    let fields = ToolCallUpdateFields::new().status(ToolCallStatus::Completed).content(vec!["x = 1".into()]);
    cell.update(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new("1", fields))).say("One").say(" line.\n");
    cell.end(StopReason::EndTurn);
    assert!(cell.outputs.is_empty());
    insta::assert_snapshot!(cell.streams);
}

#[test]
fn a_hundred_thousand_chunks_stay_within_the_servers_limits() {
    let chunk = "A chunk of the answer, fifty bytes in all, line.\n\n";
    for style in [ViewStyle::Rich, ViewStyle::Stream] {
        let mut cell = TestCell::new(style);
        for n in 0..100_000 {
            cell.say(chunk);
            if n % 100 == 0 {
                cell.wait(Duration::from_millis(1));
            }
        }
        cell.end(StopReason::EndTurn);
        let text = match style {
            ViewStyle::Rich => cell.plain().concat(),
            ViewStyle::Stream => cell.streams.replace("stdout|", ""),
        };
        assert!(text == chunk.repeat(100_000), "{} bytes", text.len());
        let mut seconds = BTreeMap::new();
        for sent in &cell.messages {
            *seconds.entry((*sent - cell.messages[0]).as_secs() / 3).or_insert(0) += 1;
        }
        assert!(seconds.values().all(|count| *count < 2_400), "{seconds:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn however_an_answer_is_cut_the_document_is_the_same(
        parts in prop::collection::vec(prop_oneof!["[a-z ]{1,80}\n?\n?", Just("```py\n".to_owned()), Just("```\n".to_owned())], 1..300),
        cuts in prop::collection::vec(1_usize..90, 1..60),
        pauses in prop::collection::vec(0_u64..80, 1..60),
    ) {
        let text = parts.concat();
        let mut whole = TestCell::new(ViewStyle::Rich);
        whole.say(&text);
        let mut cell = TestCell::new(ViewStyle::Rich);
        let mut rest = text.as_str();
        for (cut, pause) in cuts.iter().cycle().zip(pauses.iter().cycle()) {
            let (chunk, later) = rest.split_at((*cut).min(rest.len()));
            cell.say(chunk).wait(Duration::from_millis(*pause));
            whole.wait(Duration::from_millis(*pause)); // the last line says how long it took
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        cell.end(StopReason::EndTurn);
        whole.end(StopReason::EndTurn);
        prop_assert_eq!(&cell.outputs, &whole.outputs);
    }

    #[test]
    fn no_text_of_an_agent_becomes_markup(text in "[<>&\"'`a ;:/=\n-]{1,60}") {
        let mut cell = TestCell::new(ViewStyle::Rich);
        cell.update(SessionUpdate::AgentThoughtChunk(ContentChunk::new(ContentBlock::Text(TextContent::new(&text)))));
        let content = vec![text.as_str().into(), Diff::new(&text, &text).into()];
        let full = ToolCall::new("1", &text)
            .content(content)
            .locations(vec![ToolCallLocation::new(&text)])
            .raw_input(json!({ &text: &text }))
            .raw_output(json!(text));
        cell.update(SessionUpdate::ToolCall(full));
        cell.update(SessionUpdate::Notice(Notice::new(NoticeSeverity::Info, &text).description(text.clone())));
        cell.update(SessionUpdate::Plan(Plan::new(vec![PlanEntry::new(&text, PlanEntryPriority::Low, PlanEntryStatus::Pending)])));
        let link = ContentBlock::ResourceLink(ResourceLink::new(&text, &text).description(text.clone()));
        cell.update(SessionUpdate::AgentMessageChunk(ContentChunk::new(link))).end(StopReason::EndTurn);
        let known = ["div", "span", "details", "summary", "pre", "code", "b", "a"];
        for (_, data) in &cell.outputs {
            let html = data["text/html"].as_str().unwrap();
            for tag in html.split('<').skip(1) {
                let name = tag.trim_start_matches('/').split([' ', '>']).next().unwrap();
                prop_assert!(known.contains(&name), "{}", html);
                prop_assert!(tag.contains('>'), "{}", html);
            }
        }
    }
}
