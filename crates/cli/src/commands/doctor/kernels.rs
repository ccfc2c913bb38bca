//! Kernels beyond our own: those installed for Jupyter, and those behind a gateway.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use cellwright_jupyter::{JupyterEnvironment, KernelSpec, PythonPrefix};
use cellwright_kernel::gateway::Address;
use serde_json::json;

use super::report::{CheckStatus, DoctorCheck, DoctorReport, DoctorTopic};
use crate::commands::install::on_path;
use crate::config::LoadedConfig;

/// How long a gateway may take to list its kernels.
const GATEWAY_ANSWERS: Duration = Duration::from_secs(5);

/// Looks at kernelspecs, from the Pythons that were found, and at the gateway that is set.
pub(super) async fn examine(config: &LoadedConfig, prefixes: &[PythonPrefix], report: &mut DoctorReport) {
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
    for (name, spec) in specs {
        let trouble = if wanted.as_ref() == Some(&name) { CheckStatus::Broken } else { CheckStatus::Warning };
        report.add(match spec {
            Ok(spec) => described(config, &around, &spec, trouble),
            Err(error) => DoctorCheck::new(DoctorTopic::Jupyter, trouble, crate::exit::one_line(&error))
                .fix(format!("jupyter kernelspec remove {name}")),
        });
    }
    if let Some(url) = &config.settings.gateway.url {
        report.add(gateway(config, url).await);
    }
}

fn described(
    config: &LoadedConfig,
    around: &JupyterEnvironment<'_>,
    spec: &KernelSpec,
    trouble: CheckStatus,
) -> DoctorCheck {
    let KernelSpec { name, resource_dir, description } = spec;
    let text = format!("{name}: {} ({})", description.display_name, resource_dir.display());
    let details = json!({ "name": name, "language": description.language, "folder": resource_dir });
    let command = spec.command(Path::new("connection.json"), around.prefix_of(resource_dir));
    let program = command.first().map(String::as_str).unwrap_or_default();
    let there = if program.contains('/') {
        Path::new(program).is_file()
    } else {
        on_path(&config.environment, program).is_some()
    };
    if there {
        return DoctorCheck::good(DoctorTopic::Jupyter, text).details(details);
    }
    let why =
        if program.is_empty() { "it has no command".to_owned() } else { format!("there is no `{program}`") };
    DoctorCheck::new(DoctorTopic::Jupyter, trouble, format!("{text} cannot start: {why}"))
        .fix(format!("jupyter kernelspec remove {name}"))
        .details(details)
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
