//! Code of ours that runs in kernels that are not ours.

use std::fs;
use std::path::Path;

use cellwright_cell::{Output, OutputChange};
use cellwright_jupyter::content::ExecuteRequest;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{json_text, literal};
use crate::event::Event;
use crate::execution::CellSource;
use crate::outcome::Exit;
use crate::request::{AskError, KernelVariable};
use crate::setup::{Prelude, Setup};
use crate::transport::{CellId, Incoming, KernelRequest, Transport, Verdict};

const PREPARE: &str = include_str!("../../python/prepare_ipython.py");
const PRELUDE: &str = include_str!("../../python/cellwright_runner/prelude.py");
const VARIABLES: &str = include_str!("../../python/cellwright_runner/variables.py");

/// What [`PREPARE`] reports its warnings as.
const PREPARED: &str = "application/vnd.cellwright.prepared+json";

/// The driver counts its cells from 1.
const CELL: CellId = CellId(0);

/// Prepares a Python kernel over a transport that is ready for its first cell. What is to be said about that, and what it
/// printed, belongs to no cell; `Err` when the kernel ended.
pub(crate) async fn prepare(
    transport: &mut impl Transport,
    setup: &Setup,
    cwd: &Path,
) -> Result<Vec<Event>, Exit> {
    let (config, mut warnings) = config(setup, cwd);
    let code = format!("exec({}, {{'config': {}}})", literal(PREPARE), literal(&config.to_string()));
    transport.send(KernelRequest::Execute {
        cell: CELL,
        source: CellSource::silent(code),
        allow_stdin: false,
        variables: None,
    });
    let (mut printed, mut idle, mut replied, mut failed) = (Vec::new(), false, false, false);
    while !(idle && replied) {
        match transport.recv().await {
            Incoming::Event {
                event: Event::Output(OutputChange::Added(Output::Display { content, .. })),
                ..
            } if content.data.get(PREPARED).is_some() => {
                let prepared =
                    content.data.get(PREPARED).map(|value| value.json().value()).unwrap_or_default();
                let reported = prepared["warnings"].as_array().into_iter().flatten();
                warnings.extend(reported.filter_map(Value::as_str).map(str::to_owned));
            }
            Incoming::Event { event: Event::Output(OutputChange::Added(Output::Error(error))), .. } => {
                warnings.push(format!("the kernel was not prepared: {}: {}", error.name, error.message));
            }
            Incoming::Event { event, .. } => printed.push(event),
            Incoming::Replied { cell: CELL, verdict, .. } => {
                replied = true;
                failed = verdict != Verdict::Ok;
            }
            Incoming::Idle(CELL) => idle = true,
            Incoming::Closed(exit) => return Err(exit),
            Incoming::Input { .. }
            | Incoming::Started(_)
            | Incoming::Replied { .. }
            | Incoming::Idle(_)
            | Incoming::Answered { .. }
            | Incoming::Busy { .. }
            | Incoming::StopFailed(_) => {}
        }
    }
    // The reply may overtake the exception.
    if failed && warnings.is_empty() {
        warnings.push("the kernel was not prepared".to_owned());
    }
    Ok(warnings.into_iter().map(Event::Warning).chain(printed).collect())
}

/// The arguments of [`PREPARE`]. Modules travel as source: the kernel may run where our files are not.
fn config(setup: &Setup, cwd: &Path) -> (Value, Vec<String>) {
    let mut warnings = Vec::new();
    let mut modules = Vec::new();
    for module in &setup.modules {
        match fs::read_to_string(&module.path) {
            Ok(source) => modules.push(json!({"name": module.name, "path": module.path, "source": source})),
            Err(error) => warnings.push(format!("module `{}` was not loaded: {error}", module.name)),
        }
    }
    let prelude = match &setup.prelude {
        Prelude::None => None,
        Prelude::Standard => Some(PRELUDE),
        Prelude::Source(source) => Some(source.as_str()),
    };
    let path: Vec<_> = setup.path.iter().map(|folder| folder.to_string_lossy()).collect();
    let config = json!({
        "env": setup.env,
        "cwd": cwd.to_str(),
        "path": path,
        "prelude": prelude,
        "modules": modules,
    });
    (config, warnings)
}

/// Asks an IPython kernel for its variables, without a trace in its namespace: the runner's own code, run as an
/// expression, whose value prints as JSON.
pub(super) fn list_variables(limit: usize) -> ExecuteRequest {
    let source = format!(
        "{VARIABLES}\n\
         class Told:\n\
        \x20   def __repr__(self):\n\
        \x20       import json\n\
        \x20       kernel = types.SimpleNamespace(namespace=shell.user_ns, hidden=shell.user_ns_hidden)\n\
        \x20       return json.dumps(variables(kernel, {{'limit': {limit}}}))\n"
    );
    let source = literal(&source);
    let expression =
        format!("(lambda names: (exec({source}, names), names['Told']())[1])({{'shell': get_ipython()}})");
    ExecuteRequest {
        silent: true,
        store_history: false,
        allow_stdin: false,
        stop_on_error: false,
        user_expressions: [("variables".to_owned(), expression.into())].into_iter().collect(),
        ..ExecuteRequest::default()
    }
}

#[derive(Deserialize)]
struct Listed {
    variables: Vec<KernelVariable>,
    total: usize,
}

/// What a kernel answered to [`list_variables`].
pub(super) fn listed_variables(
    expressions: &Map<String, Value>,
) -> Result<(Vec<KernelVariable>, usize), AskError> {
    let answer = expressions.get("variables");
    let listed = answer.and_then(|answer| json_text(answer.get("data")?)).and_then(|text| text.parse().ok());
    let Listed { variables, total } =
        listed.ok_or_else(|| AskError::Failed("this kernel does not list its variables".to_owned()))?;
    Ok((variables, total))
}
