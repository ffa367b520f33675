//! What a script asks of the world around it, and what it is answered.

use std::sync::Arc;
use std::time::Duration;

use super::passed::Passed;
use crate::json::{Digest, Map, Value, canonical, json};
use crate::spans;

/// What a script asks. Whoever runs it performs this, and notes the answer in the journal.
#[derive(Clone, Debug)]
pub enum Effect<'c> {
    /// Run what is wrapped, with this input; answered by its output.
    Next {
        /// The input; the call's own where the script did not change it.
        input: Passed<'c>,
        /// Options for the host's executor in the place of the call's own.
        options: Option<Passed<'c>>,
    },
    /// Ask a person; answered by `true`, or an error.
    Approve {
        /// What the person reads.
        message: String,
    },
    /// The time; answered by milliseconds since 1970.
    Now,
    /// Answered by a number from 0 to below 1.
    Random,
    /// What is kept under a key; answered by that, or null.
    CacheGet {
        /// The key.
        key: Passed<'c>,
    },
    /// Keep a value; answered by null.
    CacheSet {
        /// The key.
        key: Passed<'c>,
        /// The value.
        value: Passed<'c>,
        /// For how long, from when it is kept.
        ttl: Duration,
    },
    /// Add fields to the audit record; answered by null.
    Audit {
        /// The fields.
        fields: Map,
    },
}

/// What a script is answered.
#[derive(Clone, Debug)]
pub enum Answer {
    /// What the effect gives.
    Value(Arc<Value>),
    /// It failed; a script can catch this.
    Error {
        /// What went wrong.
        message: String,
        /// A word that scripts and policies can match, such as `timeout`.
        kind: Option<String>,
    },
}

impl Effect<'_> {
    /// The function that asks for it.
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

    /// What it is asked with, as one digest: equal JSON has an equal one.
    pub(super) fn digest(&self) -> Digest {
        let arguments = match self {
            Self::Next { input, options } => {
                let options = options.as_ref().map(|options| canonical(options));
                format!("{},{}", canonical(input), options.unwrap_or_default())
            }
            Self::Approve { message } => json!(message).to_string(),
            Self::Now | Self::Random => String::new(),
            Self::CacheGet { key } => canonical(key),
            Self::CacheSet { key, value, ttl } => {
                format!("{},{},{}", canonical(key), canonical(value), ttl.as_nanos())
            }
            Self::Audit { fields } => canonical(&Value::Object(fields.clone())),
        };
        Digest::of(format!("[\"{}\",{arguments}]", self.name()).as_bytes())
    }

    /// Whether both ask for the same.
    pub(super) fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Next { input, options }, Self::Next { input: other, options: others }) => {
                let options_same = match (options, others) {
                    (None, None) => true,
                    (Some(a), Some(b)) => a.same(b),
                    _ => false,
                };
                options_same && input.same(other)
            }
            (Self::Approve { message }, Self::Approve { message: other }) => message == other,
            (Self::Now, Self::Now) | (Self::Random, Self::Random) => true,
            (Self::CacheGet { key }, Self::CacheGet { key: other }) => key.same(other),
            (
                Self::CacheSet { key, value, ttl },
                Self::CacheSet { key: other_key, value: other_value, ttl: other_ttl },
            ) => key.same(other_key) && value.same(other_value) && ttl == other_ttl,
            (Self::Audit { fields }, Self::Audit { fields: others }) => {
                fields.len() == others.len()
                    && fields.iter().all(|(key, field)| others.get(key).is_some_and(|other| field == other))
            }
            _ => false,
        }
    }
}

/// Reads a span of time such as `60s`, `5m` or `1h30m`. Errors: anything else, and no time at all.
pub(super) fn span_of_time(text: &str) -> Result<Duration, String> {
    spans::parse(text).filter(|duration| !duration.is_zero()).ok_or_else(|| {
        let text = crate::text::inert(&crate::text::cut(text));
        format!("`{text}` is no span of time: write for example `60s`, `5m` or `24h`")
    })
}
