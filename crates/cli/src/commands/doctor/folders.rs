//! Folders: are they there, may we write, does anybody else; and what earlier runs left in them.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::process::geteuid;
use serde_json::json;

use super::report::{CheckStatus, DoctorCheck, DoctorReport, DoctorTopic, shell};
use crate::config::LoadedConfig;

/// Artifacts are reported from this size on.
const MANY_ARTIFACTS: u64 = 1 << 30;

/// Looks at the folders we keep things in.
pub(super) fn examine(config: &LoadedConfig, report: &mut DoctorReport) {
    let places = &config.places;
    let artifacts = config.settings.output.artifacts.as_ref();
    for (name, path, trouble) in [
        ("config", Some(&places.config), CheckStatus::Note),
        ("data", Some(&places.data), CheckStatus::Warning),
        ("cache", Some(&places.cache), CheckStatus::Broken), // the runner is unpacked there
        ("state", Some(&places.state), CheckStatus::Warning),
        ("runtime", Some(&places.runtime), CheckStatus::Warning),
        ("artifacts", artifacts, CheckStatus::Warning),
    ] {
        if let Some(path) = path {
            report.add(folder(name, path, trouble));
        }
    }
}

fn folder(name: &str, path: &Path, trouble: CheckStatus) -> DoctorCheck {
    let shown = path.display();
    let (there, metadata) = nearest(path);
    let exists = there == path;
    let mode = metadata.as_ref().map(|metadata| metadata.mode() & 0o7777);
    let details = json!({
        "name": name, "path": path, "exists": exists,
        "mode": mode.filter(|_| exists).map(|mode| format!("{mode:04o}")),
    });
    let bad = |status, text: String, fix: String| {
        DoctorCheck::new(DoctorTopic::Folders, status, text).fix(fix).details(details.clone())
    };
    let at = shell(there);
    if metadata.as_ref().is_some_and(|metadata| !metadata.is_dir()) {
        return bad(
            trouble,
            format!("{name}: {} is not a folder", there.display()),
            format!("mv {at} {at}.old"),
        );
    }
    if access(there, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let text = format!("{name}: {shown} cannot be written");
        return bad(trouble, text, format!("sudo chown -R $(id -u) {at} && chmod u+rwx {at}"));
    }
    let foreign = metadata.as_ref().is_some_and(|metadata| metadata.uid() != geteuid().as_raw());
    // A user that may write there can hand us code to run, or listen at our sockets.
    let open = mode.is_some_and(|mode| mode & 0o022 != 0);
    if exists && (foreign || open) {
        let text = format!("{name}: others may write to {shown}");
        return bad(CheckStatus::Warning, text, format!("chmod go-w {at}"));
    }
    let text = match mode.filter(|_| exists) {
        Some(mode) => format!("{name}: {shown} (mode {mode:04o})"),
        None => format!("{name}: {shown} (made when needed)"),
    };
    DoctorCheck::good(DoctorTopic::Folders, text).details(details)
}

/// The folder, or the nearest above it that is there.
fn nearest(path: &Path) -> (&Path, Option<fs::Metadata>) {
    let mut above = path.ancestors().map(|path| (path, fs::metadata(path)));
    let found = above.find_map(|(path, metadata)| Some((path, Some(metadata.ok()?))));
    found.unwrap_or((path, None))
}

/// Looks for what earlier runs left behind.
pub(super) fn leftovers(config: &LoadedConfig, report: &mut DoctorReport) {
    for socket in entries(&config.places.runtime) {
        let refused =
            UnixStream::connect(&socket).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        if refused && socket.metadata().is_ok_and(|metadata| metadata.mode() & 0o170_000 == 0o140_000) {
            let text = format!("{} is the socket of a program that is gone", socket.display());
            report.add(DoctorCheck::note(DoctorTopic::Leftovers, text).fix(format!("rm {}", shell(&socket))));
        }
    }
    let runners = config.places.cache.join("runner");
    let versions = entries(&runners).len();
    if versions > 1 {
        let text = format!("{} holds the runner of {versions} versions", runners.display());
        report.add(DoctorCheck::note(DoctorTopic::Leftovers, text).fix(format!("rm -r {}", shell(&runners))));
    }
    let artifacts =
        config.settings.output.artifacts.clone().unwrap_or_else(|| config.places.state.join("artifacts"));
    let size: u64 = files_below(&artifacts).filter_map(|file| Some(file.metadata().ok()?.len())).sum();
    if size > MANY_ARTIFACTS {
        let text = format!("{} holds {} MB of outputs", artifacts.display(), size >> 20);
        report
            .add(DoctorCheck::note(DoctorTopic::Leftovers, text).fix(format!("rm -r {}", shell(&artifacts))));
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries
}

fn files_below(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let mut waiting = entries(folder);
    std::iter::from_fn(move || {
        let next = waiting.pop()?;
        if !next.is_symlink() && next.is_dir() {
            waiting.extend(entries(&next));
        }
        Some(next)
    })
    .filter(|path| path.is_file())
}
