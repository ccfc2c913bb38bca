//! `%kernel` and `%mode`: what runs code, and which cells are code.

use std::path::PathBuf;

use cellwright_session::{Activity, SessionError, SessionInfo, duration_words};

use super::cell_run::CellRun;
use super::magics::rows;
use crate::companion::CompanionPlace;
use crate::failure::{CellFailure, FailureKind};
use crate::kernel_state::lock;
use crate::magic::{CellMode, KernelMagic};

/// The most variables that are listed.
const MOST_VARIABLES: usize = 200;

impl CellRun<'_> {
    /// Carries out `%mode`.
    pub(super) fn cells(&self, mode: Option<CellMode>) -> String {
        let state = &self.kernel.state;
        if let Some(mode) = mode {
            state.set_cells(mode);
        }
        let cells = *lock(&state.cells);
        let text = match cells {
            CellMode::Code => "a cell is code; `%%prompt` on its first line makes it a prompt",
            CellMode::Prompt => "a cell is a prompt; `%%python` or `%%run` on its first line makes it code",
        };
        text.to_owned()
    }

    /// Carries out `%notebook`.
    pub(super) fn notebook(&self, path: Option<PathBuf>) -> String {
        let state = &self.kernel.state;
        let mut notebook = lock(&state.notebook);
        if let Some(path) = path {
            *notebook = Some(state.workspace.join(path));
        }
        notebook.as_ref().map_or_else(
            || "no notebook is known; `%notebook PATH` sets it".to_owned(),
            |notebook| notebook.display().to_string(),
        )
    }

    /// Carries out `%kernel`.
    pub(super) async fn kernel_magic(&self, magic: KernelMagic) -> Result<String, CellFailure> {
        let companion = self.companion()?;
        let failed =
            |error: &dyn std::fmt::Display| CellFailure::new(FailureKind::KernelError, error.to_string());
        match magic {
            KernelMagic::Show => {
                let sessions = companion.sessions().await.map_err(|error| failed(&error))?;
                Ok(shown(&companion.place(), &sessions))
            }
            KernelMagic::Use { kernel, session } => {
                let place = companion.choose(kernel.as_deref(), session.as_deref()).await;
                let place = place.map_err(|error| failed(&error))?;
                Ok(format!("code runs in {} from now on", place.described()))
            }
            KernelMagic::Restart => {
                companion.restart(&companion.place()).await.map_err(|error| failed(&error))?;
                Ok("the next code cell starts a fresh kernel".to_owned())
            }
            KernelMagic::Variables => match companion.variables(MOST_VARIABLES).await {
                Ok(found) => {
                    let left_out = found.total.saturating_sub(found.listed.len());
                    let listed =
                        found.listed.into_iter().map(|it| (it.name, format!("{}  {}", it.kind, it.preview)));
                    let text = rows(listed).unwrap_or_else(|| "there are no variables".to_owned());
                    let more =
                        if left_out > 0 { format!("\n… and {left_out} more") } else { String::new() };
                    Ok(text + &more)
                }
                Err(SessionError::NoSession(_) | SessionError::NoKernel) => {
                    Ok("there are no variables: the kernel has not been started".to_owned())
                }
                Err(error) => Err(failed(&error)),
            },
        }
    }
}

/// The kernel that is meant, and all that run.
fn shown(place: &CompanionPlace, sessions: &[SessionInfo]) -> String {
    let lines = sessions.iter().map(|info| {
        let is_meant = info.key == place.key;
        let mark = if is_meant { '*' } else { ' ' };
        let about = match &info.kernel {
            Some(about) => about.to_string(),
            None => "not started".to_owned(),
        };
        let state = match info.activity {
            Activity::Idle => "idle".to_owned(),
            Activity::Busy { waiting: 0 } => "busy".to_owned(),
            Activity::Busy { waiting } => format!("busy, {waiting} waiting"),
        };
        let memory = info.memory.map(|bytes| format!(", {} MB", bytes >> 20)).unwrap_or_default();
        let uptime = info.uptime.map(|time| format!(", up {}", duration_words(time))).unwrap_or_default();
        (format!("{mark} {}", info.key.kernel), format!("{about}; {state}{memory}{uptime}"))
    });
    let listed = rows(lines);
    match listed {
        Some(text) if sessions.iter().any(|info| info.key == place.key) => text,
        Some(text) => format!("* {}  not started\n{text}", place.described()),
        None => format!("* {}  not started", place.described()),
    }
}
