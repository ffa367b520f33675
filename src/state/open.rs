//! Stores by the words that people name them with.

use std::path::Path;
use std::sync::Arc;

use super::MemoryStore;
#[cfg(feature = "file-store")]
use super::file::{FileStore, FileStoreError};
use crate::host::StateStore;

/// Why there is no store by such a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The words name none.
    #[error("{0}")]
    Name(String),
    /// The file can't be opened.
    #[cfg(feature = "file-store")]
    #[error(transparent)]
    File(#[from] FileStoreError),
}

/// What there is.
const KINDS: &str = "a store is named `file:PATH`, or `memory:` for one that ends with the process";

/// Opens the store of this name: `file:PATH`, as in `file:state.db` or `file:///var/lib/callgate.db`, or `memory:`.
///
/// # Errors
/// When the name is none of these, or the file can't be opened.
pub fn open(name: &str) -> Result<Arc<dyn StateStore>, OpenError> {
    if let Some(path) = file_of(name)? {
        return in_file(path);
    }
    let Some((kind, place)) = name.split_once(':') else {
        return Err(OpenError::Name(format!("`{name}` names no kind of store; {KINDS}")));
    };
    match kind {
        "memory" if place.is_empty() => Ok(Arc::new(MemoryStore::default())),
        "memory" => Err(OpenError::Name(format!("nothing comes after `memory:`; {KINDS}"))),
        // What comes after it may hold a password.
        _ => Err(OpenError::Name(format!("`{kind}:` is no kind of store; {KINDS}"))),
    }
}

/// The file of the store of this name, where it is in one.
///
/// # Errors
/// When the name says that it is in a file, and names none.
pub fn file_of(name: &str) -> Result<Option<&Path>, OpenError> {
    let Some(place) = name.strip_prefix("file:") else { return Ok(None) };
    let path = match place.strip_prefix("//") {
        None => place,
        Some(path) if path.starts_with('/') => path,
        Some(path) => {
            return Err(OpenError::Name(format!(
                "`file://{path}` names another machine; write `file:{path}`"
            )));
        }
    };
    if path.is_empty() {
        return Err(OpenError::Name(format!("`file:` names no file; {KINDS}")));
    }
    Ok(Some(Path::new(path)))
}

#[cfg(feature = "file-store")]
fn in_file(path: &Path) -> Result<Arc<dyn StateStore>, OpenError> {
    Ok(Arc::new(FileStore::open(path)?))
}

#[cfg(not(feature = "file-store"))]
fn in_file(_: &Path) -> Result<Arc<dyn StateStore>, OpenError> {
    Err(OpenError::Name(
        "this build has no stores in files; build it with the feature `file-store`".to_owned(),
    ))
}
