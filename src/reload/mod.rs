//! Rules files that change while calls are decided: looked at as a whole, judged, and taken in, refused or held.
//!
//! [`load`] is for the first time; [`Reloader`] looks once; [`Watch`] has it look whenever files have changed.

#[cfg(feature = "watch")]
mod directories;
mod footprint;
mod reloader;
#[cfg(feature = "watch")]
mod watch;

pub use reloader::{Looked, Reloader, load};
#[cfg(feature = "watch")]
pub use watch::{Watch, WatchOptions};
