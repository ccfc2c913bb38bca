//! Forms that an agent asks the user to fill in: their fields, and which answers fit.

mod typed;
mod widgets;

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::{
    ElicitationAcceptAction, ElicitationAction, ElicitationContentValue, ElicitationFormMode,
    ElicitationPropertySchema, EnumOption, MultiSelectItems, StringFormat,
};

use regex::Regex;

pub(crate) use self::typed::fill_typed;
pub(crate) use self::widgets::FormWidgets;

/// An answered form: what the agent gets, and what the cell shows.
pub(crate) struct FilledForm {
    pub(crate) action: ElicitationAction,
    pub(crate) summary: String,
}

/// The answers so far, by the names of their fields.
#[derive(Default)]
struct FormAnswers {
    content: BTreeMap<String, ElicitationContentValue>,
    shown: Vec<String>,
}

impl FormAnswers {
    fn add(&mut self, field: &FormField, value: Option<ElicitationContentValue>) {
        if let Some(value) = value {
            self.shown.push(format!("{}: {}", field.title, field.described(&value)));
            self.content.insert(field.name.clone(), value);
        }
    }

    fn filled(self) -> FilledForm {
        let shown = if self.shown.is_empty() { "nothing".to_owned() } else { self.shown.join(" · ") };
        let action = ElicitationAction::Accept(ElicitationAcceptAction::new().content(self.content));
        FilledForm { action, summary: format!("answered: {shown}") }
    }
}

impl FilledForm {
    pub(crate) fn declined() -> Self {
        Self { action: ElicitationAction::Decline, summary: "declined by you".to_owned() }
    }

    pub(crate) fn not_answered() -> Self {
        Self { action: ElicitationAction::Cancel, summary: "not answered".to_owned() }
    }
}

/// A field of a form.
pub(crate) struct FormField {
    name: String,
    title: String,
    description: Option<String>,
    required: bool,
    kind: FieldKind,
    default: Option<ElicitationContentValue>,
}

enum FieldKind {
    Text(TextLimits),
    Integer { least: Option<i64>, most: Option<i64> },
    Number { least: Option<f64>, most: Option<f64> },
    YesNo,
    OneOf(Vec<EnumOption>),
    Several { choices: Vec<EnumOption>, least: Option<u64>, most: Option<u64> },
}

#[derive(Default)]
struct TextLimits {
    shortest: Option<u32>,
    longest: Option<u32>,
    format: Option<StringFormat>,
    pattern: Option<String>,
}

/// Why an answer does not fit its field.
#[derive(Debug, PartialEq, thiserror::Error)]
enum AnswerFault {
    #[error("an answer is required")]
    Missing,
    #[error("choose one")]
    NotChosen,
    #[error("`{0}` is not among the choices")]
    NoSuchChoice(String),
    #[error("`{0}` is not a whole number")]
    NotWhole(String),
    #[error("`{0}` is not a number")]
    NotNumber(String),
    #[error("`{0}` is neither yes nor no")]
    NotYesNo(String),
    #[error("`{0}` is not {1}")]
    NotOfFormat(String, &'static str),
    #[error("`{0}` does not match the pattern `{1}`")]
    NoMatch(String, String),
    #[error("{0} is below {1}")]
    TooSmall(f64, f64),
    #[error("{0} is above {1}")]
    TooLarge(f64, f64),
    #[error("it has {0} characters; at least {1} are required")]
    TooShort(usize, u32),
    #[error("it has {0} characters; at most {1} are allowed")]
    TooLong(usize, u32),
    #[error("{0} were chosen; at least {1} are required")]
    TooFew(u64, u64),
    #[error("{0} were chosen; at most {1} are allowed")]
    TooMany(u64, u64),
}

/// The fields of a form.
pub(crate) fn fields(form: &ElicitationFormMode) -> Vec<FormField> {
    let required = form.requested_schema.required.clone().unwrap_or_default();
    let properties = form.requested_schema.properties.iter();
    properties.map(|(name, property)| FormField::of(name, property, required.contains(name))).collect()
}

impl FormField {
    fn of(name: &str, property: &ElicitationPropertySchema, required: bool) -> Self {
        use ElicitationContentValue as Content;
        use ElicitationPropertySchema as Schema;
        let field = |title: &Option<String>, description: &Option<String>, kind, default| Self {
            name: name.to_owned(),
            title: title.clone().unwrap_or_else(|| name.to_owned()),
            description: description.clone(),
            required,
            kind,
            default,
        };
        match property {
            Schema::String(text) => {
                let plain = text.enum_values.iter().flatten().map(|value| EnumOption::new(value, value));
                let choices: Vec<EnumOption> = plain.chain(text.one_of.iter().flatten().cloned()).collect();
                let kind = if choices.is_empty() {
                    FieldKind::Text(TextLimits {
                        shortest: text.min_length,
                        longest: text.max_length,
                        format: text.format,
                        pattern: text.pattern.clone(),
                    })
                } else {
                    FieldKind::OneOf(choices)
                };
                field(&text.title, &text.description, kind, text.default.clone().map(Content::String))
            }
            Schema::Number(number) => {
                let kind = FieldKind::Number { least: number.minimum, most: number.maximum };
                field(&number.title, &number.description, kind, number.default.map(Content::Number))
            }
            Schema::Integer(number) => {
                let kind = FieldKind::Integer { least: number.minimum, most: number.maximum };
                field(&number.title, &number.description, kind, number.default.map(Content::Integer))
            }
            Schema::Boolean(flag) => {
                let default = flag.default.map(Content::Boolean);
                field(&flag.title, &flag.description, FieldKind::YesNo, default)
            }
            Schema::Array(several) => {
                let choices = match &several.items {
                    MultiSelectItems::String(items) => {
                        items.values.iter().map(|value| EnumOption::new(value, value)).collect()
                    }
                    MultiSelectItems::Titled(items) => items.options.clone(),
                    _ => Vec::new(),
                };
                let (least, most) = (several.min_items, several.max_items);
                let default = several.default.clone().map(Content::StringArray);
                let kind = FieldKind::Several { choices, least, most };
                field(&several.title, &several.description, kind, default)
            }
            _ => field(&None, &None, FieldKind::Text(TextLimits::default()), None),
        }
    }

    /// What an answer must look like, if that is not plain.
    fn hint(&self) -> Option<String> {
        let range = |least: Option<String>, most: Option<String>| match (least, most) {
            (Some(least), Some(most)) => format!(" from {least} to {most}"),
            (Some(least), None) => format!(" from {least} on"),
            (None, Some(most)) => format!(" up to {most}"),
            (None, None) => String::new(),
        };
        let text = |number: &Option<f64>| number.map(|number| number.to_string());
        match &self.kind {
            FieldKind::Text(limits) => limits.format.and_then(format_name).map(ToOwned::to_owned),
            FieldKind::Integer { least, most } => {
                let [least, most] = [least, most].map(|limit| limit.map(|limit| limit.to_string()));
                Some(format!("a whole number{}", range(least, most)))
            }
            FieldKind::Number { least, most } => Some(format!("a number{}", range(text(least), text(most)))),
            FieldKind::Several { .. } => Some("several can be chosen".to_owned()),
            FieldKind::YesNo | FieldKind::OneOf(_) => None,
        }
    }

    fn choices(&self) -> &[EnumOption] {
        match &self.kind {
            FieldKind::OneOf(choices) | FieldKind::Several { choices, .. } => choices,
            FieldKind::Text(_) | FieldKind::Integer { .. } | FieldKind::Number { .. } | FieldKind::YesNo => {
                &[]
            }
        }
    }

    /// Reads what the user typed. Nothing means the default, or no answer to an optional field.
    fn read(&self, typed: &str) -> Result<Option<ElicitationContentValue>, AnswerFault> {
        use ElicitationContentValue as Content;
        let typed = typed.trim();
        if typed.is_empty() {
            return match &self.default {
                Some(default) => Ok(Some(default.clone())),
                None if self.required => Err(AnswerFault::Missing),
                None => Ok(None),
            };
        }
        let given = || typed.to_owned();
        let value = match &self.kind {
            FieldKind::Text(_) => Content::String(given()),
            FieldKind::Integer { .. } => {
                Content::Integer(typed.parse().map_err(|_| AnswerFault::NotWhole(given()))?)
            }
            FieldKind::Number { .. } => {
                let number: Option<f64> = typed.parse().ok().filter(|number: &f64| number.is_finite());
                Content::Number(number.ok_or_else(|| AnswerFault::NotNumber(given()))?)
            }
            FieldKind::YesNo => match typed.to_lowercase().as_str() {
                "y" | "yes" | "true" => Content::Boolean(true),
                "n" | "no" | "false" => Content::Boolean(false),
                _ => return Err(AnswerFault::NotYesNo(given())),
            },
            FieldKind::OneOf(_) => Content::String(self.choice(typed)?),
            FieldKind::Several { .. } => {
                let chosen: Result<Vec<String>, _> =
                    typed.split(',').map(|one| self.choice(one.trim())).collect();
                Content::StringArray(chosen?)
            }
        };
        self.check(&value)?;
        Ok(Some(value))
    }

    /// Whether a value keeps to the limits of the field.
    #[expect(clippy::cast_precision_loss, reason = "for a message to people")]
    fn check(&self, value: &ElicitationContentValue) -> Result<(), AnswerFault> {
        use ElicitationContentValue as Content;
        let within = |value: f64, least: Option<f64>, most: Option<f64>| match (least, most) {
            (Some(least), _) if value < least => Err(AnswerFault::TooSmall(value, least)),
            (_, Some(most)) if value > most => Err(AnswerFault::TooLarge(value, most)),
            _ => Ok(()),
        };
        match (&self.kind, value) {
            (FieldKind::Text(limits), Content::String(text)) => limits.check(text),
            (FieldKind::Integer { least, most }, Content::Integer(number)) => {
                within(*number as f64, least.map(|least| least as f64), most.map(|most| most as f64))
            }
            (FieldKind::Number { least, most }, Content::Number(number)) => within(*number, *least, *most),
            (FieldKind::Several { least, most, .. }, Content::StringArray(chosen)) => {
                let count = chosen.len() as u64;
                match (least, most) {
                    (Some(least), _) if count < *least => Err(AnswerFault::TooFew(count, *least)),
                    (_, Some(most)) if count > *most => Err(AnswerFault::TooMany(count, *most)),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// The choice of this number, value or title.
    fn choice(&self, typed: &str) -> Result<String, AnswerFault> {
        let choices = self.choices();
        let numbered = typed.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
        let named = || choices.iter().find(|one| one.value == typed || one.title == typed);
        let chosen = numbered.or_else(named).map(|one| one.value.clone());
        chosen.ok_or_else(|| AnswerFault::NoSuchChoice(typed.to_owned()))
    }

    /// A value as people read it.
    fn described(&self, value: &ElicitationContentValue) -> String {
        use ElicitationContentValue as Content;
        let title = |value: &String| {
            let choice = self.choices().iter().find(|one| one.value == *value);
            choice.map_or_else(|| value.clone(), |one| one.title.clone())
        };
        match value {
            Content::String(text) => title(text),
            Content::Integer(number) => number.to_string(),
            Content::Number(number) => number.to_string(),
            Content::Boolean(flag) => if *flag { "yes" } else { "no" }.to_owned(),
            Content::StringArray(values) => values.iter().map(title).collect::<Vec<_>>().join(", "),
            _ => String::new(),
        }
    }
}

impl TextLimits {
    fn check(&self, text: &str) -> Result<(), AnswerFault> {
        let length = text.chars().count();
        let count = u32::try_from(length).unwrap_or(u32::MAX);
        if let Some(limit) = self.shortest.filter(|limit| count < *limit) {
            return Err(AnswerFault::TooShort(length, limit));
        }
        if let Some(limit) = self.longest.filter(|limit| count > *limit) {
            return Err(AnswerFault::TooLong(length, limit));
        }
        if let Some(format) = self.format
            && let Some(name) = format_name(format)
            && !looks_like(text, format)
        {
            return Err(AnswerFault::NotOfFormat(text.to_owned(), name));
        }
        // Patterns are those of JavaScript. The agent judges by one that means nothing here.
        let pattern = self.pattern.as_ref().and_then(|pattern| Regex::new(pattern).ok());
        match pattern.filter(|pattern| !pattern.is_match(text)) {
            Some(pattern) => Err(AnswerFault::NoMatch(text.to_owned(), pattern.as_str().to_owned())),
            None => Ok(()),
        }
    }
}

/// A format in words. Formats of later versions have none.
fn format_name(format: StringFormat) -> Option<&'static str> {
    match format {
        StringFormat::Email => Some("an email address"),
        StringFormat::Uri => Some("an address such as https://example.org"),
        StringFormat::Date => Some("a date such as 2026-01-31"),
        StringFormat::DateTime => Some("a time such as 2026-01-31T12:00:00Z"),
        _ => None,
    }
}

/// A rough check. The agent has the last word.
fn looks_like(text: &str, format: StringFormat) -> bool {
    let digits = |text: &str, count| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_date = |text: &str| {
        let parts: Vec<&str> = text.split('-').collect();
        matches!(parts[..], [year, month, day] if digits(year, 4) && digits(month, 2) && digits(day, 2))
    };
    let halves =
        |mark: char| text.split_once(mark).filter(|(one, other)| !one.is_empty() && !other.is_empty());
    match format {
        StringFormat::Email => halves('@').is_some(),
        StringFormat::Uri => halves(':').is_some(),
        StringFormat::Date => is_date(text),
        StringFormat::DateTime => halves('T').is_some_and(|(date, time)| is_date(date) && time.contains(':')),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol_schema::v1::{
        IntegerPropertySchema, MultiSelectPropertySchema, StringPropertySchema,
    };

    use super::*;

    #[track_caller]
    fn check(property: impl Into<ElicitationPropertySchema>, typed: &str, expected: &str) {
        let field = FormField::of("field", &property.into(), true);
        let answer = match field.read(typed) {
            Ok(Some(value)) => field.described(&value),
            Ok(None) => "nothing".to_owned(),
            Err(fault) => fault.to_string(),
        };
        assert_eq!(answer, expected, "{typed}");
    }

    #[test]
    fn an_answer_that_does_not_fit_is_refused_with_the_reason() {
        let port = || IntegerPropertySchema::new().minimum(1).maximum(65535);
        check(port(), "5432", "5432");
        check(port(), "x", "`x` is not a whole number");
        check(port(), "0", "0 is below 1");
        check(port(), "70000", "70000 is above 65535");
        check(port(), "", "an answer is required");
        check(port().default_value(5432), " ", "5432");
        let colour = || {
            let choices = vec![EnumOption::new("r", "Red"), EnumOption::new("g", "Green")];
            StringPropertySchema::new().one_of(choices)
        };
        for typed in ["2", "g", "Green"] {
            check(colour(), typed, "Green");
        }
        check(colour(), "3", "`3` is not among the choices");
        check(StringPropertySchema::email(), "nobody", "`nobody` is not an email address");
        check(StringPropertySchema::date(), "31.1.2026", "`31.1.2026` is not a date such as 2026-01-31");
        check(StringPropertySchema::new().max_length(2), "abc", "it has 3 characters; at most 2 are allowed");
        let code = StringPropertySchema::new().pattern("^[A-Z]+$".to_owned());
        check(code, "ab", "`ab` does not match the pattern `^[A-Z]+$`");
        let several = || MultiSelectPropertySchema::new(vec!["a".to_owned(), "b".to_owned()]).max_items(1);
        check(several(), "b", "b");
        check(several(), "1, b", "2 were chosen; at most 1 are allowed");
    }
}
