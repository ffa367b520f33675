//! What a client's file says of one server, whichever way the file is written.

use std::ops::Range;
use std::path::Path;

use super::clients::{Facts, Syntax};
use super::{json_file, toml_file};

/// One server of a file.
#[derive(Debug)]
pub(super) struct Entry {
    /// The keys on the way to it; the last is its name.
    pub(super) place: Vec<String>,
    /// Whether commas stand between its members, and not line breaks.
    pub(super) commas: bool,
    pub(super) command: Option<Member<String>>,
    pub(super) args: Option<Member<Vec<Text>>>,
    pub(super) url: Option<Member<String>>,
    pub(super) kind: Option<Member<String>>,
    /// What it says of signing in, where it is reached over HTTP.
    credentials: Option<String>,
    /// Whether the URL is of a server that speaks the transport before streamable HTTP.
    outdated: bool,
}

/// A member of an entry, and where its key and its value stand.
#[derive(Debug)]
pub(super) struct Member<T> {
    pub(super) key: Range<usize>,
    pub(super) span: Range<usize>,
    pub(super) is: T,
}

/// A text in a list.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) span: Range<usize>,
    pub(super) is: String,
}

/// A member as a file has it.
pub(super) struct Found {
    pub(super) name: String,
    pub(super) key: Range<usize>,
    pub(super) span: Range<usize>,
    pub(super) shape: Shape,
}

/// What a member is, as far as it matters.
pub(super) enum Shape {
    Text(String),
    /// What is no text is `None`.
    List(Vec<(Range<usize>, Option<String>)>),
    Empty,
    Other,
}

/// Why a file can't be used, and where.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) at: usize,
    pub(super) message: String,
}

impl Broken {
    pub(super) fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

/// How a server is reached.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Command { command: String },
    Remote(String),
}

/// Whether a server stands behind the gateway.
#[derive(Debug)]
pub(super) enum Standing {
    Before(Origin),
    Behind {
        /// Of `callgate proxy`.
        options: Vec<String>,
        origin: Origin,
    },
    /// It starts Callgate, in a way that someone has chosen.
    OfItsOwn,
    /// It can't be put behind: why, and what to do.
    Apart(String),
}

/// All servers that a file says.
pub(super) fn read(text: &str, facts: &Facts) -> Result<Vec<Entry>, Broken> {
    match facts.syntax {
        Syntax::Json => json_file::read(text, facts),
        Syntax::Toml => toml_file::read(text, facts),
    }
}

/// Members that say who asks. The gateway would have to send them, and a command line is no place for secrets.
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

impl Entry {
    pub(super) fn new(
        place: Vec<String>,
        commas: bool,
        found: Vec<Found>,
        facts: &Facts,
    ) -> Result<Self, Broken> {
        let mut entry = Self {
            place,
            commas,
            command: None,
            args: None,
            url: None,
            kind: None,
            credentials: None,
            outdated: false,
        };
        let mut known: Vec<String> = Vec::new();
        for Found { name, key, span, shape } in found {
            if known.contains(&name) {
                return Err(Broken::new(
                    key.start,
                    format!("`{name}` of `{}` is there twice; take one out", entry.name()),
                ));
            }
            let start = span.start;
            match (name.as_str(), shape) {
                ("command", Shape::Text(is)) => entry.command = Some(Member { key, span, is }),
                ("url" | "httpUrl", Shape::Text(is)) => {
                    if entry.url.is_some() {
                        let message = format!("`{}` has two URLs; take one out", entry.name());
                        return Err(Broken::new(key.start, message));
                    }
                    entry.outdated = name != facts.url;
                    entry.url = Some(Member { key, span, is });
                }
                ("type", Shape::Text(is)) => entry.kind = Some(Member { key, span, is }),
                ("args", Shape::List(list)) => {
                    let texts = list.into_iter().map(|(span, text)| match text {
                        Some(is) => Ok(Text { span, is }),
                        None => Err(Broken::new(
                            span.start,
                            format!("`args` of `{}` must be texts", entry.name()),
                        )),
                    });
                    entry.args = Some(Member { key, span, is: texts.collect::<Result<_, _>>()? });
                }
                ("args", Shape::Empty) => entry.args = Some(Member { key, span, is: Vec::new() }),
                ("args", _) => {
                    let message = format!("`args` of `{}` must be a list of texts", entry.name());
                    return Err(Broken::new(start, message));
                }
                ("command" | "url" | "httpUrl" | "type", _) => {
                    return Err(Broken::new(start, format!("`{name}` of `{}` must be a text", entry.name())));
                }
                (name, shape) if CREDENTIALS.contains(&name) && !matches!(shape, Shape::Empty) => {
                    entry.credentials = Some(name.to_owned());
                }
                _ => {}
            }
            known.push(name);
        }
        if let Some(kind) = &entry.kind {
            entry.outdated = match kind.is.as_str() {
                "sse" => true,
                "http" => false,
                _ => entry.outdated,
            };
        }
        Ok(entry)
    }

    pub(super) fn name(&self) -> &str {
        self.place.last().map_or("", String::as_str)
    }

    /// The name, with what tells it from others of the same file.
    pub(super) fn title(&self) -> String {
        match self.place.as_slice() {
            [projects, directory, ..] if projects == "projects" => format!("{} ({directory})", self.name()),
            _ => self.name().to_owned(),
        }
    }

    /// From the first to the last of what putting it behind touches.
    pub(super) fn core(&self) -> Range<usize> {
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

    /// Where it stands; `program` is this Callgate.
    pub(super) fn standing(&self, program: &str) -> Standing {
        match (&self.command, &self.url) {
            (Some(command), None) if is_callgate(&command.is, program) => behind(self.args.as_ref()),
            (Some(command), None) => Standing::Before(Origin::Command { command: command.is.clone() }),
            (None, Some(url)) => self.remote(&url.is),
            (Some(_), Some(_)) => {
                Standing::Apart("it has a command and a URL; take one of them out".to_owned())
            }
            (None, None) => Standing::Apart("it has neither a command nor a URL".to_owned()),
        }
    }

    fn remote(&self, url: &str) -> Standing {
        if let Some(name) = &self.credentials {
            return Standing::Apart(format!(
                "it needs what `{name}` says; write it with that into a file for `callgate proxy --config FILE`, and \
                 that command here"
            ));
        }
        if self.outdated {
            return Standing::Apart(
                "it is reached over SSE; use the server's URL for streamable HTTP".to_owned(),
            );
        }
        Standing::Before(Origin::Remote(url.to_owned()))
    }
}

fn is_callgate(command: &str, program: &str) -> bool {
    let stem = Path::new(command).file_stem().and_then(|stem| stem.to_str());
    command == program || stem.is_some_and(|stem| stem.starts_with("callgate"))
}

fn behind(args: Option<&Member<Vec<Text>>>) -> Standing {
    let words: Vec<&str> = args.iter().flat_map(|args| &args.is).map(|text| text.is.as_str()).collect();
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let [subcommand, rest @ ..] = words.as_slice() else { return Standing::OfItsOwn };
    if *subcommand != "proxy" {
        return Standing::OfItsOwn;
    }
    let mut parts = rest.splitn(2, |word| *word == "--");
    let options = parts.next().unwrap_or_default();
    // A gateway that someone wrote by hand has none, or not there.
    if !options.first().is_some_and(|first| *first == "--name" || first.starts_with("--name=")) {
        return Standing::OfItsOwn;
    }
    match (parts.next(), options) {
        (Some([command, ..]), _) => Standing::Behind {
            options: owned(options),
            origin: Origin::Command { command: (*command).to_owned() },
        },
        (None, [options @ .., "--upstream", url]) => {
            Standing::Behind { options: owned(options), origin: Origin::Remote((*url).to_owned()) }
        }
        _ => Standing::OfItsOwn,
    }
}
