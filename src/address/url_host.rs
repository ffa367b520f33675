//! `host`: extracts the host of a URL and compares it with patterns.
//!
//! Follows the WHATWG URL standard, as browsers and most HTTP clients do, and decides only URLs that other parsers read in the same
//! way: the host that a policy sees must be the one that the tool connects to.

use url::Url;

use super::Undecided;
use super::host_name::{DnsPattern, HostName};
use crate::safe_text::is_hidden;

/// Schemes whose URLs have a host that all parsers find at the same position.
const SCHEMES: [&str; 5] = ["http", "https", "ws", "wss", "ftp"];

/// A pattern for hosts: `api.example.com`, `*.example.com` (every subdomain, but not the domain itself), or an IP address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern(DnsPattern);

impl HostPattern {
    /// Parses an operand of `host`.
    ///
    /// # Errors
    /// Returns a message that says what to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        DnsPattern::parse(text).map(Self)
    }

    /// The name, and whether it is that of the domain whose subdomains match.
    pub(super) fn parts(&self) -> (&HostName, bool) {
        self.0.parts()
    }

    /// Whether the URL's host matches. The port, letter case, a trailing dot and the spelling of international names do not matter.
    ///
    /// # Errors
    /// Returns [`Undecided`] for anything but an http, https, ws, wss or ftp URL with `://`; for user names; for backslashes, white
    /// space and control characters anywhere; for percent-escapes, unusual IPv4 forms and mixed spellings in the host.
    ///
    /// # Examples
    ///
    /// ```
    /// use callgate::address::HostPattern;
    /// let ours = HostPattern::parse("*.example.com").unwrap();
    /// assert_eq!(ours.matches("https://API.example.com:8443/x"), Ok(true));
    /// assert_eq!(ours.matches("https://example.com.evil.org"), Ok(false));
    /// assert!(ours.matches("https://api.example.com@evil.org").is_err());
    /// ```
    pub fn matches(&self, url: &str) -> Result<bool, Undecided> {
        Ok(self.0.matches(&parse_url_host(url)?))
    }
}

/// Returns the host of a URL in the form of a pattern: in lower-case ASCII, without port and trailing dot.
///
/// # Errors
/// See [`HostPattern::matches`].
pub fn url_host(url: &str) -> Result<String, Undecided> {
    parse_url_host(url).map(|host| host.to_string())
}

/// Returns the host of a URL.
///
/// # Errors
/// See [`HostPattern::matches`].
pub(crate) fn parse_url_host(text: &str) -> Result<HostName, Undecided> {
    let (scheme, name) = parse_authority(text)?;
    if !SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return Err(Undecided("the URL's scheme is not http, https, ws, wss or ftp"));
    }
    // Both parsers must find the same host.
    let parsed = Url::parse(text).map_err(|_| Undecided("the string is not a valid URL"))?;
    match parsed.host_str().map(HostName::parse) {
        Some(Ok(same)) if same == name => Ok(name),
        _ => Err(Undecided("the URL is ambiguous: parsers find different hosts")),
    }
}

/// Returns the scheme and the host of a URL with `://`.
pub(super) fn parse_authority(text: &str) -> Result<(&str, HostName), Undecided> {
    if text.chars().any(|c| c.is_control() || c.is_whitespace() || is_hidden(c)) {
        return Err(Undecided("the URL has white space, a control character or an invisible character"));
    }
    if text.contains('\\') {
        return Err(Undecided("the URL has a backslash, which some parsers treat as a slash"));
    }
    let (scheme, rest) = text.split_once("://").ok_or(Undecided("the string is not a URL with a host"))?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() {
        return Err(Undecided("the URL has no host, or too many slashes before it"));
    }
    if authority.contains('@') {
        return Err(Undecided("the URL has a user name before its host"));
    }
    Ok((scheme, HostName::parse(strip_port(authority)?)?))
}

fn strip_port(authority: &str) -> Result<&str, Undecided> {
    let end =
        if authority.starts_with('[') { authority.find(']').map(|end| end + 1) } else { authority.find(':') };
    let (host, port) = end.and_then(|end| authority.split_at_checked(end)).unwrap_or((authority, ""));
    let digits = port.strip_prefix(':');
    if port.is_empty()
        || digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit()))
    {
        Ok(host)
    } else {
        Err(Undecided("the URL has something other than a port after its host"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decides_only_urls_that_all_parsers_read_alike() {
        let patterns =
            ["good.com", "*.good.com", "münchen.example", "192.0.2.1", "[2001:db8::1]", "localhost"];
        let patterns = patterns.map(|text| HostPattern::parse(text).unwrap());
        for (url, expected) in [
            ("https://good.com", Some(true)),
            ("HTTPS://GOOD.COM/", Some(true)),
            ("https://good.com.", Some(true)),
            ("https://good.com:8443/a?b=c@d#e", Some(true)),
            ("wss://a.b.good.com/x", Some(true)),
            ("https://good.com?x=https://evil.com", Some(true)),
            ("https://good.com#@evil.com", Some(true)),
            ("https://münchen.example/", Some(true)),
            ("https://xn--mnchen-3ya.example/", Some(true)),
            ("https://MÜNCHEN.example/", Some(true)),
            ("http://192.0.2.1/", Some(true)),
            ("http://[2001:DB8:0::1]:80/", Some(true)),
            ("http://localhost:3000", Some(true)),
            ("https://evil.com", Some(false)),
            ("https://evil.com/good.com", Some(false)),
            ("https://evil.com?good.com", Some(false)),
            ("https://evil.com#good.com", Some(false)),
            ("https://good.com.evil.com", Some(false)),
            ("https://notgood.com", Some(false)),
            ("https://xn--gdcom-9oa.com", Some(false)),
            ("http://192.0.2.10/", Some(false)),
            ("http://[::1]/", Some(false)),
            ("", None),
            ("good.com", None),
            ("//good.com", None),
            ("https:good.com", None),
            ("https:/good.com", None),
            ("https:///good.com", None),
            ("https://", None),
            ("https://good.com@evil.com/", None),
            ("https://evil.com@good.com/", None),
            ("https://good.com:80@evil.com/", None),
            ("https://good.com\\@evil.com", None),
            ("https://evil.com\\.good.com", None),
            ("https:\\\\good.com", None),
            ("https://good.com\t.evil.com", None),
            ("https://go\nod.com", None),
            (" https://good.com", None),
            ("https://good.com ", None),
            ("https://good.com /x", None),
            ("https://good.com\0.evil.com", None),
            ("https://good%2ecom", None),
            ("https://good.com%2eevil.com", None),
            ("https://good.com%00.evil.com", None),
            ("http://0xc0.0.2.1/", None),
            ("http://0300.0.2.1/", None),
            ("http://3221225985/", None),
            ("http://192.513/", None),
            ("http://192.0.2.1./", None),
            ("http://１９２.0.2.1/", None),
            ("http://192.0.2.1.5/", None),
            ("http://192.0.2.256/", None),
            ("http://[::ffff:192.0.2.1]/", None),
            ("http://[::192.0.2.1]/", None),
            ("http://[64:ff9b::192.0.2.1]/", None),
            ("http://[2001:db8::1%25eth0]/", None),
            ("http://[2001:db8::1/", None),
            ("http://[2001:db8::1]evil.com/", None),
            ("https://good。com", None),
            ("https://ｇood.com", None),
            ("https://good.com．evil.com", None),
            ("https://go\u{ad}od.com", None),
            ("https://good\u{200d}.com", None),
            ("https://straße.example", None),
            ("https://xn--mnchen-3ya.ünicode.example", None),
            ("https://xn--0.com", None),
            ("https://good.com⁄evil.com", None),
            ("https://evil.com℀good.com", None),
            ("https://a..good.com", None),
            ("https://.good.com", None),
            ("https://good.com..", None),
            ("https://good.com:80:81/", None),
            ("https://good.com:evil/", None),
            ("https://good.com:/", None),
            ("https://good.com:99999/", None),
            ("https://good.com,evil.com/", None),
            ("https://good.com;evil.com/", None),
            ("https://good.com&evil.com/", None),
            ("https://evil.com'.good.com/", None),
            ("mailto:ana@good.com", None),
            ("data:text/html,good.com", None),
            ("javascript://good.com/%0aalert(1)", None),
            ("file://good.com/etc/passwd", None),
            ("file:///etc/passwd", None),
            ("ssh://good.com", None),
            ("blob:https://good.com/x", None),
            ("jar:https://good.com!/x", None),
        ] {
            let mut answers = patterns.iter().map(|pattern| pattern.matches(url).ok());
            let any = answers.try_fold(false, |any, answer| answer.map(|answer| any || answer));
            assert_eq!(any, expected, "{url:?}");
        }
    }

    #[test]
    fn wildcard_matches_subdomains_only_and_exact_name_only_itself() {
        let (exact, below) =
            (HostPattern::parse("Good.com.").unwrap(), HostPattern::parse("*.good.com").unwrap());
        assert_eq!(
            (exact.matches("https://good.com"), below.matches("https://good.com")),
            (Ok(true), Ok(false))
        );
        assert_eq!(
            (exact.matches("https://a.good.com"), below.matches("https://a.good.com")),
            (Ok(false), Ok(true))
        );
        assert_eq!(below.matches("https://agood.com"), Ok(false));
    }

    #[test]
    fn rejects_operands_that_are_not_bare_names() {
        for text in [
            "",
            "*",
            "*.",
            "*.*.com",
            "a.*.com",
            "a*.com",
            "https://a.com",
            "a.com/x",
            "a.com:80",
            "u@a.com",
            "a b.com",
            "a..com",
            ".a.com",
            "127.1",
            "0x7f.1",
            "::1",
            "*.192.0.2.1",
            "*.[::1]",
            "a%2ecom",
            "a,b.com",
            "straße.de",
            "a\u{200b}.com",
        ] {
            assert!(HostPattern::parse(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn result_agrees_with_the_parsed_host(
            url in "(https?|HTTP|ftp|x)?:?/{0,3}(good\\.com|evil|%2e|@|:|\\\\|\\[|\\]|\\.|1|0x7f|ü|。|/|\\?|#| |xn--){0,8}"
        ) {
            let pattern = HostPattern::parse("good.com").unwrap();
            if let Ok(answer) = pattern.matches(&url) {
                let parsed = Url::parse(&url).unwrap();
                let host = parsed.host_str().unwrap_or_default().trim_end_matches('.');
                prop_assert_eq!(answer, host == "good.com");
            }
        }

        #[test]
        fn never_panics(text in "\\PC*", tail in "[\u{0}-\u{ff}]*") {
            let _ = HostPattern::parse(&text);
            let pattern = HostPattern::parse("good.com").unwrap();
            let _ = pattern.matches(&text);
            let _ = pattern.matches(&format!("https://{tail}"));
        }
    }
}
