//! `ignore_case` and `confusables`: text operators that ignore letter case or the differences between look-alike characters.

use super::comparison::with_string;
use super::operand::PatternSet;
use super::truth::Truth;
use super::work_units::spend_for;
use crate::call::{CallView, NodeRef};
use crate::diagnostic::{CONFLICTING_KEYS, Diagnostic, FOLDING_PERMITS, INVALID_OPERAND};
use crate::json::Value;
use crate::rules_schema::{FieldShape, Polarity, PolicyReader, Shape};
use crate::source::YamlNode;
use crate::tokens::{FoldedForms, TextFolding};

pub const IGNORE_CASE: FieldShape = FieldShape::optional(
    "ignore_case",
    Shape::True,
    "Letter case does not matter for `eq`, `ne`, `in`, `not_in`, `contains`, `contains_any`, `starts_with` and `ends_with` (full case \
     folding of Unicode).",
);
pub const CONFUSABLES: FieldShape = FieldShape::optional(
    "confusables",
    Shape::Word(&[(
        "fold",
        "characters that look alike are equal (UTS 39), and invisible characters are dropped",
    )]),
    "How the operators that `ignore_case` names compare characters that look alike. Only for tests that restrict.",
);

/// A text operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextOperator {
    Equals,
    Contains,
    StartsWith,
    EndsWith,
}

/// A compiled text operator with folding.
#[derive(Debug)]
pub struct FoldedComparison {
    key: &'static str,
    operator: TextOperator,
    is_negated: bool,
    folding: TextFolding,
    /// The strings to compare with, folded.
    pub operands: PatternSet<FoldedForms>,
}

/// The operators that folding applies to.
const FOLDABLE: [(&str, TextOperator, bool); 8] = [
    ("eq", TextOperator::Equals, false),
    ("ne", TextOperator::Equals, true),
    ("in", TextOperator::Equals, false),
    ("not_in", TextOperator::Equals, true),
    ("contains", TextOperator::Contains, false),
    ("contains_any", TextOperator::Contains, false),
    ("starts_with", TextOperator::StartsWith, false),
    ("ends_with", TextOperator::EndsWith, false),
];

/// Reads the folding of a test. Reports one that no operator uses, and one that makes different values equal where that permits.
pub fn read_folding(test: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<TextFolding> {
    let (case, confusables) = (test.get(IGNORE_CASE.name), test.get(CONFUSABLES.name));
    let folding = TextFolding { ignore_case: case.is_some(), fold_confusables: confusables.is_some() };
    let Some(option) = case.or(confusables) else { return Some(folding) };
    if !FOLDABLE.iter().any(|(key, ..)| test.get(key).is_some()) {
        let key = if case.is_some() { IGNORE_CASE.name } else { CONFUSABLES.name };
        let message = format!("`{key}` has no effect on the operators of this test");
        reader.report(Diagnostic::new(&CONFLICTING_KEYS, option.span, message).with_help(
            "it applies to `eq`, `in`, `contains`, `starts_with` and the like; in `matches`, write `(?i)`",
        ));
        return None;
    }
    let Some(confusables) = confusables else { return Some(folding) };
    let excludes = |test: &YamlNode| {
        let negations = [
            reader.is_negated,
            test.get("each").and_then(YamlNode::as_str) == Some("none"),
            FOLDABLE.iter().any(|(key, _, is_negated)| *is_negated && test.get(key).is_some()),
        ];
        negations.into_iter().filter(|negation| *negation).count() % 2 == 1
    };
    let problem = match reader.polarity {
        _ if reader.in_definition => "a definition, which may serve policies that permit",
        Polarity::Permitting if !excludes(test) => "a test that permits",
        Polarity::Restricting if excludes(test) => "a test that lifts a restriction",
        _ => return Some(folding),
    };
    reader.report(
        Diagnostic::new(
            &FOLDING_PERMITS,
            confusables.span,
            format!("`confusables: fold` makes different values equal, and this is {problem}"),
        )
        .with_help("remove it: compare with the exact value, or use `ignore_case: true`"),
    );
    None
}

impl FoldedComparison {
    /// Whether folding applies to an operator.
    pub fn is_foldable(key: &str) -> bool {
        FOLDABLE.iter().any(|(foldable, ..)| *foldable == key)
    }

    /// Reads an operator with folding. Its operands must be strings.
    pub fn read(
        key: &str,
        node: &YamlNode,
        folding: TextFolding,
        reader: &mut PolicyReader<'_>,
    ) -> Option<Self> {
        let (key, operator, is_negated) = FOLDABLE.into_iter().find(|(foldable, ..)| *foldable == key)?;
        let mut items = node.items().unwrap_or(std::slice::from_ref(node)).iter();
        if let Some(other) = items.find(|item| item.as_str().is_none() && item.entries().is_none()) {
            let message = format!("this is {}, and a test with folding compares strings", other.type_name());
            reader.report(
                Diagnostic::new(&INVALID_OPERAND, other.span, message)
                    .with_help("write a string, or move this operator to a test without folding"),
            );
            return None;
        }
        let operands = PatternSet::read(node, reader, "`abc`", |text| Ok(folding.fold(text)))?;
        Some(Self { key, operator, is_negated, folding, operands })
    }

    /// Evaluates the operator for a value.
    pub fn eval(&self, node: NodeRef<'_>, view: &CallView<'_>) -> Truth {
        let fold = |operand: &str| Ok(self.folding.fold(operand));
        let found = match node {
            NodeRef::Json(Value::Array(items)) if self.operator == TextOperator::Contains => {
                self.operands.evaluate(view, fold, |operands| {
                    let items = items.iter().map(NodeRef::Json);
                    Truth::any(items.map(|item| self.compare(item, TextOperator::Equals, operands)))
                })
            }
            node => with_string(node, self.key, |_| {
                self.operands.evaluate(view, fold, |operands| self.compare(node, self.operator, operands))
            }),
        };
        if self.is_negated { !found } else { found }
    }

    fn compare(&self, node: NodeRef<'_>, operator: TextOperator, operands: &[FoldedForms]) -> Truth {
        with_string(node, self.key, |text| {
            if let Err(exceeded) = spend_for(operands.len().saturating_mul(8 + text.len()), 8) {
                return exceeded;
            }
            let text = self.folding.fold(text);
            let holds = |text: &str, operand: &str| match operator {
                TextOperator::Equals => text == operand,
                TextOperator::Contains => text.contains(operand),
                TextOperator::StartsWith => text.starts_with(operand),
                TextOperator::EndsWith => text.ends_with(operand),
            };
            let is_alike =
                |operand: &FoldedForms| text.iter().zip(operand).any(|(text, operand)| holds(text, operand));
            operands.iter().any(is_alike).into()
        })
    }
}
