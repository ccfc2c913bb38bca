//! From a tool's argument type to its schema, and from a call's JSON to the type.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::reply::ToolFailure;

/// How alike two names must be for one to count as a misspelling of the other.
const ALIKE: f64 = 0.7;

/// The schema of an argument type: flat, and without what a model does not need.
pub(crate) fn schema<T: JsonSchema>() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    simplify(&mut schema);
    let Value::Object(mut schema) = schema else { unreachable!("argument types are structs") };
    schema.remove("description");
    schema.insert("additionalProperties".into(), false.into());
    schema
}

/// Leaves out titles, number formats and `null`: an optional parameter is one that is not required.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            // A property may be called `title`; a schema's own title is a string.
            object.retain(|key, value| match key.as_str() {
                "title" | "format" => !value.is_string(),
                "default" => !value.is_null(),
                _ => true,
            });
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = &types[..] {
                    let only = only.clone();
                    object.insert("type".into(), only);
                }
            }
            if let Some(Value::Array(choices)) = object.get_mut("enum") {
                choices.retain(|choice| !choice.is_null());
            }
            let inner = match object.get_mut("anyOf") {
                Some(Value::Array(choices)) => {
                    choices.retain(|choice| choice["type"] != "null");
                    if choices.len() == 1 { choices.pop() } else { None }
                }
                _ => None,
            };
            if let Some(Value::Object(inner)) = inner {
                object.remove("anyOf");
                for (key, value) in inner {
                    object.entry(key).or_insert(value);
                }
            }
            object.values_mut().for_each(simplify);
        }
        Value::Array(values) => values.iter_mut().for_each(simplify),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Reads a call's arguments, or says which parameter is wrong and how.
pub(crate) fn parse<T: DeserializeOwned>(
    schema: &Map<String, Value>,
    mut arguments: Map<String, Value>,
) -> Result<T, ToolFailure> {
    // Some clients send `null` for what their model left out.
    arguments.retain(|_, value| !value.is_null());
    let known: Vec<_> =
        schema["properties"].as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect();
    if let Some(unknown) = arguments.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(unknown_name("parameter", unknown, &known));
    }
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let place = error.path().to_string();
        let reason = in_words(&error.into_inner().to_string());
        ToolFailure::new(if place == "." { reason } else { format!("`{place}`: {reason}") })
    })
}

/// Says that a name is unknown, which one was probably meant, and which there are.
pub(crate) fn unknown_name(what: &str, name: &str, known: &[&str]) -> ToolFailure {
    let likeness = |candidate: &str| {
        let (name, candidate) = (name.to_lowercase(), candidate.to_lowercase());
        if candidate.contains(&name) || name.contains(&candidate) {
            1.0
        } else {
            strsim::jaro_winkler(&name, &candidate)
        }
    };
    let best = known.iter().copied().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let hint = match best.filter(|best| likeness(best) >= ALIKE) {
        Some(best) => format!("; did you mean `{best}`?"),
        None => ".".to_owned(),
    };
    let name: String = name.chars().take(80).collect();
    ToolFailure::new(format!("unknown {what} `{name}`{hint} There are: {}", known.join(", ")))
}

/// What the deserializer says, in the words of JSON.
fn in_words(reason: &str) -> String {
    let mut reason =
        reason.replace("missing field", "missing parameter").replace("unknown field", "unknown parameter");
    for (ours, theirs) in [
        ("expected usize", "expected a whole number"),
        ("expected u64", "expected a whole number"),
        ("expected f64", "expected a number"),
        ("expected a sequence", "expected an array"),
        ("invalid type: map", "invalid type: object"),
        ("invalid type: sequence", "invalid type: array"),
    ] {
        reason = reason.replace(ours, theirs);
    }
    reason
}
