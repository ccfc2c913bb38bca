//! Widgets in words: what the notebook has saved of them.

use cellwright_notebook::text::shortened;
use cellwright_notebook::{Notebook, Output};
use serde_json::Value;

const WIDGET: &str = "application/vnd.jupyter.widget-view+json";

/// A widget that is displayed without any text of its own, in one line: `[widget IntSlider "Speed": 5]`.
pub(super) fn summary(notebook: &Notebook, output: &Output<'_>) -> Option<String> {
    let mimes = output.mime_types();
    if !mimes.iter().any(|mime| mime == WIDGET) || mimes.iter().any(|mime| mime.starts_with("text/")) {
        return None;
    }
    let bundle = output.bundle()?;
    let model = bundle.get(WIDGET)?.get("model_id")?.as_str()?;
    let Some(saved) = notebook.widget_state(model) else {
        return Some(format!("[widget {}, not saved]", on_one_line(model)));
    };
    let name = saved.get("model_name").and_then(Value::as_str).unwrap_or("of unknown type");
    let state = |key: &str| saved.get("state").and_then(|state| state.get(key)).filter(|it| !it.is_null());
    let mut line = format!("[widget {}", on_one_line(name.strip_suffix("Model").unwrap_or(name)));
    if let Some(description) = state("description").and_then(Value::as_str).filter(|it| !it.is_empty()) {
        line.extend([" \"", &on_one_line(description), "\""]);
    }
    if let Some(value) = state("value") {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        line.extend([": ", &on_one_line(&value)]);
    }
    line.push(']');
    Some(line)
}

fn on_one_line(text: &str) -> String {
    shortened(&text.replace(char::is_control, " "))
}
