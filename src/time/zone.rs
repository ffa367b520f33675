//! IANA time zones, from the database that is compiled in.

use std::sync::LazyLock;

use jiff::civil::DateTime;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, Zoned};

/// The longest name of a zone.
const MAX_NAME: usize = 64;

static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A time zone.
#[derive(Clone, Debug)]
pub struct Zone {
    zone: TimeZone,
}

impl Zone {
    /// Finds a zone by its IANA name, such as `Europe/Berlin` or `UTC`.
    pub fn find(name: &str) -> Option<Self> {
        let zone = DATABASE.get(name).ok().filter(|_| name.len() <= MAX_NAME)?;
        // Names are found in any case; rules write them as the database does.
        (zone.iana_name() == Some(name)).then_some(Self { zone })
    }

    /// The zone whose name is most like this one.
    pub fn suggest(name: &str) -> Option<String> {
        let names: Vec<String> = DATABASE.available().map(|name| name.to_string()).collect();
        let is_city = |known: &&String| {
            known.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(name))
                || known.eq_ignore_ascii_case(name)
        };
        let same = names.iter().find(is_city).map(String::as_str);
        same.or_else(|| crate::diagnostic::closest_match(name, names.iter().map(String::as_str)))
            .map(str::to_owned)
    }

    /// The local date and time at a timestamp.
    pub(super) fn local(&self, at: Timestamp) -> DateTime {
        Zoned::new(at, self.zone.clone()).datetime()
    }

    /// The timestamp of a local time. Returns `None` if it does not exist, or exists twice.
    pub(super) fn unambiguous(&self, local: DateTime) -> Option<Timestamp> {
        self.zone.to_ambiguous_timestamp(local).unambiguous().ok()
    }
}
