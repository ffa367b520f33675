//! Durations as human-readable strings: `30s`, `1h30m`.

use std::time::Duration;

/// Parses a duration such as `30s`, `24h`, `1h30m` or `7d` (a day is 24 hours). Returns `None` if the string is not a duration, or a
/// negative one. Zero is valid.
pub fn parse(text: &str) -> Option<Duration> {
    let span: jiff::Span = text.parse().ok()?;
    let duration = span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).ok()?;
    Duration::try_from(duration).ok()
}

/// Formats a duration, rounded up: `250ms`, `12s`, `1m 30s`, `3h 5m`.
pub fn format(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_micros().div_ceil(1000)).unwrap_or(u64::MAX);
    if millis < 1000 {
        return format!("{millis}ms");
    }
    let seconds = millis.div_ceil(1000);
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    let parts = [(days, "d"), (hours, "h"), (minutes, "m"), (seconds % 60, "s")];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count}{unit}")).collect();
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formatted_durations_are_rounded_up() {
        for (micros, words) in [
            (1, "1ms"),
            (999_001, "1s"),
            (1_000_000, "1s"),
            (1_000_001, "2s"),
            (61_000_000, "1m 1s"),
            (90_061_000_000, "1d 1h 1m 1s"),
            (3_600_000_000, "1h"),
        ] {
            assert_eq!(format(Duration::from_micros(micros)), words);
        }
    }

    #[test]
    fn formatted_durations_parse_back() {
        for seconds in [1, 59, 60, 61, 3_600, 86_399, 86_400, 1_000_000] {
            let duration = Duration::from_secs(seconds);
            assert_eq!(parse(&format(duration)), Some(duration));
        }
        for text in ["", "60", "-5s", "soon", "1 month"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
