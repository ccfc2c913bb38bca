//! What a notebook ran with, for its metadata.

use std::time::SystemTime;

use anyhow::Context as _;
use cellwright_cell::{Output, OutputChange, Stream};
use cellwright_kernel::CellSource;
use cellwright_notebook::file::{self, FileError, IfMissing};
use cellwright_run::{FinishedRun, Parameter};
use cellwright_session::{Call, CallEvent, CallUpdate, CellRequest, SessionClient};
use serde_json::{Map, Value, json};

use crate::host;

/// Asks Python what there is, in one expression, so that the notebook gets no variables of ours.
const ENVIRONMENT: &str = "print(__import__('json').dumps({\
'python': __import__('platform').python_version(), \
'platform': __import__('platform').platform(), \
'packages': {d.metadata['Name']: d.version for d in __import__('importlib.metadata').metadata.distributions()}}))";

/// Puts into the metadata of the notebook, under `cellwright`, what it ran with.
pub(super) async fn keep(
    client: &SessionClient,
    finished: &FinishedRun,
    parameters: &[Parameter],
) -> anyhow::Result<()> {
    let FinishedRun { report, kept, .. } = finished;
    let began = SystemTime::now().checked_sub(report.duration).unwrap_or_else(SystemTime::now);
    let parameters = parameters.iter().map(|parameter| (parameter.name.clone(), parameter.value.to_json()));
    let mut record = json!({
        "version": host::VERSION,
        "started": cellwright_cell::timestamp(began),
        "seconds": report.duration.as_secs_f64(),
        "completed": report.succeeded(),
        "kernel": report.kernel.about.as_ref().map(ToString::to_string),
        "parameters": parameters.collect::<Map<_, _>>(),
    });
    if let Some(Value::Object(environment)) = environment(client, finished).await {
        record.as_object_mut().expect("an object was made").extend(environment);
    }
    file::update::<_, FileError>(&kept.path, IfMissing::Fail, |notebook| {
        Ok((Some(notebook.with_metadata("cellwright", &record)), ()))
    })
    .context("what it ran with could not be recorded")
}

/// What Python says of itself; nothing of other languages, or when its kernel is gone.
async fn environment(client: &SessionClient, FinishedRun { report, .. }: &FinishedRun) -> Option<Value> {
    report.kernel.about.as_ref().filter(|about| about.language.to_lowercase().contains("python"))?;
    let question = CellRequest { source: CellSource::silent(ENVIRONMENT), ..CellRequest::new("") };
    let mut call = Call::new(report.key.session.clone(), &report.key.cwd, vec![question]);
    call.kernel = report.key.kernel.clone();
    let mut answering = client.call(call).await.ok()?;
    // As it is printed: the report is for people, and cuts long lines.
    let mut answer = String::new();
    while let CallUpdate::Event(event) = answering.next().await {
        if let CallEvent::Output {
            change: OutputChange::Added(Output::Text { stream: Stream::Stdout, text }),
            ..
        } = event
        {
            answer.push_str(&text);
        }
    }
    serde_json::from_str(&answer).ok()
}
