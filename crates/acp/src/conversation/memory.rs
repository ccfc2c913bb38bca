//! Which session a notebook talked to last, so that its conversation survives the kernel.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use agent_client_protocol_schema::v1::SessionId;
use cellwright_notebook::Fingerprint;
use cellwright_ownership::private_folder;
use serde::{Deserialize, Serialize};

use super::AgentChoice;
use crate::kernel::NotebookPlace;

/// The memory of one notebook: a private file.
#[derive(Debug)]
pub(crate) struct ConversationMemory {
    place: NotebookPlace,
    /// What the file holds, as far as this kernel knows.
    stored: Option<StoredConversation>,
}

/// The last conversation of a notebook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredConversation {
    notebook: PathBuf,
    agent: String,
    /// The folder in which the agent works.
    folder: PathBuf,
    session: String,
}

impl ConversationMemory {
    pub(crate) fn of(place: NotebookPlace) -> Self {
        let stored = fs::read(file(&place)).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let stored = stored.filter(|stored: &StoredConversation| stored.notebook == place.notebook);
        Self { place, stored }
    }

    /// The session that the notebook talked to last, if it was with this agent in this folder.
    pub(crate) fn session(&self, choice: &AgentChoice) -> Option<SessionId> {
        let stored = self.stored.as_ref()?;
        let same = stored.agent == choice.name && stored.folder == choice.launch.cwd;
        same.then(|| SessionId::new(stored.session.clone()))
    }

    /// Remembers the session. A conversation is not worth a failed cell, so errors are only logged.
    pub(crate) fn remember(&mut self, choice: &AgentChoice, session: &SessionId) {
        let conversation = StoredConversation {
            notebook: self.place.notebook.clone(),
            agent: choice.name.clone(),
            folder: choice.launch.cwd.clone(),
            session: session.to_string(),
        };
        if self.stored.as_ref() == Some(&conversation) {
            return;
        }
        if let Err(error) = write(&file(&self.place), &conversation) {
            tracing::warn!(%error, "the session of this notebook could not be remembered");
        }
        self.stored = Some(conversation);
    }

    /// The next kernel of this notebook begins a new conversation.
    pub(crate) fn forget(&mut self) {
        if self.stored.take().is_some() {
            drop(fs::remove_file(file(&self.place))); // a file that is missing is forgotten
        }
    }
}

fn file(place: &NotebookPlace) -> PathBuf {
    let name = Fingerprint::of(place.notebook.as_os_str().as_encoded_bytes());
    place.conversations.join(format!("{name}.json"))
}

/// Writes the file, whole or not at all. Only its owner can read it.
fn write(file: &Path, conversation: &StoredConversation) -> io::Result<()> {
    let folder = file.parent().expect("it is in a folder");
    private_folder(folder)?;
    let new = file.with_extension(std::process::id().to_string());
    let mut options = fs::OpenOptions::new();
    let mut out = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    let written = out.write_all(&serde_json::to_vec(conversation)?).and_then(|()| fs::rename(&new, file));
    written.inspect_err(|_| drop(fs::remove_file(&new)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::agent::{AgentFiles, AgentLaunch};

    fn choice(name: &str, cwd: &str) -> AgentChoice {
        let launch = AgentLaunch {
            program: name.into(),
            args: Vec::new(),
            environment: Vec::new(),
            cwd: cwd.into(),
            files: AgentFiles::Own,
        };
        AgentChoice { name: name.to_owned(), launch }
    }

    #[test]
    fn a_session_is_remembered_for_its_notebook_agent_and_folder_alone() {
        let home = tempfile::tempdir().expect("a folder");
        let place = |notebook: &str| NotebookPlace {
            notebook: notebook.into(),
            conversations: home.path().join("conversations"),
        };
        let session = SessionId::new("s-1");
        ConversationMemory::of(place("/a.ipynb")).remember(&choice("claude", "/ws"), &session);
        let mut memory = ConversationMemory::of(place("/a.ipynb"));
        assert_eq!(memory.session(&choice("claude", "/ws")), Some(session));
        assert_eq!(memory.session(&choice("codex", "/ws")), None);
        assert_eq!(memory.session(&choice("claude", "/other")), None);
        assert_eq!(ConversationMemory::of(place("/b.ipynb")).session(&choice("claude", "/ws")), None);
        let mode = |path: &Path| path.metadata().expect("it is there").permissions().mode() & 0o777;
        let file = file(&place("/a.ipynb"));
        assert_eq!((mode(&file), mode(file.parent().expect("a folder"))), (0o600, 0o700));
        memory.forget();
        assert_eq!(ConversationMemory::of(place("/a.ipynb")).session(&choice("claude", "/ws")), None);
    }
}
