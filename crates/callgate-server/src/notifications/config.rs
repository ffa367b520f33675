//! The notification file: YAML → the channels that messages are sent to.

use std::collections::BTreeMap;
use std::path::Path;

use callgate::diagnostic::{Diagnostic, Diagnostics, MISSING_KEY, SourceMap, UNKNOWN_VALUE, render};
use callgate::json::Value;
use callgate::policy;
use callgate::rules_schema::{FieldShape, RecordShape, Shape};
use callgate::source::{self, YamlNode};
use callgate_http::Caller;
use data_encoding::BASE64;

use super::channel::{Channel, ChannelKind};
use super::message::MessageKind;
use super::slack::SlackApp;

/// The least length of a secret, in bytes.
const SHORTEST_SECRET: usize = 24;
/// The prefix of secrets in base64, by the Standard Webhooks specification.
const SECRET_PREFIX: &str = "whsec_";

static CHANNEL: RecordShape = RecordShape {
    name: "channel",
    doc: "Where messages are sent. Its URL is given by `url`, or by an environment variable (`url_env`) if it is a secret.",
    fields: &[
        FieldShape::required(
            "type",
            Shape::Word(&[
                ("webhook", "signed JSON, by the Standard Webhooks specification"),
                ("slack", "a Slack incoming webhook"),
                ("teams", "a Microsoft Teams webhook (Workflows)"),
                ("ntfy", "a topic of ntfy"),
            ]),
            "The format of the messages.",
        ),
        FieldShape::optional("url", Shape::String("a URL"), "The URL that messages are sent to."),
        FieldShape::optional(
            "url_env",
            Shape::String("the name of an environment variable"),
            "The environment variable with the URL.",
        ),
        FieldShape::optional(
            "secret_env",
            Shape::String("the name of an environment variable"),
            "The environment variable with the secret that signs messages, for `webhook`: 24 bytes or more, or `whsec_` and base64.",
        ),
        FieldShape::optional(
            "signing_secret_env",
            Shape::String("the name of an environment variable"),
            "The environment variable with the signing secret of the Slack app, for buttons that answer. Needs `arguments: true` and \
             `approvers`.",
        ),
        FieldShape::optional(
            "approvers",
            Shape::Any,
            "Who may answer in Slack: a mapping of the ids of Slack users to `{ principal, roles, tenant }`.",
        ),
        FieldShape::optional(
            "events",
            Shape::NonEmptyList(&Shape::Word(&[
                ("approval_requested", "a call needs an approval"),
                ("approval_answered", "a request was approved, denied or cancelled, or has expired"),
            ])),
            "What messages are sent about. Default: `[approval_requested]`.",
        ),
        FieldShape::optional(
            "arguments",
            Shape::Bool,
            "Whether messages have the arguments of the call, as policies redact them. Default: false.",
        ),
    ],
};

static APPROVER: RecordShape = RecordShape {
    name: "approver",
    doc: "An approver who is known to a chat product.",
    fields: &[
        FieldShape::required("principal", Shape::String("a name"), "Who it is, as `approvers:` of policies."),
        FieldShape::optional("roles", Shape::NonEmptyList(&Shape::String("a role")), "The roles."),
        FieldShape::optional(
            "tenant",
            Shape::String("a tenant"),
            "The tenant whose requests they answer. Default: all.",
        ),
    ],
};

static NOTIFICATIONS: RecordShape = RecordShape {
    name: "notifications",
    doc: "Where messages about approvals are sent.",
    fields: &[
        FieldShape::optional("callgate", Shape::Integer(1, 1), "The version of the format."),
        FieldShape::optional(
            "page",
            Shape::String("a URL such as `https://approvals.example.com`"),
            "The URL of the approvals page, to which messages link.",
        ),
        FieldShape::required(
            "channels",
            Shape::NonEmptyList(&Shape::Record(&CHANNEL)),
            "Where messages are sent.",
        ),
    ],
};

/// The schema of a notification file.
pub fn notification_record() -> &'static RecordShape {
    &NOTIFICATIONS
}

/// A parsed notification file.
pub struct NotificationFile {
    pub(super) channels: Vec<Channel>,
    /// The URL of the approvals page, without a slash at its end.
    pub(super) page: Option<String>,
}

// Leaves out URLs and secrets.
impl std::fmt::Debug for NotificationFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NotificationFile").field("channels", &self.channels.len()).finish_non_exhaustive()
    }
}

/// The errors of an invalid notification file.
#[derive(Debug)]
pub struct NotificationError {
    /// The problems, each with its location.
    pub diagnostics: Diagnostics,
    /// The sources of the file.
    pub sources: SourceMap,
}

impl std::fmt::Display for NotificationError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(render::text(&self.diagnostics, &self.sources, false).trim_end())
    }
}

impl std::error::Error for NotificationError {}

impl NotificationFile {
    /// Reads a notification file. Variables are looked up in `environment`.
    ///
    /// # Errors
    /// The file is invalid; the error has all problems.
    pub fn open(
        path: &Path,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, NotificationError> {
        let loaded = source::load_trusted(path);
        let (sources, mut diagnostics) = (loaded.sources, loaded.diagnostics);
        let mut file = Self { channels: Vec::new(), page: None };
        for part in &loaded.files {
            Shape::Record(&NOTIFICATIONS).check(&part.root, "a notification file", &mut diagnostics);
            policy::check_version(&part.root, &mut diagnostics);
            let mut reader = Reader { environment: &environment, diagnostics: &mut diagnostics };
            if let Some(page) = part.root.get("page") {
                file.page = reader.page(page);
            }
            let channels = part.root.get("channels").and_then(YamlNode::items).unwrap_or_default();
            file.channels.extend(channels.iter().filter_map(|node| reader.channel(node)));
        }
        if diagnostics.has_errors() {
            return Err(NotificationError { diagnostics, sources });
        }
        Ok(file)
    }
}

struct Reader<'a> {
    environment: &'a dyn Fn(&str) -> Option<String>,
    diagnostics: &'a mut Diagnostics,
}

impl Reader<'_> {
    fn page(&mut self, node: &YamlNode) -> Option<String> {
        let text = node.as_str()?.trim_end_matches('/');
        if ["https://", "http://"].iter().any(|scheme| text.starts_with(scheme)) {
            return Some(text.to_owned());
        }
        self.report(node, "this is not a URL", "write the URL of the approvals page, with `https://`");
        None
    }

    fn channel(&mut self, node: &YamlNode) -> Option<Channel> {
        let kind = node.get("type")?.as_str()?;
        let (url, at) = match (node.get("url"), node.get("url_env")) {
            (Some(url), None) => (url.as_str()?.to_owned(), url),
            (None, Some(name)) => (self.variable(name)?, name),
            (None, None) => {
                let missing = Diagnostic::new(&MISSING_KEY, node.span, "`url` or `url_env` is missing");
                self.diagnostics.push(missing.with_help("add one of them"));
                return None;
            }
            (Some(_), Some(second)) => {
                self.report(second, "only one of `url` and `url_env` is allowed", "remove one");
                return None;
            }
        };
        let kind = match kind {
            "webhook" => ChannelKind::Webhook { secret: self.secret(node)? },
            "slack" => ChannelKind::Slack { app: self.slack_app(node)? },
            "teams" => ChannelKind::Teams,
            _ => ChannelKind::Ntfy,
        };
        let events = node.get("events").and_then(YamlNode::items).unwrap_or_default();
        let events: Vec<MessageKind> =
            events.iter().filter_map(|event| MessageKind::from_name(event.as_str()?)).collect();
        let events = if events.is_empty() { vec![MessageKind::ApprovalRequested] } else { events };
        let shows_arguments = node.get("arguments").and_then(YamlNode::as_bool).unwrap_or(false);
        match Channel::new(kind, &url, events, shows_arguments) {
            Ok(channel) => Some(channel),
            Err(why) => {
                self.report(at, &why, "write a URL that begins with `https://`");
                None
            }
        }
    }

    /// What answers in Slack need. The outer `None` is an error that has been reported.
    fn slack_app(&mut self, node: &YamlNode) -> Option<Option<SlackApp>> {
        let (Some(secret), approvers) = (node.get("signing_secret_env"), node.get("approvers")) else {
            if let Some(approvers) = node.get("approvers") {
                let help = "add `signing_secret_env`, or remove `approvers`";
                self.report(approvers, "nobody can answer without the signing secret of the Slack app", help);
                return None;
            }
            return Some(None);
        };
        if node.get("arguments").and_then(YamlNode::as_bool) != Some(true) {
            let message = "answers need messages that show what is approved";
            self.report(secret, message, "add `arguments: true`, or remove `signing_secret_env`");
            return None;
        }
        let entries = approvers.and_then(YamlNode::entries).unwrap_or_default();
        if entries.is_empty() {
            let help = "add `approvers: { U012ABCDEF: { principal: ann } }` with the ids of Slack users";
            self.report(approvers.unwrap_or(secret), "nobody may answer in Slack", help);
            return None;
        }
        let mut callers = BTreeMap::new();
        for entry in entries {
            callers.insert(entry.key.clone(), self.approver(&entry.value)?);
        }
        Some(Some(SlackApp::new(&self.variable(secret)?, callers)))
    }

    /// An approver of a chat product.
    fn approver(&mut self, node: &YamlNode) -> Option<Caller> {
        Shape::Record(&APPROVER).check(node, "an approver", self.diagnostics);
        match node.to_json() {
            Value::Object(context) => Some(Caller::approver("slack", context)),
            _ => None,
        }
    }

    /// The secret of a webhook.
    fn secret(&mut self, node: &YamlNode) -> Option<Vec<u8>> {
        let Some(name) = node.get("secret_env") else {
            let missing = Diagnostic::new(&MISSING_KEY, node.span, "`secret_env` is missing");
            let help = "a receiver knows by the signature that a message is from Callgate: name the variable with the secret";
            self.diagnostics.push(missing.with_help(help));
            return None;
        };
        let text = self.variable(name)?;
        let secret = match text.strip_prefix(SECRET_PREFIX) {
            Some(encoded) => BASE64.decode(encoded.as_bytes()).unwrap_or_default(),
            None => text.into_bytes(),
        };
        if secret.len() < SHORTEST_SECRET {
            let help = "use 24 random bytes or more, such as `openssl rand -base64 32` prints";
            self.report(name, "the secret in this variable is too short, or not base64 after `whsec_`", help);
            return None;
        }
        Some(secret)
    }

    fn variable(&mut self, name: &YamlNode) -> Option<String> {
        let value = (self.environment)(name.as_str()?).map(|value| value.trim().to_owned());
        let value = value.filter(|value| !value.is_empty());
        if value.is_none() {
            self.report(name, "this environment variable is not set or empty", "set it, or use another one");
        }
        value
    }

    fn report(&mut self, node: &YamlNode, message: &str, help: &str) {
        self.diagnostics.push(Diagnostic::new(&UNKNOWN_VALUE, node.span, message).with_help(help));
    }
}
