//! Which session a call of `kernel` means: the one that `eval` would use if it were called alike.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use cellwright_kernel::KernelChoice;
use cellwright_session::{SessionId, SessionInfo};

use crate::eval;
use crate::notebook::session_of;
use crate::reply::ToolFailure;
use crate::toolbox::{CallContext, ToolboxState};

/// How a call names a session.
#[derive(Debug, Clone, Copy)]
pub(super) struct SessionReference<'a> {
    pub(super) session: Option<&'a str>,
    pub(super) cwd: Option<&'a str>,
    pub(super) language: Option<&'a str>,
}

/// What `eval` would run in.
struct EvalTarget {
    session: SessionId,
    cwd: PathBuf,
    /// `None` where any kernel will do.
    kernel: Option<KernelChoice>,
    /// Sessions of that name in other folders are not meant.
    only_here: bool,
}

/// The session that is meant. Refused if there is none, or if several could be meant.
pub(super) async fn find(
    shared: &Arc<ToolboxState>,
    context: &CallContext,
    named: SessionReference<'_>,
) -> Result<SessionInfo, ToolFailure> {
    let client = &context.client;
    let target = target(shared, context, named).await?;
    let mut sessions = client.sessions().await?.sessions().await?;
    sessions.retain(|known| known.key.session == target.session);
    let is_here = |known: &SessionInfo| known.key.cwd == target.cwd;
    let is_meant =
        |known: &SessionInfo| target.kernel.as_ref().is_none_or(|kernel| known.key.kernel == *kernel);
    if let Some(exact) = sessions.iter().find(|known| is_here(known) && is_meant(known)) {
        return Ok(exact.clone());
    }
    let elsewhere: Vec<_> = sessions.iter().filter(|known| !is_here(known)).cloned().collect();
    if target.only_here || sessions.iter().any(is_here) {
        sessions.retain(is_here);
    }
    if named.language.is_some() {
        sessions.retain(is_meant);
    }
    let name = named.session.unwrap_or(client.names.default.as_str());
    match sessions.as_slice() {
        [only] => Ok(only.clone()),
        [] => {
            let mut message = format!("there is no session `{name}`; eval starts one");
            if !elsewhere.is_empty() {
                message.push_str(". One of that name is in another folder: ");
                message.push_str(&listed(&elsewhere));
            }
            Err(ToolFailure::new(message))
        }
        several => Err(ToolFailure::new(format!(
            "`{name}` names several sessions; say which with \"cwd\" or \"language\": {}",
            listed(several)
        ))),
    }
}

fn listed(sessions: &[SessionInfo]) -> String {
    let place = |known: &SessionInfo| format!("{} ({})", known.key.cwd.display(), known.key.kernel);
    sessions.iter().map(place).collect::<Vec<_>>().join(", ")
}

async fn target(
    shared: &Arc<ToolboxState>,
    context: &CallContext,
    named: SessionReference<'_>,
) -> Result<EvalTarget, ToolFailure> {
    let client = &context.client;
    let workspace = client.workspace();
    if let Some(path) = named.session.filter(|session| eval::is_notebook(session)) {
        if let Ok(key) = session_of(shared, context, path).await {
            return Ok(EvalTarget {
                session: key.session,
                cwd: key.cwd,
                kernel: Some(key.kernel),
                only_here: true,
            });
        }
        // It may have been removed since its cells ran.
        let place = workspace.place(path)?;
        let name = place.path.file_name().map(|name| name.to_string_lossy().into_owned());
        let cwd = place.path.parent().map_or_else(|| PathBuf::from("/"), PathBuf::from);
        let session = client.names.session(name.as_deref())?;
        return Ok(EvalTarget { session, cwd, kernel: None, only_here: true });
    }
    let cwd = workspace.start().join(named.cwd.unwrap_or("."));
    // A folder that is gone keeps its kernels.
    let cwd = fs::canonicalize(&cwd).unwrap_or(cwd);
    Ok(EvalTarget {
        session: client.names.session(named.session)?,
        cwd,
        kernel: Some(eval::kernel(named.language)?.unwrap_or_else(|| client.names.kernel(&shared.settings))),
        only_here: named.cwd.is_some(),
    })
}
