//! State stores by URL, as `--state` of the command line and the packages for Python and TypeScript name them: `memory:`, `file:PATH`,
//! `postgres://…`, `redis://…`, or one for each part of the state → an open store with the keys that seal it.
//!
//! Also what a host needs for stores of its own: limits by compare-and-swap ([`VersionedLimits`]), limits in shards ([`ShardedLimits`]), and
//! cached results as text.

mod cached_text;
mod host_stores;
mod open_state;
mod sharded_limits;
mod state_error;
mod state_parts;
mod versioned_limits;

pub use cached_text::{read_entry, write_entry};
pub use host_stores::{HostState, HostStores};
pub use open_state::{OpenStateStore, keys_from_environment};
pub use sharded_limits::ShardedLimits;
pub use state_error::StateError;
pub use state_parts::{StateParts, is_shared};
pub use versioned_limits::{LimitValue, LimitValues, LimitWrite, VersionedLimits};
