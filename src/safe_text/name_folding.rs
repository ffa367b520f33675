//! Normalization of names for lenient comparison.

/// Normalizes a name the way the most lenient parser may: only letters and digits, case-insensitive, full-width forms as ASCII, without
/// separators.
///
/// ```
/// use callgate::safe_text::fold_name;
/// assert!(fold_name("Amount_EUR").eq(fold_name("amountEur")));
/// ```
pub fn fold_name(name: &str) -> impl Iterator<Item = char> {
    let folded = name.chars().map(|c| match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
        other => other,
    });
    // Via upper case, which `\u{17f}` shares with `s`.
    folded.filter(|c| c.is_alphanumeric()).flat_map(char::to_uppercase).flat_map(char::to_lowercase)
}
