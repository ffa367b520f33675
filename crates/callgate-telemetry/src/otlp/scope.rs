//! The service and the instrumentation scope of everything that is sent.

use opentelemetry::InstrumentationScope;

/// The name of the instrumentation scope.
pub(super) const SCOPE: &str = "callgate";
/// The name of the service in resources.
pub(super) const SERVICE: &str = "callgate";
/// The scope of all spans and records.
pub(super) fn scope() -> InstrumentationScope {
    InstrumentationScope::builder(SCOPE).with_version(env!("CARGO_PKG_VERSION")).build()
}
