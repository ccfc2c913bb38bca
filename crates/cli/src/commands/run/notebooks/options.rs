//! The options of a run of notebooks.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context as _;
use cellwright_cell::rounded_number;
use cellwright_notebook::select::CellSelection;
use cellwright_notebook::{CellRef, Fingerprint};
use cellwright_run::Parameter;
use serde_json::{Map, Value};

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
        let mut all = Map::new();
        for path in &self.param_file {
            all.extend(from_file(path)?);
        }
        for given in &self.param {
            all.insert(given.name.clone(), value(&given.value)?);
        }
        let raw = self.raw.iter().map(|given| (given.name.clone(), Value::from(given.value.as_str())));
        all.extend(raw);
        Ok(all.into_iter().map(|(name, value)| Parameter { name, value }).collect())
    }
}

/// What a word on the command line means: what papermill takes it for, or JSON.
fn value(text: &str) -> anyhow::Result<Value> {
    Ok(match text {
        "True" | "true" => true.into(),
        "False" | "false" => false.into(),
        "None" | "null" => Value::Null,
        _ => match serde_json::from_str::<Value>(text) {
            Ok(value) => {
                // It would be another number.
                if let Some(number) = rounded_number(text).filter(|_| !value.is_string()) {
                    anyhow::bail!(
                        "{number} has too many digits for a number here; `--raw` passes it as text"
                    );
                }
                value
            }
            Err(_) => text.into(),
        },
    })
}

fn from_file(path: &Path) -> anyhow::Result<Map<String, Value>> {
    let text = crate::commands::input(path)?;
    let values = yaml::mapping(&text)
        .map_err(|error| anyhow::anyhow!("{} does not map names to values: {error}", path.display()))?;
    if let Some(number) = values.values().any(is_large).then(|| long_integer(&text)).flatten() {
        anyhow::bail!(
            "{number} in {} has too many digits for a number here; in quotes it is passed as text",
            path.display()
        );
    }
    Ok(values)
}

/// Whether there is a number that may have been a whole one and was rounded.
fn is_large(value: &Value) -> bool {
    /// 2^63
    const LARGEST: f64 = 9_223_372_036_854_775_808.0;
    match value {
        Value::Number(number) => number.is_f64() && number.as_f64().is_some_and(|it| it.abs() >= LARGEST),
        Value::Array(items) => items.iter().any(is_large),
        Value::Object(members) => members.values().any(is_large),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
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
