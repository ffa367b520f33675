//! Wakes JavaScript from any thread.

use std::sync::Arc;

use napi::Status;
use napi::bindgen_prelude::Function;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};

/// JavaScript's function that is called with the number of what has news. It keeps no process alive.
type Wake = ThreadsafeFunction<u32, (), u32, Status, false, true>;

/// Calls a function of one JavaScript environment. After the end of the environment, notifications are lost with it.
#[derive(Clone)]
pub struct Notifier(Arc<Wake>);

impl Notifier {
    /// Notifies by calling this function.
    pub fn new(wake: &Function<'_, u32, ()>) -> napi::Result<Self> {
        let wake = wake.build_threadsafe_function::<u32>().weak::<true>().build()?;
        Ok(Self(Arc::new(wake)))
    }

    /// Reports that something with this number has news.
    pub fn notify(&self, number: u32) {
        let _ = self.0.call(number, ThreadsafeFunctionCallMode::NonBlocking);
    }
}
