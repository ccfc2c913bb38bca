//! Outputs as nbformat stores them.

use std::collections::BTreeMap;

use cellwright_cell::{Exception, MimeBundle, MimeValue, Output, Stream, is_json};
use serde_json::{Value, json};

use super::{CellTiming, Results, RunOutput};
use crate::json::Json;
use crate::print::JsonNode;

impl Results {
    /// The value of the cell's `outputs`.
    pub(crate) fn outputs(&self) -> JsonNode {
        let mut outputs: Vec<_> = self.outputs.iter().map(RunOutput::node).collect();
        if let Some(beyond) = &self.beyond {
            let mut rest = beyond.last().peekable();
            let (name, mut text) = match self.outputs.last() {
                Some(RunOutput::Stream { name, printed }) => {
                    outputs.pop();
                    (*name, printed.text().into_owned())
                }
                _ => (Stream::Stdout, String::new()),
            };
            // Text of one stream on both sides of the notice is one output.
            if let Some(notice) = beyond.notice() {
                let line_end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
                text = format!("{text}{line_end}{notice}\n");
            }
            if let Some(RunOutput::Stream { printed, .. }) =
                rest.next_if(|next| matches!(next, RunOutput::Stream { name: same, .. } if *same == name))
            {
                text.push_str(&printed.text());
            }
            if !text.is_empty() {
                outputs.push(stream(name, &text));
            }
            outputs.extend(rest.map(RunOutput::node));
        }
        JsonNode::Array(outputs)
    }

    /// The value of `execution` in the cell's metadata. We see no messages, so the kernel is busy while the cell runs.
    pub(crate) fn execution(&self) -> Option<Value> {
        let CellTiming { started, ended } = self.timing.as_ref()?;
        let mut times = json!({ "iopub.execute_input": started, "iopub.status.busy": started });
        if let Some(ended) = ended {
            times["iopub.status.idle"] = ended.as_str().into();
            times["shell.execute_reply"] = ended.as_str().into();
        }
        Some(times)
    }
}

impl RunOutput {
    /// Keys in the order Jupyter sorts them.
    fn node(&self) -> JsonNode {
        match self {
            Self::Stream { name, printed } => stream(*name, &printed.text()),
            Self::Shown(Output::Text { stream: name, text }) => stream(*name, text),
            Self::Shown(Output::Display { content, .. }) => object([
                ("data", data(content)),
                ("metadata", JsonNode::Value(content.metadata.clone().into())),
                ("output_type", JsonNode::Value("display_data".into())),
            ]),
            Self::Shown(Output::Result { content, count }) => object([
                ("data", data(content)),
                ("execution_count", JsonNode::Value((*count).into())),
                ("metadata", JsonNode::Value(content.metadata.clone().into())),
                ("output_type", JsonNode::Value("execute_result".into())),
            ]),
            Self::Shown(Output::Error(Exception { name, message, traceback, line: _ })) => JsonNode::Value(
                json!({ "ename": name, "evalue": message, "output_type": "error", "traceback": traceback }),
            ),
        }
    }
}

fn stream(name: Stream, text: &str) -> JsonNode {
    JsonNode::Value(json!({ "name": name.name(), "output_type": "stream", "text": lines(text) }))
}

fn object<const N: usize>(members: [(&str, JsonNode); N]) -> JsonNode {
    JsonNode::Object(members.map(|(key, node)| (key.to_owned(), node)).into())
}

/// The brackets a value of a bundle is in: notebook, cells, cell, outputs, output, data.
const DEPTH: usize = 6;

/// A MIME bundle as nbformat stores it: sorted, what is text cut into lines, JSON only under types that are JSON.
pub(crate) fn data(content: &MimeBundle) -> JsonNode {
    let sorted: BTreeMap<_, _> = content.data.iter().collect();
    let stored = sorted.into_iter().map(|(mime, value)| {
        let is_text = mime.starts_with("text/") || matches!(mime, "application/javascript" | "image/svg+xml");
        let node = match value {
            MimeValue::Text(text) if is_text => JsonNode::Value(lines(text)),
            MimeValue::Text(text) => JsonNode::Value(text.as_str().into()),
            MimeValue::Json(json) => {
                let fits = || Json::is_one(json.text(), DEPTH);
                // A string may come in pieces, and is stored so.
                let stays = (is_json(mime) && fits()) || value.text().is_some();
                let text = json.text();
                if stays { JsonNode::Text(text.to_owned()) } else { JsonNode::Value(text.into()) }
            }
        };
        (mime.to_owned(), node)
    });
    JsonNode::Object(stored.collect())
}

fn lines(text: &str) -> Value {
    text.split_inclusive('\n').collect()
}
