//! `every`, `any_of`, `none`: a condition on each element of a path or an expression. Call → [`Truth`].

use std::sync::Arc;

use super::Condition;
use crate::call::{CallView, ElementMemo, ElementScope, NodeRef, Root};
use crate::diagnostic::{
    CONFLICTING_KEYS, Diagnostic, MINIMUM_NEEDED, MISSING_KEY, OUT_OF_RANGE, Span, UNKNOWN_VALUE,
};
use crate::matcher::condition_shape::{ELEMENTS_RECORD, EXPR_KEY, MIN, PATH};
use crate::matcher::field_test::Quantifier;
use crate::matcher::mention::{AS, MENTIONED_IN};
use crate::matcher::truth::Truth;
use crate::matcher::value_source::ValueSource;
use crate::path::{ElementName, MAX_ELEMENT_NESTING};
use crate::rules_schema::{Polarity, PolicyReader, head_span};
use crate::source::{MappingEntry, YamlNode, YamlValue};
use crate::tokens::TokenKind;
use crate::work_limit;

/// The maximum number of elements.
pub const MAX_ELEMENTS: usize = 10_000;
/// The name of elements without `as`.
pub const ITEM: &str = "item";

/// A compiled condition on elements.
#[derive(Debug)]
pub struct ElementCondition {
    pub(in crate::matcher) quantifier: Quantifier,
    pub(in crate::matcher) source: ValueSource,
    /// The location of the path or expression in the rules.
    pub(in crate::matcher) source_span: Span,
    /// The number of elements without which `every` does not hold.
    min: usize,
    pub(in crate::matcher) condition: Condition,
}

impl ElementCondition {
    /// Reads the value of `every`, `any_of` or `none`.
    pub fn read(quantifier: Quantifier, node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let key = quantifier.key();
        let source_entry = find_source(key, node, reader)?;
        let source = match source_entry.key == EXPR_KEY {
            true => ValueSource::read_expression(&source_entry.value, reader),
            false => ValueSource::read_path(&source_entry.value, reader),
        };
        let name = read_name(node, reader);
        let min = read_min(quantifier, node, reader);
        let on_each = condition_node(key, node, reader)?;
        let (source, name, min) = (source?, name?, min?);
        let name = source.element_name(name, reader.names.elements());
        let condition = read_condition(quantifier, &on_each, name, reader)?;
        let source_span = source_entry.value.span;
        Some(Self { quantifier, source, source_span, min, condition })
    }

    /// Evaluates the condition for the elements of a call.
    pub fn eval(&self, view: &CallView<'_>) -> Truth {
        self.source.with_elements(view, |elements| match elements {
            Ok(elements) => self.eval_elements(elements, view),
            Err(undecided) => undecided,
        })
    }

    fn eval_elements(&self, elements: &[NodeRef<'_>], view: &CallView<'_>) -> Truth {
        if elements.len() > MAX_ELEMENTS {
            let why = format!("`{}` has more than {MAX_ELEMENTS} elements", self.source.text());
            return Truth::Undecided(why);
        }
        if elements.len() < self.min {
            return Truth::No;
        }
        let memo = ElementMemo::default();
        let truths =
            (1..).zip(elements).map(|(number, element)| self.eval_element(number, *element, &memo, view));
        self.quantifier.combine(truths)
    }

    /// Evaluates the condition for one element; `number` counts from 1.
    pub(in crate::matcher) fn eval_element(
        &self,
        number: usize,
        element: NodeRef<'_>,
        memo: &ElementMemo,
        view: &CallView<'_>,
    ) -> Truth {
        if let Err(exceeded) = work_limit::spend(1) {
            return Truth::Undecided(exceeded.to_string());
        }
        let scope = ElementScope { element, memo, word: None, outer: view.elements };
        match self.condition.eval(&CallView { elements: Some(&scope), ..*view }) {
            Truth::Undecided(why) => {
                Truth::Undecided(format!("element {number} of `{}`: {why}", self.source.text()))
            }
            decided => decided,
        }
    }

    /// Whether an element with this result decides the whole condition, whatever the others are.
    pub(in crate::matcher) fn is_decisive(&self, truth: &Truth) -> bool {
        *truth == if self.quantifier == Quantifier::Every { Truth::No } else { Truth::Yes }
    }
}

/// Returns the entry of `path` or `expr`.
fn find_source<'n>(key: &str, node: &'n YamlNode, reader: &mut PolicyReader<'_>) -> Option<&'n MappingEntry> {
    let is_source = |entry: &&MappingEntry| [PATH.name, EXPR_KEY].contains(&entry.key.as_str());
    let mut sources = node.entries()?.iter().filter(is_source);
    match (sources.next(), sources.next()) {
        (Some(first), Some(second)) => {
            let message = format!("`{key}` has both `{}` and `{}`", first.key, second.key);
            reader.report(
                Diagnostic::new(&CONFLICTING_KEYS, second.key_span, message)
                    .with_label(first.key_span, "first key")
                    .with_help("one of them names the elements; write an expression about each element in a list: `all: [item.price > 1]`"),
            );
            None
        }
        (source, _) => {
            if source.is_none() && !ELEMENTS_RECORD.has_misspelling_of(node, PATH.name) {
                let message = format!("`{key}` has no `path`");
                reader.report(
                    Diagnostic::new(&MISSING_KEY, head_span(node), message)
                        .with_help("name the elements, as in `path: \"$.input.to[*]\"` or `expr: input.to`"),
                );
            }
            source
        }
    }
}

/// Returns the name of the elements. Beside `mentioned_in`, `as` is the kind of token.
fn read_name(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<String> {
    let Some(name_node) = node.get(AS.name) else { return Some(ITEM.to_owned()) };
    let name = name_node.as_str()?;
    if node.get(MENTIONED_IN.name).is_some() {
        if TokenKind::parse(name).is_some() {
            return Some(ITEM.to_owned());
        }
        let message = format!("`as` beside `mentioned_in` is a kind of token, not `{}`", name.escape_debug());
        reader.report(Diagnostic::new(&UNKNOWN_VALUE, name_node.span, message).with_help(
            "write for example `as: email`; to name the elements, write the test in a list: `all: [{ mentioned_in: … }]`",
        ));
        return None;
    }
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let is_name = starts && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let problem = if !is_name {
        "a name has letters, digits and `_`, and begins with a letter"
    } else if Root::from_name(name).is_some() || ["data", "true", "false"].contains(&name) {
        "this name has another meaning in expressions"
    } else if reader.names.elements().names().any(|outer| outer == name && name != ITEM) {
        "the elements around it have this name"
    } else {
        return Some(name.to_owned());
    };
    let message = format!("`{}` cannot be the name of elements: {problem}", name.escape_debug());
    reader.report(
        Diagnostic::new(&UNKNOWN_VALUE, name_node.span, message)
            .with_help("choose another name, such as `row`"),
    );
    None
}

/// Returns the smallest number of elements. Only `every` has one, because it holds for no elements.
fn read_min(quantifier: Quantifier, node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<usize> {
    let min = node.entries()?.iter().find(|entry| entry.key == MIN);
    if quantifier != Quantifier::Every {
        let Some(min) = min else { return Some(0) };
        let message = format!("`min` can't be used with `{}`", quantifier.key());
        reader.report(
            Diagnostic::new(&CONFLICTING_KEYS, min.key_span, message)
                .with_help("remove it: `any_of` is false and `none` is true if there are no elements"),
        );
        return None;
    }
    if let Some(min) = min {
        return min.value.as_number()?.as_i64().and_then(|min| usize::try_from(min).ok());
    }
    let problem = match reader.polarity {
        _ if reader.in_definition => "a definition, which policies that permit may use",
        Polarity::Permitting if !reader.is_negated => "a policy that permits",
        _ => return Some(0),
    };
    let message = format!("`every` holds if there are no elements, and this is {problem}");
    reader.report(
        Diagnostic::new(&MINIMUM_NEEDED, head_span(node), message)
            .with_help("add `min: 1`, or `min: 0` if it may hold for no elements"),
    );
    None
}

/// Returns the condition on each element: all keys but those that concern the elements together.
fn condition_node(key: &str, node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<YamlNode> {
    let is_kind = node.get(MENTIONED_IN.name).is_some();
    let of_elements = |entry: &&MappingEntry| {
        [PATH.name, EXPR_KEY, MIN].contains(&entry.key.as_str()) || (entry.key == AS.name && !is_kind)
    };
    let entries: Vec<MappingEntry> =
        node.entries()?.iter().filter(|entry| !of_elements(entry)).cloned().collect();
    if entries.is_empty() {
        let message = format!("`{key}` has no condition on the elements");
        reader.report(Diagnostic::new(&MISSING_KEY, head_span(node), message).with_help(
            "add a test such as `domain: example.com`, or a list such as `all: [item.price > 1]`",
        ));
        return None;
    }
    Some(YamlNode { value: YamlValue::Mapping(entries), span: node.span })
}

/// Reads the condition with the name of the elements.
fn read_condition(
    quantifier: Quantifier,
    node: &YamlNode,
    name: ElementName,
    reader: &mut PolicyReader<'_>,
) -> Option<Condition> {
    if reader.names.elements().len() >= MAX_ELEMENT_NESTING {
        let message = format!("conditions on elements nest deeper than {MAX_ELEMENT_NESTING}");
        reader.report(
            Diagnostic::new(&OUT_OF_RANGE, head_span(node), message).with_help("simplify the condition"),
        );
        return None;
    }
    let outer = Arc::clone(&reader.names);
    Arc::make_mut(&mut reader.names).add_element(name);
    let is_negation = quantifier == Quantifier::None;
    reader.is_negated ^= is_negation;
    let condition = Condition::read(node, reader);
    reader.is_negated ^= is_negation;
    reader.names = outer;
    condition
}
