//! A form as widgets: fields, drop-downs and boxes to tick, with a button to send it.

use agent_client_protocol_schema::v1::ElicitationContentValue;
use serde_json::{Value, json};

use super::{AnswerFault, FieldKind, FilledForm, FormAnswers, FormField};
use crate::client::widgets::{WidgetId, WidgetSet};
use crate::view::widget_text;

/// The first choice of a drop-down without a default.
const NOTHING: &str = "–";

/// A form on the screen. Dropping it removes it.
pub(crate) struct FormWidgets {
    widgets: WidgetSet,
    fields: Vec<(FormField, FieldWidgets)>,
    send: WidgetId,
}

struct FieldWidgets {
    input: WidgetId,
    /// The reason why the last answer was refused.
    fault: WidgetId,
    /// Whether the drop-down begins with a choice that means nothing.
    has_blank: bool,
}

impl FormWidgets {
    /// Makes the widgets. Show [`FormWidgets::root`].
    pub(crate) fn new(mut widgets: WidgetSet, fields: Vec<FormField>) -> Self {
        let mut rows = Vec::new();
        let mut inputs = Vec::new();
        for field in fields {
            let label = widgets.add("HTML", &json!({"value": field.label()}));
            let (kind, state, has_blank) = field.input();
            let input = widgets.add(kind, &state);
            let fault = widgets.add("HTML", &json!({"value": ""}));
            rows.extend([label, input.clone(), fault.clone()]);
            inputs.push((field, FieldWidgets { input, fault, has_blank }));
        }
        let send = widgets.button("Send", "primary");
        let decline = widgets.button("Decline", "");
        rows.push(widgets.arrange("HBox", &[send.clone(), decline]));
        widgets.arrange("VBox", &rows);
        widgets.complete();
        Self { widgets, fields: inputs, send }
    }

    pub(crate) fn root(&self) -> &str {
        self.widgets.root()
    }

    /// Waits until the form is sent with answers that fit, or declined.
    pub(crate) async fn filled(mut self) -> FilledForm {
        loop {
            match self.widgets.action().await {
                None => return FilledForm::not_answered(),
                Some(button) if button != self.send => return FilledForm::declined(),
                Some(_) => {
                    if let Some(answers) = self.answers() {
                        return answers.filled();
                    }
                }
            }
        }
    }

    /// The answers, if all of them fit. Otherwise the form shows why not.
    fn answers(&self) -> Option<FormAnswers> {
        let mut answers = FormAnswers::default();
        let mut all_fit = true;
        for (field, widgets) in &self.fields {
            let fault = match field.given(&self.widgets, widgets) {
                Ok(value) => {
                    answers.add(field, value);
                    String::new()
                }
                Err(fault) => {
                    all_fit = false;
                    widget_text(&fault.to_string(), "color:#d1242f")
                }
            };
            if self.widgets.field(&widgets.fault, "value") != json!(fault) {
                self.widgets.set(&widgets.fault, json!({ "value": fault }));
            }
        }
        all_fit.then_some(answers)
    }
}

impl FormField {
    fn label(&self) -> String {
        let optional = if self.required { "" } else { " (optional)" };
        let mut about: Vec<String> = self.description.iter().cloned().collect();
        about.extend(self.hint());
        for choice in self.choices() {
            about.extend(choice.description.as_ref().map(|text| format!("{}: {text}", choice.title)));
        }
        let title = widget_text(&format!("{}{optional}", self.title), "font-weight:600");
        format!("{title}{}", widget_text(&about.join("\n"), "opacity:.75;white-space:pre-wrap"))
    }

    /// The kind and the state of the widget, and whether its first choice means nothing.
    fn input(&self) -> (&'static str, Value, bool) {
        use ElicitationContentValue as Content;
        let at = |value: &String| self.choices().iter().position(|choice| choice.value == *value);
        let mut titles: Vec<&str> = self.choices().iter().map(|choice| choice.title.as_str()).collect();
        match (&self.kind, &self.default) {
            (FieldKind::OneOf(_), Some(Content::String(value))) if at(value).is_some() => {
                ("Dropdown", json!({"_options_labels": titles, "index": at(value)}), false)
            }
            (FieldKind::OneOf(_), _) => {
                titles.insert(0, NOTHING);
                ("Dropdown", json!({"_options_labels": titles, "index": 0}), true)
            }
            (FieldKind::Several { .. }, default) => {
                let chosen: Vec<usize> = match default {
                    Some(Content::StringArray(values)) => values.iter().filter_map(at).collect(),
                    _ => Vec::new(),
                };
                ("SelectMultiple", json!({"_options_labels": titles, "index": chosen}), false)
            }
            (FieldKind::YesNo, default) => {
                let value = *default == Some(Content::Boolean(true));
                ("Checkbox", json!({"value": value, "indent": false, "description": self.title}), false)
            }
            (FieldKind::Text(_) | FieldKind::Integer { .. } | FieldKind::Number { .. }, default) => {
                let value = default.as_ref().map(|value| self.described(value)).unwrap_or_default();
                ("Text", json!({"value": value, "placeholder": self.hint().unwrap_or_default()}), false)
            }
        }
    }

    /// The answer in a widget.
    fn given(
        &self,
        widgets: &WidgetSet,
        of_field: &FieldWidgets,
    ) -> Result<Option<ElicitationContentValue>, AnswerFault> {
        use ElicitationContentValue as Content;
        let [index, value] = ["index", "value"].map(|name| widgets.field(&of_field.input, name));
        let choice = |at: &Value| {
            let at = usize::try_from(at.as_u64()?).ok()?.checked_sub(usize::from(of_field.has_blank))?;
            Some(self.choices().get(at)?.value.clone())
        };
        match &self.kind {
            FieldKind::OneOf(_) => match choice(&index) {
                Some(value) => Ok(Some(Content::String(value))),
                None if self.required => Err(AnswerFault::NotChosen),
                None => Ok(None),
            },
            FieldKind::Several { .. } => {
                let chosen: Vec<String> = index.as_array().into_iter().flatten().filter_map(choice).collect();
                if chosen.is_empty() && !self.required {
                    return Ok(None);
                }
                let chosen = Content::StringArray(chosen);
                self.check(&chosen)?;
                Ok(Some(chosen))
            }
            FieldKind::YesNo => Ok(Some(Content::Boolean(value == Value::Bool(true)))),
            FieldKind::Text(_) | FieldKind::Integer { .. } | FieldKind::Number { .. } => {
                let typed = value.as_str().unwrap_or_default();
                // The default was in the field. A user that empties it means no value.
                match typed.trim() {
                    "" if self.required => Err(AnswerFault::Missing),
                    "" => Ok(None),
                    typed => self.read(typed),
                }
            }
        }
    }
}
