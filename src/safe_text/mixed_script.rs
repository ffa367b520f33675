//! Mixed-script detection: words with letters of several scripts that can be confused (homoglyphs).

/// Returns the scripts that a text mixes if the mix can mislead: letters of different scripts often look the same. Latin letters
/// among Chinese, Japanese or Korean ones are usual and not reported.
///
/// ```
/// use callgate::safe_text::find_mixed_scripts;
/// assert_eq!(find_mixed_scripts("p\u{430}ypal.com"), Some(vec!["Latin", "Cyrillic"]));
/// assert_eq!(find_mixed_scripts("paypal.com"), None);
/// ```
pub fn find_mixed_scripts(text: &str) -> Option<Vec<&'static str>> {
    let mut scripts = Vec::new();
    for script in text.chars().filter(|c| c.is_alphabetic()).filter_map(script) {
        if !scripts.contains(&script) {
            scripts.push(script);
        }
    }
    let usual = scripts.iter().all(|script| [LATIN, EAST_ASIAN].contains(script));
    (scripts.len() > 1 && !usual).then_some(scripts)
}

/// Returns the script of a text whose letters all belong to one other script and look like Latin letters.
///
/// ```
/// use callgate::safe_text::find_imitated_latin;
/// assert_eq!(find_imitated_latin("\u{441}\u{441}"), Some("Cyrillic"));
/// assert_eq!(find_imitated_latin("россия"), None);
/// ```
pub fn find_imitated_latin(text: &str) -> Option<&'static str> {
    let mut letters = text.chars().filter(|c| c.is_alphabetic()).peekable();
    let script = script(*letters.peek()?)?;
    letters.all(is_latin_lookalike).then_some(script)
}

/// Cyrillic, Greek and Armenian letters that look like Latin letters.
fn is_latin_lookalike(c: char) -> bool {
    "асеорхуіїјѕһԁԛԝԍѵкгАВСЕНІЈКМОРЅТУХԌԚԜΥΖΑΒΕΗΙΚΜΝΟΡΤΧανορυικχηϲϳսօոցհյքզոՕՏԼ".contains(c)
}

const LATIN: &str = "Latin";
const EAST_ASIAN: &str = "East Asian";

/// The script of a letter. Returns `None` for letters that several scripts share.
fn script(c: char) -> Option<&'static str> {
    Some(match c {
        'ª' | 'º' | 'µ' => return None,
        'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => LATIN,
        // Phonetic letters, which look like plain Latin letters.
        '\u{250}'..='\u{2ff}'
        | '\u{1d00}'..='\u{1dbf}'
        | '\u{2c60}'..='\u{2c7f}'
        | '\u{a720}'..='\u{a7ff}' => "phonetic Latin",
        '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' => "Greek",
        '\u{400}'..='\u{52f}'
        | '\u{1c80}'..='\u{1c8f}'
        | '\u{2de0}'..='\u{2dff}'
        | '\u{a640}'..='\u{a69f}' => "Cyrillic",
        '\u{530}'..='\u{58f}' => "Armenian",
        '\u{590}'..='\u{5ff}' => "Hebrew",
        '\u{600}'..='\u{6ff}' | '\u{750}'..='\u{77f}' | '\u{8a0}'..='\u{8ff}' => "Arabic",
        '\u{900}'..='\u{97f}' => "Devanagari",
        '\u{e00}'..='\u{e7f}' => "Thai",
        '\u{10a0}'..='\u{10ff}' | '\u{1c90}'..='\u{1cbf}' => "Georgian",
        '\u{13a0}'..='\u{13ff}' | '\u{ab70}'..='\u{abbf}' => "Cherokee",
        '\u{1100}'..='\u{11ff}'
        | '\u{2e80}'..='\u{312f}'
        | '\u{3131}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7ff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}' => EAST_ASIAN,
        '\u{ff21}'..='\u{ff5a}' => "full-width Latin",
        '\u{2100}'..='\u{214f}' | '\u{2460}'..='\u{24ff}' | '\u{1d400}'..='\u{1d7ff}' => "mathematical",
        _ => "other",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_only_confusable_script_mixes() {
        for (text, mixed) in [
            ("send_email", None),
            ("größe", None),
            ("россия.рф", None),
            ("東京tower.jp", None),
            ("s\u{435}nd_email", Some(vec!["Latin", "Cyrillic"])),
            ("ραypal", Some(vec!["Greek", "Latin"])),
            ("\u{1d41a}dmin", Some(vec!["mathematical", "Latin"])),
            ("\u{ff41}dmin", Some(vec!["full-width Latin", "Latin"])),
        ] {
            assert_eq!(find_mixed_scripts(text), mixed, "{text}");
        }
    }
}
