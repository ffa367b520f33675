//! The store that needs nothing but memory: limits are counted exactly, results are kept for their time, all until the
//! process ends.

mod cache;
mod limits;
mod memory;
mod records;
mod tracked;

pub use memory::MemoryStore;
