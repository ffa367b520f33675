//! Unicode character properties: invisible characters, forms of ASCII characters, word characters; case folding and skeletons for
//! comparisons.
//!
//! No list here is written by hand. The data comes with the `icu` crates, which `url` uses, too, except for the case mapping; that of
//! look-alike characters with `unicode_security`.

use std::borrow::Cow;

use icu_casemap::CaseMapper;
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizer, DecomposingNormalizerBorrowed};
use icu_properties::props::{DefaultIgnorableCodePoint, GeneralCategory, GeneralCategoryGroup, Script};
use icu_properties::{
    CodePointMapData, CodePointMapDataBorrowed, CodePointSetData, CodePointSetDataBorrowed,
};

const IGNORABLE: CodePointSetDataBorrowed<'static> = CodePointSetData::new::<DefaultIgnorableCodePoint>();
const CATEGORY: CodePointMapDataBorrowed<'static, GeneralCategory> = CodePointMapData::new();
const SCRIPT: CodePointMapDataBorrowed<'static, Script> = CodePointMapData::new();
const COMPATIBILITY: DecomposingNormalizerBorrowed<'static> = DecomposingNormalizer::new_nfkd();

/// Normalization and case folding can each require another round of the other. Every name is stable after three rounds.
const MAX_ROUNDS: usize = 8;

/// Returns the form in which names are compared: Unicode's NFKC_Casefold, without white space at the ends.
pub(crate) fn casefold(name: &str) -> Cow<'_, str> {
    if name.bytes().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase()) {
        return Cow::Borrowed(name);
    }
    let compatible = ComposingNormalizerBorrowed::new_nfkc();
    let mut form = name.to_owned();
    for _ in 0..MAX_ROUNDS {
        let folded = CaseMapper::new().fold_string(&compatible.normalize(&form)).into_owned();
        let visible: String = folded.chars().filter(|c| !IGNORABLE.contains(*c)).collect();
        let next = compatible.normalize(&visible).trim().to_owned();
        if next == form {
            break;
        }
        form = next;
    }
    Cow::Owned(form)
}

/// Returns the canonical composition (NFC).
pub(crate) fn compose(text: &str) -> Cow<'_, str> {
    ComposingNormalizerBorrowed::new_nfc().normalize(text)
}

/// Returns the full case folding of a text, in canonical composition: `Straße` and `STRASSE` have the same one.
pub(crate) fn fold_case(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        return Cow::Borrowed(text);
    }
    // Folding looks at single characters, so the text is composed before, and the result after.
    let folded = CaseMapper::new().fold_string(&compose(text)).into_owned();
    Cow::Owned(compose(&folded).into_owned())
}

/// Returns the skeleton of a text (UTS 39), without invisible characters: texts that look alike have the same one.
pub(crate) fn skeleton(text: &str) -> String {
    let visible: String = text.chars().filter(|c| !is_invisible(*c)).collect();
    unicode_security::skeleton(&visible).collect()
}

/// Returns whether a character is part of a word: a letter, a digit, a mark or `_`.
pub(crate) fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || !c.is_ascii() && is_mark(c)
}

fn is_mark(c: char) -> bool {
    GeneralCategoryGroup::Mark.contains(CATEGORY.get(c))
}

/// Returns whether a character is punctuation.
pub(crate) fn is_punctuation(c: char) -> bool {
    GeneralCategoryGroup::Punctuation.contains(CATEGORY.get(c))
}

/// Returns whether a character is a currency sign, such as `€`.
pub(crate) fn is_currency_sign(c: char) -> bool {
    CATEGORY.get(c) == GeneralCategory::CurrencySymbol
}

/// Returns whether a character has no glyph of its own: default-ignorable characters (variation selectors, tags, joiners, fillers,
/// also unassigned ones), format controls, line and paragraph separators. Control characters are not among them: see
/// [`char::is_control`].
pub(crate) fn is_invisible(c: char) -> bool {
    !c.is_ascii()
        && (IGNORABLE.contains(c)
            || matches!(
                CATEGORY.get(c),
                GeneralCategory::Format
                    | GeneralCategory::LineSeparator
                    | GeneralCategory::ParagraphSeparator
            ))
}

/// Returns whether a character is a mark that can stand on a letter or digit of any script: an accent, a line through it, a
/// keycap around it.
pub(crate) fn is_shared_mark(c: char) -> bool {
    matches!(CATEGORY.get(c), GeneralCategory::NonspacingMark | GeneralCategory::EnclosingMark)
        && SCRIPT.get(c) == Script::Inherited
}

/// Returns the ASCII character that a character is another form of: a space, a dash, a decimal digit of another script, or a
/// compatibility form (full-width, mathematical, circled, superscript). Returns `None` for ASCII itself.
pub(crate) fn ascii_form(c: char) -> Option<char> {
    if c.is_ascii() {
        return None;
    }
    match CATEGORY.get(c) {
        GeneralCategory::SpaceSeparator => Some(' '),
        GeneralCategory::DashPunctuation => Some('-'),
        GeneralCategory::DecimalNumber => digit(c),
        // Most letters of most scripts: only the two ordinal indicators are forms of ASCII characters.
        GeneralCategory::OtherLetter if !matches!(c, 'ª' | 'º') => None,
        _ => match c {
            // Minus sign, hyphen bullet: punctuation and symbols that are drawn as a dash.
            '\u{2212}' | '\u{2043}' => Some('-'),
            // Full stops that domain names may have instead of the ASCII one.
            '\u{3002}' | '\u{ff61}' => Some('.'),
            // A Braille pattern without dots.
            '\u{2800}' => Some(' '),
            _ => compatibility_form(c),
        },
    }
}

/// The value of a decimal digit. The digits of a script are contiguous from zero to nine, as Unicode's stability policy guarantees.
fn digit(c: char) -> Option<char> {
    let code = u32::from(c);
    let is_digit = |code: &u32| CATEGORY.get32(*code) == GeneralCategory::DecimalNumber;
    let before = (0..code).rev().take_while(is_digit).count();
    char::from_digit(u32::try_from(before % 10).ok()?, 10)
}

fn compatibility_form(c: char) -> Option<char> {
    let mut decomposed = COMPATIBILITY.normalize_iter(std::iter::once(c));
    match (decomposed.next(), decomposed.next()) {
        (Some(form), None) if form.is_ascii() => Some(form),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_those_without_a_glyph() {
        for c in "\u{ad}\u{34f}\u{61c}\u{115f}\u{17b4}\u{180b}\u{200b}\u{2028}\u{2029}\u{202e}\u{2065}\u{3164}\u{fe0f}\u{feff}\
                  \u{fff9}\u{1d173}\u{e0001}\u{e0041}\u{e01f0}"
            .chars()
        {
            assert!(is_invisible(c), "{c:?}");
        }
        for c in "a4 \u{a0}é日\u{301}\u{fffd}\u{fffc}😀".chars() {
            assert!(!is_invisible(c), "{c:?}");
        }
    }

    #[test]
    fn folds_case_and_looks() {
        for (one, other) in
            [("Straße", "STRASSE"), ("ΣΟΦΟΣ", "σοφος"), ("Ǆ", "ǆ"), ("E\u{301}", "é"), ("ﬁn", "FIN")]
        {
            assert_eq!(fold_case(one), fold_case(other), "{one}");
        }
        assert_ne!(fold_case("é"), fold_case("e"));
        for (one, other) in
            [("раураl", "paypal"), ("pay\u{200b}pal", "paypal"), ("𝐩aypal", "paypal"), ("rn", "m")]
        {
            assert_eq!(skeleton(one), skeleton(other), "{one}");
        }
        assert_ne!(skeleton("paypal"), skeleton("paypai"));
    }

    #[test]
    fn word_characters_are_letters_digits_marks_and_the_underscore() {
        assert!("aß_4яלع日क\u{93e}\u{301}๓ั".chars().all(is_word_char));
        assert!(!"-'.@ €…。\u{200d}".chars().any(is_word_char));
    }

    #[test]
    fn maps_forms_of_ascii_characters() {
        for (forms, ascii) in [
            ("４٤۴४४𝟒𝟜𝟰𝟺⁴₄④\u{1fbf4}", '4'),
            ("ａ𝐚𝒂𝕒ⓐªᵃ", 'a'),
            ("＠﹫", '@'),
            ("．。｡․﹒", '.'),
            ("‐‑–—−﹣－⁃", '-'),
            ("\u{a0}\u{2003}\u{3000}\u{2800}", ' '),
        ] {
            for form in forms.chars() {
                assert_eq!(ascii_form(form), Some(ascii), "{form:?}");
            }
        }
        for c in "aé½№ﬁ日𝛼я\u{301}\u{200b}".chars() {
            assert_eq!(ascii_form(c), None, "{c:?}");
        }
    }

    #[test]
    fn maps_the_ten_digits_of_every_script() {
        let digits: Vec<char> =
            ('\u{80}'..=char::MAX).filter(|c| CATEGORY.get(*c) == GeneralCategory::DecimalNumber).collect();
        assert!(digits.len() > 700, "{}", digits.len());
        for ten in digits.chunks(10) {
            let values: String = ten.iter().filter_map(|c| ascii_form(*c)).collect();
            assert_eq!(values, "0123456789", "{ten:?}");
        }
    }
}
