//! Renders a card as text, Markdown or HTML, for hosts without their own card format.

use std::fmt::Write;

use super::model::{Card, CardField};
use crate::safe_text::escape_html;

/// The heading of the arguments. The caller of the tool chooses their labels, so they are set apart from the other fields.
const ARGUMENTS: &str = "Arguments";

impl Card {
    /// Renders the card for a terminal: plain lines, arguments indented below their heading.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}\n{}\n\n", self.title, self.text);
        for (index, field) in self.fields.iter().enumerate() {
            if self.is_first_argument(index) {
                text.push_str(&format!("{ARGUMENTS}:\n"));
            }
            let indent = if field.kind.is_argument() { "  " } else { "" };
            let _ = writeln!(text, "{indent}{}: {}", field.label, value_text(field));
        }
        if let Some(labels) = self.button_labels() {
            let _ = writeln!(text, "\n{labels}");
        }
        text
    }

    /// Renders the card in Markdown. Its text contains no markup, so it needs no escaping.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("**{}**\n\n{}\n\n", self.title, self.text);
        for (index, field) in self.fields.iter().enumerate() {
            if self.is_first_argument(index) {
                text.push_str(&format!("- **{ARGUMENTS}:**\n"));
            }
            let indent = if field.kind.is_argument() { "  " } else { "" };
            let _ = writeln!(text, "{indent}- **{}:** {}", field.label, value_text(field));
        }
        if let Some(labels) = self.button_labels() {
            let _ = writeln!(text, "\n{labels}");
        }
        text
    }

    /// Renders the card as one HTML element. Each button has its action id in `data-action`; the page supplies scripts and styles.
    pub fn to_html(&self) -> String {
        let mut html = format!(
            "<section class=\"approval-card\" data-status=\"{}\">\n<h3>{}</h3>\n<p>{}</p>\n<dl>\n",
            self.status.name(),
            escape_html(&self.title),
            escape_html(&self.text)
        );
        let mut within = false;
        for (index, field) in self.fields.iter().enumerate() {
            if within && !field.kind.is_argument() {
                html.push_str("</dl></dd>\n");
                within = false;
            }
            if self.is_first_argument(index) {
                let _ = writeln!(html, "<dt>{ARGUMENTS}</dt><dd><dl>");
                within = true;
            }
            let _ = writeln!(
                html,
                "<dt>{}</dt><dd>{}</dd>",
                escape_html(&field.label),
                escape_html(&value_text(field))
            );
        }
        html.push_str(if within { "</dl></dd>\n</dl>\n" } else { "</dl>\n" });
        for action in &self.actions {
            let _ = writeln!(
                html,
                "<button type=\"button\" class=\"{}\" data-action=\"{}\">{}</button>",
                action.style.name(),
                escape_html(&action.id),
                escape_html(&action.label)
            );
        }
        html.push_str("</section>\n");
        html
    }

    fn is_first_argument(&self, index: usize) -> bool {
        let is_argument = |index: usize| self.fields.get(index).is_some_and(|field| field.kind.is_argument());
        is_argument(index) && !index.checked_sub(1).is_some_and(is_argument)
    }

    fn button_labels(&self) -> Option<String> {
        let labels: Vec<&str> = self.actions.iter().map(|action| action.label.as_str()).collect();
        (!labels.is_empty()).then(|| format!("Actions: {}", labels.join(" / ")))
    }
}

fn value_text(field: &CardField) -> String {
    match &field.was {
        Some(was) => format!("{} (was {was})", field.value),
        None => field.value.clone(),
    }
}
