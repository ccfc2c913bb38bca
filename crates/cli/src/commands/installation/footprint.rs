//! What the program keeps on this machine, and how it goes.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::ValueEnum as _;
use serde_json::json;

use super::{VERSION, print_lines};
use crate::commands::install::{ClientEnvironment, InstallCommand, McpClient};
use crate::commands::kernel;
use crate::config::LoadedConfig;
use crate::host;
use crate::print::{self, OutputFormat};

/// A folder of ours.
struct OwnFolder {
    name: &'static str,
    path: PathBuf,
    contents: &'static str,
    /// Only goes when it is asked for by name: the user wrote it.
    is_users: bool,
}

fn folders(config: &LoadedConfig) -> Vec<OwnFolder> {
    let places = &config.places;
    let folder =
        |name, path: &Path, contents| OwnFolder { name, path: path.to_owned(), contents, is_users: false };
    vec![
        OwnFolder {
            is_users: true,
            ..folder("settings", &places.config, "your settings and extension modules")
        },
        folder("data", &places.data, "the Python environment of `cellwright setup python`"),
        folder("cache", &places.cache, "the unpacked Python runner"),
        folder(
            "state",
            &places.state,
            "outputs kept whole, earlier versions of notebooks for undo, journals",
        ),
        folder("runtime", &places.runtime, "sockets and tokens of running processes"),
    ]
}

/// Why writing to one cannot fail.
const STRING: &str = "a String takes everything";

pub(super) fn print_paths(format: OutputFormat) -> anyhow::Result<()> {
    let config = LoadedConfig::load(&std::env::current_dir()?, Vec::new())?;
    let program = std::env::current_exe().context("could not find this program")?;
    let mut text = format!("cellwright {VERSION}\n\n{:<9} {}\n", "program", program.display());
    let mut rows = Vec::new();
    for folder in folders(&config) {
        let bytes = folder.path.exists().then(|| size(&folder.path));
        let taken = bytes.map_or_else(|| "not there yet".to_owned(), megabytes);
        writeln!(text, "{:<9} {}  ({}; {taken})", folder.name, folder.path.display(), folder.contents)
            .expect(STRING);
        rows.push(
            json!({"name": folder.name, "path": folder.path, "bytes": bytes, "contents": folder.contents}),
        );
    }
    let kernels: Vec<PathBuf> =
        kernel::installed(&config).into_iter().map(|spec| spec.resource_dir).collect();
    for kernel in &kernels {
        writeln!(text, "{:<9} {}", "kernel", kernel.display()).expect(STRING);
    }
    let value = json!({"version": VERSION, "program": program, "folders": rows, "kernels": kernels});
    print_lines(format, &value, &text)
}

/// What to remove, and whether to.
#[derive(Debug, clap::Args)]
pub(super) struct UninstallArguments {
    /// Remove it; without this the command only shows what it would remove
    #[arg(long)]
    yes: bool,
    /// Remove your own settings and extension modules, too
    #[arg(long)]
    settings: bool,
}

impl UninstallArguments {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let folder = std::env::current_dir()?;
        let config = LoadedConfig::load(&folder, Vec::new())?;
        refuse_while_sessions_run(&config)?;
        let variables: HashMap<OsString, OsString> = std::env::vars_os().collect();
        let around = ClientEnvironment { variables: &variables, folder: &folder };
        let clients: Vec<(McpClient, PathBuf)> = McpClient::value_variants()
            .iter()
            .filter_map(|client| Some((*client, client.file_with_our_entry(around)?)))
            .collect();
        let kernels = kernel::installed(&config);
        let (going, staying): (Vec<_>, Vec<_>) = folders(&config)
            .into_iter()
            .filter(|folder| folder.path.exists())
            .partition(|folder| self.settings || !folder.is_users);

        if self.yes {
            host::block_on(&host::small_runtime()?, host::shared_gateway(&config, &folder).stop())?;
            for (client, _) in &clients {
                InstallCommand::removal(*client).run()?;
            }
            for kernel in &kernels {
                cellwright_acp::spec::remove(kernel)?;
            }
            for folder in &going {
                std::fs::remove_dir_all(&folder.path)
                    .with_context(|| format!("could not remove {}", folder.path.display()))?;
            }
        }
        let verb = if self.yes { "removed" } else { "would remove" };
        let mut text = String::new();
        if !self.yes {
            for (client, path) in &clients {
                writeln!(text, "{verb} the entry of {} in {}", client.title(), path.display()).expect(STRING);
            }
        }
        for kernel in &kernels {
            writeln!(text, "{verb} the kernel {}", kernel.resource_dir.display()).expect(STRING);
        }
        for folder in &going {
            writeln!(text, "{verb} {}: {}", folder.path.display(), folder.contents).expect(STRING);
        }
        for folder in &staying {
            writeln!(text, "{} stays: {}; --settings removes it", folder.path.display(), folder.contents)
                .expect(STRING);
        }
        if !self.yes {
            text.push_str("nothing was removed; add --yes to remove all of this\n");
        }
        writeln!(text, "to remove the program: {}", removal_of(&std::env::current_exe()?)).expect(STRING);
        print::plain(&text)
    }
}

/// Their variables would be lost, and a daemon without its folder is out of reach.
fn refuse_while_sessions_run(config: &LoadedConfig) -> anyhow::Result<()> {
    let socket = host::daemon_place(config).socket();
    anyhow::ensure!(
        UnixStream::connect(socket).is_err(),
        "the session daemon is running: `cellwright session list` lists its sessions, `cellwright session end` ends \
         them, and a minute later the daemon ends, too"
    );
    Ok(())
}

/// The command that removes the program, by the way it was installed.
fn removal_of(program: &Path) -> String {
    let path = program.display();
    let bin = program.parent().unwrap_or(Path::new("/"));
    let within = |part: &str| program.components().any(|component| component.as_os_str() == part);
    if within("uv") && within("tools") {
        "uv tool uninstall cellwright".to_owned()
    } else if bin.join("python").exists() {
        format!("{} -m pip uninstall cellwright", bin.join("python").display())
    } else if within(".cargo") {
        "cargo uninstall cellwright-cli".to_owned()
    } else {
        format!("rm {path}")
    }
}

/// The bytes of the files in a folder. Links are not followed.
fn size(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    let of = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.filter_map(Result::ok).map(of).sum()
}

fn megabytes(bytes: u64) -> String {
    // Tenths of a megabyte, in whole numbers.
    let tenths = bytes.div_ceil(100_000);
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{megabytes, removal_of};

    #[test]
    fn an_uninstall_names_the_command_that_fits_the_installation() {
        assert_eq!(
            removal_of(Path::new("/home/u/.local/share/uv/tools/cellwright/bin/cellwright")),
            "uv tool uninstall cellwright"
        );
        assert_eq!(removal_of(Path::new("/home/u/.cargo/bin/cellwright")), "cargo uninstall cellwright-cli");
        assert_eq!(removal_of(Path::new("/opt/cellwright")), "rm /opt/cellwright");
    }

    #[test]
    fn sizes_are_rounded_up() {
        assert_eq!(
            [0, 1, 250_000, 1_000_000].map(megabytes),
            ["0.0 MB", "0.1 MB", "0.3 MB", "1.0 MB"].map(str::to_owned)
        );
    }
}
