//! Hot reload of identities: watches the identity file and its key files, and replaces the valid identities on a change.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::watch;

use super::{AuthenticationError, Authenticator, Caller, IdentityError};
use callgate::diagnostic::SourceMap;
use callgate::json::{self, Digest, json};

/// The polling interval. Contents are compared, so every way of replacing a file is noticed.
const INTERVAL: Duration = Duration::from_secs(1);

/// A parsed identity file, with the state to notice changes of it.
pub struct IdentityFile {
    path: PathBuf,
    identity: Authenticator,
    /// The digest of the file and its key files.
    contents: Digest,
}

impl std::fmt::Debug for IdentityFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdentityFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl IdentityFile {
    /// Reads an identity file, with its key files and environment variables.
    ///
    /// # Errors
    /// The file is invalid; the error has all problems.
    pub fn open(path: &Path) -> Result<Self, IdentityError> {
        let (identity, sources) = Authenticator::from_file_with_sources(path)?;
        Ok(Self { path: path.to_owned(), identity, contents: digest(&sources) })
    }
}

fn digest(sources: &SourceMap) -> Digest {
    let files = sources.iter().map(|(_, source)| json!([source.name(), source.text()]));
    json::digest(&files.collect())
}

/// The currently valid identities.
pub struct ReloadableAuthenticator {
    identity: ArcSwap<Authenticator>,
    /// Changes with every reload.
    changed: watch::Sender<u64>,
}

impl ReloadableAuthenticator {
    /// Identities that never change.
    pub fn fixed(identity: Authenticator) -> Self {
        Self { identity: ArcSwap::from_pointee(identity), changed: watch::Sender::new(0) }
    }

    /// The identities of a file, and the state for [`watch`](Self::watch).
    pub fn from_file(file: IdentityFile) -> (Self, WatchedFile) {
        let followed = WatchedFile { path: file.path, contents: file.contents };
        (Self::fixed(file.identity), followed)
    }

    /// Authenticates a caller by the `Authorization` header of its request.
    ///
    /// # Errors
    /// See [`Authenticator::authenticate`].
    pub fn authenticate(&self, authorization: Option<&str>) -> Result<Caller, AuthenticationError> {
        self.identity.load().authenticate(authorization)
    }

    /// Authenticates a caller by the credential that it was authenticated by before. Returns `None` if that is no longer valid.
    pub fn authenticate_again(&self, caller: &Caller) -> Option<Caller> {
        self.identity.load().authenticate(caller.credential.as_deref()).ok()
    }

    /// Reloads the file whenever it changes; never returns. A file with errors is rejected and logged once.
    pub async fn watch(self: Arc<Self>, mut followed: WatchedFile, log: impl Fn(&str)) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let path = followed.path.clone();
            let Ok(read) =
                tokio::task::spawn_blocking(move || Authenticator::from_file_with_sources(&path)).await
            else {
                continue;
            };
            let contents = match &read {
                Ok((_, sources)) => digest(sources),
                Err(error) => digest(&error.sources),
            };
            if std::mem::replace(&mut followed.contents, contents) == contents {
                continue;
            }
            match read {
                Ok((identity, _)) => {
                    self.identity.store(Arc::new(identity));
                    self.changed.send_modify(|changes| *changes = changes.wrapping_add(1));
                    log("the identity file was reloaded");
                }
                Err(error) => {
                    log(&format!(
                        "the reload of the identity file is rejected; the previous identities stay valid: {error}"
                    ));
                }
            }
        }
    }

    /// Becomes true when a caller's credential is revoked, or its verified context changes.
    pub fn watch_revocation(self: &Arc<Self>, caller: &Caller) -> watch::Receiver<bool> {
        let (revoke, revoked) = watch::channel(false);
        // Subscribed before the first check, so that no change in between is missed.
        let (mut changes, current, caller) = (self.changed.subscribe(), Arc::clone(self), caller.clone());
        tokio::spawn(async move {
            while current.identity.load().still_authenticates(&caller) {
                tokio::select! {
                    changed = changes.changed() => if changed.is_err() { return },
                    () = revoke.closed() => return,
                }
            }
            let _ = revoke.send(true);
        });
        revoked
    }
}

/// A watched file and the digest of its last contents.
pub struct WatchedFile {
    path: PathBuf,
    contents: Digest,
}
