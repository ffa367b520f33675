//! The notification file: YAML → the channels that messages are sent to.

use std::collections::BTreeMap;
use std::path::Path;

use callgate::diagnostic::{Diagnostic, Diagnostics, MISSING_KEY, SourceMap, UNKNOWN_VALUE, render};
use callgate::json::Value;
use callgate::policy;
use callgate::rules_schema::Shape;
use callgate::source::{self, YamlNode};
use callgate_http::Caller;
use data_encoding::BASE64;
use reqwest::Url;

use super::channel::{Channel, Receiver};
use super::email::{EmailApprover, EmailReceiver, MailServer};
use super::file_schema::NOTIFICATIONS;
use super::http_receiver::{HttpFormat, HttpReceiver};
use super::message::MessageKind;
use super::slack::SlackApp;
use super::templates::{self, ChannelTemplates, MessageTemplates};

/// The least length of a secret, in bytes.
const SHORTEST_SECRET: usize = 24;
/// The prefix of secrets in base64, by the Standard Webhooks specification.
const SECRET_PREFIX: &str = "whsec_";

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
            let folder = path.parent().unwrap_or(Path::new(""));
            let page_node = part.root.get("page");
            let mut reader = Reader {
                environment: &environment,
                diagnostics: &mut diagnostics,
                folder,
                has_page: page_node.is_some(),
            };
            if let Some(page) = page_node {
                file.page = reader.page(page);
            }
            let channels = part.root.get("channels").and_then(YamlNode::items).unwrap_or_default();
            let numbered = (1..).zip(channels);
            file.channels.extend(numbered.filter_map(|(number, node)| reader.channel(number, node)));
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
    /// The folder of the file, to which its paths are relative.
    folder: &'a Path,
    has_page: bool,
}

impl Reader<'_> {
    /// Links have one-time tokens, and approvers sign in there: only the page's own server may see them.
    fn page(&mut self, node: &YamlNode) -> Option<String> {
        let help = "write the URL of the approvals page, such as `https://approvals.example.com`";
        let url = match Url::parse(node.as_str()?) {
            Ok(url) if matches!(url.scheme(), "https" | "http") => url,
            _ => {
                self.report(node, "this is not a URL", help);
                return None;
            }
        };
        let has_more = url.path() != "/" || url.query().is_some() || url.fragment().is_some();
        if has_more || !url.username().is_empty() || url.password().is_some() {
            self.report(node, "the URL of the page has a scheme, a host and a port only", help);
            return None;
        }
        if url.scheme() == "http" && !callgate_http::is_this_machine(&url) {
            self.report(node, "the page must be reached over TLS, except on this machine", help);
            return None;
        }
        Some(url.as_str().trim_end_matches('/').to_owned())
    }

    fn channel(&mut self, number: u64, node: &YamlNode) -> Option<Channel> {
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
        let format = match kind {
            "webhook" => Some(HttpFormat::Webhook { secret: self.secret(node)? }),
            "slack" => Some(HttpFormat::Slack { app: self.slack_app(node)? }),
            "teams" => Some(HttpFormat::Teams),
            "ntfy" => Some(HttpFormat::Ntfy),
            _ => None,
        };
        if format.is_some() {
            self.check_only_for_email(node);
        }
        let receiver = match format {
            Some(format) => HttpReceiver::new(format, &url)
                .map(Receiver::Http)
                .map_err(|why| (why, "write a URL that begins with `https://`")),
            None => self
                .email(node, url)?
                .map(Receiver::Email)
                .map_err(|why| (why, "correct the settings of the mail server")),
        };
        let events = node.get("events").and_then(YamlNode::items).unwrap_or_default();
        let events: Vec<MessageKind> =
            events.iter().filter_map(|event| MessageKind::from_name(event.as_str()?)).collect();
        let events = if events.is_empty() { vec![MessageKind::ApprovalRequested] } else { events };
        let shows_arguments = node.get("arguments").and_then(YamlNode::as_bool).unwrap_or(false);
        let templates = ChannelTemplates {
            requested: self.templates(node, MessageKind::ApprovalRequested),
            answered: self.templates(node, MessageKind::ApprovalAnswered),
        };
        match receiver {
            Ok(receiver) => Some(Channel { number, receiver, events, shows_arguments, templates }),
            Err((why, help)) => {
                self.report(at, &why, help);
                None
            }
        }
    }

    fn check_only_for_email(&mut self, node: &YamlNode) {
        for key in ["from", "user", "password_env", "ca_file"] {
            if let Some(value) = node.get(key) {
                let help = "remove it, or write `type: email`";
                self.report(value, &format!("`{key}` is only for channels of the type `email`"), help);
            }
        }
    }

    /// A receiver by e-mail. `None` stands for errors that have been reported.
    fn email(&mut self, node: &YamlNode, url: String) -> Option<Result<EmailReceiver, String>> {
        if !self.has_page {
            let help = "add `page: https://approvals.example.com` to the file";
            self.report(node.get("type")?, "e-mails link to the approvals page, whose URL is missing", help);
            return None;
        }
        let Some(from) = node.get("from").and_then(YamlNode::as_str) else {
            let missing = Diagnostic::new(&MISSING_KEY, node.span, "`from` is missing");
            self.diagnostics.push(missing.with_help("add the address that messages are sent from"));
            return None;
        };
        let mut approvers = Vec::new();
        for entry in node.get("approvers").and_then(YamlNode::entries).unwrap_or_default() {
            match EmailApprover::new(&entry.key, self.approver("email", &entry.value)?) {
                Ok(approver) => approvers.push(approver),
                Err(why) => {
                    self.report(&entry.value, &why, "write `ann@example.com: { principal: ann }`");
                    return None;
                }
            }
        }
        if approvers.is_empty() {
            let help = "add `approvers: { ann@example.com: { principal: ann } }`";
            self.report(node.get("type")?, "nobody gets the messages of this channel", help);
            return None;
        }
        let user = match (node.get("user"), node.get("password_env")) {
            (None, None) => None,
            (Some(user), Some(password)) => Some((user.as_str()?.to_owned(), self.variable(password)?)),
            (Some(alone), None) | (None, Some(alone)) => {
                let help = "add the other one, or remove both";
                self.report(alone, "`user` and `password_env` are needed together", help);
                return None;
            }
        };
        let authorities = match node.get("ca_file") {
            Some(file) => match std::fs::read(self.folder.join(file.as_str()?)) {
                Ok(pem) => Some(pem),
                Err(error) => {
                    self.report(
                        file,
                        &format!("this file can't be read: {error}"),
                        "write the path of a file in PEM",
                    );
                    return None;
                }
            },
            None => None,
        };
        Some(EmailReceiver::new(MailServer { url, user, authorities }, from, approvers))
    }

    /// The templates for one kind of messages.
    fn templates(&mut self, node: &YamlNode, kind: MessageKind) -> MessageTemplates {
        let texts = node.get("templates").and_then(|templates| templates.get(kind.name()));
        let mut template = |name: &str| {
            let node = texts?.get(name)?;
            match templates::parse(node.as_str()?, kind) {
                Ok(template) => Some(template),
                Err((why, help)) => {
                    self.report(node, &why, &help);
                    None
                }
            }
        };
        let [title, text, footer] = ["title", "text", "footer"].map(&mut template);
        MessageTemplates { title, text, footer }
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
            callers.insert(entry.key.clone(), self.approver("slack", &entry.value)?);
        }
        Some(Some(SlackApp::new(&self.variable(secret)?, callers)))
    }

    /// An approver whom a chat product or a mailbox verifies.
    fn approver(&mut self, issuer: &str, node: &YamlNode) -> Option<Caller> {
        match node.to_json() {
            Value::Object(context) => Some(Caller::approver(issuer, context)),
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
