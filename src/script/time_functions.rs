//! The functions of times: `time`, `time_unix`, `duration`. Text or number → time value.

use jiff::{SignedDuration, Timestamp};

use super::fuel::{EvalError, Fuel};
use super::value::{ScriptValue, ValueKind};
use crate::durations;
use crate::time::{TimeValue, Zone, parse_local, parse_timestamp};

/// `time(text)`: an RFC 3339 timestamp with an offset; `time(text, zone)`: one without an offset, in the local time of a zone.
pub(super) fn time<'r>(
    work: &Fuel,
    value: &ScriptValue<'r>,
    zone: Option<&ScriptValue<'r>>,
) -> Result<ScriptValue<'r>, EvalError> {
    let text = text_of("time", value)?;
    work.spend_scan(text.len())?;
    let Some(zone) = zone else {
        return parse_timestamp(text).map(timestamp).ok_or_else(|| {
            "`time` takes a timestamp with an offset, such as \"2026-03-01T08:00:00Z\", and this string is none".into()
        });
    };
    let name = text_of("time", zone)?;
    let zone = Zone::find(name).ok_or("the second argument of `time` is not an IANA time zone")?;
    parse_local(text, &zone).map(timestamp).ok_or_else(|| {
        "`time` with a zone takes a local time, such as \"2026-03-01T08:00:00\", that exists exactly once"
            .into()
    })
}

/// `time_unix(seconds)`: whole or fractional seconds since 1970.
pub(super) fn time_unix<'r>(work: &Fuel, value: &ScriptValue<'r>) -> Result<ScriptValue<'r>, EvalError> {
    let ValueKind::Number(_) = value.kind() else {
        return Err(
            format!("`time_unix` takes a number, this is of type {}", value.kind().type_name()).into()
        );
    };
    let number = value.to_json(work)?;
    let nanoseconds = number.as_number().and_then(|number| {
        let seconds = match number.as_i64() {
            Some(whole) => SignedDuration::from_secs(whole),
            None => SignedDuration::try_from_secs_f64(number.as_f64()?).ok()?,
        };
        Timestamp::from_duration(seconds).ok()
    });
    nanoseconds
        .map(timestamp)
        .ok_or_else(|| "`time_unix` takes seconds since 1970, up to the year 9999".into())
}

/// `duration("1h30m")`
pub(super) fn duration<'r>(work: &Fuel, value: &ScriptValue<'r>) -> Result<ScriptValue<'r>, EvalError> {
    let text = text_of("duration", value)?;
    work.spend_scan(text.len())?;
    let duration = durations::parse(text).and_then(|duration| SignedDuration::try_from(duration).ok());
    duration
        .map(|duration| ScriptValue::Time(TimeValue::Duration(duration)))
        .ok_or_else(|| "`duration` takes a duration such as \"1h30m\", and this string is none".into())
}

fn timestamp<'r>(at: Timestamp) -> ScriptValue<'r> {
    ScriptValue::Time(TimeValue::Timestamp(at))
}

fn text_of<'v>(name: &str, value: &'v ScriptValue<'_>) -> Result<&'v str, EvalError> {
    match value.kind() {
        ValueKind::String(text) => Ok(text),
        other => Err(format!("`{name}` takes a string, this is of type {}", other.type_name()).into()),
    }
}
