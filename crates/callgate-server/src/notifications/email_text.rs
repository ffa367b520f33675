//! The text of an e-mail, as plain text and as simple HTML. The links come first; everything else is text.

use super::envelope::Envelope;
use callgate::safe_text::escape_html;

/// What e-mails say about their links.
const NOTE: &str =
    "The links open a page that shows the call. Nothing is answered before you press the button there.";
/// Begins each line of a call, so that none looks like a line of the message.
const QUOTE: &str = "| ";
const OPEN_PAGE: &str = "Open the approvals page";

/// The message as plain text.
pub(super) fn plain_text(envelope: &Envelope<'_>) -> String {
    let (texts, links) = (&envelope.texts, &envelope.links);
    let mut lines = vec![texts.title.clone(), String::new()];
    lines.extend(links.answers.iter().map(|button| format!("{}:\n{}\n", button.label, button.url)));
    lines.extend(links.page.iter().map(|url| format!("{OPEN_PAGE}:\n{url}\n")));
    if !links.answers.is_empty() {
        lines.push(format!("{NOTE}\n"));
    }
    for text in [Some(texts.text.as_str()), envelope.arguments].into_iter().flatten() {
        if !text.is_empty() {
            lines.extend(text.trim_end().lines().map(|line| format!("{QUOTE}{line}")));
            lines.push(String::new());
        }
    }
    lines.push(texts.footer.clone());
    format!("{}\n", lines.join("\n").trim_end())
}

/// The message as HTML without styles, pictures and scripts.
pub(super) fn html_text(envelope: &Envelope<'_>) -> String {
    let (texts, links) = (&envelope.texts, &envelope.links);
    let link = |label: &str, url: &str| {
        format!("<a href=\"{}\" rel=\"noreferrer\">{}</a>", escape_html(url), escape_html(label))
    };
    let answers = links.answers.iter().map(|button| link(&button.label, &button.url));
    let all: Vec<String> = answers.chain(links.page.iter().map(|url| link(OPEN_PAGE, url))).collect();
    let mut html =
        format!("<!doctype html>\n<html lang=\"en\"><body>\n<h1>{}</h1>\n", escape_html(&texts.title));
    if !all.is_empty() {
        html.push_str(&format!("<p>{}</p>\n", all.join(" · ")));
    }
    if !links.answers.is_empty() {
        html.push_str(&format!("<p>{NOTE}</p>\n"));
    }
    if !texts.text.is_empty() {
        html.push_str(&format!("<blockquote>{}</blockquote>\n", escape_html(&texts.text)));
    }
    if let Some(arguments) = envelope.arguments {
        html.push_str(&format!("<pre>{}</pre>\n", escape_html(arguments)));
    }
    if !texts.footer.is_empty() {
        html.push_str(&format!("<p>{}</p>\n", escape_html(&texts.footer)));
    }
    html.push_str("</body></html>\n");
    html
}
