//! The message and the reason code of a refusal: what `deny` and `require` have in common.

use crate::diagnostic::{Diagnostic, EMPTY_VALUE};
use crate::rules_schema::PolicyReader;
use crate::source::YamlNode;
use crate::template::Template;

/// What the agent and programs learn of a refusal.
#[derive(Debug)]
pub struct Refusal {
    /// The message to the agent.
    pub message: Option<Template>,
    /// The reason code.
    pub code: String,
}

/// The default code of a kind, and an example of another one for error messages.
pub(super) struct RefusalCode {
    pub(super) default: &'static str,
    pub(super) example: &'static str,
}

impl Refusal {
    /// Reads `message` and `code`, and reports problems to `reader`.
    pub(super) fn read(node: &YamlNode, reader: &mut PolicyReader<'_>, code: &RefusalCode) -> Option<Self> {
        let message = match node.get("message") {
            Some(message) => Some(reader.read_template(message, &[])?),
            None => None,
        };
        let code = match node.get("code") {
            Some(written) if written.as_str() == Some("") => {
                reader.report(
                    Diagnostic::new(&EMPTY_VALUE, written.span, "`code` is empty")
                        .with_help(format!("write for example `{}`", code.example)),
                );
                return None;
            }
            Some(written) => written.as_str()?.to_owned(),
            None => code.default.to_owned(),
        };
        Some(Self { message, code })
    }
}
