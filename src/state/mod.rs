//! State stores: what a host's store implements, the store in memory for one process, and the encryption of stores that
//! processes share.

mod budget_records;
// Shared with the other stores of Callgate.
#[doc(hidden)]
pub mod recent_acquisitions;
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

pub use crate::host::{
    Account, Allowance, CacheEntry, CacheLookup, CacheSpace, CacheStore, CombinedStore, ConditionalWrite,
    LimitAcquisition, LimitCorrection, LimitRefusal, LimitStore, MAX_RECORD_BYTES, OnQuotaExceeded, RealCost,
    Record, RecordBatch, RecordKey, RecordPage, RecordStore, StateStore, StoreError, StoreFuture,
};
#[doc(hidden)]
pub use budget_records::BudgetRecords;
pub use capacity::Capacity;
pub use memory::MemoryStore;
pub use sealed::{CopiedRecords, CopyError, IntegrityError, SealedStore, has_seals, seal_store};
