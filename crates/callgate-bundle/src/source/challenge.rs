//! The challenge of a registry: a `WWW-Authenticate` header → where a token is issued, and for what.

use reqwest::Url;

/// A challenge.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// A token of this URL is needed.
    Bearer(Url),
    /// A user and a password are needed.
    Basic,
}

impl Challenge {
    /// Parses a header. Returns `None` for other schemes and malformed ones.
    pub(super) fn parse(header: &str) -> Option<Self> {
        let (scheme, rest) = header.split_once(' ').unwrap_or((header, ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let parameters = parse_parameters(rest)?;
        let find = |name: &str| {
            let found = parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.as_str())
        };
        let mut url = Url::parse(find("realm")?).ok()?;
        for name in ["service", "scope"] {
            if let Some(value) = find(name) {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        Some(Self::Bearer(url))
    }
}

/// Parses `name="value",name=value`.
fn parse_parameters(text: &str) -> Option<Vec<(String, String)>> {
    let mut parameters = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=')?;
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_at(after.find(',').unwrap_or(after.len())),
        };
        parameters.push((name.trim().to_owned(), value.trim().to_owned()));
        rest = after.trim_start().trim_start_matches(',').trim_start();
    }
    Some(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_parsed() {
        let parsed = Challenge::parse(
            r#"Bearer realm="https://auth.example.com/token?x=1",service="registry",scope="repository:a/b:pull,push""#,
        );
        let Some(Challenge::Bearer(url)) = parsed else { panic!("{parsed:?}") };
        assert_eq!(
            url.as_str(),
            "https://auth.example.com/token?x=1&service=registry&scope=repository%3Aa%2Fb%3Apull%2Cpush"
        );
        assert_eq!(Challenge::parse("Basic realm=x"), Some(Challenge::Basic));
        assert_eq!(Challenge::parse("basic"), Some(Challenge::Basic));
        for text in ["", "Digest a=b", "Bearer", "Bearer realm", "Bearer realm=\"x", "Bearer realm=relative"]
        {
            assert_eq!(Challenge::parse(text), None, "{text}");
        }
    }
}
