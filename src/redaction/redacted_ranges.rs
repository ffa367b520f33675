//! Redacted ranges of a text, in offsets of the original even after several rounds of redaction.

use std::ops::Range;

/// A redacted range and its replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RedactedRange {
    /// The range in the original text.
    pub(super) range: Range<usize>,
    /// The replacement.
    pub(super) replacement: String,
}

impl RedactedRange {
    /// Returns a part of the redacted text; no redacted range may cross the ends of the part.
    pub(super) fn apply(hidden: &[Self], text: &str, part: Range<usize>) -> String {
        let mut redacted = String::with_capacity(part.len());
        let mut done = part.start;
        for one in hidden.iter().filter(|one| one.range.end > part.start && one.range.start < part.end) {
            redacted.push_str(text.get(done..one.range.start).unwrap_or_default());
            redacted.push_str(&one.replacement);
            done = one.range.end;
        }
        redacted.push_str(text.get(done..part.end).unwrap_or_default());
        redacted
    }

    /// Returns the redacted ranges with their offsets in the redacted text.
    pub(super) fn output_ranges(hidden: &[Self]) -> impl Iterator<Item = (Range<usize>, &Self)> {
        let mut gained = 0_isize;
        hidden.iter().map(move |one| {
            let start = one.range.start.saturating_add_signed(gained);
            gained += one.replacement.len().cast_signed() - one.range.len().cast_signed();
            (start..start + one.replacement.len(), one)
        })
    }

    /// Combines two rounds: `before` produced `current`, in which `found` is redacted. Returns both in offsets of the original.
    pub(super) fn compose(before: &[Self], found: Vec<Self>, current: &str) -> Vec<Self> {
        if before.is_empty() {
            return found;
        }
        let mut whole: Vec<Self> = Vec::new();
        let mut old = Self::output_ranges(before).peekable();
        let mut found = found.into_iter().peekable();
        let mut gained = 0_isize;
        loop {
            // Adjacent and overlapping ranges merge: the one that begins first, then all that begin before its end.
            let start = match (old.peek(), found.peek()) {
                (Some((output, _)), Some(next)) => output.start.min(next.range.start),
                (Some((output, _)), None) => output.start,
                (None, Some(next)) => next.range.start,
                (None, None) => return whole,
            };
            let mut end = start;
            let mut text = String::new();
            let mut done = start;
            let origin = start.saturating_add_signed(-gained);
            loop {
                let touches =
                    |output: &Range<usize>| output.start < end || output.start == start && end == start;
                if let Some((output, one)) = old.next_if(|(output, _)| touches(output)) {
                    end = end.max(output.end);
                    gained += one.replacement.len().cast_signed() - one.range.len().cast_signed();
                } else if let Some(next) = found.next_if(|next| touches(&next.range)) {
                    text.push_str(current.get(done..next.range.start).unwrap_or_default());
                    text.push_str(&next.replacement);
                    done = next.range.end;
                    end = end.max(next.range.end);
                } else {
                    break;
                }
            }
            text.push_str(current.get(done..end).unwrap_or_default());
            whole.push(Self { range: origin..end.saturating_add_signed(-gained), replacement: text });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(range: Range<usize>, text: &str) -> RedactedRange {
        RedactedRange { range, replacement: text.to_owned() }
    }

    #[test]
    fn later_rounds_report_offsets_of_the_original() {
        let text = "abcXXXdefYYghi";
        let before = [hidden(3..6, "-"), hidden(9..11, "")];
        let current = RedactedRange::apply(&before, text, 0..text.len());
        assert_eq!(current, "abc-defghi");
        for (found, expected) in [
            (vec![hidden(0..1, "Q")], "Qbc-defghi"),
            (vec![hidden(2..4, "Q")], "abQdefghi"),
            (vec![hidden(6..8, "Q")], "abc-deQhi"),
            (vec![hidden(1..2, "1"), hidden(3..4, "2"), hidden(9..10, "3")], "a1c2defgh3"),
            (vec![hidden(0..10, "all")], "all"),
        ] {
            let whole = RedactedRange::compose(&before, found.clone(), &current);
            assert_eq!(RedactedRange::apply(&whole, text, 0..text.len()), expected, "{found:?}: {whole:?}");
        }
    }
}
