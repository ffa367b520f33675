//! E-mail addresses in a text.

use std::ops::Range;

use super::Token;
use super::boundary::{ascii_look, char_before, chars_at, chars_before, is_hidden, run_end, run_start};
use super::link::dns_name;
use crate::unicode::is_word_char;

/// Returns the addresses of a composed text. The local part is compared without ASCII letter case, the domain in IDNA A-label form.
pub(super) fn find(text: &str) -> Vec<Token> {
    let (mut is_in_url, mut read_until) = (false, 0);
    let addresses = text.match_indices('@').filter_map(|(at, _)| {
        is_in_url = has_url_before(text, read_until..at, is_in_url);
        read_until = at;
        // The user of a URL is no address: `https://ana:bob@example.com`.
        if is_in_url { None } else { read_address(text, at) }
    });
    addresses.collect()
}

/// Whether the end of a range is part of a run that has `//`, as a URL has. `is_in_url` says so of its start.
fn has_url_before(text: &str, range: Range<usize>, is_in_url: bool) -> bool {
    let part = text.get(range).unwrap_or_default();
    let run_begin = part.rfind(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '`'));
    match run_begin.and_then(|begin| part.get(begin..)) {
        Some(run) => run.contains("//"),
        None => is_in_url || part.contains("//"),
    }
}

/// Reads the address around an `@`.
fn read_address(text: &str, at: usize) -> Option<Token> {
    let run = run_start(text, at, is_local_char);
    let start = run_end(text, run, |c| is_local_char(c) && !can_begin(c));
    let local = text.get(start..at).filter(|local| is_local_part(local))?;
    // Symbols before the address are punctuation, unless they can be part of an escape, of a quoted local part or of a URL.
    let symbols = text.get(run..start)?;
    if symbols.contains(['%', '.'])
        || symbols.contains("//")
        || char_before(text, run).is_some_and(joins_local)
        || ends_quotation(chars_before(text, run))
    {
        return None;
    }
    let host_start = at + 1;
    let host_end = run_end(text, host_start, |c| is_word_char(c) || matches!(c, '-' | '.'));
    let host = text.get(host_start..host_end)?.trim_end_matches('.');
    if joins_host(chars_at(text, host_end)) {
        return None;
    }
    let domain = dns_name(host)?;
    Some(Token::new(start..host_start + host.len(), format!("{}@{domain}", local.to_ascii_lowercase())))
}

fn is_local_char(c: char) -> bool {
    is_word_char(c) || ".!#$%&*+/=?^{|}~-'".contains(c)
}

fn can_begin(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a run of local characters is a local part: no empty atom, and apostrophes only between letters.
fn is_local_part(local: &str) -> bool {
    let mut before = None;
    let mut rest = local.chars().peekable();
    while let Some(c) = rest.next() {
        let next = rest.peek().copied();
        let is_valid = match c {
            '.' => next.is_some_and(|next| next != '.'),
            '\'' => before.is_some_and(char::is_alphabetic) && next.is_some_and(char::is_alphabetic),
            _ => true,
        };
        if !is_valid {
            return false;
        }
        before = Some(c);
    }
    !local.is_empty()
}

/// Whether a character before an address continues it to the left.
fn joins_local(c: char) -> bool {
    // Typographic forms of characters that an address can contain, such as `’` and `‐`, continue it, too. Full-width punctuation
    // that separates words, such as `：`, does not.
    let look = ascii_look(c);
    let is_typographic =
        !c.is_ascii() && matches!(look, '#' | '$' | '&' | '*' | '+' | '-' | '=' | '^' | '_' | '|' | '~');
    is_hidden(c) || is_typographic || matches!(c, '’' | '·') || matches!(look, '@' | '\\' | '%' | '.' | '/')
}

/// Whether the two characters before an address, the nearer one first, end a quotation, which may be a part of a local part.
fn ends_quotation((near, beyond): (Option<char>, Option<char>)) -> bool {
    near == Some('"') && beyond.is_some_and(|beyond| is_word_char(beyond) || is_hidden(beyond))
}

/// Whether the characters after an address continue it.
fn joins_host(after: (Option<char>, Option<char>)) -> bool {
    let (Some(c), next) = after else { return false };
    match ascii_look(c) {
        '@' | '%' | '\\' => true,
        '.' | '-' => next.is_some_and(|next| is_word_char(next) || is_hidden(next)),
        _ => is_hidden(c),
    }
}
