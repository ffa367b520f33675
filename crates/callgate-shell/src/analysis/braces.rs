//! Brace expansion: `a{b,c}` → `ab`, `ac`; `{1..3}` → `1`, `2`, `3`.

use crate::syntax::{Part, Word};

/// The maximum number of words of one word.
const MAX_WORDS: usize = 64;

/// A character or an expansion of a word.
#[derive(Clone)]
enum Unit {
    Bare(char),
    Other(Part),
}

/// Expands the braces of a word. `None` if there are too many, or some are not understood.
pub(super) fn expand_braces(word: &Word) -> Option<Vec<Word>> {
    let has_brace = word.parts.iter().any(|part| matches!(part, Part::Bare(text) if text.contains('{')));
    if !has_brace {
        return Some(vec![word.clone()]);
    }
    let mut units = Vec::new();
    for part in &word.parts {
        match part {
            Part::Bare(text) => units.extend(text.chars().map(Unit::Bare)),
            other => units.push(Unit::Other(other.clone())),
        }
    }
    let expanded = expand(&units, 0)?;
    Some(expanded.into_iter().map(to_word).collect())
}

fn expand(units: &[Unit], depth: usize) -> Option<Vec<Vec<Unit>>> {
    if depth > 4 {
        return None;
    }
    let mut results = vec![Vec::new()];
    let mut rest = units;
    while let Some((first, behind)) = rest.split_first() {
        let alternatives = match first {
            Unit::Bare('{') => split_group(behind),
            _ => None,
        };
        let Some((alternatives, behind_group)) = alternatives else {
            results.iter_mut().for_each(|result| result.push(first.clone()));
            rest = behind;
            continue;
        };
        if alternatives.is_empty() {
            return None;
        }
        let mut words = Vec::new();
        for alternative in alternatives {
            words.extend(expand(&alternative, depth + 1)?);
        }
        if results.len() * words.len() > MAX_WORDS {
            return None;
        }
        results = results
            .iter()
            .flat_map(|begin| words.iter().map(|word| begin.iter().chain(word).cloned().collect()))
            .collect();
        rest = behind_group;
    }
    Some(results)
}

/// The alternatives of a group, behind its `{`, and what is behind the group: no alternatives if they are not understood. `None` if the brace
/// stands for itself.
fn split_group(units: &[Unit]) -> Option<(Vec<Vec<Unit>>, &[Unit])> {
    let (mut alternatives, mut current, mut open) = (Vec::new(), Vec::new(), 0_usize);
    for (index, unit) in units.iter().enumerate() {
        match unit {
            Unit::Bare('}') if open == 0 => {
                let behind = units.get(index + 1..)?;
                if alternatives.is_empty() {
                    return match sequence(&current) {
                        Some(words) => Some((words, behind)),
                        None => has_dots(&current).then_some((Vec::new(), behind)),
                    };
                }
                alternatives.push(current);
                return Some((alternatives, behind));
            }
            Unit::Bare(',') if open == 0 => {
                alternatives.push(std::mem::take(&mut current));
                continue;
            }
            Unit::Bare('{') => open += 1,
            Unit::Bare('}') => open -= 1,
            _ => {}
        }
        current.push(unit.clone());
    }
    None
}

/// Whether it has the `..` of a sequence.
fn has_dots(units: &[Unit]) -> bool {
    units.windows(2).any(|pair| matches!(pair, [Unit::Bare('.'), Unit::Bare('.')]))
}

/// The words of `1..3`. `None` if it is none of the sequences that are understood.
fn sequence(units: &[Unit]) -> Option<Vec<Vec<Unit>>> {
    let text: String = units
        .iter()
        .map(|unit| match unit {
            Unit::Bare(c) => Some(*c),
            Unit::Other(_) => None,
        })
        .collect::<Option<_>>()?;
    let (begin, end) = text.split_once("..")?;
    let numbers = (begin.parse::<i32>().ok()?, end.parse::<i32>().ok()?);
    let is_short =
        numbers.0 <= numbers.1 && numbers.1.checked_sub(numbers.0)? < i32::try_from(MAX_WORDS).ok()?;
    let is_plain = !begin.starts_with('0') && !begin.starts_with(['+', '-']);
    if !is_short || !is_plain {
        return None;
    }
    Some((numbers.0..=numbers.1).map(|number| number.to_string().chars().map(Unit::Bare).collect()).collect())
}

fn to_word(units: Vec<Unit>) -> Word {
    let mut parts: Vec<Part> = Vec::new();
    for unit in units {
        match unit {
            Unit::Other(part) => parts.push(part),
            Unit::Bare(c) => match parts.last_mut() {
                Some(Part::Bare(text)) => text.push(c),
                _ => parts.push(Part::Bare(c.to_string())),
            },
        }
    }
    Word { parts }
}
