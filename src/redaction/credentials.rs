//! Credential detectors: tokens, private keys in PEM blocks, providers' API keys.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::base64;
use super::detector_input::{DetectorInput, JsonKeys, compile_pattern};
use super::placeholder::is_masked;

static JWT: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?-u:\b)(e[wy][A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)?",
    )
});

/// Finds JSON Web Tokens, signed or encrypted: the first part decodes to a JSON object.
pub(super) fn jwt(subject: &DetectorInput<'_>) -> Vec<Range<usize>> {
    JWT.captures_iter(subject.text)
        .filter_map(|captures| {
            let header = base64::decode(captures.get(1)?.as_str())?;
            let header: crate::json::Value = crate::json::from_slice(&header).ok()?;
            header.is_object().then(|| captures.get(0).map(|token| token.range())).flatten()
        })
        .collect()
}

static KEY_BLOCK_MARKER: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-[0-9]+:|Private-MAC: [0-9a-f]*",
    )
});

/// Finds private keys: whole PEM, OpenSSH, PGP and PuTTY blocks. A block without an end marker extends as far as its text
/// can belong to a key.
pub(super) fn private_key(subject: &DetectorInput<'_>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut open: Option<Range<usize>> = None;
    for mark in KEY_BLOCK_MARKER.find_iter(subject.text) {
        if mark.as_str().contains("END") || mark.as_str().starts_with("Private-MAC") {
            found.extend(open.take().map(|begin| begin.start..mark.end()));
        } else if let Some(begin) = open.replace(mark.range()) {
            found.push(begin.start..unterminated_end(subject, &begin, mark.start()));
        }
    }
    found.extend(open.map(|begin| begin.start..unterminated_end(subject, &begin, subject.text.len())));
    found
}

fn unterminated_end(subject: &DetectorInput<'_>, begin: &Range<usize>, limit: usize) -> usize {
    let body = subject.text.get(begin.end..limit).unwrap_or_default();
    let foreign = |c: char| !(c.is_ascii_alphanumeric() || c.is_ascii_whitespace() || "+/=:,-.".contains(c));
    begin.end + body.find(foreign).unwrap_or(body.len())
}

/// Keys with a well-known prefix.
static PREFIXED: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(&format!(
        r"(?-u:\b)(?:{})",
        [
            r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?-u:\b)",
            r"gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,}",
            r"gl(?:pat|dt|rt|soat|ft|cbt|ptt|agent|oas)-[A-Za-z0-9_.-]{18,}[A-Za-z0-9_]",
            r"xox[abcdeoprs](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{10,}",
            r"hooks\.slack\.com/services/T[A-Za-z0-9]+/B[A-Za-z0-9]+/[A-Za-z0-9]{16,}",
            r"[sr]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{20,}",
            r"AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}",
            r"sk-(?:ant|proj|svcacct|admin|or-v1|lf)-[A-Za-z0-9_-]{16,}|sk-[A-Za-z0-9]{32,}",
            r"npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{40,}|rubygems_[0-9a-f]{40,}|cio[A-Za-z0-9]{32}(?-u:\b)",
            r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|SK[0-9a-f]{32}(?-u:\b)|key-[0-9a-f]{32}(?-u:\b)",
            r"do[opr]_v1_[0-9a-f]{40,}|hf_[A-Za-z0-9]{30,}|r8_[A-Za-z0-9]{30,}|gsk_[A-Za-z0-9]{40,}",
            r"xai-[A-Za-z0-9]{40,}|pplx-[A-Za-z0-9]{40,}|nvapi-[A-Za-z0-9_-]{40,}|tvly-[A-Za-z0-9-]{20,}",
            r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|lin_api_[A-Za-z0-9]{30,}|ntn_[A-Za-z0-9]{30,}|figd_[A-Za-z0-9_-]{30,}",
            r"dckr_pat_[A-Za-z0-9_-]{20,}|hv[sbr]\.[A-Za-z0-9_-]{20,}|dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9]{30,}",
            r"pul-[0-9a-f]{40}|sbp_[0-9a-f]{40}|dapi[0-9a-f]{32}(?-u:\b)|ATATT3x[A-Za-z0-9_=-]{50,}|PMAK-[0-9a-f]{20,}-[0-9a-f]{20,}",
            r"NRAK-[A-Z0-9]{20,}|glsa_[A-Za-z0-9_]{30,}|glc_[A-Za-z0-9+/=]{30,}|sntry[su]_[A-Za-z0-9+/=_-]{30,}",
            r"sq0(?:atp|csp)-[A-Za-z0-9_-]{20,}|AGE-SECRET-KEY-1[A-Z0-9]{50,}|[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}",
        ]
        .join("|")
    ))
});

/// Keys that the preceding words identify; the last group is the key.
static LABELED: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        &[
            r#"(?i)aws[a-z_ .-]{0,20}secret[a-z_ .-]{0,20}["']?[ \t]?[:=]?[ \t]?["']?(?-u:\b)(?P<aws>[A-Za-z0-9/+]{40})"#,
            r#"(?:AccountKey|SharedAccessKey)=(?P<azure>[A-Za-z0-9+/]{20,}={0,2})"#,
            r#"[?&]sig=(?P<sas>[A-Za-z0-9%+/]{30,}={0,2})"#,
            r#"authorization["']?[ \t]?[:=][ \t]?["']?(?:bearer|basic|token|apikey|digest) (?P<header>[A-Za-z0-9._~+/-]{4,}=*)"#,
            r#"(?:bearer|basic)[ \t](?P<scheme>[A-Za-z0-9._~+/-]{16,}=*)"#,
            r#"x-(?:api|goog-api|auth)-(?:key|token)["']?[ \t]?[:=][ \t]?["']?(?P<custom>[A-Za-z0-9._~+/-]{8,}=*)"#,
        ]
        .join("|"),
    )
});

/// JSON keys whose value is an API key, whatever its format.
static KEY_NAMES: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?i)^(?:.* )?(?:(?:proxy )?authorization|api ?key|api ?token|access ?token|auth ?token|bearer ?token|account ?key)$",
    )
});

/// Finds API keys and access tokens of well-known providers, `Authorization` headers, and the values of JSON keys such as
/// `apiKey` or `authorization`.
pub(super) fn api_key(subject: &DetectorInput<'_>) -> Vec<Range<usize>> {
    let mut found: Vec<_> = PREFIXED.find_iter(subject.text).map(|key| key.range()).collect();
    for captures in LABELED.captures_iter(subject.text) {
        let Some(key) = captures.iter().skip(1).flatten().last() else { continue };
        // `Bearer authentication-tokens` and similar are prose: a key has a digit or both cases.
        let mixed = |key: &str| {
            key.contains(|c: char| c.is_ascii_digit())
                || key.contains(|c: char| c.is_ascii_lowercase())
                    && key.contains(|c: char| c.is_ascii_uppercase())
        };
        if captures.name("scheme").is_none_or(|key| mixed(key.as_str())) {
            found.push(key.range());
        }
    }
    if subject.keys.own.is_some_and(|key| KEY_NAMES.is_match(&JsonKeys::to_words(key))) {
        let value = subject.text.trim();
        let credentials = value.split_once(' ').map_or(value, |(_, credentials)| credentials);
        let visible = credentials.len() >= 8 && !is_masked(credentials);
        if visible && !credentials.contains(char::is_whitespace) {
            let end = subject.text.trim_end().len();
            found.push(end - credentials.len()..end);
        }
    }
    found
}
