//! State stores: in memory for one process, and in an SQLite file that is persistent and shared by processes; with
//! encryption for shared stores.

mod cache;
#[cfg(feature = "file-store")]
mod sqlite;
mod limit_algorithms;
mod memory;
mod store_url;
mod records;
mod sealed;
mod capacity;
mod limit_table;

pub use capacity::Capacity;
#[cfg(feature = "mcp")]
pub(crate) use capacity::{CapacityShares, heaviest_accounts};
pub use memory::MemoryStore;
pub use sealed::{IntegrityError, SealedStore, has_seals, seal_store};
#[cfg(feature = "file-store")]
pub use sqlite::{SqliteOpenError, SqliteStore};
pub use store_url::{StoreUrlError, file_path, open};
