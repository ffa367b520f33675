//! `within`, `older_than`, `during`: tests of timestamps. Value + time of the decision → [`Truth`].

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::truth::Truth;
use crate::call::{CallView, NodeRef, Root};
use crate::diagnostic::{Diagnostic, INVALID_OPERAND};
use crate::json::JsonType;
use crate::rules_schema::{FieldShape, PolicyReader, RecordShape, Shape};
use crate::source::YamlNode;
use crate::time::{DailyWindow, TimeOfDay, TimeValue, Weekdays, Zone, parse_timestamp};

/// How far a timestamp may be in the future, because clocks differ.
const MAX_SKEW: SignedDuration = SignedDuration::from_secs(60);

pub const WITHIN: FieldShape = FieldShape::optional(
    "within",
    Shape::String("a duration such as `24h`"),
    "The value is a timestamp less than this duration ago: RFC 3339 with an offset, or a time of an expression. The test is undecided for \
     any other value, and for a timestamp more than 60 s in the future.",
);
pub const OLDER_THAN: FieldShape = FieldShape::optional(
    "older_than",
    Shape::String("a duration such as `24h`"),
    "The value is a timestamp at least this duration ago. The test is undecided where `within` is.",
);
pub const DURING: FieldShape = FieldShape::optional(
    "during",
    Shape::Record(&WINDOW),
    "The value is a timestamp in these days and hours of a zone. For the time of the decision, test `$.now`.",
);

static WINDOW: RecordShape = RecordShape {
    name: "during",
    doc: "Days of the week and hours of the day in the local time of a zone.",
    fields: &[
        FieldShape::optional(
            "days",
            Shape::OneOrMany(&Shape::Word(&[
                ("mon", "Monday"),
                ("tue", "Tuesday"),
                ("wed", "Wednesday"),
                ("thu", "Thursday"),
                ("fri", "Friday"),
                ("sat", "Saturday"),
                ("sun", "Sunday"),
            ])),
            "The days. Default: every day.",
        ),
        FieldShape::optional(
            "from",
            Shape::String("a time of day such as `08:00`"),
            "The first minute. Default: `00:00`. If it is later than `to`, the hours cross midnight and belong to the day on which they \
             begin.",
        ),
        FieldShape::optional(
            "to",
            Shape::String("a time of day such as `18:00`"),
            "The minute after the last one. Default: `24:00`.",
        ),
        FieldShape::required(
            "zone",
            Shape::String("an IANA time zone such as `Europe/Berlin`"),
            "The time zone whose local time counts, with its changes of the clock.",
        ),
    ],
};

/// A compiled test of a timestamp.
#[derive(Debug)]
pub enum TimeTest {
    /// Less than this duration ago.
    Within(Duration),
    /// At least this duration ago.
    OlderThan(Duration),
    /// In these hours.
    During(DailyWindow),
}

impl TimeTest {
    /// Reads a test. Returns `None` if the key is another operator, and `Some(None)` if the test is invalid.
    pub fn read(key: &str, node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Option<Self>> {
        Some(match key {
            "within" => read_age(node, reader).map(Self::Within),
            "older_than" => read_age(node, reader).map(Self::OlderThan),
            "during" => read_window(node, reader).map(Self::During),
            _ => return None,
        })
    }

    /// Evaluates the test for a value.
    pub fn eval(&self, node: NodeRef<'_>, view: &CallView<'_>) -> Truth {
        let at = match timestamp_of(node) {
            Ok(at) => at,
            Err(why) => return Truth::Undecided(why),
        };
        let limit = match self {
            Self::During(window) => return window.contains(at).into(),
            Self::Within(limit) | Self::OlderThan(limit) => limit,
        };
        let now = match (view.check_known([Root::Now]), view.time()) {
            (Ok(()), Some(TimeValue::Timestamp(now))) => now,
            (Err(unknown), _) => return Truth::Undecided(unknown.to_string()),
            (Ok(()), _) => return Truth::Undecided("the time is unknown".to_owned()),
        };
        let age = now.duration_since(at);
        if age < -MAX_SKEW {
            return Truth::Undecided("it is more than 60 s in the future".to_owned());
        }
        let is_recent = SignedDuration::try_from(*limit).is_ok_and(|limit| age < limit);
        (is_recent == matches!(self, Self::Within(_))).into()
    }
}

fn timestamp_of(node: NodeRef<'_>) -> Result<Timestamp, String> {
    let not_a_time = |found: &str| format!("it is {found}, and not a timestamp with an offset");
    match (node, node.as_str()) {
        (NodeRef::Time(time), _) => match time.value {
            TimeValue::Timestamp(at) => Ok(at),
            TimeValue::Duration(_) => Err(not_a_time("a duration")),
        },
        (_, Some(text)) => parse_timestamp(text)
            .ok_or_else(|| "it is a string, and not a timestamp with an offset".to_owned()),
        (other, None) => Err(not_a_time(JsonType::with_article(other.json_type()))),
    }
}

fn read_age(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Duration> {
    // The test reads the time, though no path names it.
    reader.roots_read.insert(Root::Now);
    reader.read_duration(node)
}

fn read_window(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<DailyWindow> {
    let days = match node.get("days") {
        None => Weekdays::ALL,
        Some(days) => {
            let names = days.items().unwrap_or(std::slice::from_ref(days)).iter();
            Weekdays::from_names(names.filter_map(YamlNode::as_str))
        }
    };
    // Read every part before failing, so that every problem is reported.
    let from = read_time_of_day(node.get("from"), TimeOfDay::MIDNIGHT, reader);
    let to = read_time_of_day(node.get("to"), TimeOfDay::END, reader);
    let zone = read_zone(node.get("zone")?, reader);
    let (from, to, zone) = (from?, to?, zone?);
    if from == to || from == TimeOfDay::END {
        let at = node.get("from").or_else(|| node.get("to")).map_or(node.span, |node| node.span);
        reader.report(
            Diagnostic::new(&INVALID_OPERAND, at, "`during` has no minute between `from` and `to`")
                .with_help(
                    "leave both out for the whole day, or write for example `from: \"08:00\", to: \"18:00\"`",
                ),
        );
        return None;
    }
    Some(DailyWindow { days, from, to, zone })
}

fn read_time_of_day(
    node: Option<&YamlNode>,
    default: TimeOfDay,
    reader: &mut PolicyReader<'_>,
) -> Option<TimeOfDay> {
    let Some(node) = node else { return Some(default) };
    let text = node.as_str()?;
    let time = TimeOfDay::parse(text);
    if time.is_none() {
        let message = format!("`{}` is not a time of day", text.escape_debug());
        reader.report(
            Diagnostic::new(&INVALID_OPERAND, node.span, message)
                .with_help("write hours and minutes with two digits each, such as `\"08:00\"`"),
        );
    }
    time
}

fn read_zone(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Zone> {
    let name = node.as_str()?;
    let zone = Zone::find(name);
    if zone.is_none() {
        let help = match Zone::suggest(name) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "write an IANA time zone such as `Europe/Berlin` or `UTC`".to_owned(),
        };
        let message = format!("unknown time zone `{}`", name.escape_debug());
        reader.report(Diagnostic::new(&INVALID_OPERAND, node.span, message).with_help(help));
    }
    zone
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{SessionState, ToolCall};
    use crate::json::{Value, json};
    use crate::time::Moment;

    fn eval(test: &TimeTest, value: &Value, now: Option<&str>) -> Truth {
        let call = ToolCall::new("c", "t", json!({}));
        let (session, now) = (SessionState::default(), Moment::new(now.map(|now| now.parse().unwrap())));
        test.eval(NodeRef::Json(value), &CallView { now: Some(&now), ..CallView::new(&call, &session) })
    }

    #[test]
    fn ages_are_compared_with_the_time_of_the_decision() {
        let day = Duration::from_secs(86_400);
        for (at, within) in [
            ("2026-03-01T12:00:00Z", Some(true)),
            ("2026-02-28T12:00:00.001Z", Some(true)),
            ("2026-02-28T12:00:00Z", Some(false)),
            ("2026-02-28T13:00:00+01:00", Some(false)),
            ("2026-03-01T12:01:00Z", Some(true)),
            ("2026-03-01T12:01:00.001Z", None),
            ("2026-03-01T12:00:00", None),
            ("0001-01-01T00:00:00Z", Some(false)),
            ("9999-12-30T00:00:00Z", None),
        ] {
            let [recent, old] = [TimeTest::Within(day), TimeTest::OlderThan(day)]
                .map(|test| eval(&test, &json!(at), Some("2026-03-01T12:00:00Z")));
            match within {
                Some(within) => assert_eq!((recent, old), (within.into(), (!within).into()), "{at}"),
                None => assert!(recent.is_undetermined() && old.is_undetermined(), "{at}"),
            }
        }
    }

    #[test]
    fn other_values_and_a_failed_clock_are_undecided() {
        let test = TimeTest::Within(Duration::from_secs(1));
        for value in
            [json!(1_772_366_400), json!(null), json!(["2026-03-01T12:00:00Z"]), json!("now"), json!("")]
        {
            assert!(eval(&test, &value, Some("2026-03-01T12:00:00Z")).is_undetermined(), "{value}");
        }
        assert!(eval(&test, &json!("2026-03-01T12:00:00Z"), None).is_undetermined());
        let unlimited = TimeTest::Within(Duration::MAX);
        assert_eq!(eval(&unlimited, &json!("2026-03-01T12:00:00Z"), Some("2026-03-01T12:00:00Z")), Truth::No);
    }
}
