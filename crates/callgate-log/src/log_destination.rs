//! Where a log is written, as the command line and configuration files name it: `decisions.jsonl`, `audit:FILE`, `syslog:udp:HOST:PORT`.

use std::path::{Path, PathBuf};

use crate::event_line::Content;
use crate::log_thread::{OnFailure, OnFull};

/// The socket of the local syslog.
const SYSLOG_SOCKET: &str = "/dev/log";
/// The socket at which journald accepts what is sent to syslog.
const JOURNALD_SOCKET: &str = "/run/systemd/journal/dev-log";

/// Where a log is written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogDestination {
    /// `FILE` or `file:FILE`: JSON Lines.
    File(PathBuf),
    /// `audit:FILE`: a tamper-evident audit log.
    Audit(PathBuf),
    /// `stderr`: text for people.
    Stderr,
    /// `syslog`, `syslog:SOCKET`, `syslog:udp:HOST:PORT`, `syslog:tcp:HOST:PORT` or `journald`.
    Syslog(SyslogAddress),
    /// `otlp:URL`: an OpenTelemetry collector.
    Otlp(String),
}

/// A log as a user configures it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// Where it is written.
    pub destination: LogDestination,
    /// What it contains of arguments and results.
    pub content: Content,
    /// What happens to calls while it can't be written. Without it they are denied for an audit log, and run for others.
    pub on_failure: Option<OnFailure>,
    /// What happens while it is written more slowly than calls arrive.
    pub on_full: OnFull,
    /// The file of the key that signs the checkpoints of an audit log. Without it `FILE.key` beside the log.
    pub key: Option<PathBuf>,
}

impl LogSettings {
    /// A log with the default settings.
    pub fn new(destination: LogDestination) -> Self {
        let (content, on_full) = (Content::default(), OnFull::default());
        Self { destination, content, on_failure: None, on_full, key: None }
    }
}

/// Where syslog messages are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyslogAddress {
    /// A datagram socket of this machine.
    Local(PathBuf),
    /// A host and port that accept datagrams (RFC 5426).
    Udp(String),
    /// A host and port that accept connections (RFC 6587).
    Tcp(String),
}

/// Why a text names no destination.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a destination of a log: {why}")]
pub struct InvalidDestination {
    text: String,
    why: &'static str,
}

impl LogDestination {
    /// Reads a destination.
    ///
    /// # Errors
    /// A part is missing, or the address of a syslog server is none.
    ///
    /// ```
    /// use callgate_log::LogDestination;
    ///
    /// assert_eq!(LogDestination::parse("audit:audit.jsonl")?, LogDestination::Audit("audit.jsonl".into()));
    /// assert!(LogDestination::parse("syslog:udp:loghost").is_err_and(|error| error.to_string().contains("port")));
    /// # Ok::<(), callgate_log::InvalidDestination>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, InvalidDestination> {
        let invalid = |why| InvalidDestination { text: text.to_owned(), why };
        let file = |path: &str| match path.is_empty() {
            true => Err(invalid("name a file")),
            false => Ok(PathBuf::from(path)),
        };
        match text {
            "stderr" => return Ok(Self::Stderr),
            "syslog" => return Ok(Self::Syslog(SyslogAddress::Local(SYSLOG_SOCKET.into()))),
            "journald" => return Ok(Self::Syslog(SyslogAddress::Local(JOURNALD_SOCKET.into()))),
            _ => {}
        }
        match text.split_once(':') {
            Some(("audit", path)) => file(path).map(Self::Audit),
            Some(("file", path)) => file(path).map(Self::File),
            Some(("otlp", url)) => Ok(Self::Otlp(url.to_owned())),
            Some(("syslog", address)) => SyslogAddress::parse(address).map(Self::Syslog).map_err(invalid),
            _ => file(text).map(Self::File),
        }
    }

    /// The same destination, with its file relative to a directory.
    #[must_use]
    pub fn relative_to(self, directory: &Path) -> Self {
        match self {
            Self::File(path) => Self::File(directory.join(path)),
            Self::Audit(path) => Self::Audit(directory.join(path)),
            other => other,
        }
    }

    /// Whether calls can be denied while this log can't be written. Nothing waits for the others.
    pub fn can_deny(&self) -> bool {
        matches!(self, Self::File(_) | Self::Audit(_) | Self::Syslog(_))
    }
}

impl SyslogAddress {
    fn parse(text: &str) -> Result<Self, &'static str> {
        let host = |address: &str| match address.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) => {
                Ok(address.to_owned())
            }
            _ => Err("write host and port, such as `syslog:udp:loghost:514` or `syslog:tcp:[::1]:601`"),
        };
        match text.split_once(':') {
            Some(("udp", address)) => host(address).map(Self::Udp),
            Some(("tcp", address)) => host(address).map(Self::Tcp),
            _ if Path::new(text).is_absolute() => Ok(Self::Local(text.into())),
            _ => Err(
                "write `syslog`, `syslog:/PATH/OF/SOCKET`, `syslog:udp:HOST:PORT` or `syslog:tcp:HOST:PORT`",
            ),
        }
    }
}

impl std::fmt::Display for SyslogAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Local(path) => write!(f, "{}", path.display()),
            Self::Udp(address) => write!(f, "udp:{address}"),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_are_told_apart_by_their_prefix() {
        let syslog = |address| LogDestination::Syslog(address);
        for (text, expected) in [
            ("decisions.jsonl", LogDestination::File("decisions.jsonl".into())),
            ("file:stderr", LogDestination::File("stderr".into())),
            ("C:log", LogDestination::File("C:log".into())),
            ("audit:a:b", LogDestination::Audit("a:b".into())),
            ("stderr", LogDestination::Stderr),
            ("otlp:http://127.0.0.1:4318", LogDestination::Otlp("http://127.0.0.1:4318".to_owned())),
            ("syslog", syslog(SyslogAddress::Local(SYSLOG_SOCKET.into()))),
            ("syslog:/run/log", syslog(SyslogAddress::Local("/run/log".into()))),
            ("syslog:udp:loghost:514", syslog(SyslogAddress::Udp("loghost:514".to_owned()))),
            ("syslog:tcp:[::1]:601", syslog(SyslogAddress::Tcp("[::1]:601".to_owned()))),
            ("journald", syslog(SyslogAddress::Local(JOURNALD_SOCKET.into()))),
        ] {
            assert_eq!(LogDestination::parse(text), Ok(expected), "{text}");
        }
        for text in [
            "",
            "audit:",
            "file:",
            "syslog:",
            "syslog:log",
            "syslog:udp:host",
            "syslog:tcp::9",
            "syslog:udp:h:0",
        ] {
            assert!(LogDestination::parse(text).is_err(), "{text}");
        }
    }
}
