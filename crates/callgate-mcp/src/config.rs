//! The gateway's configuration file: YAML → [`Config`], the servers with their policies, context, reviewed tools and state.

mod auth_settings;
mod log_settings;
mod prefixes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use self::auth_settings::AUTH;
use self::log_settings::LOGS;
use self::prefixes::default_prefix;
use super::http_upstream::HttpSpec;
use super::stdio_upstream::StdioSpec;
use super::upstream_server::Transport;
use callgate::diagnostic::{
    CONFLICTING_KEYS, DUPLICATE_ID, Diagnostic, Diagnostics, EMPTY_VALUE, MISSING_KEY, SourceMap, Span,
    UNKNOWN_VALUE, WRONG_TYPE,
};
use callgate::json::{Map, Value};
use callgate::policy;
use callgate::principal::{PrincipalComparison, PrincipalValue};
use callgate::rules_schema::{FieldShape, PolicyReader, RecordShape, Shape};
use callgate::safe_text::{escape_controls, truncate};
use callgate::source::{self, YamlNode};
use callgate_log::LogSettings;

const PATHS: Shape = Shape::OneOrMany(&Shape::String("a path, from this file"));

static SERVER: RecordShape = RecordShape {
    name: "server",
    doc: "A server behind the gateway: a local program (`command`) or an HTTP server (`url`).",
    fields: &[
        FieldShape::required(
            "name",
            Shape::String("a name of letters, digits, `-` and `_`"),
            "Its name, as in `server:` of policies and in lock files.",
        ),
        FieldShape::optional(
            "command",
            Shape::OneOrMany(&Shape::String("a string")),
            "The program and its arguments.",
        ),
        FieldShape::optional(
            "env",
            Shape::Any,
            "Environment variables: a mapping of names to strings. `${NAME}` inserts a variable of the gateway's environment.",
        ),
        FieldShape::optional(
            "cwd",
            Shape::String("a directory, from this file"),
            "The working directory of the program.",
        ),
        FieldShape::optional(
            "url",
            Shape::String("a URL such as `https://example.com/mcp`"),
            "The server's endpoint for streamable HTTP.",
        ),
        FieldShape::optional(
            "headers",
            Shape::Any,
            "Headers of every request to it: a mapping of names to strings. `${NAME}` inserts a variable of the gateway's environment.",
        ),
        FieldShape::optional(
            "auth",
            AUTH,
            "How requests to its `url` are authorized by the caller's own token. It needs `--listen` and `--auth`.",
        ),
        FieldShape::optional(
            "prefix",
            Shape::String("a string"),
            "The prefix of its tool and prompt names. Default with several servers: the server's name and `__`. No prefix may begin with \
             another server's.",
        ),
        FieldShape::optional(
            "shared",
            Shape::Bool,
            "Whether all clients share one connection to it. For servers that do not tell clients apart and keep nothing between calls; they \
             can't ask clients, and have no log level, subscriptions to resources or tasks. Default: false.",
        ),
        FieldShape::optional(
            "policies",
            PATHS,
            "Policies for this server's calls only. They can only tighten the policies for all servers.",
        ),
    ],
};

static CONFIG: RecordShape = RecordShape {
    name: "gateway",
    doc: "The servers behind a gateway, and the policies for their calls.",
    fields: &[
        FieldShape::optional("callgate", Shape::Integer(1, 1), "The version of the format."),
        FieldShape::required(
            "servers",
            Shape::NonEmptyList(&Shape::Record(&SERVER)),
            "The servers, in the order in which clients see their tools.",
        ),
        FieldShape::optional("policies", PATHS, "Policies for the calls of all servers."),
        FieldShape::optional(
            "candidate",
            PATHS,
            "Candidate policies, which also evaluate the calls of all servers, without any effect. Logs record what they decide otherwise.",
        ),
        FieldShape::optional(
            "context",
            Shape::Any,
            "The context of every call, vouched for by the operator: a mapping such as `{ principal: ana }`.",
        ),
        FieldShape::optional(
            "pins",
            Shape::String("a path, from this file"),
            "The lock file of reviewed tools.",
        ),
        FieldShape::optional(
            "pins_signed_by",
            Shape::String("a path, from this file"),
            "A file with the public keys of those who may accept tools, one per line. The lock file must then be signed with one of them.",
        ),
        FieldShape::optional(
            "state",
            Shape::String("`file:PATH` or `memory:`"),
            "The store for approval requests, limits and sessions.",
        ),
        FieldShape::optional("log", LOGS, "Where decisions are recorded, as with `--log`."),
    ],
};

/// The schema of a configuration file.
pub fn config_record() -> &'static RecordShape {
    &CONFIG
}

/// A parsed configuration file.
#[derive(Debug, Default)]
pub struct Config {
    /// The servers.
    pub servers: Vec<ConfiguredServer>,
    /// Policy files for all servers.
    pub policies: Vec<PathBuf>,
    /// Candidate policy files for the calls of all servers.
    pub candidate: Vec<PathBuf>,
    /// The context of every call, vouched for by the operator.
    pub context: Map,
    /// The lock file of reviewed tools.
    pub pins: Option<PathBuf>,
    /// The public keys of those who may accept tools.
    pub pins_signed_by: Option<PathBuf>,
    /// The URL of the state store.
    pub state: Option<String>,
    /// Where decisions are recorded.
    pub log: Vec<LogSettings>,
}

/// A server of a configuration file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ConfiguredServer {
    /// Its name.
    pub name: String,
    /// The prefix of its tool and prompt names.
    pub prefix: Option<String>,
    /// How it is reached.
    pub reach: Transport,
    /// Policy files for its calls only.
    pub policies: Vec<PathBuf>,
    /// All clients share one connection to it.
    pub shared: bool,
}

impl ConfiguredServer {
    /// A server without a prefix and policies, to which each client has a connection.
    pub fn new(name: impl Into<String>, reach: Transport) -> Self {
        Self { name: name.into(), prefix: None, reach, policies: Vec::new(), shared: false }
    }

    /// Whether requests to it need the token of an authenticated caller.
    pub fn needs_caller_token(&self) -> bool {
        matches!(&self.reach, Transport::Http(http) if http.auth.is_some())
    }
}

/// The errors of an invalid configuration file.
#[derive(Debug)]
pub struct ConfigError {
    /// What is wrong.
    pub diagnostics: Diagnostics,
    /// The file.
    pub sources: SourceMap,
}

impl Config {
    /// Reads a configuration file. Its paths are relative to the file; `${NAME}` is looked up in `environment`.
    pub fn read(path: &Path, environment: impl Fn(&str) -> Option<String>) -> Result<Self, Box<ConfigError>> {
        let source::LoadedSources { mut sources, files, mut diagnostics, .. } = source::load_trusted(path);
        let mut config = Self::default();
        if let Some(file) = files.first() {
            Shape::Record(&CONFIG).check(&file.root, "a gateway's configuration", &mut diagnostics);
            policy::check_version(&file.root, &mut diagnostics);
            if !diagnostics.has_errors() {
                let directory = path.parent().unwrap_or(Path::new("")).to_owned();
                let reader = PolicyReader::new(&mut diagnostics, &mut sources);
                config = ConfigReader { reader, directory, environment: &environment }.read(&file.root);
            }
        }
        diagnostics.sort();
        match diagnostics.has_errors() {
            true => Err(Box::new(ConfigError { diagnostics, sources })),
            false => Ok(config),
        }
    }
}

struct ConfigReader<'r> {
    reader: PolicyReader<'r>,
    /// The file's directory.
    directory: PathBuf,
    environment: &'r dyn Fn(&str) -> Option<String>,
}

impl ConfigReader<'_> {
    fn read(mut self, root: &YamlNode) -> Config {
        let nodes = root.get("servers").and_then(YamlNode::items).unwrap_or_default();
        let mut names: BTreeMap<String, Span> = BTreeMap::new();
        let several = nodes.len() > 1;
        let servers = nodes.iter().filter_map(|node| self.server(node, several, &mut names)).collect();
        if several {
            self.check_prefixes(nodes);
        }
        Config {
            servers,
            policies: self.paths(root.get("policies")),
            candidate: self.paths(root.get("candidate")),
            context: root.get("context").map(|node| self.mapping(node)).unwrap_or_default(),
            pins: root.get("pins").and_then(YamlNode::as_str).map(|path| self.directory.join(path)),
            pins_signed_by: root
                .get("pins_signed_by")
                .and_then(YamlNode::as_str)
                .map(|path| self.directory.join(path)),
            state: root.get("state").and_then(YamlNode::as_str).map(|url| self.state(url)),
            log: root.get("log").map(|node| self.logs(node)).unwrap_or_default(),
        }
    }

    fn server(
        &mut self,
        node: &YamlNode,
        several: bool,
        names: &mut BTreeMap<String, Span>,
    ) -> Option<ConfiguredServer> {
        let name_node = node.get("name")?;
        let name = name_node.as_str()?.to_owned();
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')) {
            let message = format!("`{}` is not a valid server name", truncate(&escape_controls(&name)));
            self.report(&UNKNOWN_VALUE, name_node.span, message, "use letters, digits, `-` and `_`");
        }
        if let Some(first) = names.insert(name.clone(), name_node.span) {
            let message = format!("duplicate server name `{}`", truncate(&escape_controls(&name)));
            let diagnostic =
                Diagnostic::new(&DUPLICATE_ID, name_node.span, message).with_label(first, "first used here");
            self.reader
                .report(diagnostic.with_help("policies refer to servers by name: give each server its own"));
        }
        let reach = self.transport(node)?;
        let own = node.get("prefix").and_then(YamlNode::as_str).map(str::to_owned);
        let prefix =
            own.or_else(|| several.then(|| default_prefix(&name))).filter(|prefix| !prefix.is_empty());
        if several && prefix.is_none() {
            let help = "remove `prefix`, or give each server a prefix of its own";
            self.report(
                &EMPTY_VALUE,
                node.get("prefix")?.span,
                "the prefix is empty, but several servers behind one gateway need one each",
                help,
            );
        }
        let shared = node.get("shared").filter(|shared| shared.as_bool() == Some(true));
        if let (Some(shared), Some(_)) = (shared, node.get("auth")) {
            let help = "remove `shared`: each caller needs a connection of its own for its token";
            self.report(&CONFLICTING_KEYS, shared.span, "`shared` can't be used with `auth`", help);
        }
        let policies = self.paths(node.get("policies"));
        Some(ConfiguredServer { name, prefix, reach, policies, shared: shared.is_some() })
    }

    fn transport(&mut self, node: &YamlNode) -> Option<Transport> {
        if let Some(url) = node.get("url") {
            return self.http_transport(node, url);
        }
        let Some(command) = node.get("command") else {
            let help = "add `command: [PROGRAM, ARGUMENT]` or `url: https://…`";
            self.report(&MISSING_KEY, node.span, "this server has neither `command` nor `url`", help);
            return None;
        };
        let words = match command.items() {
            Some(items) => items.iter().filter_map(YamlNode::as_str).map(str::to_owned).collect(),
            None => vec![command.as_str()?.to_owned()],
        };
        let (program, args) = words.split_first()?;
        if args.is_empty() && program.contains(char::is_whitespace) {
            let help = "write each word as an item: `command: [npx, -y, some-server]`";
            self.report(
                &CONFLICTING_KEYS,
                command.span,
                "`command` is a list of strings, not a shell command line",
                help,
            );
            return None;
        }
        if let Some(headers) = node.get("headers") {
            let help = "pass values to a program by `env`; `headers` needs `url`";
            self.report(&CONFLICTING_KEYS, headers.span, "`headers` can't be used with `command`", help);
        }
        if let Some(auth) = node.get("auth") {
            let help = "the token of a caller can be sent to an HTTP server (`url`) only";
            self.report(&CONFLICTING_KEYS, auth.span, "`auth` can't be used with `command`", help);
        }
        let env = node.get("env").map(|node| self.strings(node)).unwrap_or_default();
        let cwd = node.get("cwd").and_then(YamlNode::as_str).map(|path| self.directory.join(path));
        Some(Transport::Child(StdioSpec { command: program.clone(), args: args.to_vec(), env, cwd }))
    }

    fn http_transport(&mut self, node: &YamlNode, url: &YamlNode) -> Option<Transport> {
        for key in ["command", "env", "cwd"] {
            if let Some(other) = node.get(key) {
                let message = format!("`{key}` can't be used with `url`");
                let help =
                    "a server is either a local program (`command`) or an HTTP server (`url`): keep one";
                self.report(&CONFLICTING_KEYS, other.span, message, help);
            }
        }
        let headers = node.get("headers").map(|node| self.strings(node)).unwrap_or_default();
        let auth = match node.get("auth") {
            Some(auth) => self.auth(auth, url.as_str()?),
            None => None,
        };
        let is_authorization = |(name, _): &(String, String)| name.eq_ignore_ascii_case("authorization");
        if let (Some(_), Some(node)) =
            (&auth, node.get("headers").filter(|_| headers.iter().any(is_authorization)))
        {
            let help = "keep one of them";
            self.report(
                &CONFLICTING_KEYS,
                node.span,
                "`Authorization` is set by `headers` and by `auth`",
                help,
            );
        }
        let spec = HttpSpec { url: url.as_str()?.to_owned(), headers, auth };
        if let Err(why) = spec.validate() {
            let help = "write for example `url: https://example.com/mcp`";
            self.report(&UNKNOWN_VALUE, url.span, truncate(&escape_controls(&why)), help);
        }
        Some(Transport::Http(spec))
    }

    fn paths(&self, node: Option<&YamlNode>) -> Vec<PathBuf> {
        let Some(node) = node else { return Vec::new() };
        let texts: Vec<&str> = match node.items() {
            Some(items) => items.iter().filter_map(YamlNode::as_str).collect(),
            None => node.as_str().into_iter().collect(),
        };
        texts.into_iter().map(|path| self.directory.join(path)).collect()
    }

    fn state(&self, url: &str) -> String {
        match url.strip_prefix("file:") {
            Some(path) => format!("file:{}", self.directory.join(path).display()),
            None => url.to_owned(),
        }
    }

    fn mapping(&mut self, node: &YamlNode) -> Map {
        match node.to_json() {
            Value::Object(members) => {
                if let PrincipalValue::Invalid(found) =
                    PrincipalValue::from_value(members.get("principal"), PrincipalComparison::Canonical)
                {
                    let span = node.get("principal").map_or(node.span, |principal| principal.span);
                    let message = format!("`principal` must be a string, this is {found}");
                    self.report(&WRONG_TYPE, span, message, "write `{ principal: ana }`");
                }
                members
            }
            _ => {
                self.report(
                    &WRONG_TYPE,
                    node.span,
                    "`context` must be a mapping",
                    "write `{ principal: ana }`",
                );
                Map::new()
            }
        }
    }

    /// Reads a mapping of names to strings, and fills in environment variables.
    fn strings(&mut self, node: &YamlNode) -> Vec<(String, String)> {
        let Some(entries) = node.entries() else {
            self.report(
                &WRONG_TYPE,
                node.span,
                "this must be a mapping of names to strings",
                "write `{ NAME: value }`",
            );
            return Vec::new();
        };
        let mut texts = Vec::new();
        for entry in entries {
            match entry.value.as_str() {
                Some(text) => texts.push((entry.key.clone(), self.interpolate(&entry.value, text))),
                None => {
                    self.report(&WRONG_TYPE, entry.value.span, "this must be a string", "put it in quotes")
                }
            }
        }
        texts
    }

    /// Replaces `${NAME}` by the environment variable of that name.
    fn interpolate(&mut self, node: &YamlNode, text: &str) -> String {
        let (mut filled, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            filled.push_str(before);
            let Some((name, after)) = after.split_once('}') else {
                rest = after;
                filled.push_str("${");
                continue;
            };
            match (self.environment)(name) {
                Some(value) => filled.push_str(&value),
                None => {
                    let message =
                        format!("the environment variable `{}` is not set", truncate(&escape_controls(name)));
                    self.report(&UNKNOWN_VALUE, node.span, message, "set it before the gateway starts");
                }
            }
            rest = after;
        }
        filled + rest
    }

    fn report(
        &mut self,
        code: &'static callgate::diagnostic::Code,
        span: Span,
        message: impl Into<String>,
        help: &str,
    ) {
        self.reader.report(Diagnostic::new(code, span, message.into()).with_help(help));
    }
}
