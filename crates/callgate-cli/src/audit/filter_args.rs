//! The options that select events.

use clap::builder::PossibleValuesParser;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use callgate::call::OutcomeKind;
use callgate::durations;
use callgate_log::LogFilter;

/// Which events are selected. Each option can be repeated: an event then has one of the values.
#[derive(clap::Args)]
pub(super) struct FilterArgs {
    /// Calls of this tool, `TOOL` or `SERVER/TOOL`
    #[arg(long)]
    tool: Vec<String>,
    /// Calls with this outcome
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(OutcomeKind::ALL.map(OutcomeKind::name)))]
    outcome: Vec<String>,
    /// Events in which this policy took part
    #[arg(long, value_name = "ID")]
    policy: Vec<String>,
    /// Calls of this principal
    #[arg(long)]
    principal: Vec<String>,
    /// Calls of this session
    #[arg(long)]
    session: Vec<String>,
    /// Events with this name, such as `call_completed`
    #[arg(long)]
    event: Vec<String>,
    /// Events from this time on: `2026-11-22`, `2026-11-22T10:00:00Z`, or a duration before now such as `24h`
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<Timestamp>,
    /// Events before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<Timestamp>,
}

impl FilterArgs {
    pub(super) fn to_filter(&self) -> LogFilter {
        LogFilter {
            events: self.event.clone(),
            tools: self.tool.clone(),
            outcomes: self.outcome.clone(),
            policies: self.policy.clone(),
            principals: self.principal.clone(),
            sessions: self.session.clone(),
            since: self.since,
            until: self.until,
        }
    }
}

/// A time, the beginning of a day in UTC, or how long ago.
fn parse_time(text: &str) -> Result<Timestamp, &'static str> {
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    if let Ok(day) = text.parse::<Date>() {
        let midnight = day.to_zoned(TimeZone::UTC).map_err(|_| "the day is out of range")?;
        return Ok(midnight.timestamp());
    }
    let ago = durations::parse(text).and_then(|ago| SignedDuration::try_from(ago).ok());
    let ago = ago.ok_or("write a time such as `2026-11-22T10:00:00Z`, a day, or a duration such as `24h`")?;
    Timestamp::now().checked_sub(ago).map_err(|_| "the duration is too long")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_absolute_or_relative() {
        let time = |text: &str| parse_time(text).map(|time| time.to_string());
        assert_eq!(time("2026-11-22").as_deref(), Ok("2026-11-22T00:00:00Z"));
        assert_eq!(time("2026-11-22T12:00:00+02:00").as_deref(), Ok("2026-11-22T10:00:00Z"));
        assert!(parse_time("24h").is_ok_and(|time| time < Timestamp::now()));
        for invalid in ["", "yesterday", "-24h", "2026-13-01"] {
            assert!(parse_time(invalid).is_err(), "{invalid}");
        }
    }
}
