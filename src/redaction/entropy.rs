//! Detector of generic secrets: values of keys such as `password`, and high-entropy tokens.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::base64;
use super::detector_input::{DetectorInput, JsonKeys, compile_pattern, is_word};
use super::placeholder::{is_digest, is_placeholder};

/// A key that marks the following value as a secret, a colon or an equals sign, and the value.
static NAMED_VALUE: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(concat!(
        r"(?i)(?:pass(?:word|wd|phrase|code)?|pwd|secret|token|api[ _-]?key|access[ _-]?key|auth[ _-]?key",
        r"|private[ _-]?key|secret[ _-]?key|signing[ _-]?key|encryption[ _-]?key|credentials?)",
        r#"(?:[_-](?:value|base|prod|production|dev|test))?["']?[ \t]?(?::|=>?|:=|\bis\b)[ \t]?(?:"([^"\s]{4,})"|'([^'\s]{4,})'|([^\s"'<>,;(){}\[\]]{6,}))"#,
    ))
});

/// The end of a value in a query string: `secret=…&user=…`.
static NEXT_PARAMETER: LazyLock<Regex> = LazyLock::new(|| compile_pattern(r"&[A-Za-z_]+="));

/// JSON keys whose strings and numbers are always secrets.
static SECRET_KEY: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?i)^(?:.* )?(?:pass(?:word|wd|phrase|code)|pwd|pass|secret(?: access)? key|client secret|private key|api ?key|pin code|cvv|cvc)(?: \d+)?$",
    )
});

/// JSON keys whose value is a secret if it looks like a single token.
static TOKEN_KEY: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?i)^(?:.* )?(?:secret|token|credentials?|auth|access key|auth key|signing key|encryption key|session key)$",
    )
});

/// Pagination tokens, which are not secrets.
static CURSOR: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(r"(?i)(?:page|next|continuation|sync|cursor|resume|progress|continue)[ _-]?token$")
});

/// JSON keys whose random value is an identifier, not a secret.
static NAME_KEY: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?i)(?:^|[ ])(?:id|ids|uuid|guid|etag|cursor|hash|sha|sha1|sha256|sha512|digest|checksum|integrity|revision|version|fingerprint|nonce|url|uri|href|path|file|filename|data|blob|image|thumbnail)$",
    )
});

/// Generic keys: the parent key names the value.
static VALUE_KEY: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(r"(?i)^(?:value|val|data|current|previous|new|old|default|string)$"));

static RANDOM: LazyLock<Regex> = LazyLock::new(|| compile_pattern(r"[A-Za-z0-9+_-]{24,}={0,2}"));

static UUID: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(r"(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"));

/// Longer strings are data, such as a base64-encoded image.
const LONGEST_SECRET: usize = 256;

/// Finds secrets without a format of their own:
///
/// - the value after a name such as `password=` or `"token":`, unless it is a word;
/// - the whole string under a JSON key such as `password`; under `token` or `secret`, only if it is a single token;
/// - elsewhere, tokens of 24 to 256 characters that mix cases and digits at random.
///
/// Never detected without a key: UUIDs, hex digests, ids with a prefix (`req_…`), path segments, digests and integrity
/// hashes, public keys, base64 of readable text or after `base64,`.
pub(super) fn high_entropy(subject: &DetectorInput<'_>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for captures in NAMED_VALUE.captures_iter(subject.text) {
        let (Some(whole), Some(value)) = (captures.get(0), captures.iter().skip(1).flatten().next()) else {
            continue;
        };
        let mut text = value.as_str();
        if let Some(next) = NEXT_PARAMETER.find(text) {
            text = text.get(..next.start()).unwrap_or(text);
        }
        let text = text.trim_end_matches(['.', '!', '?', ':', '\\']);
        let name =
            whole.as_str().split([':', '=', '"', '\'']).next().unwrap_or_default().to_ascii_lowercase();
        let cursor = CURSOR.is_match(&format!("{}{name}", subject.text_before(whole.start(), 16)));
        let password = name.starts_with("pass") || name.starts_with("pwd");
        // `[api_key:hmac-…]` is a redaction label.
        if !cursor
            && !is_placeholder(text)
            && !is_digest(text)
            && (is_likely_secret(text) || password && is_number(text))
        {
            found.push(value.start()..value.start() + text.len());
        }
    }
    found.extend(find_by_key(subject));
    let named_otherwise = subject.keys.own.is_some_and(|key| NAME_KEY.is_match(&JsonKeys::to_words(key)));
    if !named_otherwise {
        let tokens = RANDOM.find_iter(subject.text).filter(|token| token.len() <= LONGEST_SECRET);
        found.extend(tokens.map(|token| token.range()).filter(|range| is_random_secret(subject, range)));
    }
    found
}

fn find_by_key(subject: &DetectorInput<'_>) -> Option<Range<usize>> {
    let own = JsonKeys::to_words(subject.keys.own?);
    let key = match subject.keys.parent {
        Some(parent) if VALUE_KEY.is_match(&own) => JsonKeys::to_words(parent),
        _ => own,
    };
    let text = subject.text.trim();
    let secret = SECRET_KEY.is_match(&key)
        || TOKEN_KEY.is_match(&key)
            && !CURSOR.is_match(&key)
            && text.len() >= 8
            && !is_number(text)
            && !text.contains(char::is_whitespace);
    let start = subject.text.len() - subject.text.trim_start().len();
    (secret && !is_placeholder(text)).then(|| start..start + text.len())
}

fn is_number(text: &str) -> bool {
    text.len() >= 6 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether the value after a secret's name is a secret: letters with digits or signs, or random letters. A method call or a
/// member path in source code (`config.token`) is not.
fn is_likely_secret(text: &str) -> bool {
    let letters = text.contains(char::is_alphabetic);
    let digits = text.contains(|c: char| c.is_ascii_digit());
    let signs = text.contains(|c: char| "!@#$%^&*+=~?".contains(c));
    let count = text.chars().count();
    (letters && (digits || signs))
        || (count >= 16 && letters && entropy(text) >= 3.7 && !text.contains(['.', '_']))
}

fn is_random_secret(subject: &DetectorInput<'_>, range: &Range<usize>) -> bool {
    let text = subject.text.get(range.clone()).unwrap_or_default();
    let free = !subject.chars_before(range.start).0.is_some_and(|c| is_word(c) || c == '/')
        && !subject.chars_after(range.end).0.is_some_and(|c| is_word(c) || c == '/');
    let segment = text.split(['-', '_', '+', '=']).max_by_key(|segment| segment.len()).unwrap_or_default();
    free && segment.len() >= 16
        && !UUID.is_match(text)
        && !has_id_prefix(text)
        && is_scrambled(segment)
        && entropy(text) >= 3.9
        && !is_labeled_public(subject.text_before(range.start, 24), text)
        && !is_readable_base64(text)
}

/// `toolu_…`, `req_…`, `price-…`: a short prefix marks an id, unless the prefix is the name of a key or token.
fn has_id_prefix(text: &str) -> bool {
    let prefix = text.split(['_', '-']).next().unwrap_or_default();
    prefix.len() <= 10
        && prefix.len() < text.len()
        && prefix.bytes().all(|byte| byte.is_ascii_lowercase())
        && !matches!(prefix, "sk" | "rk" | "key" | "token" | "secret" | "pat" | "api")
}

/// Upper case, lower case and digits that alternate as often as in random text. Words and camel case names alternate less.
fn is_scrambled(text: &str) -> bool {
    let class = |c: char| (c.is_ascii_uppercase(), c.is_ascii_digit());
    let upper = text.contains(|c: char| c.is_ascii_uppercase());
    let lower = text.contains(|c: char| c.is_ascii_lowercase());
    // A name may end in a number; random text has digits elsewhere too.
    let digits = text.trim_end_matches(|c: char| c.is_ascii_digit()).contains(|c: char| c.is_ascii_digit());
    let changes = text.chars().zip(text.chars().skip(1)).filter(|(a, b)| class(*a) != class(*b)).count();
    upper && lower && digits && changes * 100 >= text.len() * 38
}

fn is_labeled_public(before: &str, text: &str) -> bool {
    static INTRODUCED: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(
            r"(?i)(?:base64,|sha-?(?:1|256|384|512)[:=-]|sha256~|integrity[\x22'=: ]+|ssh-[a-z0-9-]+ |ecdsa-[a-z0-9-]+ |etag[\x22'=: ]+)$",
        )
    });
    let digest = ["sha1-", "sha256-", "sha384-", "sha512-"].iter().any(|prefix| text.starts_with(prefix));
    digest || INTRODUCED.is_match(before)
}

fn is_readable_base64(text: &str) -> bool {
    base64::decode(text)
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .is_some_and(|decoded| decoded.chars().all(|c| !c.is_control() || c.is_whitespace()))
}

/// Shannon entropy in bits per character.
fn entropy(text: &str) -> f64 {
    let mut counts: HashMap<char, u32> = HashMap::new();
    text.chars().for_each(|c| *counts.entry(c).or_default() += 1);
    let total = f64::from(counts.values().sum::<u32>());
    counts.values().map(|count| f64::from(*count) / total).map(|share| -share * share.log2()).sum()
}
