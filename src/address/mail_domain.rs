//! `domain`: parser of mail address lists, as in the `To:` header, that returns the domains of all addresses.
//!
//! Mail programs parse unusual address lists differently, and one missed recipient is a data leak. So only lists that every parser
//! of RFC 5322 splits in the same way are accepted: bare addresses, addresses in angle brackets after a name (quoted if it has
//! special characters), comments outside of addresses, and groups.

use super::Undecided;
use super::host_name::{DnsPattern, HostName};
use crate::safe_text::{escape_controls, is_hidden};
use crate::unicode::ascii_form;

/// A pattern for mail domains: `example.com`, or `*.example.com` (every subdomain, but not the domain itself).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainPattern(DnsPattern);

impl DomainPattern {
    /// Parses an operand of `domain`.
    ///
    /// # Errors
    /// Returns a message that says what to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(name) = text.strip_prefix('@') {
            return Err(format!("a domain has no `@`: write `{}`", escape_controls(name)));
        }
        let pattern = DnsPattern::parse(text)?;
        if pattern.is_ip_address() {
            return Err("an IP address is not a mail domain: write a name, as in `example.com`".to_owned());
        }
        Ok(Self(pattern))
    }

    /// Whether the pattern matches a domain from [`parse_address_domains`].
    pub fn matches(&self, domain: &str) -> bool {
        self.0.matches(&HostName::Dns(domain.to_owned()))
    }
}

/// Whether the domain of every address in a list matches one of the patterns.
///
/// ```
/// use callgate::address::{DomainPattern, every_domain_matches};
/// let ours = [DomainPattern::parse("example.com").unwrap()];
/// assert_eq!(every_domain_matches(&ours, r#""Doe, Ana" <ana@example.com>, bob@example.com"#), Ok(true));
/// assert_eq!(every_domain_matches(&ours, "ana@example.com; eve@evil.org"), Ok(false));
/// assert!(every_domain_matches(&ours, "nobody").is_err());
/// ```
pub fn every_domain_matches(patterns: &[DomainPattern], text: &str) -> Result<bool, Undecided> {
    let domains = parse_address_domains(text)?;
    Ok(domains.iter().all(|domain| patterns.iter().any(|pattern| pattern.matches(domain))))
}

/// Returns the domain of every address in a list, in order, in lower-case ASCII. Addresses are separated by `,` or `;`.
///
/// # Errors
/// Returns [`Undecided`] for a list without an address, and for everything that parsers treat differently: a missing or extra `@`,
/// unclosed brackets and quotes, control characters, routes, domain literals, encoded words, quoted local parts with special
/// characters, `%` and `!` in local parts, comments inside an address or with special characters.
pub fn parse_address_domains(text: &str) -> Result<Vec<String>, Undecided> {
    reject_ambiguous(text)?;
    let tokens = tokenize(text)?;
    let mut domains = Vec::new();
    let mut entry: Vec<AddressToken<'_>> = Vec::new();
    let mut group_is_open = false;
    for token in tokens {
        match token {
            AddressToken::Special(',') => parse_entry(&mut entry, &mut domains)?,
            AddressToken::Special(';') => {
                parse_entry(&mut entry, &mut domains)?;
                group_is_open = false;
            }
            // Before the colon is the name of a group, or the addresses of a route, which contain an `@` or a bracket.
            AddressToken::Special(':') => {
                let words_only = entry.iter().all(is_name_part);
                let named = entry.iter().any(|token| !matches!(token, AddressToken::Gap));
                if group_is_open || !words_only || !named {
                    return Err(Undecided("the address list has a colon where no group can start"));
                }
                group_is_open = true;
                entry.clear();
            }
            other => entry.push(other),
        }
    }
    parse_entry(&mut entry, &mut domains)?;
    if group_is_open {
        return Err(Undecided("the address list has an unclosed group"));
    }
    if domains.is_empty() {
        return Err(Undecided("the string contains no address"));
    }
    Ok(domains)
}

/// Rejects strings that programs may rewrite before they parse them.
fn reject_ambiguous(text: &str) -> Result<(), Undecided> {
    if text.chars().any(|c| c.is_control() || is_hidden(c) || c.is_whitespace() && c != ' ') {
        return Err(Undecided(
            "the address list has a control character, an invisible character or an unusual space",
        ));
    }
    if text.contains("=?") {
        return Err(Undecided("the address list has an encoded word"));
    }
    // Compatibility forms of the separators.
    let folds = |c| {
        c == char::REPLACEMENT_CHARACTER || ascii_form(c).is_some_and(|form| r#"@,;:<>"()\"#.contains(form))
    };
    if text.contains(folds) {
        return Err(Undecided("the address list has a character that some programs convert to a separator"));
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressToken<'a> {
    /// A run of characters without special meaning, dots included.
    Word(&'a str),
    /// The characters between quotes, still escaped.
    Quoted(&'a str),
    /// One of `@ < > , ; :`.
    Special(char),
    /// White space or a comment.
    Gap,
}

fn tokenize(text: &str) -> Result<Vec<AddressToken<'_>>, Undecided> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            ' ' => (AddressToken::Gap, 1),
            '"' => {
                let inside = read_quoted(rest.get(1..).unwrap_or_default())?;
                (AddressToken::Quoted(inside), inside.len() + 2)
            }
            '(' => (AddressToken::Gap, comment_length(rest)?),
            '@' | '<' | '>' | ',' | ';' | ':' => (AddressToken::Special(first), 1),
            '[' | ']' => return Err(Undecided("the address list has a domain literal")),
            ')' | '\\' => {
                return Err(Undecided("the address list has a misplaced bracket or backslash"));
            }
            _ => {
                let end = rest.find([' ', '"', '(', ')', '@', '<', '>', ',', ';', ':', '[', ']', '\\']);
                let word = end.and_then(|end| rest.get(..end)).unwrap_or(rest);
                (AddressToken::Word(word), word.len())
            }
        };
        tokens.push(token);
        rest = rest.get(length..).unwrap_or_default();
    }
    Ok(tokens)
}

/// Returns the text up to the closing quote.
fn read_quoted(text: &str) -> Result<&str, Undecided> {
    let mut escaped = false;
    for (index, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Ok(text.get(..index).unwrap_or_default()),
            // Parsers that look for brackets first would find an address in this name.
            '<' | '>' => return Err(Undecided("the address list has a quoted name with angle brackets")),
            _ => {}
        }
    }
    Err(Undecided("the address list has an unclosed quote"))
}

/// Returns the length of a comment. Only plain comments are accepted, so that parsers without comments see the same list.
fn comment_length(text: &str) -> Result<usize, Undecided> {
    let end = text.find(')').ok_or(Undecided("the address list has an unclosed comment"))?;
    let inside = text.get(1..end).unwrap_or_default();
    if inside.contains(['(', '@', '<', '>', ',', ';', ':', '"', '\\', '[', ']']) {
        return Err(Undecided("the address list has a comment with special characters"));
    }
    Ok(end + 1)
}

/// Parses and clears the entry that ends here, if there is one, and adds its domain.
fn parse_entry(entry: &mut Vec<AddressToken<'_>>, domains: &mut Vec<String>) -> Result<(), Undecided> {
    let tokens = std::mem::take(entry);
    let start = tokens.iter().position(|token| *token != AddressToken::Gap).unwrap_or(tokens.len());
    let end = tokens.iter().rposition(|token| *token != AddressToken::Gap).map_or(start, |last| last + 1);
    let tokens = tokens.get(start..end).unwrap_or_default();
    if tokens.is_empty() {
        return Ok(());
    }
    let address = match tokens.iter().position(|token| *token == AddressToken::Special('<')) {
        None => tokens,
        Some(open) => {
            let (name, rest) = tokens.split_at_checked(open).unwrap_or_default();
            if !name.iter().all(is_name_part) {
                return Err(Undecided(
                    "an address in angle brackets has something other than a name before it",
                ));
            }
            match rest {
                [_, address @ .., AddressToken::Special('>')] => address,
                _ => {
                    return Err(Undecided(
                        "the address list has angle brackets that do not enclose one address",
                    ));
                }
            }
        }
    };
    domains.push(parse_domain(address)?);
    Ok(())
}

fn is_name_part(token: &AddressToken<'_>) -> bool {
    !matches!(token, AddressToken::Special(_))
}

fn parse_domain(address: &[AddressToken<'_>]) -> Result<String, Undecided> {
    let [local, AddressToken::Special('@'), AddressToken::Word(domain)] = address else {
        return Err(Undecided("an entry of the address list is not one address with one `@`"));
    };
    let plain = match local {
        AddressToken::Word(local) => {
            local.split('.').all(|atom| !atom.is_empty())
                && local.chars().all(|c| !c.is_ascii() || is_plain_local_char(c))
        }
        // Some programs drop the quotes and parse the content again.
        AddressToken::Quoted(local) => {
            !local.is_empty() && local.chars().all(|c| !c.is_ascii() || is_plain_local_char(c) || c == ' ')
        }
        _ => false,
    };
    if !plain {
        return Err(Undecided("the part before the `@` has characters that mail programs treat differently"));
    }
    match HostName::parse(domain)? {
        HostName::Dns(domain) => Ok(domain),
        _ => Err(Undecided("the domain of an address is an IP address")),
    }
}

/// Whether a local part may have this character: the characters of RFC 5322 without `%` and `!`, which old mail programs use to
/// relay.
fn is_plain_local_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "#$&'*+-/=?^_`{|}~.".contains(c)
}

#[cfg(test)]
mod tests;
