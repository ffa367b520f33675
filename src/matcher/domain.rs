//! `domain`: the domains of all addresses in an address list, as in the `To:` of a message.
//!
//! Mail programs differ widely in what they make of odd address lists, and one address too many is a leak. So only
//! lists are judged that every reader of RFC 5322 splits alike: bare addresses, addresses in angle brackets after a
//! name (quoted where it holds special characters), comments outside of addresses, and groups.

use super::Undecided;
use super::name::{DnsPattern, Name};
use crate::text::{inert, is_hidden};
use crate::unicode::ascii_form;

/// A mail domain to compare with: `example.com`, or `*.example.com` (every domain under it, not itself).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainPattern(DnsPattern);

impl DomainPattern {
    /// Reads an operand of `domain`. Errors say what to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(name) = text.strip_prefix('@') {
            return Err(format!("leave out the `@`: `{}`", inert(name)));
        }
        let pattern = DnsPattern::parse(text)?;
        if pattern.is_address() {
            return Err("an IP address is not a mail domain: write a name, as in `example.com`".to_owned());
        }
        Ok(Self(pattern))
    }

    /// Whether a domain from [`address_domains`] is the one that is meant.
    pub fn covers(&self, domain: &str) -> bool {
        self.0.covers(&Name::Dns(domain.to_owned()))
    }
}

/// Whether the domain of every address in a list is covered by one of the patterns.
///
/// ```
/// use callgate::matcher::{DomainPattern, every_domain_matches};
/// let ours = [DomainPattern::parse("example.com").unwrap()];
/// assert_eq!(every_domain_matches(&ours, r#""Doe, Ana" <ana@example.com>, bob@example.com"#), Ok(true));
/// assert_eq!(every_domain_matches(&ours, "ana@example.com; eve@evil.org"), Ok(false));
/// assert!(every_domain_matches(&ours, "nobody").is_err());
/// ```
pub fn every_domain_matches(patterns: &[DomainPattern], text: &str) -> Result<bool, Undecided> {
    let domains = address_domains(text)?;
    Ok(domains.iter().all(|domain| patterns.iter().any(|pattern| pattern.covers(domain))))
}

/// The domain of every address in a list, in order: ASCII, lower case. Addresses are separated by `,` or `;`.
///
/// Undecided: a list without an address, and everything on which readers differ: an `@` too few or too many, brackets
/// and quotes that do not close, control characters, routes, domain literals, encoded words, quoted local parts with
/// special characters, `%` and `!` in local parts, comments inside an address or with special characters.
pub fn address_domains(text: &str) -> Result<Vec<String>, Undecided> {
    check(text)?;
    let tokens = tokens(text)?;
    let mut domains = Vec::new();
    let mut entry: Vec<Token<'_>> = Vec::new();
    let mut group_is_open = false;
    for token in tokens {
        match token {
            Token::Special(',') => take_entry(&mut entry, &mut domains)?,
            Token::Special(';') => {
                take_entry(&mut entry, &mut domains)?;
                group_is_open = false;
            }
            // A group's name stands before the colon, a route's addresses do: they hold an `@` or a bracket.
            Token::Special(':') => {
                let words_only = entry.iter().all(is_name_part);
                let named = entry.iter().any(|token| !matches!(token, Token::Gap));
                if group_is_open || !words_only || !named {
                    return Err(Undecided("a colon stands where no group can start"));
                }
                group_is_open = true;
                entry.clear();
            }
            other => entry.push(other),
        }
    }
    take_entry(&mut entry, &mut domains)?;
    if group_is_open {
        return Err(Undecided("a group of addresses is not closed"));
    }
    if domains.is_empty() {
        return Err(Undecided("the text holds no address"));
    }
    Ok(domains)
}

/// Refuses text that may be rewritten before it is read.
fn check(text: &str) -> Result<(), Undecided> {
    if text.chars().any(|c| c.is_control() || is_hidden(c) || c.is_whitespace() && c != ' ') {
        return Err(Undecided("the address list has a control, an invisible or an unusual space character"));
    }
    if text.contains("=?") {
        return Err(Undecided("the address list has an encoded word"));
    }
    // Compatibility forms of what separates addresses.
    let folds = |c| {
        c == char::REPLACEMENT_CHARACTER || ascii_form(c).is_some_and(|form| r#"@,;:<>"()\"#.contains(form))
    };
    if text.contains(folds) {
        return Err(Undecided("the address list has a character that some programs turn into a separator"));
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    /// A run of characters without special meaning; dots belong to it.
    Word(&'a str),
    /// What stands between quotes, still escaped.
    Quoted(&'a str),
    /// One of `@ < > , ; :`.
    Special(char),
    /// White space or a comment.
    Gap,
}

fn tokens(text: &str) -> Result<Vec<Token<'_>>, Undecided> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            ' ' => (Token::Gap, 1),
            '"' => {
                let inside = quoted(rest.get(1..).unwrap_or_default())?;
                (Token::Quoted(inside), inside.len() + 2)
            }
            '(' => (Token::Gap, comment(rest)?),
            '@' | '<' | '>' | ',' | ';' | ':' => (Token::Special(first), 1),
            '[' | ']' => return Err(Undecided("the address list has a domain literal")),
            ')' | '\\' => {
                return Err(Undecided("the address list has a bracket or a backslash out of place"));
            }
            _ => {
                let end = rest.find([' ', '"', '(', ')', '@', '<', '>', ',', ';', ':', '[', ']', '\\']);
                let word = end.and_then(|end| rest.get(..end)).unwrap_or(rest);
                (Token::Word(word), word.len())
            }
        };
        tokens.push(token);
        rest = rest.get(length..).unwrap_or_default();
    }
    Ok(tokens)
}

/// The text up to the closing quote.
fn quoted(text: &str) -> Result<&str, Undecided> {
    let mut escaped = false;
    for (index, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Ok(text.get(..index).unwrap_or_default()),
            // Readers that look for brackets first would find an address in this name.
            '<' | '>' => return Err(Undecided("a quoted name has angle brackets")),
            _ => {}
        }
    }
    Err(Undecided("a quote is not closed"))
}

/// The length of a comment. Only plain ones are read: readers that do not know comments see the same list then.
fn comment(text: &str) -> Result<usize, Undecided> {
    let end = text.find(')').ok_or(Undecided("a comment is not closed"))?;
    let inside = text.get(1..end).unwrap_or_default();
    if inside.contains(['(', '@', '<', '>', ',', ';', ':', '"', '\\', '[', ']']) {
        return Err(Undecided("a comment has special characters"));
    }
    Ok(end + 1)
}

/// Reads the entry that ends here, if there is one, and adds its domain.
fn take_entry(entry: &mut Vec<Token<'_>>, domains: &mut Vec<String>) -> Result<(), Undecided> {
    let tokens = std::mem::take(entry);
    let start = tokens.iter().position(|token| *token != Token::Gap).unwrap_or(tokens.len());
    let end = tokens.iter().rposition(|token| *token != Token::Gap).map_or(start, |last| last + 1);
    let tokens = tokens.get(start..end).unwrap_or_default();
    if tokens.is_empty() {
        return Ok(());
    }
    let address = match tokens.iter().position(|token| *token == Token::Special('<')) {
        None => tokens,
        Some(open) => {
            let (name, rest) = tokens.split_at_checked(open).unwrap_or_default();
            if !name.iter().all(is_name_part) {
                return Err(Undecided("something other than a name stands before an address in brackets"));
            }
            match rest {
                [_, address @ .., Token::Special('>')] => address,
                _ => return Err(Undecided("angle brackets do not close around an address")),
            }
        }
    };
    domains.push(domain_of(address)?);
    Ok(())
}

fn is_name_part(token: &Token<'_>) -> bool {
    !matches!(token, Token::Special(_))
}

fn domain_of(address: &[Token<'_>]) -> Result<String, Undecided> {
    let [local, Token::Special('@'), Token::Word(domain)] = address else {
        return Err(Undecided("an entry is not one address with one `@`"));
    };
    let plain = match local {
        Token::Word(local) => {
            local.split('.').all(|atom| !atom.is_empty())
                && local.chars().all(|c| !c.is_ascii() || is_plain(c))
        }
        // Some programs drop the quotes and read what was inside once more.
        Token::Quoted(local) => {
            !local.is_empty() && local.chars().all(|c| !c.is_ascii() || is_plain(c) || c == ' ')
        }
        _ => false,
    };
    if !plain {
        return Err(Undecided("the part before the `@` has characters that mail programs treat differently"));
    }
    match Name::read(domain)? {
        Name::Dns(domain) => Ok(domain),
        _ => Err(Undecided("the domain of an address is an IP address")),
    }
}

/// What may stand in a local part: the letters of RFC 5322 without `%` and `!`, by which old mail programs relay.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "#$&'*+-/=?^_`{|}~.".contains(c)
}

#[cfg(test)]
mod tests;
