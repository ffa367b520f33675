//! Canonical form of host names and mail domains, and the patterns that they are compared with.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use url::Host;

use super::Undecided;
use crate::safe_text::{escape_controls, is_hidden};

/// The maximum length of a host, in bytes. A DNS name has at most 253 in ASCII.
const MAX_LENGTH: usize = 1024;

/// A host name or an IP address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostName {
    /// A DNS name in lower-case ASCII, without a trailing dot.
    Dns(String),
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// An IPv6 address.
    V6(Ipv6Addr),
}

impl HostName {
    /// Parses a host name or an address (IPv6 in brackets).
    ///
    /// # Errors
    /// Returns [`Undecided`] if parsers differ on which host it is.
    pub(crate) fn parse(text: &str) -> Result<Self, Undecided> {
        if text.len() > MAX_LENGTH {
            return Err(Undecided("the host is too long"));
        }
        if text.chars().any(|c| c.is_control() || c.is_whitespace() || is_hidden(c)) {
            return Err(Undecided("the host has white space, a control character or an invisible character"));
        }
        if text.contains('%') {
            return Err(Undecided("the host has a percent-escape or an IPv6 zone"));
        }
        match Host::parse(text) {
            Ok(Host::Domain(ascii)) => Self::parse_dns(text, &ascii),
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

    fn parse_dns(text: &str, ascii: &str) -> Result<Self, Undecided> {
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
            // The two versions of IDNA map these differently.
            if text.contains(['ß', 'ẞ', 'ς', '\u{200c}', '\u{200d}']) {
                return Err(Undecided("the host has a letter that IDNA implementations map differently"));
            }
            // Symbols (a fraction slash looks like a slash) are valid in the older version only.
            if text.chars().any(|c| !c.is_ascii() && !c.is_alphanumeric()) {
                return Err(Undecided("the host has a symbol that not every IDNA implementation allows"));
            }
            let encoded = |label: &str| label.to_ascii_lowercase().starts_with("xn--");
            // Only some implementations map full-width letters and dots to ASCII, and the number of labels must not change.
            let folded = text.split('.').count() != ascii.split('.').count()
                || text.split('.').zip(ascii.split('.')).any(|(from, to)| !from.is_ascii() && !encoded(to));
            if folded || text.split('.').any(encoded) {
                return Err(Undecided("the host mixes Unicode and `xn--` spellings of international names"));
            }
        }
        Ok(Self::Dns(ascii))
    }
}

impl fmt::Display for HostName {
    /// Writes the host as in a URL: IPv6 in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dns(name) => f.write_str(name),
            Self::V4(address) => address.fmt(f),
            Self::V6(address) => write!(f, "[{address}]"),
        }
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

/// An exact name, or all subdomains of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DnsPattern {
    name: HostName,
    subdomains: bool,
}

impl DnsPattern {
    /// Parses `example.com`, `*.example.com`, `192.0.2.1` or `[2001:db8::1]`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let displayed = escape_controls(text);
        let (subdomains, rest) = text.strip_prefix("*.").map_or((false, text), |rest| (true, rest));
        if rest.is_empty() {
            return Err("the name is empty; write a host such as `example.com`".to_owned());
        }
        if rest.contains('*') {
            return Err(format!(
                "`{displayed}` has a `*` that is not the whole first label, as it is in `*.example.com`"
            ));
        }
        if rest.contains(['/', '@', '?', '#', '\\']) {
            return Err(format!(
                "`{displayed}` is not a bare host name: remove the scheme, user and path, as in `example.com`"
            ));
        }
        if rest.contains(':') && !rest.starts_with('[') {
            return Err(format!(
                "`{displayed}` has a port or is an IPv6 address: remove the port, which is ignored, or put the address in brackets"
            ));
        }
        let name = HostName::parse(rest)
            .map_err(|Undecided(reason)| format!("`{displayed}` is not a valid host: {reason}"))?;
        if subdomains && !matches!(name, HostName::Dns(_)) {
            return Err(format!(
                "`{displayed}` has a wildcard before an IP address, which has no subdomains"
            ));
        }
        Ok(Self { name, subdomains })
    }

    /// The name, and whether its subdomains match instead of it.
    pub(super) fn parts(&self) -> (&HostName, bool) {
        (&self.name, self.subdomains)
    }

    /// Whether the pattern matches a name. `*.example.com` matches every name under `example.com`, but not `example.com` itself.
    pub(super) fn matches(&self, name: &HostName) -> bool {
        match (&self.name, name) {
            (HostName::Dns(parent), HostName::Dns(name)) if self.subdomains => {
                name.strip_suffix(parent.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            (expected, found) => expected == found,
        }
    }

    /// Whether the pattern is an IP address instead of a DNS name.
    pub(super) fn is_ip_address(&self) -> bool {
        !matches!(self.name, HostName::Dns(_))
    }
}
