//! Canonical form of a URL, in which two spellings of one URL are equal.

use url::Url;

use super::Undecided;
use super::url_host::parse_authority;

/// A URL in the form of the WHATWG URL standard: scheme and host in lower case, no default port, no fragment, dot segments resolved.
/// Path and query are exact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UrlForm(String);

impl UrlForm {
    /// Parses a URL with `://` and a host, of any scheme.
    ///
    /// # Errors
    /// Returns [`Undecided`] for what [`HostPattern::matches`](super::HostPattern::matches) does not decide, except for the scheme.
    pub(crate) fn parse(text: &str) -> Result<Self, Undecided> {
        let (scheme, host) = parse_authority(text)?;
        let parsed = Url::parse(text).map_err(|_| Undecided("the string is not a valid URL"))?;
        let host = match parsed.host_str() {
            Some(found)
                if parsed.is_special() && found.strip_suffix('.').unwrap_or(found) != host.to_string() =>
            {
                return Err(Undecided("the URL is ambiguous: parsers find different hosts"));
            }
            _ => host,
        };
        let mut form = format!("{}://{host}", scheme.to_ascii_lowercase());
        if let Some(port) = parsed.port() {
            form.push_str(&format!(":{port}"));
        }
        form.push_str(parsed.path());
        if let Some(query) = parsed.query() {
            form.push('?');
            form.push_str(query);
        }
        Ok(Self(form))
    }

    /// The form as a string.
    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_url_have_one_form() {
        for (url, form) in [
            ("HTTPS://Example.COM", "https://example.com/"),
            ("https://example.com:443/a/../b/./c?x=1#top", "https://example.com/b/c?x=1"),
            ("http://example.com.:8080/A%2fb", "http://example.com:8080/A%2fb"),
            ("https://münchen.example/straße", "https://xn--mnchen-3ya.example/stra%C3%9Fe"),
            ("http://[2001:DB8:0::1]:80/x", "http://[2001:db8::1]/x"),
            ("S3://Bucket.Example/Key", "s3://bucket.example/Key"),
        ] {
            assert_eq!(UrlForm::parse(url).map(UrlForm::into_string).as_deref(), Ok(form), "{url}");
        }
        for url in [
            "https://a@example.com/",
            "https://exa%6dple.com",
            "https:example.com",
            "file:///etc",
            "https://a.com\\b",
        ] {
            assert!(UrlForm::parse(url).is_err(), "{url}");
        }
    }
}
