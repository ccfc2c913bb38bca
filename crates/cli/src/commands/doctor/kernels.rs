//! Kernels beyond our own: those installed for Jupyter, and those behind a gateway.

use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

use cellwright_jupyter::{JupyterEnvironment, KernelSpec, PythonPrefix};
use cellwright_kernel::KernelChoice;
use cellwright_kernel::gateway::Address;
use cellwright_session::{Call, Force, Notice, Reset, SessionClient, Sessions};
use futures_util::{StreamExt as _, stream};
use serde_json::json;
use tokio::time::timeout;

use super::report::{CheckStatus, DoctorCheck, DoctorReport, DoctorTopic};
use crate::commands::install::on_path;
use crate::config::LoadedConfig;
use crate::host;

/// How long a gateway may take to list its kernels.
const GATEWAY_ANSWERS: Duration = Duration::from_secs(5);

/// How long a kernel may take to start. One that does not support Unix sockets may need half of it to find that out.
const STARTS: Duration = Duration::from_mins(1);

/// Kernels that start at the same time.
const STARTS_AT_ONCE: usize = 4;

/// Whether installed kernels are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KernelStarts {
    Tried,
    Skipped,
}

/// Looks at kernelspecs, from the Pythons that were found, and at the gateway that is set.
pub(super) async fn examine(
    config: &LoadedConfig,
    folder: &Path,
    prefixes: &[PythonPrefix],
    starts: KernelStarts,
    report: &mut DoctorReport,
) {
    let variable = |name: &str| config.environment.get(OsStr::new(name)).cloned();
    let around = JupyterEnvironment::new(&variable, prefixes.to_vec());
    let specs = KernelSpec::all(&around.kernel_path());
    let wanted = config.settings.kernel.default.strip_prefix("jupyter:").map(str::to_lowercase);
    if let Some(wanted) = wanted.as_ref().filter(|wanted| !specs.contains_key(*wanted)) {
        let message = format!("`kernel.default` asks for `{wanted}`, which is not installed");
        let origin = config.origin("kernel.default");
        report.add(
            DoctorCheck::broken(DoctorTopic::Jupyter, message)
                .fix(format!("set it to another one; it comes from {origin}")),
        );
    }
    if specs.is_empty() {
        report.add(DoctorCheck::note(DoctorTopic::Jupyter, "none installed; Python cells need none"));
    }
    let starter = KernelStarter::new(config, folder, starts);
    let checks = specs.into_iter().map(|(name, spec)| {
        let trouble = if wanted.as_ref() == Some(&name) { CheckStatus::Broken } else { CheckStatus::Warning };
        let (starter, around) = (&starter, &around);
        async move {
            match spec {
                Ok(spec) => described(config, around, &spec, trouble, starter).await,
                Err(error) => {
                    vec![
                        DoctorCheck::new(DoctorTopic::Jupyter, trouble, crate::exit::one_line(&error))
                            .fix(format!("jupyter kernelspec remove {name}")),
                    ]
                }
            }
        }
    });
    let checks: Vec<_> = stream::iter(checks).buffered(STARTS_AT_ONCE).collect().await;
    checks.into_iter().flatten().for_each(|check| report.add(check));
    starter.end().await;
    if let Some(url) = &config.settings.gateway.url {
        report.add(gateway(config, url).await);
    }
}

async fn described(
    config: &LoadedConfig,
    around: &JupyterEnvironment<'_>,
    spec: &KernelSpec,
    trouble: CheckStatus,
    starter: &KernelStarter<'_>,
) -> Vec<DoctorCheck> {
    let KernelSpec { name, resource_dir, description } = spec;
    let text = format!("{name}: {} ({})", description.display_name, resource_dir.display());
    let mut details = json!({ "name": name, "language": description.language, "folder": resource_dir });
    let command = spec.command(Path::new("connection.json"), around.prefix_of(resource_dir));
    let program = command.first().map(String::as_str).unwrap_or_default();
    let there = if program.contains('/') {
        Path::new(program).is_file()
    } else {
        on_path(&config.environment, program).is_some()
    };
    let remove = format!("jupyter kernelspec remove {name}");
    if !there {
        let why = if program.is_empty() {
            "it has no command".to_owned()
        } else {
            format!("there is no `{program}`")
        };
        let check = DoctorCheck::new(DoctorTopic::Jupyter, trouble, format!("{text} cannot start: {why}"));
        return vec![check.fix(remove).details(details)];
    }
    let Some(trial) = starter.start(name).await else {
        return vec![DoctorCheck::note(DoctorTopic::Jupyter, text).details(details)];
    };
    match trial {
        KernelTrial::Started { seconds, warnings } => {
            details["start_seconds"] = seconds.into();
            let good = DoctorCheck::good(DoctorTopic::Jupyter, format!("{text} starts")).details(details);
            let warnings = warnings.into_iter().map(|text| DoctorCheck::note(DoctorTopic::Jupyter, text));
            std::iter::once(good).chain(warnings).collect()
        }
        KernelTrial::Failed(why) => {
            let text = format!("{text} does not start: {why}");
            let check = DoctorCheck::new(DoctorTopic::Jupyter, trouble, text);
            vec![check.fix(format!("install it again, or remove it: {remove}")).details(details)]
        }
    }
}

/// Starts installed kernels the way a cell would.
struct KernelStarter<'a> {
    /// None where kernels are not started.
    sessions: Option<(Sessions, SessionClient)>,
    folder: &'a Path,
}

/// The result of starting a kernel.
enum KernelTrial {
    Started {
        seconds: f64,
        warnings: Vec<String>,
    },
    /// Why it did not start, for people.
    Failed(String),
}

impl<'a> KernelStarter<'a> {
    fn new(config: &LoadedConfig, folder: &'a Path, starts: KernelStarts) -> Self {
        let sessions = (starts == KernelStarts::Tried).then(|| {
            let mut settings = host::session_settings(config, folder);
            settings.limits.sessions = usize::MAX;
            let sessions = Sessions::new(settings);
            let client = sessions.client();
            (sessions, client)
        });
        Self { sessions, folder }
    }

    /// Starts a kernel and ends it. Returns `None` where kernels are not started.
    async fn start(&self, name: &str) -> Option<KernelTrial> {
        let (_, client) = self.sessions.as_ref()?;
        let session = "doctor".parse().expect("a valid name");
        let kernel = KernelChoice::Jupyter { name: name.into() };
        let call = Call::ensure_kernel(session, self.folder, kernel, Reset::No);
        let began = Instant::now();
        let started = timeout(STARTS, async {
            match client.call(call).await {
                Ok(running) => Ok(running.report().await),
                Err(error) => Err(crate::exit::one_line(&error)),
            }
        });
        let report = match started.await {
            Ok(Ok(report)) => report,
            Ok(Err(why)) => return Some(KernelTrial::Failed(why)),
            Err(_) => {
                let why = format!("it was not ready after {} seconds", STARTS.as_secs());
                return Some(KernelTrial::Failed(why));
            }
        };
        let seconds = began.elapsed().as_secs_f64();
        drop(client.end(&report.key, Force::Yes).await); // it may have ended by itself
        Some(match (&report.error, report.failed()) {
            (Some(error), _) => KernelTrial::Failed(crate::exit::one_line(error)),
            (None, Some(failed)) => KernelTrial::Failed(failed.output.text.text.trim_end().to_owned()),
            (None, None) => {
                let warnings = report.notices.iter().filter_map(|notice| {
                    if let Notice::Warning(text) = notice { Some(text.clone()) } else { None }
                });
                KernelTrial::Started { seconds, warnings: warnings.collect() }
            }
        })
    }

    async fn end(self) {
        if let Some((sessions, _)) = self.sessions {
            sessions.shutdown().await;
        }
    }
}

/// Whether the gateway lets us in, and what it could start.
async fn gateway(config: &LoadedConfig, url: &str) -> DoctorCheck {
    let needed = config.settings.kernel.default.split(':').next() == Some("gateway");
    let trouble = if needed { CheckStatus::Broken } else { CheckStatus::Warning };
    let origin = config.origin("gateway.url");
    let address = match Address::new(url, config.settings.gateway.token.clone()) {
        Ok(address) => address,
        Err(invalid) => {
            return DoctorCheck::new(DoctorTopic::Gateway, trouble, invalid.to_string())
                .fix(format!("change `gateway.url`; it comes from {origin}"));
        }
    };
    match address.kernels(GATEWAY_ANSWERS).await {
        Ok(kernels) if kernels.is_empty() => {
            DoctorCheck::new(DoctorTopic::Gateway, trouble, format!("{address} answers but has no kernels"))
                .fix("install one where it runs: python -m pip install ipykernel")
        }
        Ok(kernels) => DoctorCheck::good(
            DoctorTopic::Gateway,
            format!("{address} accepts us and has {}", kernels.join(", ")),
        )
        .details(json!({ "url": address.to_string(), "kernels": kernels })),
        Err(error) => DoctorCheck::new(DoctorTopic::Gateway, trouble, crate::exit::one_line(&error))
            .fix(format!("start it, or change `gateway.url`; it comes from {origin}")),
    }
}
