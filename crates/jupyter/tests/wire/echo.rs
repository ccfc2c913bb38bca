//! A kernel that repeats its cells, to be driven by other people's clients.

use std::collections::VecDeque;

use cellwright_jupyter::content::{
    CompleteReply, CompleteRequest, ExecuteInput, ExecuteReply, ExecuteRequest, ExecuteResult,
    ExecutionState, InputReply, InputRequest, InterruptReply, IsCompleteReply, KernelInfoReply, LanguageInfo,
    ReplyStatus, ShutdownReply, ShutdownRequest, Status, StreamOutput,
};
use cellwright_jupyter::{
    ClientMessage, ClientRequest, CloseReport, JupyterMessage, KernelServer, PROTOCOL_VERSION,
};
use serde_json::json;

/// A cell that has not ended.
struct Running {
    request: ClientRequest,
    count: u64,
}

/// Serves until it is told to shut down.
pub(crate) async fn serve(mut server: KernelServer) -> CloseReport {
    let sender = server.sender().clone();
    sender.publish(
        sender.session().message(&Status { execution_state: ExecutionState::Starting, ..Default::default() }),
    );
    let (mut count, mut running, mut queue) = (0, None::<Running>, VecDeque::<ClientRequest>::new());
    loop {
        if running.is_none()
            && let Some(request) = queue.pop_front()
        {
            count += 1;
            running = begin(&server, request, count).await;
            continue;
        }
        let request = match server.recv().await {
            ClientMessage::Input(answer) => {
                if let Some(running) = running.take() {
                    let answer: InputReply = answer.parse().expect("well formed");
                    running.finish(&answer.value);
                }
                continue;
            }
            ClientMessage::Request(request) => request,
        };
        match request.message().header.msg_type() {
            "kernel_info_request" => request.reply(&kernel_info()),
            "execute_request" => queue.push_back(request),
            "interrupt_request" => {
                request.reply(&InterruptReply::default());
                if let Some(running) = running.take() {
                    running.finish("interrupted");
                }
            }
            "complete_request" => {
                let asked: CompleteRequest = request.message().parse().expect("well formed");
                let matches = vec![asked.code.repeat(2)];
                let end = asked.cursor_pos;
                request.reply(&CompleteReply { matches, cursor_end: end, ..CompleteReply::default() });
            }
            "is_complete_request" => {
                request.reply(&IsCompleteReply { status: "complete".into(), ..IsCompleteReply::default() });
            }
            "shutdown_request" => {
                let ShutdownRequest { restart, .. } = request.message().parse().expect("well formed");
                request.reply(&ShutdownReply { restart, ..ShutdownReply::default() });
                return server.close().await;
            }
            _ => drop(request), // replies with an error
        }
    }
}

/// Starts a cell: most end at once.
async fn begin(server: &KernelServer, mut request: ClientRequest, count: u64) -> Option<Running> {
    let ExecuteRequest { code, allow_stdin, .. } = request.message().parse().expect("well formed");
    let sender = server.sender();
    request.begin();
    let input = ExecuteInput { code: code.clone(), execution_count: count, ..ExecuteInput::default() };
    sender.publish(request.output(&input));
    let running = Running { request, count };
    match code.as_str() {
        "ask" => {
            let question = InputRequest { prompt: "? ".into(), ..InputRequest::default() };
            assert!(allow_stdin && sender.ask(running.request.message(), &question));
            Some(running)
        }
        "hang" => Some(running),
        "flood" => {
            for number in 0..2_000 {
                let text = format!("{number}\n");
                let stream = StreamOutput { text, ..StreamOutput::default() };
                sender.publish_when_read(running.request.output(&stream)).await;
            }
            running.finish("flooded");
            None
        }
        code => {
            running.finish(code);
            None
        }
    }
}

impl Running {
    fn finish(self, value: &str) {
        let Self { request, count } = self;
        let data = json!({"text/plain": value}).as_object().cloned().expect("an object");
        let result =
            ExecuteResult { execution_count: Some(count), data: data.into(), ..ExecuteResult::default() };
        let output: JupyterMessage = request.output(&result);
        request.sender().publish(output);
        request.reply(&ExecuteReply {
            status: ReplyStatus::Ok,
            execution_count: Some(count),
            ..ExecuteReply::default()
        });
    }
}

fn kernel_info() -> KernelInfoReply {
    KernelInfoReply {
        protocol_version: PROTOCOL_VERSION.into(),
        implementation: "echo".into(),
        language_info: LanguageInfo {
            name: "echo".into(),
            file_extension: ".txt".into(),
            ..Default::default()
        },
        ..KernelInfoReply::default()
    }
}
