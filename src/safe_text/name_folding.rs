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

/// Whether two names are equal once they are folded.
pub(crate) fn is_same_folded(name: &str, other: &str) -> bool {
    if !name.is_ascii() || !other.is_ascii() {
        return fold_name(name).eq(fold_name(other));
    }
    // Nearly all names are ASCII, and need none of Unicode's tables.
    let [name, other] = [name, other].map(|name| name.bytes().filter(u8::is_ascii_alphanumeric));
    name.map(|byte| byte.to_ascii_lowercase()).eq(other.map(|byte| byte.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn comparison_of_folded_names_agrees_with_folding(
            name in "[a-bA-B_ -]{0,4}|\\PC{0,4}",
            other in "[a-bA-B_ -]{0,4}|\\PC{0,4}",
        ) {
            prop_assert_eq!(is_same_folded(&name, &other), fold_name(&name).eq(fold_name(&other)));
        }
    }
}
