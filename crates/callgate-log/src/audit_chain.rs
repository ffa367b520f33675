//! The chain of an audit log: each line ends with its number and the digest of the line before, and checkpoints are signed.
//!
//! A line is an event whose last members are `seq` and `prev`; of a checkpoint, `signature` follows. They are read from the end of the
//! line, byte by byte: no value in an event can be taken for them, and one line has one reading.

use callgate::json::Digest;
use callgate::seal::{PublicKey, SigningKey, decode_hex, encode_hex};
use jiff::Timestamp;

use crate::event_line::start_line;

/// The event of a signed checkpoint.
pub(crate) const CHECKPOINT: &str = "audit_checkpoint";
/// The event of a log that a process ends in order. A checkpoint follows.
pub(crate) const CLOSED: &str = "log_closed";
/// The number of lines after which a checkpoint is due.
pub(crate) const CHECKPOINT_LINES: u64 = 1_000;
/// The first bytes of signed content: domain separation from signatures for other purposes.
const SIGNATURE_CONTEXT: &str = "callgate audit checkpoint\n";
/// The length of a digest in hexadecimal digits.
const DIGEST_DIGITS: usize = 64;
/// The length of a signature in hexadecimal digits.
const SIGNATURE_DIGITS: usize = 128;

/// The end of a chain: the number of its last line, and the digest of that line's bytes. Text form: `SEQ:DIGEST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainHead {
    /// The number of the line, from 1.
    pub seq: u64,
    /// The SHA-256 digest of the line, without its line break.
    pub digest: Digest,
}

/// The text is not a line number with a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write the line's number and digest, `SEQ:DIGEST`, as `callgate audit verify` prints them")]
pub struct InvalidChainHead;

impl std::fmt::Display for ChainHead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.seq, self.digest)
    }
}

impl std::str::FromStr for ChainHead {
    type Err = InvalidChainHead;

    fn from_str(text: &str) -> Result<Self, InvalidChainHead> {
        let (seq, digest) = text.split_once(':').ok_or(InvalidChainHead)?;
        let seq = seq.parse().map_err(|_| InvalidChainHead)?;
        Ok(Self { seq, digest: digest.parse().map_err(|_| InvalidChainHead)? })
    }
}

impl ChainHead {
    /// The head of a chain without lines.
    pub(crate) fn start() -> Self {
        let zeros = "0".repeat(DIGEST_DIGITS).parse();
        Self { seq: 0, digest: zeros.unwrap_or_else(|_| Digest::compute(b"")) }
    }

    /// Makes an event the next line of the chain. Returns the line without its line break, and the new head.
    pub(crate) fn link(&self, event: &str) -> (String, Self) {
        let seq = self.seq.saturating_add(1);
        let body = event.strip_suffix('}').unwrap_or(event);
        let line = format!("{body},\"seq\":{seq},\"prev\":\"{}\"}}", self.digest);
        let head = Self { seq, digest: Digest::compute(line.as_bytes()) };
        (line, head)
    }

    /// The next line of the chain as a signed checkpoint, which proves everything before it.
    pub(crate) fn link_checkpoint(&self, time: Timestamp, key: &SigningKey) -> (String, Self) {
        let mut event = start_line(CHECKPOINT, time);
        event.string("key", &key.public_key().to_string());
        let (unsigned, Self { seq, .. }) = self.link(&event.finish());
        let body = unsigned.strip_suffix('}').unwrap_or(&unsigned);
        let signature = encode_hex(&key.sign(&signed_bytes(body)));
        let line = format!("{body},\"signature\":\"{signature}\"}}");
        let head = Self { seq, digest: Digest::compute(line.as_bytes()) };
        (line, head)
    }
}

/// A line of a chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChainedLine<'l> {
    /// The version of the format of events.
    pub(crate) version: u64,
    /// The name of its event.
    pub(crate) event: &'l str,
    /// Everything before `seq`.
    pub(crate) body: &'l str,
    pub(crate) seq: u64,
    /// The digest of the line before.
    pub(crate) prev: Digest,
    /// Its own digest.
    pub(crate) digest: Digest,
    checkpoint: Option<SignedPart<'l>>,
}

/// What a checkpoint signs, and its signature.
#[derive(Clone, Copy, Debug)]
struct SignedPart<'l> {
    body: &'l str,
    signature: &'l str,
}

impl<'l> ChainedLine<'l> {
    /// Reads a line. Returns `None` if it is not a complete line of a chain.
    pub(crate) fn parse(bytes: &'l [u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let rest = text.strip_prefix("{\"version\":")?;
        let (version, rest) = rest.split_once(",\"event\":\"")?;
        let (event, _) = rest.split_once('"')?;
        let mut linked = text.strip_suffix("\"}")?;
        let mut checkpoint = None;
        if event == CHECKPOINT {
            let (unsigned, signature) = split_end(linked, SIGNATURE_DIGITS)?;
            let body = unsigned.strip_suffix(",\"signature\":\"")?;
            checkpoint = Some(SignedPart { body, signature });
            linked = body.strip_suffix('"')?;
        }
        let (unlinked, prev) = split_end(linked, DIGEST_DIGITS)?;
        let numbered = unlinked.strip_suffix(",\"prev\":\"")?;
        let (body, seq) = numbered.rsplit_once(",\"seq\":")?;
        let is_plain = !seq.starts_with('0') && seq.bytes().all(|byte| byte.is_ascii_digit());
        let seq = is_plain.then(|| seq.parse().ok()).flatten()?;
        let digest = Digest::compute(bytes);
        let version = version.parse().ok()?;
        Some(Self { version, event, body, seq, prev: prev.parse().ok()?, digest, checkpoint })
    }

    pub(crate) fn head(&self) -> ChainHead {
        ChainHead { seq: self.seq, digest: self.digest }
    }

    /// The value of a member that is a string without escapes, in the event's own part.
    pub(crate) fn text(&self, name: &str) -> Option<&'l str> {
        let (_, rest) = self.body.split_once(&format!(",\"{name}\":\""))?;
        rest.split_once('"').map(|(value, _)| value)
    }

    /// The value of a member that is a number, in the event's own part.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        let (_, rest) = self.body.split_once(&format!(",\"{name}\":"))?;
        rest.split([',', '}']).next()?.parse().ok()
    }

    /// When the event happened.
    pub(crate) fn time(&self) -> Option<Timestamp> {
        self.text("time")?.parse().ok()
    }

    /// The key that a checkpoint or an opening names.
    pub(crate) fn key(&self) -> Option<PublicKey> {
        self.text("key")?.parse().ok()
    }

    /// Whether the line is a checkpoint that this key signed.
    pub(crate) fn is_signed_by(&self, key: &PublicKey) -> bool {
        self.checkpoint.is_some_and(|SignedPart { body, signature }| {
            // One notation only: digits in upper case would be another line with the same signature.
            let bytes = decode_hex(signature).filter(|bytes| encode_hex(bytes) == signature);
            bytes.is_some_and(|bytes| key.verify(&signed_bytes(body), &bytes))
        })
    }
}

fn signed_bytes(body: &str) -> Vec<u8> {
    [SIGNATURE_CONTEXT, body].concat().into_bytes()
}

/// Splits the last bytes of a text off.
fn split_end(text: &str, length: usize) -> Option<(&str, &str)> {
    text.split_at_checked(text.len().checked_sub(length)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> SigningKey {
        let folder = tempfile::tempdir().expect("a folder");
        SigningKey::from_file_or_new(&folder.path().join("key")).expect("a new key")
    }

    #[test]
    fn a_linked_line_is_read_back() {
        let event = r#"{"version":1,"event":"call_started","time":"2026-11-22T10:00:00Z","tool":"a"}"#;
        let (line, head) = ChainHead::start().link(event);
        let read = ChainedLine::parse(line.as_bytes()).expect("a line of a chain");
        assert_eq!((read.event, read.seq, read.prev), ("call_started", 1, ChainHead::start().digest));
        assert_eq!(read.head(), head);
        assert_eq!(head.to_string().parse(), Ok(head));
    }

    #[test]
    fn values_of_an_event_are_not_taken_for_its_link() {
        let forged = format!(r#"{{"seq":7,"prev":"{}"}}"#, "0".repeat(64));
        let event = format!(r#"{{"version":1,"event":"call_started","input":{forged}}}"#);
        let (line, _) = ChainHead::start().link(&event);
        assert_eq!(ChainedLine::parse(line.as_bytes()).map(|line| line.seq), Some(1));
        assert!(ChainedLine::parse(event.as_bytes()).is_none());
    }

    #[test]
    fn a_checkpoint_is_valid_for_its_key_and_its_bytes_only() {
        let (key, other) = (key(), key());
        let (line, _) = ChainHead::start().link_checkpoint(Timestamp::UNIX_EPOCH, &key);
        let is_valid = |line: &str, key: &SigningKey| {
            ChainedLine::parse(line.as_bytes()).is_some_and(|line| line.is_signed_by(&key.public_key()))
        };
        assert!(is_valid(&line, &key));
        assert!(!is_valid(&line, &other));
        assert!(!is_valid(&line.replace("1970", "1971"), &key));
        assert!(!is_valid(&line.replace("\"seq\":1", "\"seq\":2"), &key));
        let (body, signature) = line.split_once("\"signature\":").expect("it is signed");
        assert!(!is_valid(&format!("{body}\"signature\":{}", signature.to_uppercase()), &key));
    }
}
