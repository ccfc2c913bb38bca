//! A YAML file of parameters.
//!
//! Plain words are what YAML 1.2 says they are, and `yes`, `no`, `on` and `off` are what papermill takes them for.

use std::collections::HashMap;

use anyhow::anyhow;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use cellwright_run::ParameterValue;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, StrInput, Tag};
use serde_json::{Map, Number, Value};

/// Lists in lists, no deeper than this.
const DEEPEST: usize = 64;
/// Most values, each counted as often as aliases repeat it.
const MOST_VALUES: usize = 250_000;

/// The mapping that the text is, as JSON.
pub(crate) fn json_mapping(text: &str) -> anyhow::Result<Map<String, Value>> {
    Ok(mapping(text)?.into_iter().map(|(name, value)| (name, value.to_json())).collect())
}

/// The mapping that the text is. An empty text maps nothing.
pub(super) fn mapping(text: &str) -> anyhow::Result<Vec<(String, ParameterValue)>> {
    let mut reader = YamlReader { parser: Parser::new_from_str(text), anchors: HashMap::new(), values: 0 };
    let mut root = ParameterValue::Null;
    let mut is_first = true;
    loop {
        let (event, at) = reader.next()?;
        match event {
            Event::StreamEnd => break,
            Event::StreamStart | Event::DocumentEnd | Event::Nothing => {}
            Event::DocumentStart(_) if is_first => is_first = false,
            Event::DocumentStart(_) => return Err(fault("there is more than one document", at)),
            event => {
                root = reader.value(event, at, 0)?;
                if !matches!(root, ParameterValue::Object(_) | ParameterValue::Null) {
                    return Err(fault("expected mapping start", at));
                }
            }
        }
    }
    Ok(match root {
        ParameterValue::Object(members) => members,
        _ => Vec::new(),
    })
}

struct YamlReader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    /// What has been named so far, by the number of the name.
    anchors: HashMap<usize, ParameterValue>,
    values: usize,
}

impl<'a> YamlReader<'a> {
    fn next(&mut self) -> anyhow::Result<(Event<'a>, Marker)> {
        let event = self.parser.next_event().ok_or_else(|| anyhow!("it ends too early"))?;
        let (event, span) = event.map_err(|error| fault(error.info(), *error.marker()))?;
        Ok((event, span.start))
    }

    fn value(&mut self, event: Event<'_>, at: Marker, depth: usize) -> anyhow::Result<ParameterValue> {
        self.count(1, at)?;
        if depth > DEEPEST {
            return Err(fault("it is nested too deeply", at));
        }
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => (scalar(&text, style, tag.as_deref(), at)?, anchor),
            Event::SequenceStart(anchor, _) => (self.list(depth)?, anchor),
            Event::MappingStart(anchor, _) => (self.members(depth)?, anchor),
            Event::Alias(anchor) => {
                let value = self.anchors.get(&anchor).cloned();
                let value = value.ok_or_else(|| fault("the alias is inside its own value", at))?;
                self.count(size(&value), at)?;
                (value, 0)
            }
            _ => return Err(fault("expected a value", at)),
        };
        if anchor > 0 {
            self.anchors.insert(anchor, value.clone());
        }
        Ok(value)
    }

    fn list(&mut self, depth: usize) -> anyhow::Result<ParameterValue> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(ParameterValue::Array(items)),
                (event, at) => items.push(self.value(event, at, depth + 1)?),
            }
        }
    }

    fn members(&mut self, depth: usize) -> anyhow::Result<ParameterValue> {
        let (mut members, mut merged): (Vec<(String, ParameterValue)>, Vec<_>) = (Vec::new(), Vec::new());
        loop {
            let (key, at) = self.next()?;
            if key == Event::MappingEnd {
                break;
            }
            let is_merge = matches!(&key, Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<");
            let key = self.key(key, at)?;
            let (event, value_at) = self.next()?;
            let value = self.value(event, value_at, depth + 1)?;
            if is_merge {
                merged.extend(mappings(value).ok_or_else(|| {
                    fault("what is merged by `<<` must be a mapping or a list of mappings", value_at)
                })?);
            } else if members.iter().any(|(earlier, _)| *earlier == key) {
                return Err(fault(&format!("duplicate mapping key: {key}"), at));
            } else {
                members.push((key, value));
            }
        }
        for (key, value) in merged.into_iter().flatten() {
            if members.iter().all(|(earlier, _)| *earlier != key) {
                members.push((key, value));
            }
        }
        Ok(ParameterValue::Object(members))
    }

    /// A key is the text it is written as, be it a number or not.
    fn key(&mut self, event: Event<'_>, at: Marker) -> anyhow::Result<String> {
        let text = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_null = scalar(&text, style, tag.as_deref(), at)? == ParameterValue::Null;
                let text = (!is_null).then(|| text.into_owned());
                if let Some(text) = text.as_ref().filter(|_| anchor > 0) {
                    self.anchors.insert(anchor, ParameterValue::String(text.clone()));
                }
                text
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some(ParameterValue::String(text)) => Some(text.clone()),
                Some(_) | None => None,
            },
            _ => None,
        };
        text.ok_or_else(|| fault("a key must be a text", at))
    }

    fn count(&mut self, values: usize, at: Marker) -> anyhow::Result<()> {
        self.values += values;
        if self.values > MOST_VALUES { Err(fault("it has too many values", at)) } else { Ok(()) }
    }
}

fn fault(what: &str, at: Marker) -> anyhow::Error {
    anyhow!("{what} at line {}, column {}", at.line(), at.col() + 1)
}

/// How many values there are in one.
fn size(value: &ParameterValue) -> usize {
    match value {
        ParameterValue::Array(items) => items.iter().map(|item| 1 + size(item)).sum(),
        ParameterValue::Object(members) => members.iter().map(|(_, member)| 1 + size(member)).sum(),
        ParameterValue::Null
        | ParameterValue::Bool(_)
        | ParameterValue::Number(_)
        | ParameterValue::NotFinite(_)
        | ParameterValue::String(_) => 0,
    }
}

fn mappings(value: ParameterValue) -> Option<Vec<Vec<(String, ParameterValue)>>> {
    let mapping = |value| match value {
        ParameterValue::Object(members) => Some(members),
        _ => None,
    };
    match value {
        ParameterValue::Array(items) => items.into_iter().map(mapping).collect(),
        value => mapping(value).map(|members| vec![members]),
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>, at: Marker) -> anyhow::Result<ParameterValue> {
    let kind = tag.map(|tag| if tag.is_yaml_core_schema() { tag.suffix.as_str() } else { "" });
    let value = match kind {
        Some("null") => Some(ParameterValue::Null),
        Some("bool") => Some(plain(text)).filter(|value| matches!(value, ParameterValue::Bool(_))),
        Some("int") => {
            Some(plain(text)).filter(|value| matches!(value, ParameterValue::Number(it) if !it.is_f64()))
        }
        Some("float") => match plain(text) {
            ParameterValue::Number(number) => number.as_f64().map(Into::into),
            infinite @ ParameterValue::NotFinite(_) => Some(infinite),
            _ => None,
        },
        Some("binary") => {
            let packed: String = text.split_ascii_whitespace().collect();
            let bytes = BASE64_STANDARD.decode(packed).ok();
            bytes.and_then(|bytes| String::from_utf8(bytes).ok()).map(ParameterValue::String)
        }
        None if style == ScalarStyle::Plain => Some(plain(text)),
        Some(_) | None => Some(ParameterValue::String(text.to_owned())),
    };
    value.ok_or_else(|| fault(&format!("`{text}` is not what its tag says"), at))
}

/// What a word without quotes means.
fn plain(text: &str) -> ParameterValue {
    match text.to_ascii_lowercase().as_str() {
        "" | "~" | "null" => return ParameterValue::Null,
        "true" | "yes" | "on" | "y" => return ParameterValue::Bool(true),
        "false" | "no" | "off" | "n" => return ParameterValue::Bool(false),
        ".nan" => return f64::NAN.into(),
        ".inf" | "+.inf" => return f64::INFINITY.into(),
        "-.inf" => return f64::NEG_INFINITY.into(),
        _ => {}
    }
    if let Some(whole) = whole(text) {
        return ParameterValue::Number(whole);
    }
    let decimal = is_decimal(text).then(|| text.parse::<f64>().ok()).flatten();
    decimal.map_or_else(|| ParameterValue::String(text.to_owned()), Into::into)
}

/// A whole number of at most 64 bits.
fn whole(text: &str) -> Option<Number> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => (16, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        _ => (10, digits),
    };
    // `1_000`, as papermill has it.
    if !digits.split('_').all(|group| !group.is_empty() && group.chars().all(|ch| ch.is_digit(radix))) {
        return None;
    }
    let magnitude = u64::from_str_radix(&digits.replace('_', ""), radix).ok()?;
    if is_negative { 0_i64.checked_sub_unsigned(magnitude).map(Number::from) } else { Some(magnitude.into()) }
}

/// Whether it is written as a number: `1`, `-1.5`, `.5`, `1e3`, but not `inf`, which is a word.
fn is_decimal(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    is_number && text.starts_with(|ch: char| ch.is_ascii_digit() || ch == '.') && text.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &Value) {
        assert_eq!(ParameterValue::Object(mapping(text).unwrap()).to_json(), *expected, "{text}");
    }

    #[track_caller]
    fn check_refused(text: &str, expected: &str) {
        assert_eq!(mapping(text).unwrap_err().to_string(), expected, "{text}");
    }

    #[test]
    fn words_are_what_papermill_and_yaml_say() {
        check(
            "a: [null, ~, Null]\nb: [true, False, yes, NO, on, Off]\nc: [text, 'true', \"1\", 2024-01-02, 1:30, inf, a b]\n",
            &json!({"a": [null, null, null], "b": [true, false, true, false, true, false],
                "c": ["text", "true", "1", "2024-01-02", "1:30", "inf", "a b"]}),
        );
        check(
            "n: [0x1F, 0o17, 0b11, 017, 1_000, +12, -0, -0x10, 18446744073709551615, -9223372036854775808]",
            &json!({"n": [31, 15, 3, 17, 1000, 12, 0, -16, u64::MAX, i64::MIN]}),
        );
        check("n: [1.5, 1., .5, -.5, 1e3, 12E-1]", &json!({"n": [1.5, 1.0, 0.5, -0.5, 1000.0, 1.2]}));
        check(
            "n: [_1, 1_, 1__0, 1_0.5, 0x, ., 1.2.3, 1e]",
            &json!({"n": ["_1", "1_", "1__0", "1_0.5", "0x", ".", "1.2.3", "1e"]}),
        );
        check("n: [.nan, .inf, -.INF, 1e400]", &json!({"n": ["NaN", "Infinity", "-Infinity", "Infinity"]}));
        // The caller finds it by its being rounded, and refuses it.
        check("n: 18446744073709551616", &json!({"n": 18_446_744_073_709_551_616_f64}));
    }

    #[test]
    fn tags_decide_what_a_word_is() {
        check(
            "a: !!str 1\nb: !!int '2'\nc: !!float 3\nd: !foo x\ne: !!bool 'yes'\nf: !!null x\ng: !!set {a, b}\nh: !!binary aGk=\ni: ! 12\n",
            &json!({"a": "1", "b": 2, "c": 3.0, "d": "x", "e": true, "f": null, "g": {"a": null, "b": null}, "h": "hi", "i": "12"}),
        );
        check_refused("a: 1\nb: !!int x", "`x` is not what its tag says at line 2, column 4");
    }

    #[test]
    fn what_is_named_can_be_repeated_and_merged() {
        check(
            "base: &b {x: 1, y: [1]}\nother: *b\nlist: [*b]\nmore:\n  <<: *b\n  y: 3\nboth:\n  <<: [{z: 1}, *b, {z: 2}]\n",
            &json!({"base": {"x": 1, "y": [1]}, "other": {"x": 1, "y": [1]}, "list": [{"x": 1, "y": [1]}],
                "more": {"y": 3, "x": 1}, "both": {"z": 1, "x": 1, "y": [1]}}),
        );
        check("a: &x 1\nb: &x 2\nc: *x\n&k key: *x", &json!({"a": 1, "b": 2, "c": 2, "key": 2}));
        check_refused(
            "o:\n  <<: 5\n",
            "what is merged by `<<` must be a mapping or a list of mappings at line 2, column 7",
        );
        check_refused("a: &a [*a]", "the alias is inside its own value at line 1, column 8");
        let levels = ('b'..'k').zip('a'..).map(|(name, last)| {
            let aliases = vec![format!("*{last}"); 9].join(", ");
            format!("{name}: &{name} [{aliases}]\n")
        });
        let laughs = format!("a: &a [x, x, x, x, x, x, x, x, x]\n{}", levels.collect::<String>());
        check_refused(&laughs, "it has too many values at line 6, column 16");
    }

    #[test]
    fn json_and_texts_of_all_kinds_are_read() {
        check(
            "{\n\t\"a\": [1, {\"b\": null}],\n\t\"c\": \"\\u00e9\\n\"\n}\n",
            &json!({"a": [1, {"b": null}], "c": "é\n"}),
        );
        check(
            "a: |\n  one\n   two\nb: >-\n  three\n  four\n",
            &json!({"a": "one\n two\n", "b": "three four"}),
        );
        check("\u{feff}%YAML 1.2\n---\n1: a\r\ntrue: b # c\r\n...\n", &json!({"1": "a", "true": "b"}));
        for text in ["", "# nothing\n", "~", "---\n"] {
            check(text, &json!({}));
        }
    }

    #[test]
    fn what_is_no_mapping_of_names_is_refused_with_its_place() {
        for (text, refused) in [
            ("- 1", "expected mapping start at line 1, column 1"),
            ("word", "expected mapping start at line 1, column 1"),
            ("a: 1\nb: 2\na: 3\n", "duplicate mapping key: a at line 3, column 1"),
            ("{\"a\": {\"b\": 1, \"b\": 2}}", "duplicate mapping key: b at line 1, column 16"),
            ("a: 1\n---\nb: 2\n", "there is more than one document at line 2, column 1"),
            ("~: a", "a key must be a text at line 1, column 1"),
            ("? [x]\n: f", "a key must be a text at line 1, column 3"),
        ] {
            check_refused(text, refused);
        }
        let deep = format!("a: {}{}", "[".repeat(100), "]".repeat(100));
        check_refused(&deep, "it is nested too deeply at line 1, column 68");
        let deeper = format!("a: {}", "[".repeat(5000));
        for text in
            [&*deeper, "a: [1", "a: b: c", "a: \"\\q\"", "a: *x", "a: @x", "a:\n  b: 1\n c: 2\n", "a: 1\n}"]
        {
            let refused = mapping(text).unwrap_err().to_string();
            assert!(refused.contains(" at line "), "{refused}");
        }
    }
}
