//! The metadata of a protected resource (RFC 9728), by which clients find out where to get a token.

use callgate::json::{Value, json};

use super::AuthenticationError;

/// The path of the metadata of a resource without a path of its own.
const PATH: &str = "/.well-known/oauth-protected-resource";

/// A protected resource: the URL that clients use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resource {
    /// Its URL.
    pub(super) url: String,
    /// Scheme and authority of the URL.
    pub(super) origin: String,
    /// Its path; empty for `/`.
    pub(super) path: String,
}

impl Resource {
    /// Reads the URL of a resource.
    ///
    /// # Errors
    /// It is not a URL of HTTP, or has a query or a fragment, which RFC 9728 section 1.2 does not allow.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let url = reqwest::Url::parse(text).map_err(|error| format!("this is not a URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err("the URL must begin with `https://`".to_owned());
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err("the URL must have neither a query nor a fragment".to_owned());
        }
        let path = url.path().trim_end_matches('/').to_owned();
        Ok(Self { url: text.to_owned(), origin: url.origin().ascii_serialization(), path })
    }

    /// The metadata, if this path is the one for it. RFC 9728 section 3.1 puts the path of the resource behind the well-known one.
    pub(super) fn metadata(&self, path: &str, issuers: &[&str]) -> Option<Value> {
        let own = path.strip_prefix(PATH)?;
        (own.is_empty() || own == self.path).then(|| {
            json!({
                "resource": self.url,
                "authorization_servers": issuers,
                "bearer_methods_supported": ["header"],
            })
        })
    }

    fn metadata_url(&self) -> String {
        format!("{}{PATH}{}", self.origin, self.path)
    }
}

/// The `WWW-Authenticate` header of a rejected request.
pub(super) fn challenge(resource: Option<&Resource>, error: &AuthenticationError) -> String {
    let metadata = resource.map(|resource| format!("resource_metadata=\"{}\"", resource.metadata_url()));
    let error = match error {
        AuthenticationError::MissingToken => None,
        AuthenticationError::Rejected(_) => Some("error=\"invalid_token\"".to_owned()),
    };
    let parameters: Vec<String> = [error, metadata].into_iter().flatten().collect();
    if parameters.is_empty() { "Bearer".to_owned() } else { format!("Bearer {}", parameters.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_at_the_path_of_the_resource() {
        let resource = Resource::parse("https://tools.example.com/team/mcp").unwrap();
        let missing = challenge(Some(&resource), &AuthenticationError::MissingToken);
        assert_eq!(
            missing,
            "Bearer resource_metadata=\"https://tools.example.com/.well-known/oauth-protected-resource/team/mcp\""
        );
        assert!(resource.metadata("/.well-known/oauth-protected-resource/team/mcp", &[]).is_some());
        assert!(resource.metadata("/.well-known/oauth-protected-resource", &[]).is_some());
        for other in ["/.well-known/oauth-protected-resource/mcp", "/team/mcp", "/"] {
            assert!(resource.metadata(other, &[]).is_none(), "{other}");
        }
        assert_eq!(challenge(None, &AuthenticationError::MissingToken), "Bearer");
    }

    #[test]
    fn resources_are_urls_of_http() {
        for valid in ["https://a.example", "https://a.example/mcp", "http://127.0.0.1:8080/mcp"] {
            assert!(Resource::parse(valid).is_ok(), "{valid}");
        }
        for invalid in ["mcp", "file:///mcp", "https://a.example/mcp?x=1", "https://a.example/#x", "https://"]
        {
            assert!(Resource::parse(invalid).is_err(), "{invalid}");
        }
    }
}
