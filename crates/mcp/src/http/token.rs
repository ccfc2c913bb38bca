//! The token clients have to send, and the file it is in.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use cellwright_ownership::{is_reliable_entry, private_folder};

/// Fewest characters of a token that was not made here.
const SHORTEST: usize = 16;

/// Which file has the token.
#[derive(Debug, Clone)]
pub enum TokenFile {
    /// This one, which stays, so that clients are set up once. If it does not exist, it is created with a random token.
    Kept(PathBuf),
    /// One in this folder, with a random token, removed when we end. Its name has our address, so that servers do not
    /// share a file.
    In(PathBuf),
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file system refused.
    #[error("could not {attempt} the token in {}", path.display())]
    Io {
        /// What was tried.
        attempt: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others can read it.
    #[error("{file} can be read by others, and with it the token; run `chmod 600 {file}`", file = path.display())]
    Readable {
        /// The file.
        path: PathBuf,
    },
    /// Another user chose what is in it.
    #[error("{} belongs to another user, who may know the token; use a file of your own", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// It could be guessed, or not be sent.
    #[error(
        "{} holds no token: one line of at least {SHORTEST} printable characters without spaces; remove it to have one made",
        path.display()
    )]
    Unfit {
        /// The file.
        path: PathBuf,
    },
}

/// The token. Dropping it removes its file, unless that stays.
#[derive(Debug)]
pub(super) struct ServerToken {
    pub(super) text: String,
    pub(super) path: PathBuf,
    stays: bool,
}

impl ServerToken {
    /// The token of a server that listens at `address`.
    pub(super) fn of(file: TokenFile, address: SocketAddr) -> Result<Self, TokenError> {
        match file {
            TokenFile::Kept(path) if path.exists() => Ok(Self { text: read(&path)?, path, stays: true }),
            TokenFile::Kept(path) => Self::store(path, true),
            TokenFile::In(folder) => {
                let path = folder.join(format!("mcp-token-{}-{}", address.ip(), address.port()));
                // A killed server left it: only one server can listen at this address.
                match fs::remove_file(&path) {
                    Err(source) if source.kind() != io::ErrorKind::NotFound => {
                        Err(TokenError::Io { attempt: "replace", path, source })
                    }
                    _ => Self::store(path, false),
                }
            }
        }
    }

    /// In a new file: one that others could read would stay readable.
    fn store(path: PathBuf, stays: bool) -> Result<Self, TokenError> {
        let text = random();
        let store = || -> io::Result<()> {
            if let Some(folder) = path.parent() {
                // A folder that a person names may be one that others read.
                if stays { fs::create_dir_all(folder)? } else { private_folder(folder)? }
            }
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            writeln!(file, "{text}")
        };
        match store() {
            Ok(()) => Ok(Self { text, path, stays }),
            Err(source) => Err(TokenError::Io { attempt: "store", path, source }),
        }
    }
}

impl Drop for ServerToken {
    fn drop(&mut self) {
        // A token that is not ours may belong to a running server.
        if !self.stays && fs::read_to_string(&self.path).is_ok_and(|stored| stored.trim() == self.text) {
            drop(fs::remove_file(&self.path)); // a file that stays is harmless: its token is no longer valid
        }
    }
}

fn read(path: &Path) -> Result<String, TokenError> {
    let failed = |source| TokenError::Io { attempt: "read", path: path.into(), source };
    let mut file = fs::File::open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if !is_reliable_entry(path) {
        return Err(TokenError::Foreign { path: path.into() });
    }
    if found.mode() & 0o077 != 0 {
        return Err(TokenError::Readable { path: path.into() });
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(failed)?;
    let text = text.trim().to_owned();
    let fits = text.len() >= SHORTEST && text.bytes().all(|byte| byte.is_ascii_graphic());
    if fits { Ok(text) } else { Err(TokenError::Unfit { path: path.into() }) }
}

fn random() -> String {
    let mut random = [0; 32];
    getrandom::fill(&mut random).expect("the system has random numbers");
    BASE64_URL_SAFE_NO_PAD.encode(random)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn address(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    #[test]
    fn a_token_file_that_is_named_is_made_once_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let first = ServerToken::of(TokenFile::Kept(path.clone()), address(1)).unwrap().text.clone();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let second = ServerToken::of(TokenFile::Kept(path.clone()), address(2)).unwrap().text.clone();
        assert_eq!((&first, first.len() > SHORTEST), (&second, true));
        assert_eq!(fs::read_to_string(path).unwrap().trim(), first);
    }

    #[test]
    fn a_file_that_is_no_secret_or_no_token_is_refused_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let refused = |text: &str, mode: u32| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = ServerToken::of(TokenFile::Kept(path.clone()), address(1)).unwrap_err();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            error
        };
        assert!(matches!(refused("a-token-of-my-own\n", 0o644), TokenError::Readable { .. }));
        for text in ["", "short", "two words of some length\n", "two\nlines-of-some-length\n"] {
            assert!(matches!(refused(text, 0o600), TokenError::Unfit { .. }), "{text}");
        }
    }

    #[test]
    fn servers_at_different_addresses_do_not_overwrite_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let open = |port| ServerToken::of(TokenFile::In(folder.path().into()), address(port)).unwrap();
        let (one, two) = (open(1), open(2));
        for token in [&one, &two] {
            assert_eq!(fs::read_to_string(&token.path).unwrap().trim(), token.text);
        }
        drop((one, two));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
