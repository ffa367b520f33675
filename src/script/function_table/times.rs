//! Functions that make timestamps and durations.

use crate::script::script_function::{Implementation, ScriptFunction};
use crate::script::time_functions;

pub(super) const FUNCTIONS: &[ScriptFunction] = &[
    ScriptFunction::new(
        "duration",
        &["string"],
        "the duration of a string such as `\"1h30m\"`",
        Implementation::One(time_functions::duration),
    ),
    ScriptFunction::new(
        "time",
        &["string", "zone?"],
        "the time of a timestamp with an offset, `\"2026-03-01T08:00:00Z\"`, or without one in an IANA time zone",
        Implementation::OneOrTwo(time_functions::time),
    ),
    ScriptFunction::new(
        "time_unix",
        &["number"],
        "the time this many seconds after the beginning of 1970",
        Implementation::One(time_functions::time_unix),
    ),
];
