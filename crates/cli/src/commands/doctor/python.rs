//! Which Python runs cells, why, and whether it does.

use std::path::Path;
use std::time::{Duration, Instant};

use cellwright_jupyter::PythonPrefix;
use cellwright_kernel::interpreter::{Candidate, PythonOrigin};
use cellwright_kernel::runner::{ExaminedPython, RejectedPython, RunnerReady};
use cellwright_session::{Call, CallReport, CellRequest, Notice, SessionClient, Sessions, Timeout};
use serde::Deserialize;
use serde_json::{Value, json};

use super::report::{DoctorCheck, DoctorReport, DoctorTopic, shell};
use crate::config::LoadedConfig;
use crate::host;

/// How often `1` is run for the time it takes.
const ROUND_TRIPS: usize = 20;

/// How long importing the optional packages may take.
const IMPORTS: Duration = Duration::from_mins(1);

/// Packages that make more possible, and what.
const OPTIONAL: &[(&str, &str, &str)] = &[
    ("IPython", "ipython", "every %magic, `?` and rich tracebacks; without it the built-in ones"),
    ("ipykernel", "ipykernel", "the same environment as a kernel in Jupyter"),
    ("matplotlib", "matplotlib", "plots"),
];

/// Looks at every Python in the order a kernel's start would, starts the first that works, and runs cells in it. Returns where the
/// Pythons are, best first.
pub(super) async fn examine(
    config: &LoadedConfig,
    folder: &Path,
    report: &mut DoctorReport,
) -> Vec<PythonPrefix> {
    let launch = host::launch(config, folder);
    let examined = match launch.examine().await {
        Ok(examined) => examined,
        Err(error) => {
            report.add(DoctorCheck::broken(DoctorTopic::Python, crate::exit::one_line(&error)));
            return Vec::new();
        }
    };
    let mut chosen = None;
    let mut prefixes: Vec<PythonPrefix> = Vec::new();
    for found in examined {
        match found {
            ExaminedPython::Works(candidate, ready) => {
                prefixes.extend(candidate.prefixes());
                report.add(working(&candidate, &ready, chosen.is_none()));
                chosen.get_or_insert((candidate, ready));
            }
            ExaminedPython::Rejected(rejected) => report.add(unusable(config, &rejected, chosen.is_some())),
        }
    }
    match chosen {
        Some((candidate, _)) => run(config, folder, &candidate, report).await,
        // A Python that was named is the only one that was tried, and has been reported.
        None if config.settings.python.path.is_some() => {}
        None => report.add(none()),
    }
    prefixes
}

fn working(candidate: &Candidate, ready: &RunnerReady, chosen: bool) -> DoctorCheck {
    let Candidate { python, origin } = candidate;
    let text = format!("{} {} at {} ({origin})", ready.implementation, ready.version, python.display());
    let details = json!({
        "python": python, "origin": origin.to_string(), "works": true, "chosen": chosen,
        "version": ready.version, "implementation": ready.implementation, "prefix": ready.prefix,
    });
    let check = if chosen {
        DoctorCheck::good(DoctorTopic::Python, format!("{text} runs cells"))
    } else {
        DoctorCheck::note(DoctorTopic::Python, format!("{text} works too"))
    };
    check.details(details)
}

/// A Python that was meant to be used and does not work is worth a warning. One that just exists is not.
fn unusable(config: &LoadedConfig, rejected: &RejectedPython, after_chosen: bool) -> DoctorCheck {
    let RejectedPython { python, origin, why } = rejected;
    let text = format!("{} ({origin}) is not used: {why}", python.display());
    let details =
        json!({ "python": python, "origin": origin.to_string(), "works": false, "why": why.to_string() });
    let venv = shell(python.parent().and_then(Path::parent).unwrap_or(python));
    let fix = match origin {
        PythonOrigin::Path => None,
        // Nobody waits for it while a better one works.
        PythonOrigin::Explicit
        | PythonOrigin::Active
        | PythonOrigin::Project
        | PythonOrigin::Uv
        | PythonOrigin::Conda
        | PythonOrigin::Pyenv
            if after_chosen =>
        {
            None
        }
        PythonOrigin::Explicit => {
            let origin = config.origin("python.path");
            let fix = format!("set `python.path` to one that works; it comes from {origin}");
            return DoctorCheck::broken(DoctorTopic::Python, text).fix(fix).details(details);
        }
        PythonOrigin::Active => Some("deactivate it, or make it again where its Python is".to_owned()),
        PythonOrigin::Project => {
            Some(format!("python3 -m venv --clear {venv}, then install its packages again"))
        }
        PythonOrigin::Uv => Some("uv sync".to_owned()),
        PythonOrigin::Conda => Some("conda deactivate, or conda install python".to_owned()),
        PythonOrigin::Pyenv => Some("pyenv install".to_owned()),
        PythonOrigin::Managed => Some("cellwright setup python --force".to_owned()),
    };
    match fix {
        Some(fix) => DoctorCheck::warning(DoctorTopic::Python, text).fix(fix),
        None => DoctorCheck::note(DoctorTopic::Python, text),
    }
    .details(details)
}

fn none() -> DoctorCheck {
    DoctorCheck::broken(DoctorTopic::Python, "no Python can run cells")
        .fix("install Python 3.8 or newer, or uv and then run: cellwright setup python")
}

/// Runs cells by the steps of `cellwright run`, and takes the time.
async fn run(config: &LoadedConfig, folder: &Path, candidate: &Candidate, report: &mut DoctorReport) {
    let sessions = Sessions::new(host::session_settings(config, folder));
    let client = sessions.client();
    let one = || CellRequest::new("1");
    let began = Instant::now();
    let first = match call(&client, folder, one()).await {
        Ok(first) => first,
        Err(why) => {
            report.add(DoctorCheck::broken(DoctorTopic::Kernel, format!("a cell could not run: {why}")));
            return;
        }
    };
    let started = began.elapsed();
    let mut trips = Vec::new();
    for _ in 0..ROUND_TRIPS {
        let began = Instant::now();
        if let Err(why) = call(&client, folder, one()).await {
            report.add(DoctorCheck::broken(
                DoctorTopic::Kernel,
                format!("the second cell could not run: {why}"),
            ));
            return;
        }
        trips.push(began.elapsed());
    }
    trips.sort_unstable();
    let trip = trips[ROUND_TRIPS / 2];
    let text = format!(
        "first result after {}, a later one after {} (median of {ROUND_TRIPS})",
        milliseconds(started),
        milliseconds(trip)
    );
    let details =
        json!({ "first_result_seconds": started.as_secs_f64(), "round_trip_seconds": trip.as_secs_f64() });
    report.add(DoctorCheck::good(DoctorTopic::Kernel, text).details(details));
    for notice in &first.notices {
        // Pythons that were passed over are reported above.
        if let Notice::Warning(warning) = notice
            && !warning.starts_with("not used: ")
        {
            let fix = "correct the file it names, or remove it from the `modules` folder";
            report.add(DoctorCheck::warning(DoctorTopic::Kernel, warning.clone()).fix(fix));
        }
    }
    packages(&client, folder, candidate, report).await;
    sessions.shutdown().await;
}

async fn call(
    client: &SessionClient,
    folder: &Path,
    cell: CellRequest,
) -> anyhow::Result<std::sync::Arc<CallReport>> {
    let session = "doctor".parse().expect("a valid name");
    let running = client.call(Call::new(session, folder, vec![cell])).await;
    let report = running.map_err(|error| anyhow::anyhow!(crate::exit::one_line(&error)))?.report().await;
    match (&report.error, report.failed()) {
        (None, None) => Ok(report),
        (Some(error), _) => anyhow::bail!("{error}"),
        (None, Some(cell)) => anyhow::bail!("{}", cell.output.text.text.trim_end()),
    }
}

/// The result of importing a package.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum ImportResult {
    Version(String),
    Error(String),
    Missing,
}

async fn packages(client: &SessionClient, folder: &Path, candidate: &Candidate, report: &mut DoctorReport) {
    let names: Vec<_> = OPTIONAL.iter().map(|(module, ..)| module).collect();
    let code = format!("{PROBE}\nprint(_probe({}))", json!(names));
    let cell = CellRequest { timeout: Timeout::After(IMPORTS), ..CellRequest::new(code) };
    let found: Vec<ImportResult> = match call(client, folder, cell).await {
        Ok(report) => serde_json::from_str(last_line(&report)).unwrap_or_default(),
        Err(why) => {
            report.add(DoctorCheck::warning(DoctorTopic::Kernel, format!("could not check packages: {why}")));
            return;
        }
    };
    for ((module, package, purpose), import) in OPTIONAL.iter().zip(found) {
        let install = match candidate.origin {
            PythonOrigin::Managed => format!("cellwright setup python --with {package}"),
            _ => format!("{} -m pip install {package}", shell(&candidate.python)),
        };
        let (check, version) = match import {
            ImportResult::Version(version) => (
                DoctorCheck::good(DoctorTopic::Kernel, format!("{module} {version}: {purpose}")),
                Value::from(version),
            ),
            ImportResult::Missing => {
                let text = format!("no {module} (optional: {purpose})");
                (DoctorCheck::note(DoctorTopic::Kernel, text).fix(install), Value::Null)
            }
            ImportResult::Error(why) => {
                let text = format!("{module} is installed but cannot be imported: {why}");
                (
                    DoctorCheck::warning(DoctorTopic::Kernel, text)
                        .fix(format!("{install} --force-reinstall")),
                    Value::Null,
                )
            }
        };
        report.add(check.details(json!({ "module": module, "version": version })));
    }
}

/// Imports packages, since one that is there may still be broken.
const PROBE: &str = r#"
def _probe(names):
    import importlib, json
    def one(name):
        try:
            return {"version": str(getattr(importlib.import_module(name), "__version__", "(no version)"))}
        except ModuleNotFoundError as error:
            return "missing" if error.name == name else {"error": str(error)}
        except BaseException as error:
            return {"error": f"{type(error).__name__}: {error}"}
    return json.dumps([one(name) for name in names])"#;

/// What the probe printed, below what a package may print while it is imported.
fn last_line(report: &CallReport) -> &str {
    report.cells[0].output.text.text.trim_end().lines().last().unwrap_or_default()
}

fn milliseconds(time: Duration) -> String {
    let milliseconds = time.as_secs_f64() * 1000.0;
    if milliseconds < 10.0 { format!("{milliseconds:.1} ms") } else { format!("{milliseconds:.0} ms") }
}
