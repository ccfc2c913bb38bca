//! A form where there are no widgets: one typed answer for each field.

use super::{FieldKind, FilledForm, FormAnswers, FormField};
use crate::kernel_state::KernelState;
use crate::turn::CellChannel;

/// Asks one question for each field. A wrong answer is asked for again, with the reason.
pub(crate) async fn fill_typed(state: &KernelState, cell: &CellChannel, fields: &[FormField]) -> FilledForm {
    let mut answers = FormAnswers::default();
    for field in fields {
        let mut question = field.question();
        let value = loop {
            let asked = state.stdin.ask(cell.sender(), cell.request(), question).await;
            let Some(typed) = asked else { return FilledForm::not_answered() };
            match field.read(&typed) {
                Ok(value) => break value,
                Err(fault) => question = format!("{fault}\n{}", field.question()),
            }
        };
        answers.add(field, value);
    }
    answers.filled()
}

impl FormField {
    /// The field as a question that is answered in one line.
    fn question(&self) -> String {
        let mut lines = vec![self.title.clone()];
        lines.extend(self.description.as_ref().map(|text| format!("  {text}")));
        for (at, choice) in self.choices().iter().enumerate() {
            let about = choice.description.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
            lines.push(format!("  {}) {}{about}", at + 1, choice.title));
        }
        let mut notes = match self.kind {
            FieldKind::YesNo => vec!["y or n".to_owned()],
            FieldKind::Several { .. } => vec!["several, separated by commas".to_owned()],
            FieldKind::Text(_)
            | FieldKind::Integer { .. }
            | FieldKind::Number { .. }
            | FieldKind::OneOf(_) => self.hint().into_iter().collect(),
        };
        match &self.default {
            Some(default) => notes.push(format!("empty means {}", self.described(default))),
            None if !self.required => notes.push("may be empty".to_owned()),
            None => {}
        }
        let notes = if notes.is_empty() { String::new() } else { format!(" [{}]", notes.join("; ")) };
        format!("{}{notes}: ", lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol_schema::v1::{EnumOption, IntegerPropertySchema, StringPropertySchema};

    use super::*;

    #[test]
    fn a_typed_question_shows_descriptions_choices_and_defaults() {
        let port = IntegerPropertySchema::new()
            .title("Port".to_owned())
            .description("Where the database listens".to_owned())
            .minimum(1)
            .default_value(5432);
        assert_eq!(
            FormField::of("port", &port.into(), true).question(),
            "Port\n  Where the database listens [a whole number from 1 on; empty means 5432]: "
        );
        let choices =
            vec![EnumOption::new("s", "Small").description("fast".to_owned()), EnumOption::new("l", "Large")];
        let model = StringPropertySchema::new().one_of(choices).default_value("l".to_owned());
        assert_eq!(
            FormField::of("model", &model.into(), false).question(),
            "model\n  1) Small: fast\n  2) Large [empty means Large]: "
        );
        assert_eq!(
            FormField::of("note", &StringPropertySchema::new().into(), false).question(),
            "note [may be empty]: "
        );
    }
}
