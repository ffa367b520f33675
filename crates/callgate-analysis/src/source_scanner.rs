//! Scanner for expressions, scripts and JSONPaths: text → the paths that it reads, and its literals. It is a heuristic for finding
//! sample calls, so it accepts any text and misses what it does not understand.

use std::collections::HashMap;

use crate::field_path::{FieldPath, FieldRoot, FieldStep};
use callgate::json::{self, Value};

/// The paths that other names stand for: the elements of a condition, the parameters of closures.
pub(crate) type PathAliases = HashMap<String, FieldPath>;

/// What a text reads.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SourceTerms {
    pub(crate) paths: Vec<FieldPath>,
    pub(crate) literals: Vec<Value>,
}

/// The deepest nesting of brackets that is scanned.
const MAX_DEPTH: usize = 8;
/// The most paths and literals of one text.
const MAX_TERMS: usize = 200;
/// The longest text that is scanned, and the longest content of brackets, in bytes.
const MAX_TEXT: usize = 16 << 10;
const MAX_BRACKETS: usize = 500;
/// The most steps of a path, and the most paths that lists of names make of one.
const MAX_STEPS: usize = 32;
const MAX_BRANCHES: usize = 8;
/// The functions whose closure takes the elements of an array.
const ELEMENT_FUNCTIONS: [&str; 6] = ["some", "all", "filter", "find", "map", "every"];

/// Finds the paths and literals of a text.
pub(crate) fn scan(text: &str, aliases: &PathAliases) -> SourceTerms {
    let text = text.get(..text.floor_char_boundary(MAX_TEXT)).unwrap_or(text);
    let mut scanner = Scanner { rest: text, aliases: aliases.clone(), terms: SourceTerms::default() };
    scanner.run(None, 0);
    scanner.terms
}

struct Scanner<'t> {
    rest: &'t str,
    aliases: PathAliases,
    terms: SourceTerms,
}

fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn is_name_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

impl<'t> Scanner<'t> {
    /// Scans the rest. `element` is what `@` stands for, in a filter.
    fn run(&mut self, element: Option<&FieldPath>, depth: usize) {
        let mut after_dot = false;
        while let Some(c) = self.rest.chars().next() {
            if self.terms.paths.len() + self.terms.literals.len() > MAX_TERMS {
                return;
            }
            let follows_dot = std::mem::take(&mut after_dot);
            match c {
                '"' | '\'' => {
                    let text = self.quoted(c);
                    self.terms.literals.push(text.into());
                }
                '`' => drop(self.quoted(c)),
                '$' => {
                    // A path: its root is the next name.
                    self.advance(1);
                    self.rest = self.rest.strip_prefix('.').unwrap_or(self.rest);
                }
                '@' => {
                    self.advance(1);
                    if let Some(base) = element {
                        self.chain(base.clone(), depth);
                    }
                }
                '.' => {
                    self.advance(1);
                    after_dot = true;
                }
                c if c.is_ascii_digit() => self.number(),
                c if is_name_start(c) => {
                    let name = self.take_while(is_name_part);
                    let root = FieldRoot::from_name(name).map(FieldPath::new);
                    let base = self.aliases.get(name).cloned().or(root).filter(|_| !follows_dot);
                    match (base, name) {
                        (Some(base), _) => self.chain(base, depth),
                        (None, "true" | "false") if !follows_dot => {
                            self.terms.literals.push((name == "true").into());
                        }
                        (None, _) => {}
                    }
                }
                c => self.advance(c.len_utf8()),
            }
        }
    }

    fn advance(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or("");
    }

    fn take_while(&mut self, accepts: fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|c| !accepts(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    /// Takes a string in quotes.
    fn quoted(&mut self, quote: char) -> String {
        self.advance(quote.len_utf8());
        let mut text = String::new();
        while let Some(c) = self.rest.chars().next() {
            self.advance(c.len_utf8());
            match c {
                '\\' => {
                    let Some(escaped) = self.rest.chars().next() else { return text };
                    self.advance(escaped.len_utf8());
                    text.push(match escaped {
                        'n' => '\n',
                        't' => '\t',
                        other => other,
                    });
                }
                c if c == quote => return text,
                c => text.push(c),
            }
        }
        text
    }

    fn number(&mut self) {
        let whole = self.take_while(|c| c.is_ascii_digit() || c == '_');
        let mut text = whole.replace('_', "");
        if let Some(fraction) =
            self.rest.strip_prefix('.').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        {
            self.rest = fraction;
            text.push('.');
            text.push_str(self.take_while(|c| c.is_ascii_digit()));
        }
        self.terms.literals.extend(json::parse(&text).ok());
    }

    /// Takes the steps after a root, and records the paths.
    fn chain(&mut self, base: FieldPath, depth: usize) {
        let mut heads = vec![base];
        while heads.first().is_some_and(|head| head.steps.len() < MAX_STEPS) {
            let rest = self.rest.strip_prefix('?').unwrap_or(self.rest);
            if let Some(after) = rest.strip_prefix('.').filter(|after| after.starts_with(is_name_start)) {
                let before = self.rest;
                self.rest = after;
                let name = self.take_while(is_name_part);
                if self.rest.starts_with('(') {
                    self.bind_closure(name, &heads);
                    break;
                }
                if before.is_empty() {
                    break;
                }
                extend(&mut heads, &[FieldStep::Member(name.to_owned())]);
            } else if let Some(after) = rest.strip_prefix(".*") {
                self.rest = after;
                extend(&mut heads, &[FieldStep::Element]);
            } else if rest.starts_with('[') && depth < MAX_DEPTH {
                self.rest = rest;
                let Some(content) = self.bracketed() else { break };
                let steps = self.bracket_steps(content, &heads, depth);
                extend(&mut heads, &steps);
            } else {
                break;
            }
        }
        self.terms.paths.append(&mut heads);
    }

    /// Takes brackets with their content. Returns `None` if they are not closed.
    fn bracketed(&mut self) -> Option<&'t str> {
        let (mut open, mut quote) = (0usize, None);
        for (at, c) in self.rest.char_indices().take_while(|(at, _)| *at < MAX_BRACKETS) {
            match (quote, c) {
                (Some(mark), c) if c == mark => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => quote = Some(c),
                (None, '[') => open += 1,
                (None, ']') => {
                    open -= 1;
                    if open == 0 {
                        let content = self.rest.get(1..at);
                        self.advance(at + 1);
                        return content;
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn bracket_steps(&mut self, content: &str, heads: &[FieldPath], depth: usize) -> Vec<FieldStep> {
        let content = content.trim();
        if content == "*" {
            return vec![FieldStep::Element];
        }
        if let Ok(index) = content.parse::<usize>() {
            return vec![FieldStep::Index(index)];
        }
        let is_filter = content.starts_with('?');
        let element = heads.first().map(|head| head.with_step(FieldStep::Element)).filter(|_| is_filter);
        let mut inner =
            Scanner { rest: content, aliases: self.aliases.clone(), terms: SourceTerms::default() };
        inner.run(element.as_ref(), depth + 1);
        let SourceTerms { paths, literals } = inner.terms;
        if is_filter {
            self.terms.paths.extend(paths);
            self.terms.literals.extend(literals);
            return vec![FieldStep::Element];
        }
        if let [path] = paths.as_slice() {
            self.terms.paths.push(path.clone());
            return vec![FieldStep::Dynamic(Box::new(path.clone()))];
        }
        let names = literals.iter().filter_map(Value::as_str);
        names.map(|name| FieldStep::Member(name.to_owned())).collect()
    }

    /// In `items.some(|x| …)`, `x` stands for an element.
    fn bind_closure(&mut self, function: &str, heads: &[FieldPath]) {
        let Some(head) = heads.first().filter(|_| ELEMENT_FUNCTIONS.contains(&function)) else { return };
        let Some((parameters, body)) = self.rest.strip_prefix("(|").and_then(|rest| rest.split_once('|'))
        else {
            return;
        };
        self.rest = body;
        // A second parameter is the index.
        let name = parameters.split(',').next().unwrap_or_default().trim();
        self.aliases.insert(name.to_owned(), head.with_step(FieldStep::Element));
    }
}

/// Continues every path with each of the steps.
fn extend(heads: &mut Vec<FieldPath>, steps: &[FieldStep]) {
    *heads = heads.iter().flat_map(|head| steps.iter().map(|step| head.with_step(step.clone()))).collect();
    heads.truncate(MAX_BRANCHES);
}

#[cfg(test)]
mod tests {
    use super::*;
    use callgate::json::json;

    fn paths(text: &str) -> Vec<String> {
        let found = scan(text, &PathAliases::new()).paths;
        found.iter().map(|path| format!("{:?}{:?}", path.root, path.steps)).collect()
    }

    #[test]
    fn paths_of_expressions_and_json_paths_are_found() {
        let amount = r#"Input[Member("amount")]"#;
        assert_eq!(paths("input.amount > 100"), [amount]);
        assert_eq!(paths("$.input.amount"), [amount]);
        assert_eq!(paths("output.input > 1"), Vec::<String>::new());
        assert_eq!(
            paths("$.input['to','cc'][*]"),
            [r#"Input[Member("to"), Element]"#, r#"Input[Member("cc"), Element]"#]
        );
        assert_eq!(
            paths("$.input.items[?@.price > 3].name"),
            [
                r#"Input[Member("items"), Element, Member("price")]"#,
                r#"Input[Member("items"), Element, Member("name")]"#
            ]
        );
        assert_eq!(
            paths("input.items.some(|x| x.price > 3)"),
            [r#"Input[Member("items")]"#, r#"Input[Member("items"), Element, Member("price")]"#]
        );
        assert_eq!(
            paths("session.facts.order[input.id].status"),
            [
                r#"Input[Member("id")]"#,
                r#"Session[Member("facts"), Member("order"), Dynamic(FieldPath { root: Input, steps: [Member("id")] }), Member("status")]"#
            ]
        );
    }

    #[test]
    fn literals_are_found() {
        let terms = scan(r#"input.a == "x\"y" || input.b >= 1_000.5 && !true"#, &PathAliases::new());
        assert_eq!(terms.literals, [json!("x\"y"), json!(1000.5), json!(true)]);
    }

    #[test]
    fn any_text_is_scanned() {
        for text in [
            "input[",
            "input[[[[[",
            "\"",
            "input.?.[",
            "$",
            "@.x",
            "input['",
            "é.input\u{202e}",
            "1..2",
            "input[]",
        ] {
            scan(text, &PathAliases::new());
        }
        scan(&"input[".repeat(10_000), &PathAliases::new());
        scan(&"input['a','b'".repeat(1_000), &PathAliases::new());
        scan(&format!("input{}", "['a','b']".repeat(1_000)), &PathAliases::new());
    }
}
