//! The options of a run of notebooks.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context as _;
use cellwright_cell::rounded_number;
use cellwright_notebook::select::CellSelection;
use cellwright_notebook::{CellRef, Fingerprint};
use cellwright_run::{Parameter, ParameterValue};
use serde_json::Value;

use super::check::CheckMode;
use super::yaml;

#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Notebooks")]
#[expect(clippy::struct_excessive_bools, reason = "a table of flags")]
pub(crate) struct NotebookRunFlags {
    /// Write the notebook with its outputs to another file
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Run only these cells: `2,5-7`, `5-`, `id:abcd1234`, `"A heading"`
    #[arg(long, value_name = "CELLS", conflicts_with = "from")]
    pub(super) cells: Option<CellSelection>,
    /// Run this cell and all cells after it
    #[arg(long, value_name = "CELL")]
    pub(super) from: Option<CellRef>,
    /// Refuse unless the notebook has this fingerprint, which `read --json` prints
    #[arg(long, value_name = "FINGERPRINT", value_parser = crate::commands::parse_fingerprint)]
    pub(super) expect: Option<Fingerprint>,
    /// Set a parameter: a number, true, false, null, JSON, or text
    #[arg(short, long = "param", value_name = "NAME=VALUE")]
    param: Vec<ParameterArgument>,
    /// Set a parameter to this text
    #[arg(short, long = "raw", value_name = "NAME=TEXT")]
    raw: Vec<ParameterArgument>,
    /// Read parameters from a YAML or JSON file
    #[arg(short = 'f', long = "param-file", value_name = "FILE")]
    param_file: Vec<PathBuf>,
    /// Continue after cells that raise an exception
    #[arg(long)]
    pub(super) allow_errors: bool,
    /// Do not store in the notebook when each cell ran
    #[arg(long)]
    pub(super) no_timing: bool,
    /// Store in the notebook what it ran with: kernel, parameters, Python, platform, packages
    #[arg(long)]
    pub(super) record: bool,
    /// Write a `JUnit` report, one test case for each cell
    #[arg(long, value_name = "FILE")]
    pub(super) junit: Option<PathBuf>,
    /// Write a folder of HTML pages: one for each notebook with its outputs, and index.html, which lists them
    #[arg(long, value_name = "FOLDER")]
    pub(super) report: Option<PathBuf>,
    /// Compare the outputs with those in the notebook, show what differs, and leave the file as it is
    #[arg(
        long,
        value_name = "HOW",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "usual",
        conflicts_with_all = ["output", "record", "param", "raw", "param_file", "allow_errors"]
    )]
    pub(super) check: Option<CheckMode>,
    /// With --check: replace what these patterns find before comparing (nbval's format)
    #[arg(long, value_name = "FILE", requires = "check")]
    pub(super) sanitize: Option<PathBuf>,
    /// Report only failures
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// How many notebooks to run at once
    #[arg(short, long, value_name = "COUNT")]
    pub(super) jobs: Option<usize>,
}

/// `NAME=VALUE`
#[derive(Debug, Clone)]
struct ParameterArgument {
    name: String,
    value: String,
}

impl FromStr for ParameterArgument {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (name, value) = text.split_once('=').context("it needs a `=`: NAME=VALUE")?;
        Ok(Self { name: name.trim().to_owned(), value: value.to_owned() })
    }
}

impl NotebookRunFlags {
    /// The parameters. If one is given twice, the later one wins; the command line wins over files.
    pub(super) fn parameters(&self) -> anyhow::Result<Vec<Parameter>> {
        let mut all: Vec<Parameter> = Vec::new();
        let mut set = |name: String, value| match all.iter_mut().find(|earlier| earlier.name == name) {
            Some(earlier) => earlier.value = value,
            None => all.push(Parameter { name, value }),
        };
        for path in &self.param_file {
            from_file(path)?.into_iter().for_each(|(name, value)| set(name, value));
        }
        for given in &self.param {
            set(given.name.clone(), value(&given.value)?);
        }
        for given in &self.raw {
            set(given.name.clone(), ParameterValue::String(given.value.clone()));
        }
        Ok(all)
    }
}

/// What a word on the command line means: what papermill takes it for (numbers as Python reads them), or JSON.
fn value(text: &str) -> anyhow::Result<ParameterValue> {
    Ok(match text {
        "True" | "true" => ParameterValue::Bool(true),
        "False" | "false" => ParameterValue::Bool(false),
        "None" | "null" => ParameterValue::Null,
        _ => match serde_json::from_str::<Value>(text) {
            Ok(value) => {
                // It would be another number.
                if let Some(number) = rounded_number(text).filter(|_| !value.is_string()) {
                    anyhow::bail!(
                        "{number} has too many digits for a number here; `--raw` passes it as text"
                    );
                }
                value.into()
            }
            Err(_) => number(text)?.unwrap_or_else(|| ParameterValue::String(text.to_owned())),
        },
    })
}

/// A number that Python reads and JSON does not have: `.5`, `5.`, `+5`, `1_000`, `007`, `NaN`, `inf`.
fn number(text: &str) -> anyhow::Result<Option<ParameterValue>> {
    let word = text.trim();
    let unsigned = word.strip_prefix(['-', '+']).unwrap_or(word);
    // An underscore separates two digits.
    let is_grouped = |at: usize| {
        let digit =
            |at: Option<usize>| at.and_then(|at| unsigned.as_bytes().get(at)).is_some_and(u8::is_ascii_digit);
        digit(at.checked_sub(1)) && digit(at.checked_add(1))
    };
    if !unsigned.match_indices('_').all(|(at, _)| is_grouped(at)) {
        return Ok(None);
    }
    let digits = unsigned.replace('_', "");
    let sign = if word.starts_with('-') { "-" } else { "" };
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let plain = digits.trim_start_matches('0');
        let whole = format!("{sign}{}", if plain.is_empty() { "0" } else { plain });
        if let Some(number) = rounded_number(&whole) {
            anyhow::bail!("{number} has too many digits for a number here; `--raw` passes it as text");
        }
        return Ok(serde_json::from_str::<Value>(&whole).ok().map(Into::into));
    }
    // Rust reads what Python does, except for underscores.
    Ok(format!("{sign}{digits}").parse::<f64>().ok().map(Into::into))
}

fn from_file(path: &Path) -> anyhow::Result<Vec<(String, ParameterValue)>> {
    let text = crate::commands::input(path)?;
    let values = yaml::mapping(&text)
        .map_err(|error| anyhow::anyhow!("{} does not map names to values: {error}", path.display()))?;
    if let Some(number) =
        values.iter().any(|(_, value)| is_large(value)).then(|| long_integer(&text)).flatten()
    {
        anyhow::bail!(
            "{number} in {} has too many digits for a number here; in quotes it is passed as text",
            path.display()
        );
    }
    Ok(values)
}

/// Whether there is a number that may have been a whole one and was rounded.
fn is_large(value: &ParameterValue) -> bool {
    /// 2^63
    const LARGEST: f64 = 9_223_372_036_854_775_808.0;
    match value {
        ParameterValue::Number(number) => {
            number.is_f64() && number.as_f64().is_some_and(|it| it.abs() >= LARGEST)
        }
        ParameterValue::Array(items) => items.iter().any(is_large),
        ParameterValue::Object(members) => members.iter().any(|(_, value)| is_large(value)),
        ParameterValue::Null
        | ParameterValue::Bool(_)
        | ParameterValue::NotFinite(_)
        | ParameterValue::String(_) => false,
    }
}

/// The first word of a YAML text that is a whole number beyond 64 bits.
fn long_integer(text: &str) -> Option<&str> {
    let mut words = text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ':' | '[' | ']' | '{' | '}'));
    words.find(|word| {
        let digits = word.trim_start_matches(['-', '+']);
        let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
        is_whole && rounded_number(&digits.replace('_', "")).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What papermill's `_resolve_type` makes of them, checked by hand against papermill 2.7.
    #[test]
    fn numbers_are_what_papermill_takes_them_for() {
        for (text, read) in [
            (".5", "0.5"),
            ("-.5", "-0.5"),
            ("5.", "5.0"),
            ("+5", "5"),
            ("1_000", "1000"),
            ("1_0.5", "10.5"),
            ("007", "7"),
            ("-007", "-7"),
            (" 5 ", "5"),
            ("1e3", "1000.0"),
            ("NaN", "\"NaN\""),
            ("nan", "\"NaN\""),
            ("inf", "\"Infinity\""),
            ("-Infinity", "\"-Infinity\""),
            ("1e400", "\"Infinity\""),
        ] {
            let value = value(text).unwrap();
            assert!(!matches!(value, ParameterValue::String(_)), "{text}");
            assert_eq!(value.to_json().to_string(), read, "{text}");
        }
        for text in ["0x10", "1__0", "_1", "1_", "1_.5", "five", "", "-", "1.2.3", "TRUE", "nano"] {
            assert_eq!(value(text).unwrap(), ParameterValue::String(text.to_owned()));
        }
        assert!(value("+100000000000000000000").is_err());
    }
}
