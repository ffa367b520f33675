//! Keeps identities current: watches the identity file and its key files, and refreshes keys at URLs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::watch;

use super::{AuthenticationError, Authenticator, Caller, Credential, Credentials, IdentityError, resource};
use callgate::diagnostic::SourceMap;
use callgate::json::{self, Digest, Value, json};

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

    /// Authenticates the caller of a request. A token whose key is unknown has the keys of its issuer fetched first, if they are at a URL.
    ///
    /// # Errors
    /// See [`Authenticator::authenticate`].
    pub async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Caller, AuthenticationError> {
        let identity = self.identity.load_full();
        let changes_before = identity.key_changes();
        let rejected = match identity.authenticate(credentials) {
            Err(error @ AuthenticationError::Rejected(_)) => error,
            other => return other,
        };
        if let Some(keys) = identity.keys_to_refresh(credentials) {
            match keys.refresh().await {
                Ok(true) => self.note_change(),
                Ok(false) => {}
                Err(why) => {
                    let why = format!("the keys of the issuer are missing: {why}");
                    return Err(AuthenticationError::Rejected(why));
                }
            }
        }
        // Somebody else may have fetched the keys since this token was checked with the previous ones.
        if identity.key_changes() == changes_before {
            Err(rejected)
        } else {
            identity.authenticate(credentials)
        }
    }

    /// Authenticates a caller by the credential that it was authenticated by before. Returns `None` if that is no longer valid.
    pub fn authenticate_again(&self, caller: &Caller) -> Option<Caller> {
        let credentials = caller.credential.as_deref().map(Credential::as_credentials)?;
        self.identity.load().authenticate(credentials).ok()
    }

    /// The metadata of the protected resource (RFC 9728), if this path is the one for it and the identity file names the resource.
    pub fn resource_metadata(&self, path: &str) -> Option<Value> {
        self.identity.load().resource_metadata(path)
    }

    /// The `WWW-Authenticate` header of a request that was rejected with this error.
    pub fn challenge(&self, error: &AuthenticationError) -> String {
        resource::challenge(self.identity.load().resource.as_ref(), error)
    }

    fn note_change(&self) {
        self.changed.send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    /// Keeps the identities current; never returns. The file is reloaded whenever it changes; one with errors is rejected and logged once.
    /// Keys at URLs are fetched, and refreshed every few minutes.
    pub async fn watch(self: Arc<Self>, followed: Option<WatchedFile>, log: impl Fn(&str)) {
        let follow_file = async {
            match followed {
                Some(followed) => self.follow_file(followed, &log).await,
                None => std::future::pending().await,
            }
        };
        tokio::join!(follow_file, self.refresh_keys(&log));
    }

    async fn refresh_keys(&self, log: &impl Fn(&str)) {
        let mut logged: HashMap<String, String> = HashMap::new();
        loop {
            for keys in self.identity.load_full().remote_keys() {
                match keys.refresh_if_due().await {
                    Ok(is_changed) => {
                        if is_changed {
                            self.note_change();
                        }
                        logged.remove(keys.url());
                    }
                    Err(why) => {
                        if logged.get(keys.url()) != Some(&why) {
                            log(&format!("the keys of an issuer are not refreshed: {why}"));
                            logged.insert(keys.url().to_owned(), why);
                        }
                    }
                }
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    async fn follow_file(&self, mut followed: WatchedFile, log: &impl Fn(&str)) {
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
                Ok((mut identity, _)) => {
                    identity.adopt_remote_keys(&self.identity.load());
                    self.identity.store(Arc::new(identity));
                    self.note_change();
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
