//! Effects, which are a script's requests to its host, and their results.

use std::sync::Arc;
use std::time::Duration;

use super::exported_value::ExportedValue;
use crate::durations;
use crate::json::{Digest, Map, Value, canonical_text, json};

/// A request of a script. The host performs it and records the result in the journal.
#[derive(Clone, Debug)]
pub enum ScriptEffect<'c> {
    /// Run the wrapped execution with this input; returns its output.
    Next {
        /// The input; the call's own if the script did not change it.
        input: ExportedValue<'c>,
        /// Options for the host's executor that replace the call's own.
        options: Option<ExportedValue<'c>>,
    },
    /// Request human approval; returns `true`, or an error.
    Approve {
        /// The message for the approver.
        message: String,
    },
    /// The current time; returns milliseconds since 1970.
    Now,
    /// A random number; returns a number from 0 to below 1.
    Random,
    /// Read a cached value; returns it, or null.
    CacheGet {
        /// The key.
        key: ExportedValue<'c>,
    },
    /// Cache a value; returns null.
    CacheSet {
        /// The key.
        key: ExportedValue<'c>,
        /// The value.
        value: ExportedValue<'c>,
        /// The lifetime, from when it is stored.
        ttl: Duration,
    },
    /// Add fields to the audit record; returns null.
    Audit {
        /// The fields.
        fields: Map,
    },
}

/// The result of an effect.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The value that the effect returns.
    Value(Arc<Value>),
    /// The effect failed; a script can catch this.
    Error {
        /// The message.
        message: String,
        /// An identifier that scripts and policies can match, such as `timeout`.
        kind: Option<String>,
    },
}

impl ScriptEffect<'_> {
    /// The function that requests it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Next { .. } => "next",
            Self::Approve { .. } => "approve",
            Self::Now => "now",
            Self::Random => "random",
            Self::CacheGet { .. } => "cache_get",
            Self::CacheSet { .. } => "cache_set",
            Self::Audit { .. } => "audit",
        }
    }

    /// One digest of all arguments; equal JSON has equal digests.
    pub(super) fn digest(&self) -> Digest {
        let arguments = match self {
            Self::Next { input, options } => {
                let options = options.as_ref().map(|options| canonical_text(options));
                format!("{},{}", canonical_text(input), options.unwrap_or_default())
            }
            Self::Approve { message } => json!(message).to_string(),
            Self::Now | Self::Random => String::new(),
            Self::CacheGet { key } => canonical_text(key),
            Self::CacheSet { key, value, ttl } => {
                format!("{},{},{}", canonical_text(key), canonical_text(value), ttl.as_nanos())
            }
            Self::Audit { fields } => canonical_text(&Value::Object(fields.clone())),
        };
        Digest::compute(format!("[\"{}\",{arguments}]", self.name()).as_bytes())
    }

    /// Whether both are the same effect with equal arguments.
    pub(super) fn is_same_request(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Next { input, options }, Self::Next { input: other, options: others }) => {
                let options_same = match (options, others) {
                    (None, None) => true,
                    (Some(a), Some(b)) => a.is_equal(b),
                    _ => false,
                };
                options_same && input.is_equal(other)
            }
            (Self::Approve { message }, Self::Approve { message: other }) => message == other,
            (Self::Now, Self::Now) | (Self::Random, Self::Random) => true,
            (Self::CacheGet { key }, Self::CacheGet { key: other }) => key.is_equal(other),
            (
                Self::CacheSet { key, value, ttl },
                Self::CacheSet { key: other_key, value: other_value, ttl: other_ttl },
            ) => key.is_equal(other_key) && value.is_equal(other_value) && ttl == other_ttl,
            (Self::Audit { fields }, Self::Audit { fields: others }) => {
                fields.len() == others.len()
                    && fields.iter().all(|(key, field)| others.get(key).is_some_and(|other| field == other))
            }
            _ => false,
        }
    }
}

/// Parses a duration such as `60s`, `5m` or `1h30m`.
///
/// # Errors
/// The text is not a duration, or is zero.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    durations::parse(text).filter(|duration| !duration.is_zero()).ok_or_else(|| {
        let text = crate::safe_text::escape_controls(&crate::safe_text::truncate(text));
        format!("`{text}` is not a duration: write for example `60s`, `5m` or `24h`")
    })
}
