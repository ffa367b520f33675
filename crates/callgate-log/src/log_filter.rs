//! Selects events of a log by their members.

use callgate::json::Value;
use jiff::Timestamp;

use crate::entry::LogEntry;

/// Which events are selected: those that match every part that is set. A part that is a list matches any of its values.
#[derive(Clone, Debug, Default)]
pub struct LogFilter {
    /// Names of events.
    pub events: Vec<String>,
    /// Names of tools, also as `SERVER/TOOL`.
    pub tools: Vec<String>,
    /// Outcomes of calls.
    pub outcomes: Vec<String>,
    /// Ids of policies that took part.
    pub policies: Vec<String>,
    /// Principals.
    pub principals: Vec<String>,
    /// Names of sessions.
    pub sessions: Vec<String>,
    /// The earliest time.
    pub since: Option<Timestamp>,
    /// The time before which the events happened.
    pub until: Option<Timestamp>,
}

impl LogFilter {
    /// Whether an event is selected.
    pub fn matches(&self, entry: &LogEntry) -> bool {
        let has = |wanted: &[String], name: &str| is_one_of(wanted, entry.text(name));
        is_one_of(&self.events, Some(&entry.event))
            && self.matches_tool(entry)
            && has(&self.outcomes, "outcome")
            && self.matches_policy(entry)
            && has(&self.principals, "principal")
            && has(&self.sessions, "session")
            && self.since.is_none_or(|since| entry.time >= since)
            && self.until.is_none_or(|until| entry.time < until)
    }

    fn matches_tool(&self, entry: &LogEntry) -> bool {
        let qualified =
            entry.text("server").zip(entry.text("tool")).map(|(server, tool)| format!("{server}/{tool}"));
        is_one_of(&self.tools, entry.text("tool"))
            || qualified.is_some_and(|name| is_one_of(&self.tools, Some(&name)))
    }

    fn matches_policy(&self, entry: &LogEntry) -> bool {
        if self.policies.is_empty() {
            return true;
        }
        let named = |id: Option<&str>| id.is_some_and(|id| is_one_of(&self.policies, Some(id)));
        let array = |name: &str| entry.members.get(name).and_then(Value::as_array);
        let in_trace = |policy: &Value| named(policy.get("id").and_then(Value::as_str));
        named(entry.reason("policy"))
            || named(entry.text("policy"))
            || array("policies").is_some_and(|policies| policies.iter().any(in_trace))
            || array("asking_policies").is_some_and(|policies| policies.iter().any(|id| named(id.as_str())))
    }
}

/// Whether a value is one of those wanted, or nothing is.
fn is_one_of(wanted: &[String], value: Option<&str>) -> bool {
    wanted.is_empty() || value.is_some_and(|value| wanted.iter().any(|wanted| wanted == value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_must_match() {
        let line = r#"{"version":1,"event":"call_completed","time":"2026-11-22T10:00:00Z","tool":"rm","server":"files","principal":"ann","outcome":"denied","reason":{"policy":"no-rm","code":"denied"},"policies":[{"id":"shadow"}]}"#;
        let entry = LogEntry::parse(line).expect("an event");
        let list = |value: &str| vec!["other".to_owned(), value.to_owned()];
        let matches = |filter: LogFilter| filter.matches(&entry);
        let time = |text: &str| text.parse().ok();
        assert!(matches(LogFilter::default()));
        for tool in ["rm", "files/rm"] {
            assert!(matches(LogFilter { tools: list(tool), ..LogFilter::default() }));
        }
        for policy in ["no-rm", "shadow"] {
            assert!(matches(LogFilter { policies: list(policy), ..LogFilter::default() }));
        }
        assert!(!matches(LogFilter { policies: list("no"), ..LogFilter::default() }));
        assert!(!matches(LogFilter {
            tools: list("rm"),
            outcomes: list("executed"),
            ..LogFilter::default()
        }));
        assert!(!matches(LogFilter { sessions: list(""), ..LogFilter::default() }));
        let until = LogFilter { until: time("2026-11-22T10:00:00Z"), ..LogFilter::default() };
        assert!(!matches(until));
        let since = LogFilter { since: time("2026-11-22T10:00:00Z"), ..LogFilter::default() };
        assert!(matches(since));
    }
}
