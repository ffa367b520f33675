//! Mutations of durations and times of day.

use super::DURATION;
use super::mutant_collector::MutantCollector;
use callgate::durations;
use callgate::source::YamlNode;

/// Halves and doubles a duration.
pub(super) fn scale_duration(node: &YamlNode, case: &str, collector: &mut MutantCollector<'_>) {
    let Some(time) = node.as_str().and_then(durations::parse) else { return };
    for other in [time / 2, time.saturating_mul(2)] {
        let other = durations::format(other).replace(' ', "");
        collector.replace(DURATION, node.span, other, case.to_owned());
    }
}

/// The times of day a minute before and after `HH:MM`. Returns `None` for any other text; a time outside the day is left out.
pub(super) fn adjacent_minutes(text: &str) -> Option<impl Iterator<Item = String>> {
    const DAY: u16 = 24 * 60;
    let (hours, minutes) = text.split_once(':')?;
    let minutes = hours.parse::<u16>().ok()?.checked_mul(60)?.checked_add(minutes.parse().ok()?)?;
    let others = [minutes.checked_sub(1), minutes.checked_add(1)];
    let others = others.into_iter().flatten().filter(|other| *other <= DAY);
    Some(others.map(|other| format!("{:02}:{:02}", other / 60, other % 60)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_around_a_time_of_day_stay_within_the_day() {
        for (text, expected) in [
            ("08:00", &["07:59", "08:01"][..]),
            ("23:59", &["23:58", "24:00"]),
            ("00:00", &["00:01"]),
            ("24:00", &["23:59"]),
            ("noon", &[]),
            ("99999:00", &[]),
        ] {
            assert_eq!(adjacent_minutes(text).into_iter().flatten().collect::<Vec<_>>(), expected, "{text}");
        }
    }
}
