//! Opening of stores by URL-like names: `file:PATH` or `memory:` → [`StateStore`].

use std::path::Path;
use std::sync::Arc;

use callgate::host::StateStore;
use callgate::state::MemoryStore;

use super::{SqliteOpenError, SqliteStore};

/// Why a store can't be opened by its name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreUrlError {
    /// The name is invalid.
    #[error("{0}")]
    Name(String),
    /// The file can't be opened.
    #[error(transparent)]
    File(#[from] SqliteOpenError),
}

/// The valid names, for error messages.
const VALID_NAMES: &str = "write `file:PATH`, or `memory:` for a store that ends with the process";

/// Opens the store of this name: `file:PATH`, as in `file:state.db` or `file:///var/lib/callgate.db`, or `memory:`.
///
/// # Errors
/// If the name is invalid, or the file can't be opened.
pub fn open(name: &str) -> Result<Arc<dyn StateStore>, StoreUrlError> {
    if let Some(path) = file_path(name)? {
        return Ok(Arc::new(SqliteStore::open(path)?));
    }
    let Some((kind, rest)) = name.split_once(':') else {
        return Err(StoreUrlError::Name(format!("`{name}` has no store type; {VALID_NAMES}")));
    };
    match kind {
        "memory" if rest.is_empty() => Ok(Arc::new(MemoryStore::default())),
        "memory" => Err(StoreUrlError::Name(format!("`memory:` takes no path; {VALID_NAMES}"))),
        // The rest of the name may contain a password.
        _ => Err(StoreUrlError::Name(format!("`{kind}:` is not a store type; {VALID_NAMES}"))),
    }
}

/// The path in a `file:` name. Returns `None` for other names.
///
/// # Errors
/// If the name begins with `file:` and has no valid path.
pub fn file_path(name: &str) -> Result<Option<&Path>, StoreUrlError> {
    let Some(rest) = name.strip_prefix("file:") else { return Ok(None) };
    let path = match rest.strip_prefix("//") {
        None => rest,
        Some(path) if path.starts_with('/') => path,
        Some(path) => {
            return Err(StoreUrlError::Name(format!(
                "`file://{path}` names another machine; write `file:{path}`"
            )));
        }
    };
    if path.is_empty() {
        return Err(StoreUrlError::Name(format!("`file:` has no path; {VALID_NAMES}")));
    }
    Ok(Some(Path::new(path)))
}
