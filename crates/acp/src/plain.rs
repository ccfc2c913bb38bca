//! A notebook of prompts without its agent: prompts and answers become text, and the code that the agent ran becomes
//! code cells.

use serde_json::{Map, Value, json};

use crate::magic::{self, CellBody, CellMode, CodeBody, CodeLanguage};
use crate::view::is_of_agent;

/// The code that a card of an agent's turn ran, beside the card: `{"language": …, "source": …}`. A saved notebook keeps
/// it, so that the code can be run without the agent.
pub(crate) const CODE_MIME: &str = "application/vnd.cellwright.code+json";

/// A notebook that needs no agent.
#[derive(Debug, Clone, PartialEq)]
pub struct PlainNotebook {
    /// Its JSON.
    pub notebook: Value,
    /// How many prompts became text.
    pub prompts: usize,
    /// How many cells hold code that the agent ran.
    pub kept: usize,
}

/// Code that an agent ran, with what it showed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeptCode {
    pub(crate) language: String,
    pub(crate) source: String,
    /// Outputs in the format of notebooks.
    pub(crate) outputs: Vec<Value>,
}

/// A part of a turn.
#[derive(Debug, Clone, PartialEq)]
enum TurnPart {
    Text(String),
    Code(KeptCode),
}

/// Makes a notebook that runs in Python without an agent. `notebook` is the JSON of one.
pub fn without_agent(notebook: &Value) -> PlainNotebook {
    let mode = match notebook["metadata"]["cellwright"]["mode"].as_str() {
        Some("code") => CellMode::Code,
        Some(_) | None => CellMode::Prompt,
    };
    let (mut prompts, mut kept) = (0, 0);
    let mut cells = Vec::new();
    for cell in notebook["cells"].as_array().map(Vec::as_slice).unwrap_or_default() {
        if cell["cell_type"] != "code" {
            cells.push(cell.clone());
            continue;
        }
        let source = source_of(cell);
        match magic::parse(&source, mode).map(|cell| cell.body) {
            Ok(CellBody::Code(body)) => cells.push(code_cell(cell, &body)),
            // Magics alone set something for the agent.
            Ok(CellBody::Prompt { text, .. }) if text.is_empty() => {}
            Ok(CellBody::Prompt { text, .. }) => {
                prompts += 1;
                let parts = of_prompt(cell, &text);
                kept += parts.iter().filter(|cell| cell["cell_type"] == "code").count();
                cells.extend(parts);
            }
            Err(_) => cells.push(text_cell(&id_of(cell), &format!("```\n{source}\n```"))),
        }
    }
    let mut plain = notebook.clone();
    plain["cells"] = cells.into();
    if let Some(metadata) = plain["metadata"].as_object_mut() {
        metadata.remove("cellwright");
        let spec = json!({"name": "python3", "display_name": "Python 3", "language": "python"});
        metadata.insert("kernelspec".to_owned(), spec);
        metadata.insert("language_info".to_owned(), json!({"name": "python"}));
    }
    PlainNotebook { notebook: plain, prompts, kept }
}

/// The code that the agent ran in a cell with these outputs, each with what came before its next words.
pub(crate) fn kept_code(outputs: &[Value]) -> Vec<KeptCode> {
    let parts = parts(outputs).into_iter().filter_map(|part| match part {
        TurnPart::Code(code) => Some(code),
        TurnPart::Text(_) => None,
    });
    parts.collect()
}

fn parts(outputs: &[Value]) -> Vec<TurnPart> {
    let mut parts: Vec<TurnPart> = Vec::new();
    let mut in_code = false;
    for output in outputs {
        let data = output["data"].as_object();
        if let Some(code) = data.and_then(|data| data.get(CODE_MIME)) {
            let text = |name: &str| code[name].as_str().unwrap_or_default().to_owned();
            let code = KeptCode { language: text("language"), source: text("source"), outputs: Vec::new() };
            parts.push(TurnPart::Code(code));
            in_code = true;
            continue;
        }
        if data.is_some_and(is_of_agent) {
            in_code = false;
            let text = data.and_then(|data| Some(joined(data.get("text/markdown")?)));
            match (text, parts.last_mut()) {
                (Some(text), Some(TurnPart::Text(before))) => {
                    before.push_str("\n\n");
                    before.push_str(&text);
                }
                (Some(text), _) => parts.push(TurnPart::Text(text)),
                (None, _) => {} // a thought or a card
            }
        } else if let Some(TurnPart::Code(code)) = parts.last_mut().filter(|_| in_code) {
            code.outputs.push(output.clone());
        }
    }
    parts
}

/// What becomes of a prompt and its answer.
fn of_prompt(cell: &Value, prompt: &str) -> Vec<Value> {
    let quoted: Vec<String> = prompt.lines().map(|line| format!("> {line}").trim_end().to_owned()).collect();
    let id = id_of(cell);
    let mut cells = vec![(true, quoted.join("\n"), Vec::new())];
    let outputs = cell["outputs"].as_array().map(Vec::as_slice).unwrap_or_default();
    for part in parts(outputs) {
        match (part, cells.last_mut()) {
            (TurnPart::Text(text), Some((true, before, _))) => {
                before.push_str("\n\n");
                before.push_str(text.trim());
            }
            (TurnPart::Text(text), _) => cells.push((true, text.trim().to_owned(), Vec::new())),
            (TurnPart::Code(code), _) => cells.push((false, in_language(&code), code.outputs)),
        }
    }
    let made = cells.into_iter().enumerate().map(|(at, (is_text, source, outputs))| {
        let id =
            if at == 0 { id.clone() } else { format!("{}-{at}", id.chars().take(56).collect::<String>()) };
        if is_text { text_cell(&id, &source) } else { new_code_cell(&id, &source, &outputs) }
    });
    made.collect()
}

/// The code as a cell of Python has it.
fn in_language(code: &KeptCode) -> String {
    match code.language.as_str() {
        "python" | "" => code.source.clone(),
        other => format!("%%{other}\n{}", code.source),
    }
}

/// A code cell, in the format of notebooks.
pub(crate) fn new_code_cell(id: &str, source: &str, outputs: &[Value]) -> Value {
    json!({"cell_type": "code", "id": id, "metadata": {}, "execution_count": null, "source": source,
        "outputs": outputs})
}

fn text_cell(id: &str, source: &str) -> Value {
    json!({"cell_type": "markdown", "id": id, "metadata": {}, "source": source})
}

fn code_cell(cell: &Value, body: &CodeBody) -> Value {
    let source = match &body.language {
        CodeLanguage::Companion | CodeLanguage::Python => body.text.clone(),
        CodeLanguage::Named(name) => {
            return text_cell(&id_of(cell), &format!("```{name}\n{}\n```", body.text.trim_end()));
        }
    };
    let mut cell = cell.clone();
    cell["source"] = source.into();
    cell
}

fn source_of(cell: &Value) -> String {
    joined(&cell["source"])
}

/// A text that notebooks write as a string or as lines.
fn joined(text: &Value) -> String {
    match text {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

fn id_of(cell: &Value) -> String {
    cell["id"].as_str().unwrap_or("cell").to_owned()
}

/// The beginning of a text that notebooks write as a string or as lines.
pub(crate) fn text_of<'a>(data: &'a Map<String, Value>, mime: &str) -> Option<&'a str> {
    match data.get(mime)? {
        Value::String(text) => Some(text),
        Value::Array(lines) => lines.first()?.as_str(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn display(data: &Value) -> Value {
        json!({"output_type": "display_data", "metadata": {}, "data": data})
    }

    fn answer(text: &str) -> Value {
        display(&json!({"text/markdown": text, "text/plain": text}))
    }

    fn card(source: &str) -> Value {
        let html = "<div style=\"border:1px solid rgba(128,128,128,.25)\">card</div>";
        let code = json!({"language": "python", "source": source});
        display(&json!({"text/html": html, "text/plain": "card", CODE_MIME: code}))
    }

    fn notebook(cells: &Value, metadata: &Value) -> Value {
        json!({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})
    }

    fn code(id: &str, source: &str, outputs: &Value) -> Value {
        json!({"cell_type": "code", "id": id, "metadata": {}, "execution_count": 1, "source": source, "outputs": outputs})
    }

    /// The kind, source and number of outputs of each cell.
    fn looks(plain: &PlainNotebook) -> Vec<(String, String, usize)> {
        let cells = plain.notebook["cells"].as_array().expect("cells");
        let look = |cell: &Value| {
            let kind = cell["cell_type"].as_str().expect("a type").to_owned();
            (kind, source_of(cell), cell["outputs"].as_array().map_or(0, Vec::len))
        };
        cells.iter().map(look).collect()
    }

    #[test]
    fn prompts_become_text_and_the_code_of_the_agent_becomes_cells() {
        let printed = json!({"output_type": "stream", "name": "stdout", "text": ["42\n"]});
        let table = display(&json!({"text/html": "<table></table>", "text/plain": "  a"}));
        let thought =
            display(&json!({"text/html": "<details style=\"margin:2px 0\">", "text/plain": "(thought)"}));
        let outputs = json!([
            answer("I compute."),
            card("x + 1"),
            printed,
            table,
            thought,
            answer("It is **42**."),
            card("plot()")
        ]);
        let cells = json!([
            {"cell_type": "markdown", "id": "t", "metadata": {}, "source": "# Title"},
            code("s", "%agent use claude", &json!([])),
            code("c", "%%python\nx = 41", &json!([])),
            code("p", ["%agent mode act\n", "What is x + 1?\n", "\n", "Plot it."].concat().as_str(), &outputs),
            code("b", "%%bash\nls", &json!([])),
            code("j", "%%julia\n1 + 1\n", &json!([])),
        ]);
        let plain = without_agent(&notebook(&cells, &json!({"kernelspec": {"name": "cellwright-agent"}})));
        assert_eq!((plain.prompts, plain.kept), (1, 2));
        let is = |kind: &str, source: &str, outputs| (kind.to_owned(), source.to_owned(), outputs);
        assert_eq!(
            looks(&plain),
            [
                is("markdown", "# Title", 0),
                is("code", "x = 41", 0),
                is("markdown", "> What is x + 1?\n>\n> Plot it.\n\nI compute.", 0),
                is("code", "x + 1", 2),
                is("markdown", "It is **42**.", 0),
                is("code", "plot()", 0),
                is("code", "%%bash\nls", 0),
                is("markdown", "```julia\n1 + 1\n```", 0),
            ]
        );
        assert_eq!(plain.notebook["metadata"]["kernelspec"]["name"], "python3");
        let ids: Vec<_> =
            plain.notebook["cells"].as_array().unwrap().iter().map(|cell| cell["id"].clone()).collect();
        assert_eq!(ids[2..6], [json!("p"), json!("p-1"), json!("p-2"), json!("p-3")]);
    }

    #[test]
    fn in_a_notebook_of_code_only_marked_cells_are_prompts() {
        let cells = json!([code("a", "x = 1", &json!([])), code("b", "%%prompt\nwhy?", &json!([]))]);
        let plain = without_agent(&notebook(&cells, &json!({"cellwright": {"mode": "code"}})));
        let kinds: Vec<_> =
            looks(&plain).into_iter().map(|(kind, source, _)| format!("{kind}: {source}")).collect();
        assert_eq!(kinds, ["code: x = 1", "markdown: > why?"]);
        assert_eq!(plain.notebook["metadata"].get("cellwright"), None);
    }
}
