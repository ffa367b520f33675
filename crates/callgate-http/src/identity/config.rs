//! The identity file: YAML → [`Authenticator`].

mod credentials;
mod issuers;

use std::path::Path;

use super::Authenticator;
use super::access::{self, AccessSet};
use super::config_schema::identity_record;
use callgate::diagnostic::{
    CONFLICTING_KEYS, Diagnostic, Diagnostics, MISSING_KEY, SourceMap, UNKNOWN_VALUE, WRONG_TYPE, render,
};
use callgate::json::{Map, Value};
use callgate::policy;
use callgate::principal::{Principal, PrincipalComparison};
use callgate::rules_schema::{PolicyReader, Shape};
use callgate::source::{self, YamlNode};

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
                identity.add_token(&digest, self.caller_context(node), caller_access(node));
            }
        }
        let certificates = root.get("certificates").and_then(YamlNode::items).unwrap_or_default();
        for node in certificates {
            if let Some(name) = self.certificate_name(node) {
                identity.add_certificate(name, self.caller_context(node), caller_access(node));
            }
        }
        let issuers = root.get("jwt").map(one_or_many).unwrap_or_default();
        let named: Vec<&YamlNode> = tokens.iter().chain(certificates).collect();
        self.check_prefixes(&named, issuers);
        identity.resource = root.get("resource").and_then(|node| self.resource(node, issuers));
        identity.issuers.extend(issuers.iter().filter_map(|node| self.issuer(node)));
        if root.entries().is_some() && named.is_empty() && issuers.is_empty() {
            let diagnostic = Diagnostic::new(&MISSING_KEY, root.span, "no identities are configured")
                .with_help("list bearer tokens in `tokens`, client certificates in `certificates`, or trusted issuers in `jwt`");
            self.reader.report(diagnostic);
        }
    }

    /// Reports issuers that could name the same principal as another issuer, or as a token or certificate. A single issuer needs no prefix.
    fn check_prefixes(&mut self, named: &[&YamlNode], issuers: &[YamlNode]) {
        if issuers.len() + usize::from(!named.is_empty()) < 2 {
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
            for principal in named.iter().filter_map(|node| node.get("principal")) {
                if folded(principal).starts_with(&text) {
                    let help = "choose another prefix, or another principal";
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

    fn caller_context(&mut self, node: &YamlNode) -> Map {
        let mut context = self.context(node);
        if let Some(principal) = node.get("principal")
            && principal
                .as_str()
                .is_some_and(|name| Principal::parse(name, PrincipalComparison::Canonical).is_none())
        {
            self.report_invalid(
                principal,
                "this principal is blank, or has control characters",
                "write the name of the caller",
            );
        }
        for name in ["principal", "roles", "tenant"] {
            if let Some(value) = node.get(name) {
                context.insert(name.to_owned(), value.to_json());
            }
        }
        context
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

/// The access of a configured caller: its list, or else that of a caller.
fn caller_access(node: &YamlNode) -> AccessSet {
    match node.get("access") {
        Some(list) => {
            access::from_names(list.items().unwrap_or_default().iter().filter_map(YamlNode::as_str))
        }
        None => AccessSet::CALLER,
    }
}

fn one_or_many(node: &YamlNode) -> &[YamlNode] {
    node.items().unwrap_or(std::slice::from_ref(node))
}
