//! The identity file: YAML → [`Authenticator`].

use std::path::Path;
use std::time::Duration;

use data_encoding::HEXLOWER_PERMISSIVE;
use jsonwebtoken::{Algorithm, AlgorithmFamily};
use ring::digest;

use super::Authenticator;
use super::access::{self, Access, AccessRules, AccessSet};
use super::claims::ClaimMapping;
use super::config_schema::identity_record;
use super::issuer::{Issuer, VerificationKey};
use callgate::diagnostic::{
    CONFLICTING_KEYS, Diagnostic, Diagnostics, MISSING_KEY, SourceMap, UNKNOWN_VALUE, WRONG_TYPE, render,
};
use callgate::json::{Map, Value};
use callgate::policy;
use callgate::principal::{Principal, PrincipalComparison};
use callgate::rules_schema::{PolicyReader, Shape};
use callgate::source::{self, YamlNode};

/// The default tolerance for clock skew.
const LEEWAY: Duration = Duration::from_secs(30);
/// The minimum length of a shared secret, in bytes: shorter ones can be found by brute force.
const SHORTEST_SECRET: usize = 32;
/// Members of the context that have keys of their own in the file.
const RESERVED_MEMBERS: [&str; 5] = ["principal", "roles", "tenant", "issuer", "claims"];

/// The errors of an invalid identity file.
#[derive(Debug)]
pub struct IdentityError {
    /// The problems, each with its location.
    pub diagnostics: Diagnostics,
    /// The sources of the files.
    pub sources: SourceMap,
}

impl std::fmt::Display for IdentityError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(render::text(&self.diagnostics, &self.sources, false).trim_end())
    }
}

impl std::error::Error for IdentityError {}

impl Authenticator {
    /// Reads an identity file, with its key files and environment variables.
    ///
    /// # Errors
    /// The file is invalid; the error has all problems.
    pub fn from_file(path: &Path) -> Result<Self, IdentityError> {
        Self::from_file_with_sources(path).map(|(identity, _)| identity)
    }

    /// Reads an identity file; also returns the sources of all files.
    pub(super) fn from_file_with_sources(path: &Path) -> Result<(Self, SourceMap), IdentityError> {
        let loaded = source::load_trusted(path);
        let (mut sources, mut diagnostics) = (loaded.sources, loaded.diagnostics);
        let mut identity = match Self::new() {
            Ok(identity) => Some(identity),
            Err(why) => {
                let name = path.display().to_string();
                diagnostics.push(Diagnostic::for_file(&UNKNOWN_VALUE, name, why));
                None
            }
        };
        for file in &loaded.files {
            Shape::Record(identity_record()).check(&file.root, "an identity file", &mut diagnostics);
            policy::check_version(&file.root, &mut diagnostics);
            let mut reader = IdentityReader { reader: PolicyReader::new(&mut diagnostics, &mut sources) };
            if let Some(identity) = &mut identity {
                reader.read_into(identity, &file.root);
            }
        }
        match identity {
            Some(identity) if !diagnostics.has_errors() => Ok((identity, sources)),
            _ => Err(IdentityError { diagnostics, sources }),
        }
    }
}

struct IdentityReader<'a> {
    reader: PolicyReader<'a>,
}

impl IdentityReader<'_> {
    fn read_into(&mut self, identity: &mut Authenticator, root: &YamlNode) {
        let tokens = root.get("tokens").and_then(YamlNode::items).unwrap_or_default();
        for node in tokens {
            if let Some(digest) = self.digest(node) {
                identity.add_token(&digest, self.token_context(node), token_access(node));
            }
        }
        let issuers = root.get("jwt").map(one_or_many).unwrap_or_default();
        self.check_prefixes(tokens, issuers);
        identity.issuers.extend(issuers.iter().filter_map(|node| self.issuer(node)));
        if root.entries().is_some() && tokens.is_empty() && issuers.is_empty() {
            let diagnostic = Diagnostic::new(&MISSING_KEY, root.span, "no identities are configured")
                .with_help("list bearer tokens in `tokens`, or trusted issuers in `jwt`");
            self.reader.report(diagnostic);
        }
    }

    /// Reports issuers that could name the same principal as another issuer or a token. A single issuer needs no prefix.
    fn check_prefixes(&mut self, tokens: &[YamlNode], issuers: &[YamlNode]) {
        if issuers.len() + usize::from(!tokens.is_empty()) < 2 {
            return;
        }
        // Principals that differ only in case are equal.
        let folded = |node: &YamlNode| node.as_str().unwrap_or_default().to_lowercase();
        let mut known: Vec<String> = Vec::new();
        for issuer in issuers {
            let Some(prefix) =
                issuer.get("prefix").filter(|prefix| prefix.as_str().is_some_and(|it| !it.is_empty()))
            else {
                let diagnostic = Diagnostic::new(&MISSING_KEY, issuer.span, "`prefix` is missing")
                    .with_help(
                        "with several sources of principals, two callers could get the same name: set a string that is prepended to each \
                         principal of this issuer, such as `prefix: \"staff:\"`",
                    );
                self.reader.report(diagnostic);
                continue;
            };
            let text = folded(prefix);
            if known.iter().any(|other| other.starts_with(&text) || text.starts_with(other)) {
                let help = "choose prefixes of which none begins with another";
                self.report_invalid(prefix, "another issuer could name the same principals", help);
            }
            for principal in tokens.iter().filter_map(|token| token.get("principal")) {
                if folded(principal).starts_with(&text) {
                    let help = "choose another prefix, or another principal for the token";
                    self.report_invalid(
                        principal,
                        "the issuer with this prefix could name the same principal",
                        help,
                    );
                }
            }
            known.push(text);
        }
    }

    /// Reads the digest of a token.
    fn digest(&mut self, node: &YamlNode) -> Option<Vec<u8>> {
        match self.exactly_one(node, &["sha256", "env"])? {
            ("sha256", digest_node) => {
                let digest = HEXLOWER_PERMISSIVE.decode(digest_node.as_str()?.as_bytes()).ok();
                let digest = digest.filter(|digest| digest.len() == digest::SHA256_OUTPUT_LEN);
                if digest.is_none() {
                    let message = "this is not a SHA-256 digest";
                    self.report_invalid(
                        digest_node,
                        message,
                        "write 64 hexadecimal digits, as `printf %s TOKEN | sha256sum` prints them",
                    );
                }
                digest
            }
            (_, name) => {
                let token = self.env_variable(name)?;
                Some(digest::digest(&digest::SHA256, token.trim().as_bytes()).as_ref().to_vec())
            }
        }
    }

    fn token_context(&mut self, node: &YamlNode) -> Map {
        let mut context = self.context(node);
        if let Some(principal) = node.get("principal")
            && principal
                .as_str()
                .is_some_and(|name| Principal::parse(name, PrincipalComparison::Canonical).is_none())
        {
            self.report_invalid(
                principal,
                "this principal is blank, or has control characters",
                "write the name of the caller that uses the token",
            );
        }
        for name in ["principal", "roles", "tenant"] {
            if let Some(value) = node.get(name) {
                context.insert(name.to_owned(), value.to_json());
            }
        }
        context
    }

    fn issuer(&mut self, node: &YamlNode) -> Option<Issuer> {
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

    fn keys(&mut self, node: &YamlNode, algorithms: &[Algorithm]) -> Option<Vec<VerificationKey>> {
        let (kind, named) = self.exactly_one(node, &["jwks", "pem", "secret_env"])?;
        let first = *algorithms.first()?;
        let is_secret = |algorithm: &Algorithm| algorithm.family() == AlgorithmFamily::Hmac;
        let is_allowed = match kind {
            "jwks" => !algorithms.iter().any(is_secret),
            "secret_env" => algorithms.iter().all(is_secret),
            _ => algorithms.iter().all(|other| other.family() == first.family() && !is_secret(other)),
        };
        if !is_allowed {
            let at = node.get("algorithms").map_or(node.span, |node| node.span);
            let message = format!("not all of these algorithms can be used with `{kind}`");
            let help = "a public key must never be used as a shared secret: use `secret_env` for `HS256`, `HS384` and `HS512`, \
                `jwks` for the others, `pem` for algorithms of one key type";
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
            return Some(vec![VerificationKey::from_secret(secret.as_bytes())]);
        }
        let (_, text) = self.reader.read_referenced_file(named, "")?;
        let keys = match kind {
            "jwks" => VerificationKey::from_jwks(&text),
            _ => VerificationKey::from_pem(&text, first).map(|key| vec![key]),
        };
        match keys {
            Ok(keys) if !keys.is_empty() => Some(keys),
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

    /// The only one of these keys that is present; reports if there is none or several.
    fn exactly_one<'n>(
        &mut self,
        node: &'n YamlNode,
        keys: &[&'static str],
    ) -> Option<(&'static str, &'n YamlNode)> {
        node.entries()?;
        let names = || keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(" or ");
        let mut there = keys.iter().filter_map(|key| node.get(key).map(|value| (*key, value)));
        match (there.next(), there.next()) {
            (Some(only), None) => Some(only),
            (None, _) => {
                let diagnostic = Diagnostic::new(&MISSING_KEY, node.span, format!("{} is missing", names()))
                    .with_help("add one of them");
                self.reader.report(diagnostic);
                None
            }
            (Some(_), Some((_, second))) => {
                let message = format!("only one of {} is allowed", names());
                self.reader
                    .report(Diagnostic::new(&CONFLICTING_KEYS, second.span, message).with_help("remove one"));
                None
            }
        }
    }

    /// Reads an environment variable.
    fn env_variable(&mut self, name: &YamlNode) -> Option<String> {
        match std::env::var(name.as_str()?) {
            Ok(value) if !value.trim().is_empty() => Some(value),
            _ => {
                let message = "this environment variable is not set or empty";
                self.report_invalid(name, message, "set it in the gateway's environment, or use another one");
                None
            }
        }
    }

    /// Reads `context`.
    fn context(&mut self, node: &YamlNode) -> Map {
        let Some(context_node) = node.get("context") else { return Map::new() };
        let Some(entries) = context_node.entries() else {
            let message = format!("`context` must be a mapping, this is {}", context_node.type_name());
            self.reader.report(Diagnostic::new(&WRONG_TYPE, context_node.span, message));
            return Map::new();
        };
        for entry in entries {
            if RESERVED_MEMBERS.contains(&entry.key.as_str()) {
                let message = format!("`{}` is not allowed in `context`", entry.key);
                let help = "move it out of `context`, to the key of that name";
                self.reader
                    .report(Diagnostic::new(&CONFLICTING_KEYS, entry.key_span, message).with_help(help));
            }
        }
        match context_node.to_json() {
            Value::Object(context) => context,
            _ => Map::new(),
        }
    }

    fn report_invalid(&mut self, node: &YamlNode, message: &str, help: &str) {
        self.reader.report(Diagnostic::new(&UNKNOWN_VALUE, node.span, message).with_help(help));
    }
}

/// The access of a token's caller: its list, or else that of a caller.
fn token_access(node: &YamlNode) -> AccessSet {
    match node.get("access") {
        Some(list) => {
            access::from_names(list.items().unwrap_or_default().iter().filter_map(YamlNode::as_str))
        }
        None => AccessSet::CALLER,
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

fn one_or_many(node: &YamlNode) -> &[YamlNode] {
    node.items().unwrap_or(std::slice::from_ref(node))
}
