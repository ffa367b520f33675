//! `during`: days of the week and hours of the day, in the local time of a zone. Timestamp → whether it is in the window.

use jiff::Timestamp;
use jiff::civil::Weekday;

use super::zone::Zone;

/// The names of the days, Monday first.
pub const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// A set of days of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weekdays([bool; 7]);

impl Weekdays {
    /// Every day.
    pub const ALL: Self = Self([true; 7]);

    /// The days with these names. Unknown names are ignored.
    pub fn from_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let names: Vec<&str> = names.into_iter().collect();
        Self(WEEKDAYS.map(|day| names.contains(&day)))
    }

    fn contains(self, day: Weekday) -> bool {
        let index = usize::try_from(day.to_monday_zero_offset()).ok();
        index.and_then(|index| self.0.get(index)).is_some_and(|is_in| *is_in)
    }
}

/// A time of day, in minutes since midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeOfDay(u16);

impl TimeOfDay {
    /// The beginning of the day.
    pub const MIDNIGHT: Self = Self(0);
    /// The end of the day.
    pub const END: Self = Self(24 * 60);

    /// Reads `08:00`; `24:00` is the end of the day.
    pub fn parse(text: &str) -> Option<Self> {
        let [h1, h2, b':', m1, m2] = text.as_bytes() else { return None };
        let digit = |byte: &u8| char::from(*byte).to_digit(10).and_then(|digit| u16::try_from(digit).ok());
        let (hour, minute) = (digit(h1)? * 10 + digit(h2)?, digit(m1)? * 10 + digit(m2)?);
        let at = Self(hour * 60 + minute);
        (minute < 60 && at <= Self::END).then_some(at)
    }
}

/// Days and hours. Hours that cross midnight belong to the day on which they begin.
#[derive(Clone, Debug)]
pub struct DailyWindow {
    /// The days.
    pub days: Weekdays,
    /// The first minute.
    pub from: TimeOfDay,
    /// The minute after the last one.
    pub to: TimeOfDay,
    /// The zone whose local time counts.
    pub zone: Zone,
}

impl DailyWindow {
    /// Whether a time is in the window.
    pub fn contains(&self, at: Timestamp) -> bool {
        let local = self.zone.local(at);
        let minutes = i32::from(local.hour()) * 60 + i32::from(local.minute());
        let (from, to) = (i32::from(self.from.0), i32::from(self.to.0));
        let today = local.weekday();
        if from < to {
            return (from..to).contains(&minutes) && self.days.contains(today);
        }
        (minutes >= from && self.days.contains(today))
            || (minutes < to && self.days.contains(today.previous()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(days: &[&str], (from, to): (&str, &str), zone: &str, at: &str) -> bool {
        let [from, to] = [from, to].map(|text| TimeOfDay::parse(text).unwrap());
        let days = Weekdays::from_names(days.iter().copied());
        DailyWindow { days, from, to, zone: Zone::find(zone).unwrap() }.contains(at.parse().unwrap())
    }

    #[test]
    fn local_time_decides() {
        let office =
            |at| contains(&["mon", "tue", "wed", "thu", "fri"], ("08:00", "18:00"), "Europe/Berlin", at);
        for (at, expected) in [
            ("2026-03-02T06:59:59Z", false),
            ("2026-03-02T07:00:00Z", true),
            ("2026-03-02T16:59:59.999Z", true),
            ("2026-03-02T17:00:00Z", false),
            ("2026-07-06T05:59:59Z", false),
            ("2026-07-06T06:00:00Z", true),
            ("2026-03-01T12:00:00Z", false),
            ("2026-03-07T12:00:00Z", false),
        ] {
            assert_eq!(office(at), expected, "{at}");
        }
        let days = |days: &[&str], at| contains(days, ("00:00", "24:00"), "Asia/Tokyo", at);
        assert!(days(&["mon"], "2026-03-01T15:00:00Z"));
        assert!(!days(&["sun"], "2026-03-01T15:00:00Z"));
        assert!(days(&["sun"], "2026-03-01T14:59:59Z"));
    }

    #[test]
    fn hours_across_midnight_belong_to_the_day_on_which_they_begin() {
        let night = |at| contains(&["fri"], ("22:00", "06:00"), "UTC", at);
        for (at, expected) in [
            ("2026-03-06T21:59:59Z", false),
            ("2026-03-06T22:00:00Z", true),
            ("2026-03-07T05:59:59Z", true),
            ("2026-03-07T06:00:00Z", false),
            ("2026-03-06T05:00:00Z", false),
            ("2026-03-07T22:00:00Z", false),
        ] {
            assert_eq!(night(at), expected, "{at}");
        }
    }

    #[test]
    fn wall_time_counts_at_changes_of_the_clock() {
        let hour = |at| contains(&["sun"], ("02:00", "03:00"), "Europe/Berlin", at);
        // 2026-03-29: 02:00 to 03:00 does not exist.
        assert!(!hour("2026-03-29T00:59:59Z"));
        assert!(!hour("2026-03-29T01:00:00Z"));
        // 2026-10-25: 02:00 to 03:00 exists twice.
        for (at, expected) in [
            ("2026-10-24T23:59:59Z", false),
            ("2026-10-25T00:00:00Z", true),
            ("2026-10-25T01:59:59Z", true),
            ("2026-10-25T02:00:00Z", false),
        ] {
            assert_eq!(hour(at), expected, "{at}");
        }
    }

    #[test]
    fn only_hours_and_minutes_are_a_time_of_day() {
        for text in ["8:00", "08:60", "24:01", "25:00", "08:00:00", "", "0800", "-8:00", "٠٨:00"] {
            assert_eq!(TimeOfDay::parse(text), None, "{text}");
        }
        assert_eq!(TimeOfDay::parse("24:00"), Some(TimeOfDay::END));
    }
}
