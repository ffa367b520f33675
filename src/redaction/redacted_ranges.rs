//! Redacted ranges of a text, in offsets of the original even after several rounds of redaction.

use std::ops::Range;

/// A redacted range and its replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RedactedRange {
    /// The range in the original text.
    pub(super) place: Range<usize>,
    /// The replacement.
    pub(super) text: String,
}

impl RedactedRange {
    /// Returns a part of the redacted text; no redacted range may cross the ends of the part.
    pub(super) fn apply(hidden: &[Self], text: &str, part: Range<usize>) -> String {
        let mut shown = String::with_capacity(part.len());
        let mut done = part.start;
        for one in hidden.iter().filter(|one| one.place.end > part.start && one.place.start < part.end) {
            shown.push_str(text.get(done..one.place.start).unwrap_or_default());
            shown.push_str(&one.text);
            done = one.place.end;
        }
        shown.push_str(text.get(done..part.end).unwrap_or_default());
        shown
    }

    /// Returns the redacted ranges with their offsets in the redacted text.
    pub(super) fn output_ranges(hidden: &[Self]) -> impl Iterator<Item = (Range<usize>, &Self)> {
        let mut gained = 0_isize;
        hidden.iter().map(move |one| {
            let start = one.place.start.saturating_add_signed(gained);
            gained += one.text.len().cast_signed() - one.place.len().cast_signed();
            (start..start + one.text.len(), one)
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
                (Some((place, _)), Some(next)) => place.start.min(next.place.start),
                (Some((place, _)), None) => place.start,
                (None, Some(next)) => next.place.start,
                (None, None) => return whole,
            };
            let mut end = start;
            let mut text = String::new();
            let mut done = start;
            let origin = start.saturating_add_signed(-gained);
            loop {
                let touches =
                    |place: &Range<usize>| place.start < end || place.start == start && end == start;
                if let Some((place, one)) = old.next_if(|(place, _)| touches(place)) {
                    end = end.max(place.end);
                    gained += one.text.len().cast_signed() - one.place.len().cast_signed();
                } else if let Some(next) = found.next_if(|next| touches(&next.place)) {
                    text.push_str(current.get(done..next.place.start).unwrap_or_default());
                    text.push_str(&next.text);
                    done = next.place.end;
                    end = end.max(next.place.end);
                } else {
                    break;
                }
            }
            text.push_str(current.get(done..end).unwrap_or_default());
            whole.push(Self { place: origin..end.saturating_add_signed(-gained), text });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(place: Range<usize>, text: &str) -> RedactedRange {
        RedactedRange { place, text: text.to_owned() }
    }

    #[test]
    fn later_rounds_report_offsets_of_the_original() {
        let text = "abcXXXdefYYghi";
        let before = [hidden(3..6, "-"), hidden(9..11, "")];
        let current = RedactedRange::apply(&before, text, 0..text.len());
        assert_eq!(current, "abc-defghi");
        for (found, shown) in [
            (vec![hidden(0..1, "Q")], "Qbc-defghi"),
            (vec![hidden(2..4, "Q")], "abQdefghi"),
            (vec![hidden(6..8, "Q")], "abc-deQhi"),
            (vec![hidden(1..2, "1"), hidden(3..4, "2"), hidden(9..10, "3")], "a1c2defgh3"),
            (vec![hidden(0..10, "all")], "all"),
        ] {
            let whole = RedactedRange::compose(&before, found.clone(), &current);
            assert_eq!(RedactedRange::apply(&whole, text, 0..text.len()), shown, "{found:?}: {whole:?}");
        }
    }
}
