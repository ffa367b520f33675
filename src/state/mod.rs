//! State stores: in memory for one process, and in an SQLite file that is persistent and shared by processes; with
//! encryption for shared stores.

mod cache;
#[cfg(feature = "file-store")]
mod file;
mod limits;
mod memory;
mod open;
mod records;
mod sealed;
mod shares;
mod tracked;

#[cfg(feature = "file-store")]
pub use file::{FileStore, FileStoreError};
pub use memory::MemoryStore;
pub use open::{OpenError, file_of, open};
pub use sealed::{IntegrityError, SealedStore, sealed, was_sealed};
pub use shares::Capacity;
#[cfg(feature = "mcp")]
pub(crate) use shares::{Shares, heaviest};
