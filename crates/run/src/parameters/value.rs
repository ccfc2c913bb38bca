//! What a parameter is set to.

use serde_json::{Number, Value};

/// What a parameter is set to: JSON, and the numbers that JSON does not have.
#[derive(Debug, Clone, PartialEq)]
pub enum ParameterValue {
    /// Nothing.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A number.
    Number(Number),
    /// Infinite, or not a number.
    NotFinite(f64),
    /// Text.
    String(String),
    /// A list.
    Array(Vec<ParameterValue>),
    /// Values by name.
    Object(Vec<(String, ParameterValue)>),
}

impl ParameterValue {
    /// The value as JSON, for reports. Numbers that JSON does not have become text.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Number(number) => Value::Number(number.clone()),
            Self::NotFinite(number) if number.is_nan() => "NaN".into(),
            Self::NotFinite(number) => if *number > 0.0 { "Infinity" } else { "-Infinity" }.into(),
            Self::String(text) => text.as_str().into(),
            Self::Array(items) => items.iter().map(Self::to_json).collect(),
            Self::Object(members) => {
                members.iter().map(|(name, value)| (name.clone(), value.to_json())).collect()
            }
        }
    }
}

impl From<f64> for ParameterValue {
    fn from(number: f64) -> Self {
        Number::from_f64(number).map_or(Self::NotFinite(number), Self::Number)
    }
}

impl From<Value> for ParameterValue {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Number(number) => Self::Number(number),
            Value::String(text) => Self::String(text),
            Value::Array(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            Value::Object(members) => {
                Self::Object(members.into_iter().map(|(name, value)| (name, value.into())).collect())
            }
        }
    }
}
