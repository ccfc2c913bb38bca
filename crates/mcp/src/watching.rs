//! Files that clients want to hear about.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use futures_util::FutureExt as _;
use rmcp::model::{ErrorData, ResourceUpdatedNotificationParam};
use rmcp::service::{Peer, RoleServer};
use tokio_util::task::AbortOnDropHandle;

/// How often a file is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Files one client may watch.
const MOST: usize = 64;

/// What a client watches, by address. Dropping it ends all of that.
#[derive(Default)]
pub(crate) struct WatchedResources(Mutex<HashMap<String, AbortOnDropHandle<()>>>);

impl WatchedResources {
    /// Notifies `peer` of every change of a file from now on.
    pub(crate) fn add(&self, uri: String, path: PathBuf, peer: Peer<RoleServer>) -> Result<(), ErrorData> {
        let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if watched.len() >= MOST && !watched.contains_key(&uri) {
            let why = format!("{MOST} resources are watched already; unsubscribe from one");
            return Err(ErrorData::invalid_params(why, None));
        }
        let (mut stamp, address) = (WatchStamp::of(&path), uri.clone());
        let watch = async move {
            loop {
                stamp = stamp.changed(&path).await;
                let update = ResourceUpdatedNotificationParam::new(address.clone());
                if peer.notify_resource_updated(update).await.is_err() {
                    return; // it is gone
                }
            }
        };
        watched.insert(uri, AbortOnDropHandle::new(tokio::spawn(watch.boxed())));
        Ok(())
    }

    pub(crate) fn remove(&self, uri: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
    }
}

/// What shows that a file is another one, or has another content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WatchStamp(Option<(u64, u64, SystemTime)>);

impl WatchStamp {
    /// As the file is now. A missing file has one too.
    pub(crate) fn of(path: &Path) -> Self {
        let file = fs::metadata(path).ok();
        Self(file.and_then(|file| Some((file.ino(), file.len(), file.modified().ok()?))))
    }

    /// Waits until the file is not as it was. Cancel-safe.
    pub(crate) async fn changed(self, path: &Path) -> Self {
        loop {
            tokio::time::sleep(LOOK).await;
            let now = Self::of(path);
            if now != self {
                return now;
            }
        }
    }
}
