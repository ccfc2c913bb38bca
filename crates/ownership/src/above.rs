//! How far up a project may be looked for.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::owner::{is_relied_on, is_relied_on_above, others_write};

/// `folder` and the folders above it, up to the first that another user owns or can write.
///
/// What is in such a folder anybody may have put there, and what is above it says nothing about our project. Every
/// search for settings, repositories and environments walks this way.
pub fn reliable_above(folder: &Path) -> impl Iterator<Item = &Path> {
    folder.ancestors().take_while(|above| {
        fs::metadata(above).is_ok_and(|found| is_relied_on_above(found.uid()) && !others_write(&found))
    })
}

/// Whether a file or folder, and what it leads to if it is a link, is ours or root's, and nobody else writes it.
pub fn is_reliable_entry(path: &Path) -> bool {
    let is_link_ours = fs::symlink_metadata(path).is_ok_and(|found| is_relied_on(found.uid()));
    is_link_ours && fs::metadata(path).is_ok_and(|found| is_relied_on(found.uid()) && !others_write(&found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_walk_up_ends_at_a_folder_that_others_can_write() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("open/project/src");
        fs::create_dir_all(&deep).unwrap();
        let walked = || reliable_above(&deep).map(Path::to_owned).collect::<Vec<_>>();
        assert!(walked().contains(&root.path().to_owned()));
        for mode in [0o777, 0o1777] {
            fs::set_permissions(root.path().join("open"), fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(walked(), [deep.clone(), root.path().join("open/project")]);
        }
    }
}
