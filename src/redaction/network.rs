//! Network address detectors, and credentials in URLs.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::detector_input::{DetectorInput, compile_pattern, is_word};
use super::placeholder::is_masked;

static IPV4: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])",
    )
});

static IPV6: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(r"(?i)[0-9a-f]{0,4}:(?:[0-9a-f]{0,4}:){1,7}(?:[0-9a-f]{1,4})?(?:(?:\.[0-9]{1,3}){3})?")
});

/// Words before four numbers that mark a version.
static VERSION: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(r"(?i)(?:\bversions?|\bver\.?|\bv|\brelease|\bbuild|\brevision|\boid)[ :=\x22']{0,4}$")
});

/// The product of a user agent (`nginx/1.25.3.1`), not a segment of a path (`/hosts/10.0.0.1`).
static PRODUCT: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(r"(?:^|[^A-Za-z0-9_./-])[A-Za-z][A-Za-z0-9_-]*/$"));

/// Finds IP addresses. Skips unspecified, loopback and broadcast addresses and netmasks, because they identify no machine.
pub(super) fn ip_address(subject: &DetectorInput<'_>) -> Vec<Range<usize>> {
    let fours = IPV4.find_iter(subject.text).filter(|candidate| is_ipv4(subject, &candidate.range()));
    let sixes = IPV6.find_iter(subject.text).filter(|candidate| is_ipv6(subject, &candidate.range()));
    fours.chain(sixes).map(|candidate| candidate.range()).collect()
}

fn is_ipv4(subject: &DetectorInput<'_>, range: &Range<usize>) -> bool {
    let names_machine =
        subject.text.get(range.clone()).and_then(|text| text.parse::<Ipv4Addr>().ok()).is_some_and(
            |address| !address.is_unspecified() && !address.is_loopback() && address.octets()[0] != 255,
        );
    let starts = match subject.chars_before(range.start) {
        (Some('-'), Some(beyond)) if beyond.is_alphanumeric() => {
            let first = subject.text_before(range.start - 1, 15);
            IPV4.find_iter(first).last().is_some_and(|address| address.end() == first.len())
        }
        (Some(near), _) => !is_word(near) && near != '.',
        (None, _) => true,
    };
    let ends = match subject.chars_after(range.end) {
        (Some('.'), Some(beyond)) => !beyond.is_ascii_digit(),
        // `1.2.3.4-beta`, `4.15.0.1-91`; but `10.0.0.1-10.0.0.9` is a range.
        (Some('-'), Some(beyond)) => {
            let rest = subject.text.get(range.end + 1..).unwrap_or_default();
            !beyond.is_alphanumeric() || IPV4.find(rest).is_some_and(|second| second.start() == 0)
        }
        (Some('+'), Some(beyond)) => !beyond.is_alphanumeric(),
        (Some(near), _) => !is_word(near),
        (None, _) => true,
    };
    let keyed_version = subject.keys.own.is_some_and(|key| key.to_ascii_lowercase().contains("version"));
    let before = subject.text_before(range.start, 24);
    names_machine
        && starts
        && ends
        && !keyed_version
        && !VERSION.is_match(before)
        && !PRODUCT.is_match(before)
}

fn is_ipv6(subject: &DetectorInput<'_>, range: &Range<usize>) -> bool {
    let Some(text) = subject.text.get(range.clone()) else { return false };
    let names_machine =
        text.parse::<Ipv6Addr>().is_ok_and(|address| !address.is_unspecified() && !address.is_loopback());
    // `a::b` is a path in source code; eight pairs are a MAC address or a fingerprint.
    let groups: Vec<&str> = text.split(':').filter(|group| !group.is_empty()).collect();
    let typical = text.contains(|c: char| c.is_ascii_digit())
        && (groups.len() >= 3 || groups.first().is_some_and(|first| first.len() == 4))
        && !groups.iter().all(|group| group.len() == 2);
    let free = |near: Option<char>| !near.is_some_and(|c| is_word(c) || c == ':');
    let ends = match subject.chars_after(range.end) {
        (Some(':' | '.'), Some(beyond)) => !is_word(beyond) && beyond != ':',
        (near, _) => free(near),
    };
    names_machine && typical && free(subject.chars_before(range.start).0) && ends
}

static MAC: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?i)(?:[0-9a-f]{2}:){5}[0-9a-f]{2}|(?:[0-9a-f]{2}-){5}[0-9a-f]{2}|[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}",
    )
});

/// Finds MAC addresses, but not all zeros, the broadcast address or a part of a fingerprint.
pub(super) fn mac_address(subject: &DetectorInput<'_>) -> Vec<Range<usize>> {
    MAC.find_iter(subject.text)
        .filter(|candidate| {
            let text = candidate.as_str();
            let digits = || text.chars().filter(char::is_ascii_hexdigit);
            let first = digits().next();
            let one_address = digits().any(|c| Some(c) != first);
            // Groups of decimal digits with dashes or dots are more likely a date or a part number.
            let hexadecimal = text.contains(':') || text.contains(|c: char| c.is_ascii_alphabetic());
            let touches = |(near, beyond): (Option<char>, Option<char>)| match near {
                Some(':' | '-' | '.') => beyond.is_some_and(|c| c.is_ascii_hexdigit()),
                near => near.is_some_and(is_word),
            };
            one_address
                && hexadecimal
                && !touches(subject.chars_before(candidate.start()))
                && !touches(subject.chars_after(candidate.end()))
        })
        .map(|candidate| candidate.range())
        .collect()
}

static CREDENTIALS: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(concat!(
        r#"(?i)[a-z][a-z0-9+.-]*://([^\s/?#:"'<>\[\]{}]*:[^\s/?#"'<>]+)@"#,
        r#"|\b([a-z0-9_.-]+:[^\s/?#"'<>@:]+)@(?:tcp|unix)\("#,
        r#"|(?:\s-u|\s--user)[ =]["']?([^\s:"'<>]+:[^\s"'<>]+)"#,
    ))
});

/// Finds `user:password` before the `@` of a URL or a database source name, or after `curl -u`. Skips a password that is
/// a variable or already masked.
pub(super) fn url_credentials(subject: &DetectorInput<'_>) -> Vec<Range<usize>> {
    CREDENTIALS
        .captures_iter(subject.text)
        .filter_map(|captures| (1..=3).find_map(|group| captures.get(group)))
        .filter(|credentials| {
            let password = credentials.as_str().split_once(':').map_or("", |(_, password)| password);
            !is_masked(password)
        })
        .map(|credentials| credentials.range())
        .collect()
}
