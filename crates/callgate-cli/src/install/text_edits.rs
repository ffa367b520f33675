//! Text edits of a client's config file: replaced ranges; everything else stays unchanged, byte for byte.

use std::ops::Range;

use super::clients::{ClientProperties, ConfigSyntax};
use super::server_entry::{EntryMember, ServerEntry, ServerTarget, Standing, StringValue};

/// A range of a text and its replacement.
#[derive(Debug)]
pub(super) struct TextEdit {
    span: Range<usize>,
    text: String,
}

impl TextEdit {
    fn new(span: Range<usize>, text: impl Into<String>) -> Self {
        Self { span, text: text.into() }
    }
}

/// Applies edits, which must not overlap.
pub(super) fn apply_edits(text: &str, mut edits: Vec<TextEdit>) -> String {
    edits.sort_by_key(|edit| edit.span.start);
    let mut result = String::with_capacity(text.len());
    let mut done = 0;
    for TextEdit { span, text: new } in edits {
        result.push_str(slice(text, done..span.start));
        result.push_str(&new);
        done = span.end;
    }
    result.push_str(slice(text, done..text.len()));
    result
}

/// Puts a server behind `program proxy OPTIONS`. Existing values keep their notation: the command or the URL moves into the arguments,
/// before which the proxy's arguments are inserted.
pub(super) fn add_gateway(
    text: &str,
    entry: &ServerEntry,
    facts: &ClientProperties,
    program: &str,
    options: &[String],
) -> Vec<TextEdit> {
    let mut words: Vec<String> = vec![quote("proxy")];
    words.extend(options.iter().map(|option| quote(option)));
    let list = |words: &[String]| format!("[{}]", words.join(", "));
    let mut edits = Vec::new();
    if let Some(command) = &entry.command {
        words.extend([quote("--"), slice(text, command.span.clone()).to_owned()]);
        let mut replaced = quote(program);
        match &entry.args {
            None => {
                replaced.push_str(&member_separator(text, entry, facts, command.key.start));
                replaced.push_str(&format_member(facts, "args", &list(&words)));
            }
            Some(args) => match args.value.first() {
                None => edits.push(TextEdit::new(args.span.start + 1..args.span.start + 1, words.join(", "))),
                Some(first) => {
                    let between = element_separator(text, args, first);
                    let new: String = words.iter().flat_map(|word| [word.as_str(), &between]).collect();
                    edits.push(TextEdit::new(first.span.start..first.span.start, new));
                }
            },
        }
        edits.push(TextEdit::new(command.span.clone(), replaced));
    } else if let Some(url) = &entry.url {
        words.extend([quote("--upstream"), slice(text, url.span.clone()).to_owned()]);
        let mut replaced = format_member(facts, "command", &quote(program));
        replaced.push_str(&member_separator(text, entry, facts, url.key.start));
        replaced.push_str(&format_member(facts, "args", &list(&words)));
        edits.push(TextEdit::new(url.key.start..url.span.end, replaced));
        if let Some(kind) = &entry.kind {
            edits.push(TextEdit::new(kind.span.clone(), quote("stdio")));
        }
    }
    edits
}

/// Removes the gateway from a server's entry. Returns no edits if the server is not behind the gateway. `before` is the backup's entry.
///
/// If the backup's entry, put behind the gateway, equals the file's entry, the backup's text is restored. Otherwise the entry was
/// changed since, and only the gateway's part before the server's own command is removed.
///
/// # Errors
///
/// If the entry was changed so that it can't be restored, with what to do.
pub(super) fn remove_gateway(
    text: &str,
    entry: &ServerEntry,
    facts: &ClientProperties,
    before: Option<(&str, &ServerEntry)>,
    program: &str,
) -> Result<Vec<TextEdit>, String> {
    let (Standing::Installed { options, origin }, Some(command), Some(args)) =
        (entry.gateway_status(program), &entry.command, &entry.args)
    else {
        return Ok(Vec::new());
    };
    if let Some((old, before)) = before
        && matches!(before.gateway_status(program), Standing::NotInstalled(_))
    {
        let core = before.editable_range();
        let mut edits = add_gateway(old, before, facts, &command.value, &options);
        for edit in &mut edits {
            edit.span = edit.span.start - core.start..edit.span.end - core.start;
        }
        let was = slice(old, core);
        if apply_edits(was, edits) == slice(text, entry.editable_range()) {
            return Ok(vec![TextEdit::new(entry.editable_range(), was)]);
        }
    }
    // `proxy`, the options, and `--` or `--upstream`.
    let own = args.value.get(options.len() + 2).map(|text| text.span.clone()).unwrap_or_default();
    let own = slice(text, own);
    match origin {
        ServerTarget::Command { .. } => {
            let removal = match (args.value.first(), args.value.get(options.len() + 3)) {
                (Some(first), Some(next)) => TextEdit::new(first.span.start..next.span.start, ""),
                _ => TextEdit::new(args.span.clone(), "[]"),
            };
            Ok(vec![TextEdit::new(command.span.clone(), own), removal])
        }
        ServerTarget::Remote(url) => {
            let between = text.get(command.span.end..args.key.start).map(str::trim);
            if !matches!(between, Some("" | ",")) {
                return Err(format!(
                    "it was changed since `callgate install`; set `{}` to `{url}` by hand",
                    facts.url_key
                ));
            }
            let mut edits = vec![TextEdit::new(
                command.key.start..args.span.end,
                format_member(facts, facts.url_key, own),
            )];
            if let Some(kind) = &entry.kind {
                edits.push(TextEdit::new(kind.span.clone(), quote(facts.http_type)));
            }
            Ok(edits)
        }
    }
}

fn slice(text: &str, span: Range<usize>) -> &str {
    text.get(span).unwrap_or_default()
}

/// A string as JSON writes it, which TOML reads the same way except for one character.
fn quote(text: &str) -> String {
    callgate::json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

fn format_member(facts: &ClientProperties, key: &str, value: &str) -> String {
    match facts.syntax {
        ConfigSyntax::Json => format!("\"{key}\": {value}"),
        ConfigSyntax::Toml => format!("{key} = {value}"),
    }
}

/// The separator between the member whose key is at `key` and a new one: a new line with the same indentation, if that member is on
/// its own line.
fn member_separator(text: &str, entry: &ServerEntry, facts: &ClientProperties, key: usize) -> String {
    let above = slice(text, 0..key);
    let line = above.rfind('\n').map_or(0, |end| end + 1);
    let lead = slice(text, line..key);
    let line_break = if text.contains("\r\n") { "\r\n" } else { "\n" };
    match facts.syntax {
        // In a table, a key is preceded by indentation, and with dotted keys by the table's name.
        ConfigSyntax::Toml if !entry.is_comma_separated => format!("{line_break}{lead}"),
        _ if line > 0 && lead.trim().is_empty() => format!(",{line_break}{lead}"),
        _ => ", ".to_owned(),
    }
}

/// The separator between a new element and the first one: the same as between the first and the second.
fn element_separator(text: &str, args: &EntryMember<Vec<StringValue>>, first: &StringValue) -> String {
    if let Some(second) = args.value.get(1) {
        let between = slice(text, first.span.end..second.span.start);
        if between.trim() == "," {
            return between.to_owned();
        }
    }
    let before = slice(text, args.span.start + 1..first.span.start);
    match before.rfind('\n') {
        Some(end) if slice(before, end..before.len()).trim().is_empty() => {
            format!(",{}", slice(before, before.trim_end().len()..before.len()))
        }
        _ => ", ".to_owned(),
    }
}
