//! One agent, driven through its whole protocol. The agent is `testkit`'s, which errs on request.

use std::path::Path;

use super::{
    AgentCall, AgentEvent, AgentFiles, AgentLaunch, AgentLog, AgentProcess, AgentStartError, CallError,
    CallText, PermissionQuestion,
};
use agent_client_protocol_schema::v1::{
    AuthenticateRequest, ContentBlock, ContentChunk, ListSessionsRequest, NewSessionRequest, PromptRequest,
    PromptResponse, SessionId, SessionUpdate, SetSessionModeRequest, StopReason, TextContent,
};
use cellwright_testkit::{end_of, eventually};

use crate::page::PageBridge;
use tokio::sync::mpsc;

fn launch(args: &[&str]) -> AgentLaunch {
    AgentLaunch {
        program: cellwright_testkit::python().into(),
        args: [cellwright_testkit::fault_agent().into()]
            .into_iter()
            .chain(args.iter().map(Into::into))
            .collect(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        cwd: std::env::temp_dir(),
        files: AgentFiles::Own,
    }
}

async fn call<R: AgentCall>(agent: &AgentProcess, request: R) -> Result<R::Response, CallError> {
    agent.call_text(CallText::new(&request)?).await?.read()
}

struct TestAgent {
    agent: AgentProcess,
    log: AgentLog,
    events: mpsc::Receiver<AgentEvent>,
    session: SessionId,
}

/// What an agent did in a turn.
#[derive(Default)]
struct TestTurn {
    text: String,
    unknown: usize,
    tools: usize,
}

impl TestAgent {
    async fn begin(args: &[&str]) -> Self {
        let log = AgentLog::default();
        let (agent, events) =
            AgentProcess::start(&launch(args), log.clone(), PageBridge::default()).await.expect("it starts");
        let session = call(&agent, NewSessionRequest::new("/tmp")).await.expect("a session").session_id;
        Self { agent, log, events, session }
    }

    async fn prompt(&mut self, text: &str) -> (Result<PromptResponse, CallError>, TestTurn) {
        self.prompt_with(text, |question| {
            let option = question.request.options[1].option_id.clone();
            question.choose(option);
        })
        .await
    }

    async fn prompt_with(
        &mut self,
        text: &str,
        decide: impl Fn(PermissionQuestion),
    ) -> (Result<PromptResponse, CallError>, TestTurn) {
        let block = ContentBlock::Text(TextContent::new(text));
        let mut response = Box::pin(call(&self.agent, PromptRequest::new(self.session.clone(), vec![block])));
        let mut turn = TestTurn::default();
        let mut see = |event| match event {
            AgentEvent::Update(notification) => match notification.update {
                SessionUpdate::AgentMessageChunk(ContentChunk {
                    content: ContentBlock::Text(text), ..
                }) => {
                    turn.text.push_str(&text.text);
                }
                SessionUpdate::ToolCall(_) => turn.tools += 1,
                _ => {}
            },
            AgentEvent::Permission(question) => decide(*question),
            AgentEvent::Elicitation(question) => drop(question),
            AgentEvent::Unknown(_) => turn.unknown += 1,
        };
        let result = loop {
            tokio::select! {
                biased; // events that precede the response belong to it
                Some(event) = self.events.recv() => see(event),
                result = &mut response => break result,
            }
        };
        while let Ok(event) = self.events.try_recv() {
            see(event);
        }
        (result, turn)
    }

    #[track_caller]
    fn ended(result: (Result<PromptResponse, CallError>, TestTurn)) -> TestTurn {
        assert_eq!(result.0.expect("an answer").stop_reason, StopReason::EndTurn);
        result.1
    }
}

#[tokio::test]
async fn a_hundred_thousand_chunks_arrive_in_order() {
    let mut talk = TestAgent::begin(&[]).await;
    let turn = TestAgent::ended(talk.prompt("chunks 100000 50").await);
    assert_eq!(turn.text.len(), 5_000_000);
    assert!(turn.text.lines().enumerate().all(|(number, line)| line.starts_with(&format!("{number} "))));
}

#[tokio::test]
async fn lines_outside_of_the_protocol_do_no_harm() {
    let mut talk = TestAgent::begin(&["--banner"]).await;
    let turn = TestAgent::ended(talk.prompt("garbage\nunknown\nduplicate\nsay still here").await);
    assert_eq!(turn.text, "unknown method: -32601\nstill here\n");
    assert_eq!(turn.unknown, 3);
    assert_eq!(turn.tools, 2);
    assert!(talk.log.text().contains("Welcome to the fault agent!"));
    assert_eq!(TestAgent::ended(talk.prompt("say again").await).text, "again\n");
}

#[tokio::test]
async fn a_line_of_twenty_megabytes_arrives_whole() {
    let mut talk = TestAgent::begin(&[]).await;
    let turn = TestAgent::ended(talk.prompt("line 20").await);
    assert_eq!(turn.text.len(), 20_000_004);
    assert!(turn.text.ends_with("y end"));
}

#[tokio::test]
async fn a_long_standard_error_does_not_block_the_agent() {
    let mut talk = TestAgent::begin(&[]).await;
    assert_eq!(TestAgent::ended(talk.prompt("stderr 3\nsay done").await).text, "done\n");
    eventually("the last words", async || talk.log.text().ends_with("last words\n")).await;
    assert!(talk.log.text().len() <= 1 << 20);
}

#[tokio::test]
async fn the_exit_of_an_agent_that_dies_is_reported() {
    for (order, exit) in [("crash 3", "exited with code 3"), ("close", "exited with code 0")] {
        let mut talk = TestAgent::begin(&[]).await;
        let (result, turn) = talk.prompt(&format!("say first\n{order}")).await;
        let error = result.expect_err("it has gone");
        assert_eq!(error.to_string(), format!("the agent {exit}"));
        assert_eq!(turn.text, "first\n");
        if let CallError::Ended { stderr, .. } = error
            && order == "crash 3"
        {
            assert_eq!(stderr, "about to crash\n");
        }
    }
}

#[tokio::test]
async fn failed_starts_are_explained() {
    let missing = AgentLaunch { program: "/no/such/agent".into(), ..launch(&[]) };
    let error = AgentProcess::start(&missing, AgentLog::default(), PageBridge::default())
        .await
        .expect_err("no such program");
    assert_eq!(error.to_string(), "could not start `/no/such/agent`");

    let missing = AgentLaunch { cwd: "/no/such/folder".into(), ..launch(&[]) };
    let error = AgentProcess::start(&missing, AgentLog::default(), PageBridge::default())
        .await
        .expect_err("no such folder");
    assert!(matches!(error, AgentStartError::NoFolder(_)));

    let error =
        AgentProcess::start(&launch(&["--no-initialize"]), AgentLog::default(), PageBridge::default())
            .await
            .expect_err("it leaves");
    let AgentStartError::Initialize(CallError::Ended { exit, stderr }) = error else { panic!("{error:?}") };
    assert_eq!((exit.to_string().as_str(), stderr.as_str()), ("exited with code 1", "no license found\n"));
}

#[tokio::test]
async fn an_agent_of_another_version_is_refused_with_the_reason() {
    let error = AgentProcess::start(&launch(&["--version", "2"]), AgentLog::default(), PageBridge::default())
        .await
        .expect_err("not ours");
    let AgentStartError::Initialize(CallError::Refused { message, .. }) = error else { panic!("{error:?}") };
    assert!(message.contains("version"), "{message}");
}

#[tokio::test]
async fn a_session_opens_after_signing_in() {
    let (agent, _events) =
        AgentProcess::start(&launch(&["--auth"]), AgentLog::default(), PageBridge::default())
            .await
            .expect("it starts");
    let error = call(&agent, NewSessionRequest::new("/tmp")).await.expect_err("not signed in");
    assert!(matches!(error, CallError::AuthRequired));
    assert_eq!(agent.auth_methods().len(), 3);
    call(&agent, AuthenticateRequest::new("login")).await.expect("signed in");
    call(&agent, NewSessionRequest::new("/tmp")).await.expect("a session");
}

#[tokio::test]
async fn sessions_are_listed_and_modes_set() {
    let mut talk = TestAgent::begin(&[]).await;
    let sessions = call(&talk.agent, ListSessionsRequest::new()).await.expect("a list").sessions;
    assert_eq!(sessions.len(), 1);
    call(&talk.agent, SetSessionModeRequest::new(talk.session.clone(), "act")).await.expect("set");
    assert_eq!(TestAgent::ended(talk.prompt("say hello").await).text, "hello\n");
}

#[tokio::test]
async fn a_cancelled_turn_ends_as_cancelled() {
    let mut talk = TestAgent::begin(&[]).await;
    let (agent, session) = (&talk.agent, talk.session.clone());
    let block = ContentBlock::Text(TextContent::new("permission\nwait"));
    let mut response = Box::pin(call(agent, PromptRequest::new(session.clone(), vec![block])));
    let stop_reason = loop {
        tokio::select! {
            biased;
            Some(event) = talk.events.recv() => if let AgentEvent::Permission(question) = event {
                agent.cancel(&session);
                question.cancel();
            },
            result = &mut response => break result.expect("an answer").stop_reason,
        }
    };
    assert_eq!(stop_reason, StopReason::Cancelled);
}

#[tokio::test]
async fn files_and_commands_wait_for_permission() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("made.txt");
    let orders = format!(
        "write {} text\nread {}\nrun echo hi\nread {}/none",
        path.display(),
        path.display(),
        folder.path().display()
    );
    let mut talk = TestAgent::begin(&[]).await;

    let refuse = |question: PermissionQuestion| {
        let option = question.request.options[1].option_id.clone();
        question.choose(option);
    };
    let turn = TestAgent::ended(talk.prompt_with(&orders, refuse).await);
    assert_eq!(
        turn.text,
        "write error -32603\nread error -32603\nrun error the user did not allow this\nread error -32603\n"
    );
    assert!(!Path::new(&path).exists());

    let allow = |question: PermissionQuestion| {
        assert!(question.is_ours());
        let option = question.request.options[0].option_id.clone();
        question.choose(option);
    };
    let turn = TestAgent::ended(talk.prompt_with(&orders, allow).await);
    assert_eq!(turn.text, "written\nread 4\nran 0 'hi\\n'\nread error -32002\n");
}

#[tokio::test]
async fn nothing_survives_a_dropped_agent() {
    let mut talk = TestAgent::begin(&[]).await;
    let allow = |question: PermissionQuestion| {
        let option = question.request.options[0].option_id.clone();
        question.choose(option);
    };
    let folder = tempfile::tempdir().expect("a folder");
    let pid_file = folder.path().join("pid");
    let order = format!("start echo $$ >{0}.new; mv {0}.new {0}; sleep 600", pid_file.display());
    TestAgent::ended(talk.prompt_with(&order, allow).await);
    eventually("the command", async || pid_file.exists()).await;
    let command = std::fs::read_to_string(&pid_file).expect("it is there");
    let agent = TestAgent::ended(talk.prompt("pid").await).text;
    drop(talk);
    for pid in [command, agent] {
        end_of(pid.trim().parse().expect("a number")).await;
    }
}
