//! State stores: in memory for one process, and the encryption of stores that processes share.

// Shared with the other stores of Callgate.
#[doc(hidden)]
pub mod cache;
#[doc(hidden)]
pub mod capacity;
#[doc(hidden)]
pub mod limit_algorithms;
#[doc(hidden)]
pub mod limit_table;
mod memory;
#[doc(hidden)]
pub mod records;
mod sealed;

pub use capacity::Capacity;
pub use memory::MemoryStore;
pub use sealed::{IntegrityError, SealedStore, has_seals, seal_store};
