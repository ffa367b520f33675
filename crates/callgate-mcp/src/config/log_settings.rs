//! `log:` of a configuration file → [`LogSettings`].

use callgate::diagnostic::{CONFLICTING_KEYS, UNKNOWN_VALUE};
use callgate::rules_schema::{FieldShape, RecordShape, Shape};
use callgate::safe_text::{escape_controls, truncate};
use callgate::source::YamlNode;
use callgate_log::{Content, LogDestination, LogSettings, OnFailure, OnFull};

use super::ConfigReader;

/// One destination, or several.
pub(super) const LOGS: Shape = Shape::OneOrMany(&LOG);

const DESTINATION: Shape = Shape::String(
    "a file, `audit:FILE`, `stderr`, `journald`, `syslog`, `syslog:udp:HOST:PORT`, `syslog:tcp:HOST:PORT` or `otlp:URL`",
);

static LOG: Shape = Shape::Either(&[DESTINATION, Shape::Record(&LOG_RECORD)]);

static LOG_RECORD: RecordShape = RecordShape {
    name: "log",
    doc: "A decision log with its options.",
    fields: &[
        FieldShape::required("to", DESTINATION, "Where it is written. Files are relative to this file."),
        FieldShape::optional(
            "content",
            Shape::Word(&[
                ("digests", "keyed digests of arguments and results, and no messages; the default"),
                ("redacted", "the values, as policies redact them"),
            ]),
            "What it contains of arguments and results.",
        ),
        FieldShape::optional(
            "on_failure",
            Shape::Word(&[
                (
                    "continue",
                    "they run, and the log counts the events that it lost; the default of all but audit logs",
                ),
                ("deny", "they are denied, with the code `log_unavailable`; the default of audit logs"),
            ]),
            "What happens to calls while it can't be written.",
        ),
        FieldShape::optional(
            "on_full",
            Shape::Word(&[
                ("block", "the call waits; the default"),
                ("drop", "the event is dropped, and counted"),
            ]),
            "What happens while it is written more slowly than calls arrive. Calls always wait for an audit log.",
        ),
        FieldShape::optional(
            "key",
            Shape::String("a path, from this file"),
            "The secret key that signs the checkpoints of an audit log, created if missing. Default: `FILE.key` beside the log.",
        ),
    ],
};

impl ConfigReader<'_> {
    pub(super) fn logs(&mut self, node: &YamlNode) -> Vec<LogSettings> {
        match node.items() {
            Some(items) => items.iter().filter_map(|item| self.log(item)).collect(),
            None => self.log(node).into_iter().collect(),
        }
    }

    fn log(&mut self, node: &YamlNode) -> Option<LogSettings> {
        let to = node.get("to").unwrap_or(node);
        let destination = match LogDestination::parse(to.as_str()?) {
            Ok(destination) => destination.relative_to(&self.directory),
            Err(error) => {
                let message = truncate(&escape_controls(&error.to_string()));
                let help = "write a file, `audit:FILE`, `stderr`, `journald`, `syslog` or `otlp:URL`";
                self.report(&UNKNOWN_VALUE, to.span, message, help);
                return None;
            }
        };
        let word = |name: &str| node.get(name).and_then(YamlNode::as_str);
        let mut settings = LogSettings::new(destination);
        if word("content") == Some("redacted") {
            settings.content = Content::Redacted;
        }
        if word("on_full") == Some("drop") {
            settings.on_full = OnFull::Drop;
        }
        settings.on_failure = word("on_failure").map(|choice| match choice {
            "deny" => OnFailure::Deny,
            _ => OnFailure::Continue,
        });
        settings.key = word("key").map(|path| self.directory.join(path));
        self.check_log_options(node, &settings);
        Some(settings)
    }

    /// Reports options that have no effect on their destination.
    fn check_log_options(&mut self, node: &YamlNode, settings: &LogSettings) {
        if let Some(choice) = node.get("on_failure")
            && settings.on_failure == Some(OnFailure::Deny)
            && !settings.destination.can_deny()
        {
            let help = "add a log in a file, which calls can depend on, or remove `on_failure`";
            let message = "calls do not wait for this destination, so they can't be denied when it fails";
            self.report(&CONFLICTING_KEYS, choice.span, message, help);
        }
        if let Some(key) = node.get("key")
            && !matches!(settings.destination, LogDestination::Audit(_))
        {
            let help = "write `to: audit:FILE`, or remove `key`";
            self.report(&CONFLICTING_KEYS, key.span, "only audit logs are signed", help);
        }
    }
}
