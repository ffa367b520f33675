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
pub use file::{SqliteOpenError, SqliteStore};
pub use memory::MemoryStore;
pub use open::{StoreUrlError, file_path, open};
pub use sealed::{IntegrityError, SealedStore, has_seals, sealed};
pub use shares::Capacity;
#[cfg(feature = "mcp")]
pub(crate) use shares::{CapacityShares, heaviest};
