//! Names of hosts and mail domains: one form of each, and the patterns they are compared with.

use std::net::{Ipv4Addr, Ipv6Addr};

use url::Host;

use super::Undecided;
use crate::text::{inert, is_hidden};

/// Where a host is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// A DNS name in ASCII, lower case, without a dot at the end.
    Dns(String),
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// An IPv6 address.
    V6(Ipv6Addr),
}

impl Name {
    /// Reads a host name or address (IPv6 in brackets). Undecided where readers differ on which host it is.
    pub(super) fn read(text: &str) -> Result<Self, Undecided> {
        if text.chars().any(|c| c.is_control() || c.is_whitespace() || is_hidden(c)) {
            return Err(Undecided("the host has white space, a control or an invisible character"));
        }
        if text.contains('%') {
            return Err(Undecided("the host has a percent-escape or a zone"));
        }
        match Host::parse(text) {
            Ok(Host::Domain(ascii)) => Self::dns(text, &ascii),
            Ok(Host::Ipv4(address)) if address.to_string() == text => Ok(Self::V4(address)),
            Ok(Host::Ipv4(_)) => Err(Undecided("the host is an IPv4 address in an unusual form")),
            // A socket to such an address reaches the IPv4 address inside it.
            Ok(Host::Ipv6(address)) if embeds_ipv4(address) => {
                Err(Undecided("the host is an IPv4 address written as IPv6"))
            }
            Ok(Host::Ipv6(address)) => Ok(Self::V6(address)),
            Err(_) => Err(Undecided("the host is not a valid name")),
        }
    }

    fn dns(text: &str, ascii: &str) -> Result<Self, Undecided> {
        let ascii = ascii.strip_suffix('.').unwrap_or(ascii).to_ascii_lowercase();
        let text = text.strip_suffix('.').unwrap_or(text);
        let plain = |label: &str| {
            !label.is_empty()
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        if !ascii.split('.').all(plain) {
            return Err(Undecided("the host is not a valid name"));
        }
        if !text.is_ascii() {
            // The two generations of international names map these apart.
            if text.contains(['ß', 'ẞ', 'ς', '\u{200c}', '\u{200d}']) {
                return Err(Undecided(
                    "the host has a letter that readers of international names treat differently",
                ));
            }
            // Symbols (a fraction slash looks like a slash) are valid for the older generation only.
            if text.chars().any(|c| !c.is_ascii() && !c.is_alphanumeric()) {
                return Err(Undecided(
                    "the host has a symbol that not every reader of international names allows",
                ));
            }
            let encoded = |label: &str| label.to_ascii_lowercase().starts_with("xn--");
            // Full-width letters or dots become plain ones for some readers only, and no label may change the count.
            let folded = text.split('.').count() != ascii.split('.').count()
                || text.split('.').zip(ascii.split('.')).any(|(from, to)| !from.is_ascii() && !encoded(to));
            if folded || text.split('.').any(encoded) {
                return Err(Undecided("the host mixes spellings of international names"));
            }
        }
        Ok(Self::Dns(ascii))
    }
}

fn embeds_ipv4(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, ..] = address.segments();
    let first_96 = [a, b, c, d, e, f];
    let low = !address.is_loopback() && !address.is_unspecified();
    matches!(first_96, [0, 0, 0, 0, 0, 0xffff] | [0x64, 0xff9b, 0, 0, 0, 0] | [0, 0, 0, 0, 0xffff, 0])
        || first_96 == [0; 6] && low
        || a == 0x2002
}

/// An exact name, or every name under one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamePattern {
    name: Name,
    subdomains: bool,
}

impl NamePattern {
    /// Reads `example.com`, `*.example.com`, `192.0.2.1` or `[2001:db8::1]`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let shown = inert(text);
        let (subdomains, rest) = text.strip_prefix("*.").map_or((false, text), |rest| (true, rest));
        if rest.is_empty() {
            return Err("a host is needed, such as `example.com`".to_owned());
        }
        if rest.contains('*') {
            return Err(format!("`*` can only stand as the first label, as in `*.example.com`: `{shown}`"));
        }
        if rest.contains(['/', '@', '?', '#', '\\']) {
            return Err(format!(
                "`{shown}` is not a bare name: leave out scheme, user and path, as in `example.com`"
            ));
        }
        if rest.contains(':') && !rest.starts_with('[') {
            return Err(format!(
                "`{shown}` has a port or is an IPv6 address: ports are ignored, and IPv6 goes in brackets"
            ));
        }
        let name =
            Name::read(rest).map_err(|Undecided(reason)| format!("`{shown}` can't be compared: {reason}"))?;
        if subdomains && !matches!(name, Name::Dns(_)) {
            return Err(format!("an address has no subdomains: `{shown}`"));
        }
        Ok(Self { name, subdomains })
    }

    /// Whether a name is the one that is meant. `*.example.com` means every name under `example.com`, not itself.
    pub(super) fn covers(&self, name: &Name) -> bool {
        match (&self.name, name) {
            (Name::Dns(parent), Name::Dns(name)) if self.subdomains => {
                name.strip_suffix(parent.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            (expected, found) => expected == found,
        }
    }

    /// Whether it names an address instead of a DNS name.
    pub(super) fn is_address(&self) -> bool {
        !matches!(self.name, Name::Dns(_))
    }
}
