//! Widgets in words: what the notebook has saved of them.

use cellwright_cell::{MimeData, MimeValue};
use cellwright_notebook::text::shortened;
use cellwright_notebook::{Notebook, NotebookOutput};
use cellwright_output::Display;
use serde_json::{Map, Value};

const WIDGET: &str = "application/vnd.jupyter.widget-view+json";

/// Widgets that one summary describes, the ones inside it counted.
const MOST: usize = 24;

/// How deep widgets are inside each other.
const DEEPEST: usize = 5;

/// A widget in one line, as the notebook has saved it: `[widget IntSlider "Speed": 5]`. The plain text beside it is
/// older: it says what the widget was when it was displayed. `None` if that is all there is.
pub(super) fn summary(notebook: &Notebook, output: &NotebookOutput<'_>) -> Option<String> {
    let mimes = output.mime_types();
    if !mimes.iter().any(|mime| mime == WIDGET) {
        return None;
    }
    let bundle = output.bundle()?;
    let view = bundle.get(WIDGET)?.json().value();
    let model = view.get("model_id")?.as_str()?;
    let has_text = mimes.iter().any(|mime| mime.starts_with("text/"));
    match (SavedWidget::of(notebook, model), has_text) {
        (Some(widget), _) => {
            Some(format!("[widget {}]", widget.described(notebook, &mut (MOST - 1), DEEPEST)))
        }
        (None, true) => None,
        (None, false) => Some(format!("[widget {}, not saved]", on_one_line(model))),
    }
}

/// What the notebook has of a widget.
struct SavedWidget {
    name: String,
    state: Map<String, Value>,
}

impl SavedWidget {
    fn of(notebook: &Notebook, model: &str) -> Option<Self> {
        let saved = notebook.widget_state(model)?;
        let name = saved.get("model_name").and_then(Value::as_str).unwrap_or("of unknown type");
        let state = saved.get("state").and_then(Value::as_object).cloned().unwrap_or_default();
        Some(Self { name: on_one_line(name.strip_suffix("Model").unwrap_or(name)), state })
    }

    /// Its type, its label, its value, and the widgets inside it: at most `room` of them, down to `depth`.
    fn described(&self, notebook: &Notebook, room: &mut usize, depth: usize) -> String {
        let mut line = self.name.clone();
        if let Some(label) = self.text("description") {
            line.extend([" \"", &label, "\""]);
        }
        if let Some(value) = self.value() {
            line.extend([": ", &value]);
        }
        let models: Vec<_> =
            self.list("children").filter_map(|child| child.strip_prefix("IPY_MODEL_")).collect();
        let mut inside = Vec::new();
        for model in &models {
            if depth == 0 || *room == 0 {
                inside.push("…".to_owned());
                break;
            }
            if let Some(child) = SavedWidget::of(notebook, model) {
                *room -= 1;
                inside.push(child.described(notebook, room, depth - 1));
            }
        }
        if !inside.is_empty() {
            line.extend([" (", &inside.join("; "), ")"]);
        }
        line
    }

    /// What it shows or was set to.
    fn value(&self) -> Option<String> {
        if self.name == "HTML" || self.name == "HTMLMath" {
            let mut html = MimeData::default();
            html.insert("text/html", self.state.get("value")?.clone());
            let text = Display::beside_image(&html, false).text?;
            return Some(on_one_line(text.trim())).filter(|text| !text.is_empty());
        }
        let chosen = self.chosen();
        if !chosen.is_empty() {
            return Some(chosen.join(", "));
        }
        let outputs = self.state.get("outputs").and_then(Value::as_array);
        if let Some(outputs) = outputs.filter(|outputs| !outputs.is_empty()) {
            let start = outputs.iter().find_map(first_line);
            let noun = if outputs.len() == 1 { "output" } else { "outputs" };
            let what = format!("{} {noun}", outputs.len());
            return Some(start.map_or_else(|| what.clone(), |line| format!("{what}: {line}")));
        }
        let value = self.state.get("value").filter(|value| !value.is_null() && **value != "")?;
        let text = on_one_line(&value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        match self.state.get("max").filter(|_| self.name.contains("Progress")) {
            Some(max) => Some(format!("{text} of {}", on_one_line(&max.to_string()))),
            None => Some(text),
        }
    }

    /// The options that are chosen of a list.
    fn chosen(&self) -> Vec<String> {
        let labels: Vec<_> = self.list("_options_labels").collect();
        let indices = match self.state.get("index") {
            Some(Value::Array(indices)) => indices.iter().filter_map(Value::as_u64).collect(),
            index => index.and_then(Value::as_u64).into_iter().collect::<Vec<_>>(),
        };
        let label = |index: u64| labels.get(usize::try_from(index).ok()?).map(|label| on_one_line(label));
        indices.into_iter().filter_map(label).collect()
    }

    fn text(&self, key: &str) -> Option<String> {
        self.state.get(key)?.as_str().filter(|text| !text.is_empty()).map(on_one_line)
    }

    fn list(&self, key: &str) -> impl Iterator<Item = &str> {
        self.state.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }
}

/// How an output inside a widget starts.
fn first_line(output: &Value) -> Option<String> {
    let plain = || output.get("data").and_then(|data| data.get("text/plain"));
    let text = MimeValue::from(output.get("text").or_else(plain)?.clone());
    let text = text.text()?;
    text.lines().find(|line| !line.trim().is_empty()).map(on_one_line)
}

fn on_one_line(text: &str) -> String {
    shortened(&text.replace(char::is_control, " "))
}
