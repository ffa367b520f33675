//! Rules that are published once for many instances: signed bundles of rules files ([`Bundle`], [`sign`]), where they are published ([`BundleSource`]), and
//! the task that keeps the rules of an engine at the published version ([`BundleFollower`]).

mod bundle;
mod envelope;
mod acceptance;
mod bundle_directory;
mod source;
mod first_bundle;
mod fleet_records;
mod instance_status;
mod follower;

pub use acceptance::{NewestVersion, RefusalReason, SignedBundle, TrustPolicy};
pub use bundle::{Bundle, BundleError, MAX_VERSION};
pub use bundle_directory::{BundleDirectory, DirectoryError};
pub use envelope::{MAX_ENVELOPE_BYTES, PAYLOAD_TYPE, SignatureError, sign, verify};
pub use first_bundle::{FirstBundle, FirstBundleError, PublishedBundle};
pub use fleet_records::{Confirmation, FleetRecords, InstanceReport, NewerBundle, Standing};
pub use follower::{BundleFollower, FollowedBundle, FollowerMessage, FollowerParts, ReloaderFactory};
pub use instance_status::InstanceStatus;
pub use source::{BundleSource, Fetched, S3Settings, SourceAccess, SourceError, Validator};
