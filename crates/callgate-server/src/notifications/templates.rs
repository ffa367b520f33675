//! Templates of a channel: what the operator wrote, with the values of a message → its texts.
//!
//! Templates change texts only: links, buttons and the arguments that are shown come from the message itself.

use callgate::call::{CallView, SessionState, ToolCall};
use callgate::json::Value;
use callgate::template::Template;

use super::message::{Message, MessageKind, bounded, line};

/// The texts of a message as its receiver gets them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MessageTexts {
    /// One line.
    pub(super) title: String,
    pub(super) text: String,
    pub(super) footer: String,
}

/// The templates of a channel for one kind of messages.
#[derive(Clone, Debug, Default)]
pub(super) struct MessageTemplates {
    pub(super) title: Option<Template>,
    pub(super) text: Option<Template>,
    pub(super) footer: Option<Template>,
}

/// The templates of a channel.
#[derive(Clone, Debug, Default)]
pub(super) struct ChannelTemplates {
    pub(super) requested: MessageTemplates,
    pub(super) answered: MessageTemplates,
}

/// Parses a template of such messages.
///
/// # Errors
/// A text for the operator, with the fix.
pub(super) fn parse(text: &str, kind: MessageKind) -> Result<Template, (String, String)> {
    let names = kind.value_names();
    let known = || {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        format!("the values of `{}` messages are {}", kind.name(), names.join(", "))
    };
    let template = Template::parse_with_names(text, names).map_err(|error| {
        let help = match &error.help {
            Some(help) if error.message.starts_with("`{{` is not closed") => help.clone(),
            _ => known(),
        };
        (error.message, help)
    })?;
    // The call itself has what policies redact.
    match template.roots_read().is_empty() {
        true => Ok(template),
        false => Err(("templates of messages can use only the values of the message".to_owned(), known())),
    }
}

impl ChannelTemplates {
    /// The templates of one kind of messages.
    pub(super) fn of(&self, kind: MessageKind) -> &MessageTemplates {
        match kind {
            MessageKind::ApprovalRequested => &self.requested,
            MessageKind::ApprovalAnswered => &self.answered,
        }
    }

    /// The texts of a message. `escape` makes text of calls and people harmless for the receiver's format.
    pub(super) fn texts(&self, message: &Message, escape: impl Fn(&str) -> String) -> MessageTexts {
        let templates = self.of(message.kind);
        let escaped: Vec<String> = message.values.iter().map(|value| escape(value)).collect();
        let values: Vec<(&str, &str)> =
            message.kind.value_names().iter().copied().zip(escaped.iter().map(String::as_str)).collect();
        let (call, session) = (ToolCall::new("", "", Value::Null), SessionState::default());
        let view = CallView::new(&call, &session);
        let render = |template: &Template| bounded(&template.render(&view, &values).text);
        let default = |text: &str| escape(text);
        MessageTexts {
            title: templates.title.as_ref().map_or_else(|| default(&message.title), |own| line(&render(own))),
            text: templates.text.as_ref().map_or_else(|| default(&message.text), render),
            footer: templates.footer.as_ref().map(render).unwrap_or_default(),
        }
    }
}
