//! The stores there are: one that needs nothing but memory, until the process ends, and one in a file, which outlives
//! processes and is shared by them.

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
