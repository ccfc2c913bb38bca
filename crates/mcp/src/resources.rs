//! Notebooks and stored outputs as resources.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cellwright_tools::{ReplyPart, Workspace};
use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, ErrorData, ReadResourceResult, Reference,
    Resource, ResourceContents, ResourceTemplate,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Map, Value};
use url::Url;

use crate::server::ClientServer;

/// Notebooks listed. There may be thousands; a client that knows a name can read any.
const NOTEBOOKS: usize = 200;

/// Stored outputs listed, the latest first.
const ARTIFACTS: usize = 50;

/// Folders looked into, so that a huge tree does not hold up the answer.
const FOLDERS: usize = 2_000;

/// Addresses of stored outputs.
const OUTPUTS: &str = "artifact://{id}";

/// Addresses of files.
const FILES: &str = "file://{path}";

const NOTEBOOK_TYPE: &str = "text/x-python";

pub(crate) async fn list(server: &ClientServer) -> Vec<Resource> {
    let workspace = server.client.workspace();
    let artifacts = server.host().toolbox.artifacts().clone();
    let listing = tokio::task::spawn_blocking(move || {
        let mut resources: Vec<_> =
            notebooks(&workspace).into_iter().filter_map(|path| notebook(&workspace, &path)).collect();
        let stored = artifacts.list().unwrap_or_default();
        resources.extend(stored.into_iter().rev().take(ARTIFACTS).map(|artifact| {
            let name = format!("output {}", artifact.id.as_str());
            Resource::new(artifact.id.to_string(), name).with_size(artifact.bytes)
        }));
        resources
    });
    listing.await.expect("listing does not panic")
}

fn notebook(workspace: &Workspace, path: &Path) -> Option<Resource> {
    let uri = Url::from_file_path(path).ok()?;
    let name = path.strip_prefix(workspace.start()).unwrap_or(path).display().to_string();
    Some(
        Resource::new(uri, name)
            .with_mime_type(NOTEBOOK_TYPE)
            .with_description("Jupyter notebook as cell-marked text"),
    )
}

/// The notebooks below the roots, nearest first. Hidden folders, environments and links are passed over.
fn notebooks(workspace: &Workspace) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders: std::collections::VecDeque<_> = workspace.roots().iter().cloned().collect();
    let mut looked_into = 0;
    while let Some(folder) = folders.pop_front() {
        looked_into += 1;
        if looked_into > FOLDERS || found.len() >= NOTEBOOKS {
            break;
        }
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let mut entries: Vec<_> = entries.flatten().collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else { continue };
            let name = name.to_string_lossy();
            if kind.is_dir() {
                let passed_over = name.starts_with('.')
                    || ["node_modules", "site-packages", "venv", "target"].contains(&&*name);
                if !passed_over {
                    folders.push_back(entry.path());
                }
            } else if kind.is_file() && is_notebook(Path::new(&*name)) {
                found.push(entry.path());
            }
        }
    }
    found.truncate(NOTEBOOKS);
    found
}

fn is_notebook(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ipynb"))
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(OUTPUTS, "stored output")
            .with_description("A long output; a range may follow: artifact://ID:100-200"),
        ResourceTemplate::new(FILES, "file")
            .with_description("A notebook as cell-marked text, or a text file, of the workspace"),
    ]
}

/// Values for the `path` of the prompt or of the address of a file: notebooks whose name begins like it.
pub(crate) async fn complete(
    server: &ClientServer,
    request: &CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let is_address = match &request.r#ref {
        Reference::Prompt(prompt) if prompt.name == "notebook" => false,
        Reference::Resource(template) if template.uri == FILES => true,
        Reference::Resource(template) if template.uri == OUTPUTS => return Ok(CompleteResult::default()),
        _ => return Err(ErrorData::invalid_params("there is no such prompt or resource template", None)),
    };
    if request.argument.name != "path" {
        return Ok(CompleteResult::default());
    }
    let (workspace, begins) = (server.client.workspace(), request.argument.value.clone());
    let found = tokio::task::spawn_blocking(move || {
        let paths = notebooks(&workspace).into_iter().map(|path| {
            let shown =
                if is_address { &path } else { path.strip_prefix(workspace.start()).unwrap_or(&path) };
            shown.display().to_string()
        });
        paths.filter(|path| path.starts_with(&begins)).collect::<Vec<_>>()
    });
    let mut values = found.await.expect("listing does not panic");
    let has_more = values.len() > CompletionInfo::MAX_VALUES;
    let total = u32::try_from(values.len()).ok();
    values.truncate(CompletionInfo::MAX_VALUES);
    let completion = CompletionInfo::with_pagination(values, total, has_more);
    Ok(CompleteResult::new(completion.map_err(|why| ErrorData::internal_error(why, None))?))
}

/// The file of an address, if the client may read it. It is not read.
pub(crate) fn readable(server: &ClientServer, uri: &str) -> Result<PathBuf, ErrorData> {
    let file = file(uri).ok_or_else(|| not_found(uri, "only file:// addresses change"))?;
    let file = server.client.workspace().readable(&file.to_string_lossy());
    file.map_err(|error| not_found(uri, &error.to_string()))
}

fn file(uri: &str) -> Option<PathBuf> {
    Url::parse(uri).ok().filter(|url| url.scheme() == "file")?.to_file_path().ok()
}

pub(crate) async fn read(
    server: &ClientServer,
    uri: &str,
    request: &RequestContext<RoleServer>,
) -> Result<ReadResourceResult, ErrorData> {
    // A range behind an artifact's id is no port, so this is not for a URL parser.
    let path = if uri.starts_with("artifact://") {
        uri.to_owned()
    } else {
        let file =
            file(uri).ok_or_else(|| not_found(uri, "resources are artifact:// and file:// addresses"))?;
        file.to_string_lossy().into_owned()
    };
    let kind = if is_notebook(Path::new(&path)) { NOTEBOOK_TYPE } else { "text/plain" };
    let arguments = Map::from_iter([("path".to_owned(), Value::String(path))]);
    let reply = server.host().toolbox.call("read", arguments, &server.context(request)).await;
    if reply.is_error {
        return Err(not_found(uri, &reply.to_text()));
    }
    let contents = reply.content.into_iter().map(|content| match content {
        ReplyPart::Text(text) | ReplyPart::Note(text) => {
            ResourceContents::text(text, uri).with_mime_type(kind)
        }
        ReplyPart::Image(image) => ResourceContents::blob(BASE64_STANDARD.encode(&image.bytes), uri)
            .with_mime_type(image.format.mime()),
    });
    Ok(ReadResourceResult::new(contents.collect()))
}

fn not_found(uri: &str, why: &str) -> ErrorData {
    ErrorData::resource_not_found(why.to_owned(), Some(serde_json::json!({ "uri": uri })))
}
