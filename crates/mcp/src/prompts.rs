//! Prompts a person can pick in their client.

use rmcp::model::{
    ErrorData, GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Map, Value};

use crate::server::ClientServer;

pub(crate) fn list() -> Vec<Prompt> {
    let path = PromptArgument::new("path").with_description("The .ipynb file").with_required(true);
    let task = PromptArgument::new("task").with_description("What to do with it").with_required(false);
    vec![Prompt::new(
        "notebook",
        Some("Work on a notebook: its cells and saved outputs, and what to do"),
        Some(vec![path, task]),
    )]
}

pub(crate) async fn get(
    server: &ClientServer,
    request: GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<GetPromptResult, ErrorData> {
    if request.name != "notebook" {
        return Err(ErrorData::invalid_params(
            format!("there is no prompt `{}`; there is `notebook`", request.name),
            None,
        ));
    }
    let argument = |name: &str| {
        request
            .arguments
            .as_ref()
            .and_then(|arguments| arguments.get(name))
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let Some(path) = argument("path") else {
        return Err(ErrorData::invalid_params("the prompt needs `path`, the .ipynb file", None));
    };
    let task = argument("task").unwrap_or_else(|| {
        "Explain what it does cell by cell, and point out errors and cells that depend on state no cell creates.".to_owned()
    });
    let arguments = Map::from_iter([
        ("path".to_owned(), Value::String(path.clone())),
        ("outputs".to_owned(), Value::String("summary".to_owned())),
    ]);
    let reply = server.host().toolbox.call("read", arguments, &server.context(context)).await;
    if reply.is_error {
        return Err(ErrorData::invalid_params(reply.to_text(), None));
    }
    let text = format!("{task}\n\nThe notebook {path}, as the `read` tool shows it:\n\n{}", reply.to_text());
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]))
}
