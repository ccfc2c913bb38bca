//! Forms that an agent asks the user to fill in, one typed answer for each field.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::{
    ElicitationAcceptAction, ElicitationAction, ElicitationContentValue, ElicitationFormMode,
    ElicitationPropertySchema, MultiSelectItems,
};

use crate::kernel_state::KernelState;
use crate::turn::CellChannel;

/// Asks one question for each field. An empty answer means the default, or skips an optional field.
pub(crate) async fn fill(
    state: &KernelState,
    cell: &CellChannel,
    form: &ElicitationFormMode,
) -> ElicitationAction {
    let required = form.requested_schema.required.clone().unwrap_or_default();
    let mut content = BTreeMap::new();
    for (name, property) in &form.requested_schema.properties {
        let field = FormField::of(name, property);
        loop {
            let Some(typed) = ask(state, cell, field.prompt(required.contains(name))).await else {
                return ElicitationAction::Cancel;
            };
            let value =
                if typed.trim().is_empty() { field.default.clone() } else { field.parse(typed.trim()) };
            match value {
                Some(value) => {
                    content.insert(name.clone(), value);
                }
                None if typed.trim().is_empty() && !required.contains(name) => {}
                None => continue,
            }
            break;
        }
    }
    ElicitationAction::Accept(ElicitationAcceptAction::new().content(content))
}

/// A field of a form, as a question.
struct FormField {
    title: String,
    kind: FieldKind,
    /// The values to choose from, with their titles.
    choices: Vec<(String, String)>,
    default: Option<ElicitationContentValue>,
}

enum FieldKind {
    Text,
    Integer,
    Number,
    YesNo,
    Several,
}

impl FormField {
    fn of(name: &str, property: &ElicitationPropertySchema) -> Self {
        use ElicitationContentValue as Content;
        use ElicitationPropertySchema as Schema;
        let field = |title: &Option<String>, description: &Option<String>, kind, choices, default| {
            let title = title.clone().unwrap_or_else(|| name.to_owned());
            let title = description.iter().fold(title, |title, text| format!("{title} ({text})"));
            Self { title, kind, choices, default }
        };
        match property {
            Schema::String(text) => {
                let plain = text.enum_values.iter().flatten().map(|value| (value.clone(), value.clone()));
                let titled = text.one_of.iter().flatten().map(|one| (one.value.clone(), one.title.clone()));
                let default = text.default.clone().map(Content::String);
                field(&text.title, &text.description, FieldKind::Text, plain.chain(titled).collect(), default)
            }
            Schema::Number(number) => {
                let default = number.default.map(Content::Number);
                field(&number.title, &number.description, FieldKind::Number, Vec::new(), default)
            }
            Schema::Integer(number) => {
                let default = number.default.map(Content::Integer);
                field(&number.title, &number.description, FieldKind::Integer, Vec::new(), default)
            }
            Schema::Boolean(flag) => {
                let default = flag.default.map(Content::Boolean);
                field(&flag.title, &flag.description, FieldKind::YesNo, Vec::new(), default)
            }
            Schema::Array(several) => {
                let choices = match &several.items {
                    MultiSelectItems::String(items) => {
                        items.values.iter().map(|value| (value.clone(), value.clone())).collect()
                    }
                    MultiSelectItems::Titled(items) => {
                        items.options.iter().map(|one| (one.value.clone(), one.title.clone())).collect()
                    }
                    _ => Vec::new(),
                };
                let default = several.default.clone().map(Content::StringArray);
                field(&several.title, &several.description, FieldKind::Several, choices, default)
            }
            _ => field(&None, &None, FieldKind::Text, Vec::new(), None),
        }
    }

    fn prompt(&self, required: bool) -> String {
        let choices = self.choices.iter().enumerate();
        let choices: Vec<String> =
            choices.map(|(at, (_, title))| format!("\n  {}) {title}", at + 1)).collect();
        let hint = match self.kind {
            FieldKind::YesNo => " [y/n]",
            FieldKind::Several => " [several, separated by commas]",
            FieldKind::Text | FieldKind::Integer | FieldKind::Number => "",
        };
        let optional = if required || self.default.is_some() { "" } else { " [may be empty]" };
        format!("{}{}{hint}{optional}: ", self.title, choices.concat())
    }

    fn parse(&self, typed: &str) -> Option<ElicitationContentValue> {
        use ElicitationContentValue as Content;
        match self.kind {
            FieldKind::Text if self.choices.is_empty() => Some(Content::String(typed.to_owned())),
            FieldKind::Text => self.choice(typed).map(Content::String),
            FieldKind::Integer => typed.parse().ok().map(Content::Integer),
            FieldKind::Number => typed.parse().ok().map(Content::Number),
            FieldKind::YesNo => match typed.to_lowercase().as_str() {
                "y" | "yes" | "true" => Some(Content::Boolean(true)),
                "n" | "no" | "false" => Some(Content::Boolean(false)),
                _ => None,
            },
            FieldKind::Several => {
                let chosen: Option<Vec<String>> =
                    typed.split(',').map(|one| self.choice(one.trim())).collect();
                chosen.map(Content::StringArray)
            }
        }
    }

    /// The choice of this number, value or title.
    fn choice(&self, typed: &str) -> Option<String> {
        let numbered =
            typed.parse::<usize>().ok().and_then(|number| self.choices.get(number.checked_sub(1)?));
        let named = || self.choices.iter().find(|(value, title)| value == typed || title == typed);
        numbered.or_else(named).map(|(value, _)| value.clone())
    }
}

/// Asks the user of the cell. `None` if nobody answers.
pub(crate) async fn ask(state: &KernelState, cell: &CellChannel, prompt: String) -> Option<String> {
    state.stdin.ask(cell.sender(), cell.request(), prompt).await
}
