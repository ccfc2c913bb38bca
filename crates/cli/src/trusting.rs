//! Asking the user, once, whether what a project brings may run.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use cellwright_output::visible_line;
use cellwright_ownership::{TrustAnswer, UntrustedFolder};

use crate::config::LoadedConfig;
use crate::print;

/// The settings after the user was asked about the project that `folder` is in. Where nobody can be asked, a note says
/// what is not used. Neither happens twice for the same project, unless its settings or modules change.
pub(crate) fn settled(config: LoadedConfig, folder: &Path) -> anyhow::Result<LoadedConfig> {
    let Some(project) = config.untrusted(folder).filter(|project| project.answer.is_none()) else {
        return Ok(config);
    };
    let answer = if io::stdin().is_terminal() && io::stderr().is_terminal() {
        asked(&project)?
    } else {
        print::note(&project.to_string());
        TrustAnswer::Told
    };
    match (config.places.trust_records().answered(&project, answer), answer) {
        // Where nothing can be stored it is said again.
        (Ok(()), _) | (Err(_), TrustAnswer::Told) => {}
        (Err(error), TrustAnswer::Trusted | TrustAnswer::Declined) => {
            return Err(error).context("the answer could not be stored");
        }
    }
    match answer {
        TrustAnswer::Trusted => LoadedConfig::load(folder, Vec::new()),
        TrustAnswer::Declined | TrustAnswer::Told => Ok(config),
    }
}

fn asked(project: &UntrustedFolder) -> anyhow::Result<TrustAnswer> {
    let mut stderr = io::stderr().lock();
    writeln!(stderr, "{} brings code that would run as you:", visible_line(&project.root.to_string_lossy()))?;
    for path in &project.brings {
        writeln!(stderr, "  {}", visible_line(&path.to_string_lossy()))?;
    }
    write!(stderr, "Do you trust it? [y/N] ")?;
    stderr.flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let is_yes = matches!(line.trim().to_lowercase().as_str(), "y" | "yes");
    if !is_yes {
        writeln!(stderr, "It is not used. `cellwright trust` changes that.")?;
    }
    Ok(if is_yes { TrustAnswer::Trusted } else { TrustAnswer::Declined })
}

/// Stores that the user trusts the project that `folder` is in. Returns its folder.
pub(crate) fn trust(folder: &Path) -> anyhow::Result<PathBuf> {
    let folder = folder.canonicalize().with_context(|| format!("{} is not a folder", folder.display()))?;
    let config = load(&folder)?;
    let records = config.places.trust_records();
    let root = if let Some(project) = config.untrusted(&folder) {
        records.answered(&project, TrustAnswer::Trusted).context("it could not be stored")?;
        project.root
    } else {
        let trust = config.trust();
        let root = trust.project_of(&folder).last().map_or(folder.clone(), |root| (*root).to_owned());
        records.store([root.as_path()], TrustAnswer::Trusted).context("it could not be stored")?;
        root
    };
    // Wrong settings of the project are reported now, and not by the next command.
    load(&folder)?;
    Ok(root)
}

fn load(folder: &Path) -> anyhow::Result<LoadedConfig> {
    LoadedConfig::load(folder, Vec::new())
}
