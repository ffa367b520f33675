//! National identification number detectors: a table of format, checksum and required context.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::checksum::{codice_fiscale, cpf, digits, dni, luhn, mod_11_10, nir, verhoeff, weighted};
use super::detector_input::{DetectorInput, compile_pattern, compile_words};

/// Whether a well-formed number with a valid checksum also needs a context word nearby.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ContextRule {
    /// Never: format and checksum are strong enough.
    Never,
    /// Only as unformatted digits; not in the grouping that is usual in its country.
    Ungrouped,
    /// Always.
    Always,
}

/// One kind of number.
pub(super) struct NationalId {
    pattern: Regex,
    is_valid: fn(&str) -> bool,
    context: ContextRule,
    words: Regex,
}

impl NationalId {
    fn new(form: &str, is_valid: fn(&str) -> bool, context: ContextRule, nearby: &str) -> Self {
        Self {
            pattern: compile_pattern(&format!(r"(?-u:\b)(?:{form})(?-u:\b)")),
            is_valid,
            context,
            words: compile_words(nearby),
        }
    }

    /// Finds all numbers of this kind.
    pub(super) fn find(&self, subject: &DetectorInput<'_>) -> Vec<Range<usize>> {
        let context = LazyLock::new(|| subject.find_context_words(&self.words));
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(candidate) = self.pattern.find_at(subject.text, from) {
            let range = candidate.range();
            let compact: String = candidate
                .as_str()
                .chars()
                .filter(char::is_ascii_alphanumeric)
                .map(|c| c.to_ascii_uppercase())
                .collect();
            let speaks_for_itself = match self.context {
                ContextRule::Never => true,
                ContextRule::Ungrouped => compact.len() < candidate.len(),
                ContextRule::Always => false,
            };
            let believed = subject.is_isolated(&range)
                && (self.is_valid)(&compact)
                && (speaks_for_itself || context.is_near(&range, 40, 20));
            // A rejected candidate may begin with an unrelated group of digits.
            let group =
                candidate.as_str().find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(candidate.len());
            from = if believed { range.end } else { range.start + group.max(1) };
            if believed {
                found.push(range);
            }
        }
        found
    }
}

/// Social security number of the United States. The `3-2-4` format with dashes needs no context word.
pub(super) static US_SSN: LazyLock<NationalId> = LazyLock::new(|| {
    NationalId::new(
        r"[0-9]{3}-[0-9]{2}-[0-9]{4}|[0-9]{3} [0-9]{2} [0-9]{4}|[0-9]{9}",
        |text| {
            let part = |range: Range<usize>| text.get(range).unwrap_or_default();
            let area = part(0..3);
            area != "000"
                && area != "666"
                && !area.starts_with('9')
                && part(3..5) != "00"
                && part(5..9) != "0000"
        },
        ContextRule::Always,
        r"ssns?|social[ _-]?security|social|taxpayer|tax[ _-]?id|tin",
    )
});

/// A dashed US number needs no context word, unless the words before it name something else.
pub(super) fn us_ssn(subject: &DetectorInput<'_>) -> Vec<Range<usize>> {
    static DASHED: LazyLock<NationalId> = LazyLock::new(|| {
        NationalId::new(r"[0-9]{3}-[0-9]{2}-[0-9]{4}", US_SSN.is_valid, ContextRule::Never, "ssn")
    });
    static OTHER: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(
            r"(?i)\b(?:order|invoice|part|ref(?:erence)?|sku|model|ticket|serial|tracking|case|po|item|batch|lot)(?:[ _-]?(?:number|no|nr|id))?[ .:#=\x22']{0,4}$",
        )
    });
    let dashed = DASHED.find(subject).into_iter();
    let mut found: Vec<_> =
        dashed.filter(|range| !OTHER.is_match(subject.text_before(range.start, 28))).collect();
    found.extend(US_SSN.find(subject));
    found
}

/// NHS number of England and Wales.
pub(super) static UK_NHS: LazyLock<NationalId> = LazyLock::new(|| {
    NationalId::new(
        r"[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{4}",
        |text| weighted(text, &[10, 9, 8, 7, 6, 5, 4, 3, 2, 1], 11) && digits(text).any(|digit| digit != 0),
        ContextRule::Always,
        r"nhs|national health|health (?:number|no)|patients?",
    )
});

/// Social insurance number of Canada.
pub(super) static CA_SIN: LazyLock<NationalId> = LazyLock::new(|| {
    NationalId::new(
        r"[1-79][0-9]{2}[ -]?[0-9]{3}[ -]?[0-9]{3}|0[0-9]{2}[ -]?[0-9]{3}[ -]?[0-9]{3}",
        |text| luhn(text) && digits(text).any(|digit| digit != 0),
        ContextRule::Always,
        r"sin|social insurance|assurance sociale|nas",
    )
});

/// Social security number of France (INSEE number).
pub(super) static FR_NIR: LazyLock<NationalId> = LazyLock::new(|| {
    NationalId::new(
        r"(?i)[12] ?[0-9]{2} ?(?:0[1-9]|1[0-2]|[2-4][0-9]) ?(?:2[AB]|[0-9]{2}) ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}",
        nir,
        ContextRule::Never,
        r"nir",
    )
});

/// DNI and NIE of Spain.
pub(super) static ES_DNI: LazyLock<NationalId> = LazyLock::new(|| {
    NationalId::new(
        r"(?i)[0-9]{8}[ -]?[A-HJ-NP-TV-Z]|[XYZ][ -]?[0-9]{7}[ -]?[A-HJ-NP-TV-Z]",
        dni,
        ContextRule::Never,
        r"dni|nie|nif",
    )
});

/// Codice fiscale of Italy.
pub(super) static IT_CODICE_FISCALE: LazyLock<NationalId> = LazyLock::new(|| {
    NationalId::new(
        r"(?i)[A-Z]{6} ?[0-9LMNP-V]{2}[ABCDEHLMPRST][0-9LMNP-V]{2} ?[A-Z][0-9LMNP-V]{3}[A-Z]",
        codice_fiscale,
        ContextRule::Never,
        r"codice fiscale",
    )
});

/// Tax identification number of Germany.
pub(super) static DE_STEUER_ID: LazyLock<NationalId> = LazyLock::new(|| {
    NationalId::new(
        r"[1-9][0-9] ?[0-9]{3} ?[0-9]{3} ?[0-9]{3}",
        |text| {
            // In the first ten digits, one occurs two or three times and the others once.
            let mut first: Vec<u32> = digits(text).take(10).collect();
            first.sort_unstable();
            first.dedup();
            mod_11_10(text) && matches!(first.len(), 8 | 9)
        },
        ContextRule::Always,
        r"steuer[ -]?(?:id|identifikationsnummer|nummer|nr)|steuerliche|idnr|id-nr|tin|tax[ _-]?(?:id|number)",
    )
});

/// Citizen service number of the Netherlands.
pub(super) static NL_BSN: LazyLock<NationalId> = LazyLock::new(|| {
    NationalId::new(
        r"[0-9]{9}|[0-9]{4}\.[0-9]{2}\.[0-9]{3}|[0-9]{3} [0-9]{3} [0-9]{3}",
        |text| weighted(text, &[9, 8, 7, 6, 5, 4, 3, 2, 10], 11) && digits(text).any(|digit| digit != 0),
        ContextRule::Always,
        r"bsn|burgerservicenummer|sofi(?:nummer)?|citizen service",
    )
});

/// CPF of Brazil.
pub(super) static BR_CPF: LazyLock<NationalId> = LazyLock::new(|| {
    NationalId::new(
        r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}|[0-9]{9}-?[0-9]{2}",
        cpf,
        ContextRule::Ungrouped,
        r"cpf|contribuinte",
    )
});

/// PESEL of Poland.
pub(super) static PL_PESEL: LazyLock<NationalId> = LazyLock::new(|| {
    NationalId::new(
        r"[0-9]{2}[0-9][0-9][0-3][0-9][0-9]{5}",
        |text| {
            // The century is encoded in the month in steps of twenty.
            let month = two_digits(text, 2) % 20;
            (1..=12).contains(&month)
                && (1..=31).contains(&two_digits(text, 4))
                && weighted(text, &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1], 10)
        },
        ContextRule::Always,
        r"pesel",
    )
});

/// Aadhaar of India.
pub(super) static IN_AADHAAR: LazyLock<NationalId> = LazyLock::new(|| {
    NationalId::new(
        r"[2-9][0-9]{3}[ -]?[0-9]{4}[ -]?[0-9]{4}",
        verhoeff,
        ContextRule::Always,
        r"aadha?ar|adhaar|uidai|uid",
    )
});

/// Personnummer and samordningsnummer of Sweden.
pub(super) static SE_PERSONNUMMER: LazyLock<NationalId> = LazyLock::new(|| {
    NationalId::new(
        r"(?:19|20)?[0-9]{2}[01][0-9][0-9]{2}[-+]?[0-9]{4}",
        |text| {
            let short = text.get(text.len().saturating_sub(10)..).unwrap_or_default();
            // A coordination number adds sixty to the day.
            let day = two_digits(short, 4) % 60;
            (1..=12).contains(&two_digits(short, 2)) && (1..=31).contains(&day) && luhn(short)
        },
        ContextRule::Ungrouped,
        r"personnummer|samordningsnummer|personal (?:identity )?number|pnr|ssn",
    )
});

/// Tax file number of Australia.
pub(super) static AU_TFN: LazyLock<NationalId> = LazyLock::new(|| {
    NationalId::new(
        r"[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{3}",
        |text| weighted(text, &[1, 4, 3, 7, 5, 8, 6, 9, 10], 11) && digits(text).any(|digit| digit != 0),
        ContextRule::Always,
        r"tfn|tax file",
    )
});

fn two_digits(text: &str, at: usize) -> u32 {
    text.get(at..at + 2).and_then(|text| text.parse().ok()).unwrap_or(0)
}
