//! A server entry of a client's config file, independent of the file's format.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::clients::ClientProperties;
use callgate_mcp::{HttpSpec, StdioSpec, Transport};

/// The entry of one server.
#[derive(Debug)]
pub(super) struct ServerEntry {
    /// The key path of the entry; the last key is the server's name.
    pub(super) path: Vec<String>,
    /// Whether its members are separated by commas, and not by line breaks.
    pub(super) is_comma_separated: bool,
    pub(super) command: Option<EntryMember<String>>,
    pub(super) args: Option<EntryMember<Vec<StringValue>>>,
    pub(super) url: Option<EntryMember<String>>,
    pub(super) kind: Option<EntryMember<String>>,
    /// The environment of the server's process; `None` if it has values that are not strings.
    pub(super) env: Option<Vec<(String, String)>>,
    /// The directory of the server's process.
    pub(super) cwd: Option<String>,
    /// The name of a member with credentials for a server over HTTP.
    credentials: Option<String>,
    /// Why the server uses SSE, the transport before streamable HTTP, with what to do.
    sse: Option<&'static str>,
}

/// A member of an entry, with the ranges of its key and its value.
#[derive(Debug)]
pub(super) struct EntryMember<T> {
    pub(super) key: Range<usize>,
    pub(super) span: Range<usize>,
    pub(super) value: T,
}

/// A string in an array.
#[derive(Debug)]
pub(super) struct StringValue {
    pub(super) span: Range<usize>,
    pub(super) value: String,
}

/// A member as parsed.
pub(super) struct ParsedMember {
    pub(super) name: String,
    pub(super) key: Range<usize>,
    pub(super) span: Range<usize>,
    pub(super) kind: MemberValue,
}

/// The kind of a member's value, as far as it matters.
pub(super) enum MemberValue {
    String(String),
    /// Elements that are not strings are `None`.
    Array(Vec<(Range<usize>, Option<String>)>),
    /// Members that are not strings are `None`.
    Object(Vec<(String, Option<String>)>),
    Empty,
    Other,
}

/// Why a file can't be used, with the position.
#[derive(Debug)]
pub(super) struct ConfigFileError {
    pub(super) offset: usize,
    pub(super) message: String,
}

impl ConfigFileError {
    pub(super) fn new(offset: usize, message: impl Into<String>) -> Self {
        Self { offset, message: message.into() }
    }
}

/// The command or the URL of a server.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ServerTarget {
    Command { command: String },
    Remote(String),
}

/// Whether a server is behind the gateway.
#[derive(Debug)]
pub(super) enum Standing {
    NotInstalled(ServerTarget),
    Installed {
        /// The options of `callgate proxy`.
        options: Vec<String>,
        origin: ServerTarget,
    },
    /// It starts Callgate with a command that the user wrote.
    Custom,
    /// It can't be put behind the gateway; the string says why and what to do.
    Unsupported(String),
}

/// Members with credentials. The gateway would have to send them, and secrets must not be on a command line.
const CREDENTIALS: [&str; 9] = [
    "headers",
    "headersHelper",
    "http_headers",
    "env_http_headers",
    "bearer_token",
    "bearer_token_env_var",
    "oauth",
    "auth",
    "authProviderType",
];

const SSE: &str = "it uses the SSE transport; use the server's URL for streamable HTTP";
const SSE_WITHOUT_TYPE: &str = "it has no `type`, and so uses the SSE transport; if its URL is for streamable HTTP, add `\"type\": \"streamableHttp\"`";

impl ServerEntry {
    pub(super) fn new(
        path: Vec<String>,
        is_comma_separated: bool,
        found: Vec<ParsedMember>,
        facts: &ClientProperties,
    ) -> Result<Self, ConfigFileError> {
        let mut entry = Self {
            path,
            is_comma_separated,
            command: None,
            args: None,
            url: None,
            kind: None,
            env: Some(Vec::new()),
            cwd: None,
            credentials: None,
            sse: None,
        };
        let mut known: Vec<String> = Vec::new();
        for ParsedMember { name, key, span, kind: shape } in found {
            if known.contains(&name) {
                return Err(ConfigFileError::new(
                    key.start,
                    format!("duplicate key `{name}` in `{}`; remove one", entry.name()),
                ));
            }
            let start = span.start;
            match (name.as_str(), shape) {
                ("command", MemberValue::String(is)) => {
                    entry.command = Some(EntryMember { key, span, value: is })
                }
                ("url" | "httpUrl", MemberValue::String(is)) => {
                    if entry.url.is_some() {
                        let message = format!("`{}` has two URLs; remove one", entry.name());
                        return Err(ConfigFileError::new(key.start, message));
                    }
                    entry.sse = match name == facts.url_key {
                        true if facts.is_sse_default => Some(SSE_WITHOUT_TYPE),
                        true => None,
                        false => Some(SSE),
                    };
                    entry.url = Some(EntryMember { key, span, value: is });
                }
                ("type", MemberValue::String(is)) => entry.kind = Some(EntryMember { key, span, value: is }),
                ("args", MemberValue::Array(list)) => {
                    let texts = list.into_iter().map(|(span, text)| match text {
                        Some(is) => Ok(StringValue { span, value: is }),
                        None => Err(ConfigFileError::new(
                            span.start,
                            format!("the elements of `args` of `{}` must be strings", entry.name()),
                        )),
                    });
                    entry.args = Some(EntryMember { key, span, value: texts.collect::<Result<_, _>>()? });
                }
                ("args", MemberValue::Empty) => {
                    entry.args = Some(EntryMember { key, span, value: Vec::new() })
                }
                ("args", _) => {
                    let message = format!("`args` of `{}` must be an array of strings", entry.name());
                    return Err(ConfigFileError::new(start, message));
                }
                ("command" | "url" | "httpUrl" | "type", _) => {
                    return Err(ConfigFileError::new(
                        start,
                        format!("`{name}` of `{}` must be a string", entry.name()),
                    ));
                }
                ("cwd", MemberValue::String(is)) => entry.cwd = Some(is),
                ("env", MemberValue::Object(values)) => {
                    entry.env = values.into_iter().map(|(name, value)| Some((name, value?))).collect();
                }
                (name, shape) if CREDENTIALS.contains(&name) && !matches!(shape, MemberValue::Empty) => {
                    entry.credentials = Some(name.to_owned());
                }
                _ => {}
            }
            known.push(name);
        }
        if let Some(kind) = &entry.kind {
            entry.sse = match kind.value.as_str() {
                "sse" => Some(SSE),
                "http" | "streamableHttp" => None,
                _ => entry.sse,
            };
        }
        Ok(entry)
    }

    pub(super) fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    /// How the server is reached without the gateway, as the client does.
    ///
    /// # Errors
    /// Only the client can reach it: why.
    pub(super) fn transport(&self, program: &str) -> Result<Transport, String> {
        let words = self.args.iter().flat_map(|args| &args.value).map(|word| word.value.clone());
        let words: Vec<String> = match (self.gateway_status(program), &self.command) {
            (Standing::Unsupported(why), _) => return Err(why),
            (Standing::Custom, _) => return Err("its command is your own".to_owned()),
            (
                Standing::NotInstalled(ServerTarget::Remote(url))
                | Standing::Installed { origin: ServerTarget::Remote(url), .. },
                _,
            ) if !url.contains('$') => {
                return Ok(Transport::Http(HttpSpec { url, headers: Vec::new(), auth: None }));
            }
            (Standing::Installed { .. }, _) => words.skip_while(|word| word != "--").skip(1).collect(),
            (Standing::NotInstalled(_), command) => {
                command.iter().map(|command| command.value.clone()).chain(words).collect()
            }
        };
        let env = self.env.clone().ok_or("its `env` has values that are not strings")?;
        let values = env.iter().map(|(_, value)| value).chain(&words).chain(&self.cwd);
        let (Some((command, args)), false) =
            (words.split_first(), values.into_iter().any(|value| value.contains('$')))
        else {
            return Err("it has variables (`$`), which only the client replaces".to_owned());
        };
        let cwd = self.cwd.as_ref().map(PathBuf::from);
        Ok(Transport::Child(StdioSpec { command: command.clone(), args: args.to_vec(), env, cwd }))
    }

    /// The name, with the project directory for servers of one project, to distinguish servers of the same name.
    pub(super) fn title(&self) -> String {
        match self.path.as_slice() {
            [projects, directory, ..] if projects == "projects" => format!("{} ({directory})", self.name()),
            _ => self.name().to_owned(),
        }
    }

    /// The range from the first to the last member that installing the gateway can change.
    pub(super) fn editable_range(&self) -> Range<usize> {
        let ranges = [
            self.command.as_ref().map(|member| (member.key.start, member.span.end)),
            self.args.as_ref().map(|member| (member.key.start, member.span.end)),
            self.url.as_ref().map(|member| (member.key.start, member.span.end)),
            self.kind.as_ref().map(|member| (member.key.start, member.span.end)),
        ];
        let ranges = || ranges.iter().flatten();
        let start = ranges().map(|(start, _)| *start).min().unwrap_or(0);
        start..ranges().map(|(_, end)| *end).max().unwrap_or(start)
    }

    /// Whether the server is behind the gateway; `program` is the path of this executable.
    pub(super) fn gateway_status(&self, program: &str) -> Standing {
        match (&self.command, &self.url) {
            (Some(command), None) if is_callgate(&command.value, program) => {
                installed_status(self.args.as_ref())
            }
            (Some(command), None) => {
                Standing::NotInstalled(ServerTarget::Command { command: command.value.clone() })
            }
            (None, Some(url)) => self.remote_status(&url.value),
            (Some(_), Some(_)) => {
                Standing::Unsupported("it has a command and a URL; remove one of them".to_owned())
            }
            (None, None) => Standing::Unsupported("it has neither a command nor a URL".to_owned()),
        }
    }

    fn remote_status(&self, url: &str) -> Standing {
        if let Some(name) = &self.credentials {
            return Standing::Unsupported(format!(
                "it has credentials (`{name}`); move it into a config file, and set its command here to \
                 `callgate proxy --config FILE`"
            ));
        }
        if let Some(why) = self.sse {
            return Standing::Unsupported(why.to_owned());
        }
        // A URL with variables can't be checked: the client expands them.
        let is_usable = || HttpSpec { url: url.to_owned(), headers: Vec::new(), auth: None }.validate();
        if !url.contains('$')
            && let Err(why) = is_usable()
        {
            return Standing::Unsupported(why);
        }
        Standing::NotInstalled(ServerTarget::Remote(url.to_owned()))
    }
}

fn is_callgate(command: &str, program: &str) -> bool {
    let stem = Path::new(command).file_stem().and_then(|stem| stem.to_str());
    command == program || stem.is_some_and(|stem| stem.starts_with("callgate"))
}

fn installed_status(args: Option<&EntryMember<Vec<StringValue>>>) -> Standing {
    let words: Vec<&str> = args.iter().flat_map(|args| &args.value).map(|text| text.value.as_str()).collect();
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let [subcommand, rest @ ..] = words.as_slice() else { return Standing::Custom };
    if *subcommand != "proxy" {
        return Standing::Custom;
    }
    let mut parts = rest.splitn(2, |word| *word == "--");
    let options = parts.next().unwrap_or_default();
    // `callgate install` always writes `--name` first; a command written by hand may not.
    if !options.first().is_some_and(|first| *first == "--name" || first.starts_with("--name=")) {
        return Standing::Custom;
    }
    match (parts.next(), options) {
        (Some([command, ..]), _) => Standing::Installed {
            options: owned(options),
            origin: ServerTarget::Command { command: (*command).to_owned() },
        },
        (None, [options @ .., "--upstream", url]) => {
            Standing::Installed { options: owned(options), origin: ServerTarget::Remote((*url).to_owned()) }
        }
        _ => Standing::Custom,
    }
}
