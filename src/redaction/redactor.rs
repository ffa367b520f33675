//! The redactor: replaces matches of detectors and custom patterns in a text.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use regex::Regex;

use super::Detector;
use super::detector_input::{DetectorInput, JsonKeys as Above, compile_pattern};
use super::normalized_text::NormalizedText;
use super::redacted_ranges::RedactedRange;
use crate::json::Value;
use crate::seal::{Keys, Purpose};
use crate::work_limit::{self, WorkLimitError};

/// The replacement of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedactionStyle {
    /// The detector's name, `[email]`; `[redacted]` for a custom pattern.
    Mask,
    /// The name and the first 48 bits of a digest, keyed with the server's keys: `[email:hmac-0123456789ab]`. Readers can see
    /// whether two values are equal, but cannot recover a value by brute force. Without keys: as [`RedactionStyle::Mask`].
    Hash,
    /// The empty string.
    Remove,
    /// Stars, followed by this many of the last characters, but never more than half of the match.
    KeepLast(usize),
}

/// Redacts sensitive data in text and JSON values.
///
/// ```
/// use callgate::redaction::{Detector, RedactionStyle, Redactor};
/// let redactor = Redactor::new(vec![Detector::Email], Vec::new(), RedactionStyle::Mask);
/// assert_eq!(redactor.redact_text("write to ana@example.com"), "write to [email]");
/// ```
#[derive(Clone, Debug)]
pub struct Redactor {
    detectors: Arc<[Detector]>,
    patterns: Arc<[Regex]>,
    style: RedactionStyle,
    keys: Option<Keys>,
}

/// One range to redact, in offsets of the original text. `detector` is `None` for a custom pattern.
struct DetectorMatch {
    detector: Option<Detector>,
    range: Range<usize>,
    /// The length of the longest match merged into this one: it determines the name.
    longest: usize,
}

/// The part of a text to search if the text is a piece of a longer one. Default: all of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SearchScope {
    /// Where custom patterns start matching; text before it is available for look-behind only.
    pub(super) start: usize,
    /// Whether the detectors are known to match nothing in it.
    pub(super) skip_detectors: bool,
}

/// Hex digits of the digest in a label.
const HASH_DIGITS: usize = 12;
/// Bytes that one detector or pattern searches per work unit.
const SEARCHED_PER_UNIT: u64 = 4;

/// Replaces a text that still has matches after the last round.
const FULLY_REDACTED: &str = "[redacted]";

impl Redactor {
    /// Creates a redactor from these detectors and custom patterns. Patterns run on each text as written and on the
    /// normalized text.
    pub fn new(detectors: Vec<Detector>, patterns: Vec<Regex>, style: RedactionStyle) -> Self {
        // The first search compiles a detector's expressions: do this now, not during a call.
        for detector in &detectors {
            detector.find("");
        }
        Self { detectors: detectors.into(), patterns: patterns.into(), style, keys: None }
    }

    /// Returns the redactor with the keys that [`RedactionStyle::Hash`] needs; borrowed if the style needs none.
    pub fn with_keys(&self, keys: &Keys) -> Cow<'_, Self> {
        match self.style {
            RedactionStyle::Hash => Cow::Owned(Self { keys: Some(keys.clone()), ..self.clone() }),
            RedactionStyle::Mask | RedactionStyle::Remove | RedactionStyle::KeepLast(_) => {
                Cow::Borrowed(self)
            }
        }
    }

    /// Whether a text contains anything to redact.
    pub fn has_match(&self, text: &str) -> bool {
        self.charge_search(text).is_err()
            || !self.find_matches(text, Above::default(), &SearchScope::default(), &[]).is_empty()
    }

    /// The custom patterns.
    pub fn patterns(&self) -> &[Regex] {
        &self.patterns
    }

    /// Whether it has detectors.
    pub(super) fn has_detectors(&self) -> bool {
        !self.detectors.is_empty()
    }

    /// Returns the redacted text; borrowed if nothing matches.
    pub fn redact_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redact_text_under(text, Above::default())
    }

    /// Returns the redacted text of a string under these JSON keys.
    pub(super) fn redact_text_under<'a>(&self, text: &'a str, keys: Above<'_>) -> Cow<'a, str> {
        let hidden = self.find_redactions(text, keys, &SearchScope::default());
        if hidden.is_empty() {
            Cow::Borrowed(text)
        } else {
            Cow::Owned(RedactedRange::apply(&hidden, text, 0..text.len()))
        }
    }

    /// Returns the redacted ranges in order, with their replacements.
    pub(super) fn find_redactions(
        &self,
        text: &str,
        keys: Above<'_>,
        scope: &SearchScope,
    ) -> Vec<RedactedRange> {
        // Removing a match can join its neighbors into another match, as can the characters kept of it; of overlapping
        // matches, the first can leave a piece of the next. So the result is searched again, soon with masks, which join nothing.
        const ROUNDS: usize = 3;
        const MASKED_ROUNDS: usize = 32;
        let mut hidden: Vec<RedactedRange> = Vec::new();
        let mut current = Cow::Borrowed(text);
        let mut from = scope.start;
        for round in 0..ROUNDS + MASKED_ROUNDS {
            let style = if round < ROUNDS { self.style } else { RedactionStyle::Mask };
            // A match of a pattern that was removed may have joined text that a detector matches.
            if self.charge_search(&current).is_err() {
                break;
            }
            let plain = scope.skip_detectors && round == 0;
            let finds = self.find_matches(
                &current,
                keys,
                &SearchScope { start: from, skip_detectors: plain },
                &label_ranges(&hidden),
            );
            if finds.is_empty() {
                return hidden;
            }
            let replaced: Vec<RedactedRange> = finds
                .into_iter()
                .map(|find| {
                    let found = current.get(find.range.clone()).unwrap_or_default();
                    RedactedRange {
                        replacement: self.replacement(style, find.detector, found),
                        range: find.range,
                    }
                })
                .collect();
            hidden = RedactedRange::compose(&hidden, replaced, &current);
            let before = RedactedRange::apply(&hidden, text, 0..scope.start);
            from = before.len();
            current = Cow::Owned(RedactedRange::apply(&hidden, text, 0..text.len()));
        }
        // The text still has matches after all rounds, or the work limit is exceeded: redact all of it.
        vec![RedactedRange { range: 0..text.len(), replacement: FULLY_REDACTED.to_owned() }]
    }

    /// Charges the work of one search: each detector and pattern reads each byte.
    fn charge_search(&self, text: &str) -> Result<(), WorkLimitError> {
        work_limit::spend_for(
            text.len().saturating_mul(self.detectors.len() + self.patterns.len()),
            SEARCHED_PER_UNIT,
        )
    }

    /// Returns the ranges to redact, in order and without overlaps. Ranges inside one of `labels`, which this redaction wrote
    /// itself, are skipped.
    fn find_matches(
        &self,
        text: &str,
        keys: Above<'_>,
        scope: &SearchScope,
        labels: &[Range<usize>],
    ) -> Vec<DetectorMatch> {
        let mut finds = Vec::new();
        let mut add = |detector, range: Range<usize>| {
            let next = labels.partition_point(|label| label.start <= range.start);
            let label = next.checked_sub(1).and_then(|index| labels.get(index));
            let in_label = label.is_some_and(|label| range.end <= label.end);
            if !range.is_empty() && !in_label {
                finds.push(DetectorMatch { detector, longest: range.len(), range });
            }
        };
        for pattern in self.patterns.iter() {
            matches_from(pattern, text, scope.start).for_each(|found| add(None, found));
        }
        for folded in NormalizedText::readings(text) {
            let subject = DetectorInput { text: folded.text(), keys };
            for detector in self.detectors.iter().filter(|_| !scope.skip_detectors) {
                for range in detector.find_in(&subject) {
                    add(Some(*detector), folded.original_range(&range));
                }
            }
            for pattern in self.patterns.iter().filter(|_| !folded.is_original()) {
                let resolved = matches_from(pattern, folded.text(), folded.normalized_offset(scope.start));
                resolved.for_each(|found| add(None, folded.original_range(&found)));
            }
        }
        merge_matches(finds)
    }

    fn replacement(&self, style: RedactionStyle, detector: Option<Detector>, found: &str) -> String {
        let name = detector.map_or("redacted", Detector::name);
        match (style, &self.keys) {
            (RedactionStyle::Hash, Some(keys)) => {
                let folded = NormalizedText::new(found);
                let value = detector
                    .map_or_else(|| folded.text().to_owned(), |detector| detector.canonical(folded.text()));
                let digest = keys.digest(Purpose::Redaction, &Value::from(value)).to_string();
                format!("[{name}:hmac-{}]", digest.get(..HASH_DIGITS).unwrap_or_default())
            }
            (RedactionStyle::Mask | RedactionStyle::Hash, _) => format!("[{name}]"),
            (RedactionStyle::Remove, _) => String::new(),
            (RedactionStyle::KeepLast(wanted), _) => {
                let count = found.chars().count();
                let masked = count - wanted.min(count / 2);
                found.chars().enumerate().map(|(index, c)| if index < masked { '*' } else { c }).collect()
            }
        }
    }
}

/// Returns the non-empty matches from an offset on; text before it is available for look-behind.
pub(super) fn matches_from<'t>(
    pattern: &'t Regex,
    text: &'t str,
    from: usize,
) -> impl Iterator<Item = Range<usize>> + 't {
    let mut at = from;
    std::iter::from_fn(move || {
        while at <= text.len() {
            let found = pattern.find_at(text, at)?;
            if !found.is_empty() {
                at = found.end();
                return Some(found.range());
            }
            at = found.end() + text.get(found.end()..)?.chars().next().map_or(1, char::len_utf8);
        }
        None
    })
}

/// Returns the ranges of the labels that this redaction wrote, in order: digits of a digest are not a number to detect. Text that
/// only looks like a label is not exempt, because its author could hide data in it.
fn label_ranges(hidden: &[RedactedRange]) -> Vec<Range<usize>> {
    static LABEL: LazyLock<Regex> =
        LazyLock::new(|| compile_pattern(r"\[[a-z_]{3,20}(?::hmac-[0-9a-f]{12})?\]"));
    RedactedRange::output_ranges(hidden)
        .flat_map(|(range, one)| {
            let labels = LABEL.find_iter(&one.replacement);
            labels.map(move |label| range.start + label.start()..range.start + label.end())
        })
        .collect()
}

/// Merges overlapping matches; the longest one, or else the first, determines the name.
fn merge_matches(mut finds: Vec<DetectorMatch>) -> Vec<DetectorMatch> {
    finds.sort_by_key(|find| (find.range.start, std::cmp::Reverse(find.range.end)));
    let mut merged: Vec<DetectorMatch> = Vec::new();
    for find in finds {
        match merged.last_mut() {
            Some(last) if find.range.start < last.range.end => {
                last.range.end = last.range.end.max(find.range.end);
                if find.longest > last.longest {
                    (last.longest, last.detector) = (find.longest, find.detector);
                }
            }
            _ => merged.push(find),
        }
    }
    merged
}
