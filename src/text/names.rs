//! Names as lenient readers take them.

/// A name as the most lenient reader may take it: its letters and digits without regard to case, full-width forms as plain ones, without
/// separators.
///
/// ```
/// use callgate::text::folded_name;
/// assert!(folded_name("Amount_EUR").eq(folded_name("amountEur")));
/// ```
pub fn folded_name(name: &str) -> impl Iterator<Item = char> {
    let folded = name.chars().map(|c| match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
        other => other,
    });
    // By way of upper case, which `\u{17f}` shares with `s`.
    folded.filter(|c| c.is_alphanumeric()).flat_map(char::to_uppercase).flat_map(char::to_lowercase)
}
