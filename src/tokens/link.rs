//! URLs and hosts in a text.

use super::Token;
use super::boundary::{ascii_look, trim_punctuation};
use super::file_name::is_file_name;
use crate::address::{HostName, Undecided, UrlForm, parse_url_host};
use crate::unicode::is_punctuation;

/// The maximum length of a DNS name, and of one of its labels, in ASCII.
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// A URL or host as it is written.
#[derive(Clone, Copy, Debug)]
enum Link<'t> {
    /// A URL with a scheme.
    Url(&'t str),
    /// A host with a dot and a path, without a scheme.
    Schemeless(&'t str),
    /// A host name or IP address.
    Host(&'t str),
}

/// Returns the URLs of a composed text. A host with a dot, alone or with a path, counts as an `http` and an `https` URL.
pub(super) fn find_urls(text: &str) -> Vec<Token> {
    find(text, |link| match link {
        Link::Url(url) => Some((UrlForm::parse(url).ok()?.into_string(), None)),
        Link::Schemeless(rest) => dns_name(rest.split('/').next()?).and_then(|_| two_urls(rest)),
        Link::Host(host) => dns_name(host).and_then(|_| two_urls(host)),
    })
}

/// Returns the hosts of a composed text: of its URLs, and those that stand alone.
pub(super) fn find_hosts(text: &str) -> Vec<Token> {
    find(text, |link| {
        let host = match link {
            Link::Url(url) => parse_url_host(url).ok()?.to_string(),
            Link::Schemeless(rest) => dns_name(rest.split('/').next()?)?,
            Link::Host(host) => parse_host(host)?,
        };
        Some((host, None))
    })
}

/// Checks a URL as a subject.
///
/// # Errors
/// Returns [`Undecided`] for a URL that programs interpret differently.
pub(super) fn check_subject(text: &str) -> Result<(), Undecided> {
    if text.contains("://") {
        UrlForm::parse(text)?;
    }
    Ok(())
}

/// Returns a DNS name with a dot in ASCII. Returns `None` for other names and for addresses.
pub(super) fn dns_name(text: &str) -> Option<String> {
    let Ok(HostName::Dns(name)) = HostName::parse(text) else { return None };
    let is_label = |label: &str| label.len() <= MAX_LABEL && !label.starts_with('-') && !label.ends_with('-');
    (name.contains('.') && name.len() <= MAX_NAME && name.split('.').all(is_label)).then_some(name)
}

fn parse_host(text: &str) -> Option<String> {
    let bracketed = text.contains(':').then(|| format!("[{text}]"));
    match HostName::parse(bracketed.as_deref().unwrap_or(text)).ok()? {
        HostName::Dns(_) => dns_name(text),
        address => Some(address.to_string()),
    }
}

fn two_urls(rest: &str) -> Option<(String, Option<String>)> {
    let form = |scheme: &str| Some(UrlForm::parse(&format!("{scheme}://{rest}")).ok()?.into_string());
    Some((form("http")?, Some(form("https")?)))
}

fn trim_link(link: &str) -> &str {
    trim_punctuation(link, &[(')', '('), (']', '[')])
}

/// Returns the links of a text that have a form.
fn find(text: &str, form: impl Fn(Link<'_>) -> Option<(String, Option<String>)>) -> Vec<Token> {
    let mut tokens = Vec::new();
    let offset_of = |part: &str| part.as_ptr() as usize - text.as_ptr() as usize;
    for run in text.split(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '`')) {
        for_each_link(run, |written, link| {
            if let Some((form, other_form)) = form(link) {
                let start = offset_of(written);
                tokens.push(Token { range: start..start + written.len(), form, other_form });
            }
        });
    }
    tokens
}

/// Calls `visit` with the links of a run without white space.
fn for_each_link<'t>(run: &'t str, mut visit: impl FnMut(&'t str, Link<'t>)) {
    if let Some(colon) = run.find("://") {
        // The rest of the run is part of this URL.
        if let Some(url) = url_at(run, colon) {
            visit(url, Link::Url(url));
        }
        return;
    }
    let unwrapped = trim_link(run.trim_start_matches(['(', '[', '{', '\'', '*']));
    let host = unwrapped.split('/').next().unwrap_or_default();
    if host.len() < unwrapped.len() && host.contains('.') {
        visit(unwrapped, Link::Schemeless(unwrapped));
        return;
    }
    // Part of an address, a path or a parameter, not a bare host.
    if run.contains(|c| matches!(ascii_look(c), '/' | '\\' | '@' | '%' | '=' | '&' | '#')) {
        return;
    }
    for piece in run.split(separates_hosts) {
        let piece = trim_link(piece.trim_matches(['\'', '*'])).trim_end_matches('*');
        if piece.contains(['.', ':']) && !is_file_name(piece) {
            visit(piece, Link::Host(piece));
        }
    }
}

/// Returns the URL whose scheme ends at an offset.
fn url_at(run: &str, colon: usize) -> Option<&str> {
    let is_scheme_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let (before, _) = run.split_at_checked(colon)?;
    let start = before.trim_end_matches(is_scheme_char).len();
    let can_precede = |c: char| "([{'*,;:|".contains(c) || !c.is_ascii() && is_punctuation(c);
    let is_bounded = before.get(..start)?.chars().next_back().is_none_or(can_precede);
    let begins = before.get(start..)?.starts_with(|c: char| c.is_ascii_alphabetic());
    (is_bounded && begins).then(|| trim_link(run.get(start..).unwrap_or_default()))
}

/// Whether hosts that a character separates are two.
fn separates_hosts(c: char) -> bool {
    ",;()[]{}|".contains(c) || !c.is_ascii() && is_punctuation(c) && !".-_".contains(ascii_look(c))
}
