//! Timestamps in texts: RFC 3339 with an offset, or a local time together with a zone.

use jiff::Timestamp;
use jiff::civil::DateTime;

use super::zone::Zone;

/// The longest text that is read as a timestamp.
const MAX_TEXT: usize = 40;

/// Reads an RFC 3339 timestamp: `2026-03-01T08:00:00+01:00`, `2026-03-01T07:00:00.5Z`. Returns `None` for any other text, also for one
/// without an offset.
pub fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let local = skip_local(text)?;
    let is_offset = match local.as_bytes() {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', rest @ ..] => {
            matches!(rest, [h1, h2, b':', m1, m2] if [h1, h2, m1, m2].iter().all(|byte| byte.is_ascii_digit()))
        }
        _ => false,
    };
    if is_offset { text.parse().ok() } else { None }
}

/// Reads a date with a time of day and no offset: `2026-03-01T08:00:00`, in the local time of a zone. Returns `None` for any other text,
/// and for a time that a change of the clock skips or repeats.
pub fn parse_local(text: &str, zone: &Zone) -> Option<Timestamp> {
    if !skip_local(text)?.is_empty() {
        return None;
    }
    let local: DateTime = text.parse().ok()?;
    zone.unambiguous(local)
}

/// What follows date and time: `YYYY-MM-DDTHH:MM:SS` with an optional fraction.
fn skip_local(text: &str) -> Option<&str> {
    const PATTERN: &[u8] = b"0000-00-00T00:00:00";
    let (local, rest) = text.split_at_checked(PATTERN.len()).filter(|_| text.len() <= MAX_TEXT)?;
    let fits = local.bytes().zip(PATTERN).all(|(byte, wanted)| match wanted {
        b'0' => byte.is_ascii_digit(),
        b'T' => matches!(byte, b'T' | b't' | b' '),
        other => byte == *other,
    });
    let rest = match rest.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    fits.then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_have_an_offset() {
        for (text, utc) in [
            ("2026-03-01T08:00:00Z", "2026-03-01T08:00:00Z"),
            ("2026-03-01t08:00:00.250z", "2026-03-01T08:00:00.25Z"),
            ("2026-03-01 08:00:00+01:00", "2026-03-01T07:00:00Z"),
            ("2026-03-01T08:00:00-23:59", "2026-03-02T07:59:00Z"),
        ] {
            assert_eq!(parse_timestamp(text).map(|at| at.to_string()).as_deref(), Some(utc), "{text}");
        }
        for text in [
            "",
            "2026-03-01",
            "2026-03-01T08:00:00",
            "2026-03-01T08:00Z",
            "2026-03-01T08:00:00+0100",
            "2026-03-01T08:00:00+01",
            "2026-03-01T08:00:00+01:00[Europe/Berlin]",
            "2026-13-01T08:00:00Z",
            "2026-02-30T08:00:00Z",
            "20260301T080000Z",
            " 2026-03-01T08:00:00Z",
            "2026-03-01T08:00:00Z ",
            "1772352000",
            "２026-03-01T08:00:00Z",
            "2026-03-01T08:00:00.000000000000000000000000Z",
        ] {
            assert_eq!(parse_timestamp(text), None, "{text}");
        }
    }

    #[test]
    fn local_times_need_a_zone_and_exist_exactly_once() {
        let berlin = Zone::find("Europe/Berlin").unwrap();
        let local = |text| parse_local(text, &berlin).map(|at| at.to_string());
        assert_eq!(local("2026-03-01T08:00:00").as_deref(), Some("2026-03-01T07:00:00Z"));
        assert_eq!(local("2026-07-01T08:00:00").as_deref(), Some("2026-07-01T06:00:00Z"));
        assert_eq!(local("2026-03-29T02:30:00"), None, "skipped");
        assert_eq!(local("2026-10-25T02:30:00"), None, "repeated");
        assert_eq!(local("2026-03-01T08:00:00Z"), None, "with an offset");
    }
}
