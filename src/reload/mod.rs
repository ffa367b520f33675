//! Hot reload: reads changed rules files as a whole, checks them, and activates them, rejects them or leaves them pending confirmation.
//!
//! [`load`] loads rules the first time; [`Reloader`] reloads once; [`RulesWatcher`] reloads whenever files change. [`CurrentRules`] are rules that
//! know whether their files have changed.

#[cfg(feature = "watch")]
mod watched_directories;
mod file_snapshot;
mod test_runner;
mod reloader;
mod current_rules;
#[cfg(feature = "watch")]
mod watch;

pub use crate::engine::{
    ConfirmError, PendingReload, RejectedReload, RejectionReason, ReloadEvent, ReloadStatus,
};
pub use crate::policy::{ReloadSettings, Widening};
pub use current_rules::CurrentRules;
pub use reloader::{ReloadResult, Reloader, load};
pub use test_runner::{LoadedTests, NoTestRunner, TestRunner};
#[cfg(feature = "watch")]
pub use watch::{RulesWatcher, WatcherOptions};
