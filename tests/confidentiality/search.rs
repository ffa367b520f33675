//! Finds secrets in bytes: plain, encoded, or as a digest that anyone can compute.

use callgate::json::{Value, json};
use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER};
use md5::{Digest, Md5};
use regex::bytes::{Regex, RegexBuilder};
use sha1::Sha1;
use sha2::Sha256;

/// The number of hexadecimal digits of a digest that count as a match: at the start of a run of digits, and anywhere.
const DIGITS: usize = 8;
const DIGITS_ANYWHERE: usize = 14;

/// The patterns that must not match.
pub struct Search {
    pattern: Regex,
}

impl Search {
    /// Searches for these secrets, and for digests of the documents that contain them.
    pub fn new(secrets: &[String], documents: &[Value]) -> Self {
        let mut exact: Vec<Vec<u8>> = Vec::new();
        let mut hex: Vec<String> = Vec::new();
        for secret in secrets {
            let bytes = secret.as_bytes();
            exact.push(bytes.to_vec());
            exact.push(secret.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>().into());
            exact.push(percent(secret).into());
            exact.push(secret.replace('/', "\\/").into());
            for base64 in [BASE64_NOPAD, BASE64URL_NOPAD] {
                exact.extend((0..3).map(|shift| aligned(&base64, bytes, shift)));
            }
            hex.push(HEXLOWER.encode(bytes));
        }
        let texts = secrets.iter().flat_map(|secret| [secret.clone(), json!(secret).to_string()]);
        let documents = documents
            .iter()
            .flat_map(|document| [document.to_string(), callgate::json::canonical_text(document)]);
        for text in texts.chain(documents) {
            for digest in
                [Sha256::digest(&text).to_vec(), Sha1::digest(&text).to_vec(), Md5::digest(&text).to_vec()]
            {
                exact.push(digest[..12].to_vec());
                exact.push(BASE64_NOPAD.encode(&digest[..12]).into());
                exact.push(BASE64URL_NOPAD.encode(&digest[..12]).into());
                hex.push(first(&HEXLOWER.encode(&digest), DIGITS_ANYWHERE));
                hex.push(format!(r"\b{}", first(&HEXLOWER.encode(&digest), DIGITS)));
            }
        }
        let exact =
            exact.iter().map(|bytes| bytes.iter().map(|byte| format!(r"\x{byte:02x}")).collect::<String>());
        let hex = hex.iter().map(|digits| format!("(?i:{digits})"));
        let all: Vec<String> = exact.chain(hex).collect();
        let pattern = RegexBuilder::new(&all.join("|")).unicode(false).size_limit(1 << 28).build().unwrap();
        Self { pattern }
    }

    /// Returns the first match with its surroundings.
    pub fn find(&self, bytes: &[u8]) -> Option<String> {
        let found = self.pattern.find(bytes)?;
        let around = found.start().saturating_sub(200)..(found.end() + 200).min(bytes.len());
        let shown = |range: std::ops::Range<usize>| String::from_utf8_lossy(&bytes[range]).into_owned();
        Some(format!("`{}` in …{}…", shown(found.range()), shown(around)))
    }
}

fn first(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

/// The base64 characters that do not depend on the bytes around these, which start at offset `shift` of a group of three.
fn aligned(base64: &data_encoding::Encoding, bytes: &[u8], shift: usize) -> Vec<u8> {
    let mut text = vec![0; shift];
    text.extend(bytes);
    let whole = text.len() - text.len() % 3;
    let encoded = base64.encode(&text[..whole]);
    encoded.as_bytes()[(shift * 4).div_ceil(3)..].to_vec()
}

/// Percent-encodes everything but unreserved characters, as in a URL.
fn percent(text: &str) -> String {
    let escaped = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(escaped).collect()
}

#[test]
fn every_kind_of_leak_is_found() {
    let secret = "CANARY 0badcafe/77".to_owned();
    let document = json!({ "b": [secret], "a": 1 });
    let search = Search::new(std::slice::from_ref(&secret), std::slice::from_ref(&document));
    let sha = HEXLOWER.encode(&Sha256::digest(callgate::json::canonical_text(&document)));
    let mut leaks = vec![
        format!("x{secret}x"),
        percent(&secret),
        HEXLOWER.encode(secret.as_bytes()).to_uppercase(),
        json!({ "a": secret }).to_string(),
        format!("sha256-{}", first(&sha, 8)),
        format!("[email:{}]", first(&HEXLOWER.encode(&Md5::digest(&secret)), 12)),
        HEXLOWER.encode(&Sha1::digest(json!(secret).to_string())),
        BASE64_NOPAD.encode(&Sha256::digest(&secret)),
    ];
    for before in ["", "a", "ab", "abc"] {
        leaks.push(BASE64_NOPAD.encode(format!("{before}{secret}more").as_bytes()));
        leaks.push(BASE64URL_NOPAD.encode(format!("{before}{secret}").as_bytes()));
    }
    for leak in leaks {
        assert!(search.find(format!("before {leak} after").as_bytes()).is_some(), "{leak}");
    }
    assert_eq!(search.find(b"CANARY 0badcaff/77, [email:hmac-0123456789ab]"), None);
}
