//! Reads trusted issuers with their keys, and the resource that they give tokens for.

use std::sync::Arc;
use std::time::Duration;

use jsonwebtoken::{Algorithm, AlgorithmFamily};

use super::{IdentityReader, one_or_many};
use crate::identity::access::{Access, AccessRules};
use crate::identity::claims::ClaimMapping;
use crate::identity::issuer::{Issuer, IssuerKeys};
use crate::identity::remote_keys::RemoteKeys;
use crate::identity::resource::Resource;
use crate::identity::verification_key::VerificationKey;
use callgate::diagnostic::{CONFLICTING_KEYS, Diagnostic};
use callgate::source::YamlNode;

/// The default tolerance for clock skew.
const LEEWAY: Duration = Duration::from_secs(30);
/// The minimum length of a shared secret, in bytes: shorter ones can be found by brute force.
const SHORTEST_SECRET: usize = 32;

impl IdentityReader<'_> {
    /// Reads an issuer.
    pub(super) fn issuer(&mut self, node: &YamlNode) -> Option<Issuer> {
        let texts = |key: &str| -> Vec<String> {
            let nodes = node.get(key).map(one_or_many).unwrap_or_default();
            nodes.iter().filter_map(|node| node.as_str().map(str::to_owned)).collect()
        };
        let text = |key: &str| node.get(key).and_then(YamlNode::as_str).map(str::to_owned);
        let algorithms: Vec<Algorithm> =
            texts("algorithms").iter().filter_map(|name| name.parse().ok()).collect();
        let keys = self.keys(node, &algorithms);
        let leeway = node.get("leeway").and_then(|node| self.reader.read_duration(node)).unwrap_or(LEEWAY);
        let mapping = ClaimMapping {
            principal: text("principal").unwrap_or_else(|| "sub".to_owned()),
            prefix: text("prefix").unwrap_or_default(),
            roles: text("roles"),
            tenant: text("tenant"),
            copied_claims: texts("claims"),
            context: self.context(node),
        };
        Some(Issuer {
            name: text("issuer")?,
            audience: texts("audience"),
            algorithms,
            keys: keys?,
            leeway,
            mapping,
            access: issuer_access(node),
        })
    }

    fn keys(&mut self, node: &YamlNode, algorithms: &[Algorithm]) -> Option<IssuerKeys> {
        let (kind, named) = self.exactly_one(node, &["jwks", "jwks_url", "pem", "secret_env"])?;
        let first = *algorithms.first()?;
        let is_secret = |algorithm: &Algorithm| algorithm.family() == AlgorithmFamily::Hmac;
        let is_allowed = match kind {
            "jwks" | "jwks_url" => !algorithms.iter().any(is_secret),
            "secret_env" => algorithms.iter().all(is_secret),
            _ => algorithms.iter().all(|other| other.family() == first.family() && !is_secret(other)),
        };
        if !is_allowed {
            let at = node.get("algorithms").map_or(node.span, |node| node.span);
            let message = format!("not all of these algorithms can be used with `{kind}`");
            let help = "a public key must never be used as a shared secret: use `secret_env` for `HS256`, `HS384` and `HS512`, \
                `jwks` or `jwks_url` for the others, `pem` for algorithms of one key type";
            self.reader.report(Diagnostic::new(&CONFLICTING_KEYS, at, message).with_help(help));
            return None;
        }
        if kind == "secret_env" {
            let secret = self.env_variable(named)?;
            if secret.len() < SHORTEST_SECRET {
                let message = format!("the secret in this variable is shorter than {SHORTEST_SECRET} bytes");
                self.report_invalid(
                    named,
                    &message,
                    "a short secret can be found by brute force: use a longer one",
                );
                return None;
            }
            return Some(IssuerKeys::Fixed(vec![VerificationKey::from_secret(secret.as_bytes())]));
        }
        if kind == "jwks_url" {
            return match RemoteKeys::new(named.as_str()?) {
                Ok(keys) => Some(IssuerKeys::Remote(Arc::new(keys))),
                Err(why) => {
                    self.report_invalid(named, &why, "write the `jwks_uri` of the issuer's metadata");
                    None
                }
            };
        }
        let (_, text) = self.reader.read_referenced_file(named, "")?;
        let keys = match kind {
            "jwks" => VerificationKey::from_jwks(&text),
            _ => VerificationKey::from_pem(&text, first).map(|key| vec![key]),
        };
        match keys {
            Ok(keys) if !keys.is_empty() => Some(IssuerKeys::Fixed(keys)),
            Ok(_) => {
                self.report_invalid(named, "this file has no signature key", "use another file");
                None
            }
            Err(why) => {
                let help = "the file must contain a public key in PEM (`pem`) or a JSON Web Key Set (`jwks`)";
                self.report_invalid(named, &format!("this file can't be used: {why}"), help);
                None
            }
        }
    }

    /// Reads the URL that clients use, for which every issuer must give tokens.
    pub(super) fn resource(&mut self, node: &YamlNode, issuers: &[YamlNode]) -> Option<Resource> {
        let text = node.as_str()?;
        for issuer in issuers {
            let audience = issuer.get("audience").map(one_or_many).unwrap_or_default();
            if !audience.iter().any(|audience| audience.as_str() == Some(text)) {
                let at = issuer.get("audience").map_or(issuer.span, |audience| audience.span);
                let message = "`audience` does not contain `resource`";
                let help = format!("clients ask for tokens for the resource: add `{text}`");
                self.reader.report(Diagnostic::new(&CONFLICTING_KEYS, at, message).with_help(help));
            }
        }
        match Resource::parse(text) {
            Ok(resource) => Some(resource),
            Err(why) => {
                let help = "write the URL that clients use, such as `https://tools.example.com/mcp`";
                self.report_invalid(node, &why, help);
                None
            }
        }
    }
}

/// Which roles of an issuer's callers have which access.
fn issuer_access(node: &YamlNode) -> AccessRules {
    let roles = |node: &YamlNode| {
        one_or_many(node).iter().filter_map(YamlNode::as_str).map(str::to_owned).collect::<Vec<String>>()
    };
    let rules = Access::ALL
        .into_iter()
        .filter_map(|access| Some((access, roles(node.get("access")?.get(access.name())?))))
        .collect();
    AccessRules { roles: rules }
}
