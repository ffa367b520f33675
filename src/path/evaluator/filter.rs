//! Filter evaluation: filter + current node → boolean.
//!
//! In RFC 9535, a value of the wrong type is Nothing, and Nothing equals only Nothing. Filters of paths over the call check types, as
//! every condition of a policy does: a price that is sent as a string must not make a filter on prices select nothing.

use std::cmp::Ordering;

use super::{Evaluator, TypeMismatchMode, WalkResult, WalkStop};
use crate::call::NodeRef;
use crate::json::{self, JsonType, Value};
use crate::path::ast::{
    ComparisonOperator, Filter, Operand, ParsedQuery, PathStep, QueryBase, RegexPattern, Segment,
};
use crate::path::evaluation_error::PathEvaluationError;
use crate::path::pattern::compile;
use crate::path::singular_path::{follow_steps, follow_steps_leniently};
use crate::work_limit;

/// Bytes of a string that are compared or searched for the cost of one node.
const TEXT_PER_NODE: usize = 256;
/// The cost of compiling a pattern.
const COMPILE_COST: usize = 1_000;

/// The behaviour of a filter for a value of the wrong type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TypeCheckMode {
    /// The value is Nothing, as in RFC 9535.
    Ignore,
    /// The evaluation fails.
    Check,
    /// For filters on descendants, which have all types: a descendant without the members that the filter reads is not selected; a
    /// member of the wrong type fails the evaluation.
    CheckMembers,
}

/// The value of an operand.
enum OperandValue<'v> {
    Node(NodeRef<'v>),
    Count(Value),
}

impl OperandValue<'_> {
    fn node(&self) -> NodeRef<'_> {
        match self {
            Self::Node(node) => *node,
            Self::Count(count) => NodeRef::Json(count),
        }
    }
}

impl TypeCheckMode {
    /// Whether the types of these operands are checked. Among descendants, a bare `@` is every value of the call.
    fn checks<const N: usize>(self, operands: [&Operand; N]) -> bool {
        let is_descendant = |operand: &Operand| matches!(operand, Operand::Singular(QueryBase::Current, steps) if steps.is_empty());
        match self {
            Self::Ignore => false,
            Self::Check => true,
            Self::CheckMembers => !operands.into_iter().any(is_descendant),
        }
    }
}

impl<'a> Evaluator<'a> {
    pub(super) fn evaluate_filter(
        &mut self,
        filter: &Filter,
        current: NodeRef<'a>,
        types: TypeCheckMode,
    ) -> WalkResult<bool> {
        self.spend(1)?;
        match filter {
            Filter::Any(filters) => {
                for filter in filters {
                    if self.evaluate_filter(filter, current, types)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Filter::All(filters) => {
                for filter in filters {
                    if !self.evaluate_filter(filter, current, types)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Filter::Not(filter) => Ok(!self.evaluate_filter(filter, current, types)?),
            Filter::Exists(query) => Ok(self.count_nodes(query, current, 1, types)? > 0),
            Filter::Compare(left_operand, comparison, right_operand) => {
                // Every type can be compared with null.
                let asks_for_null = [left_operand, right_operand]
                    .iter()
                    .any(|operand| matches!(operand, Operand::Literal(Value::Null)));
                let left = self.operand_value(left_operand, current, types)?;
                let right = self.operand_value(right_operand, current, types)?;
                let (left, right) =
                    (left.as_ref().map(OperandValue::node), right.as_ref().map(OperandValue::node));
                if types.checks([left_operand, right_operand]) && !asks_for_null {
                    check_types(left, right)?;
                }
                self.compare(left, *comparison, right)
            }
            Filter::Matches(text, pattern) => self.matches_pattern(text, pattern, current, types),
        }
    }

    /// Counts the nodes of a query, up to `enough`.
    fn count_nodes(
        &mut self,
        query: &ParsedQuery,
        current: NodeRef<'a>,
        enough: usize,
        types: TypeCheckMode,
    ) -> WalkResult<usize> {
        let mut count = 0;
        self.visit_nodes(query, current, types, &mut |_| {
            count += 1;
            if count == enough { Err(WalkStop::Finished) } else { Ok(()) }
        })?;
        Ok(count)
    }

    fn visit_nodes(
        &mut self,
        query: &ParsedQuery,
        current: NodeRef<'a>,
        types: TypeCheckMode,
        receive: &mut dyn FnMut(NodeRef<'a>) -> WalkResult,
    ) -> WalkResult {
        let Some(start) = self.start_node(query.base, Some(current)) else { return Ok(()) };
        if types == TypeCheckMode::CheckMembers
            && query.base == QueryBase::Current
            && is_wrong_type_for_segments(start, &query.segments)
        {
            return Ok(());
        }
        let misfits = match types {
            TypeCheckMode::Ignore => TypeMismatchMode::Ignore,
            TypeCheckMode::Check | TypeCheckMode::CheckMembers => TypeMismatchMode::Report { segment: 1 },
        };
        let walked = self.run_nested(|evaluator| {
            evaluator.walk(start, &query.segments, misfits, &mut |node, _| receive(node))
        });
        match walked {
            Err(WalkStop::Finished) => Ok(()),
            Err(WalkStop::Failed(mismatch)) => Err(WalkStop::Failed(into_filter_error(mismatch))),
            walked => walked,
        }
    }

    fn operand_value<'v>(
        &mut self,
        operand: &'v Operand,
        current: NodeRef<'a>,
        types: TypeCheckMode,
    ) -> WalkResult<Option<OperandValue<'v>>>
    where
        'a: 'v,
    {
        Ok(match operand {
            Operand::Literal(value) => Some(OperandValue::Node(NodeRef::Json(value))),
            Operand::Singular(base, steps) => {
                self.spend(1)?;
                match self.start_node(*base, Some(current)) {
                    None => None,
                    Some(start)
                        if types == TypeCheckMode::CheckMembers
                            && *base == QueryBase::Current
                            && is_wrong_type_for_steps(start, steps) =>
                    {
                        None
                    }
                    Some(start) if types != TypeCheckMode::Ignore => follow_steps(start, steps)
                        .map_err(|mismatch| WalkStop::Failed(into_filter_error(mismatch)))?
                        .map(OperandValue::Node),
                    Some(start) => follow_steps_leniently(start, steps).map(OperandValue::Node),
                }
            }
            Operand::Length(length_of) => {
                let of = self.operand_value(length_of, current, types)?;
                let length = match of.as_ref().map(OperandValue::node) {
                    Some(NodeRef::Json(Value::Array(items))) => Some(items.len()),
                    Some(NodeRef::Json(Value::Object(members))) => Some(members.len()),
                    Some(node) => match node.as_str() {
                        Some(text) => {
                            self.spend(text.len() / TEXT_PER_NODE)?;
                            Some(text.chars().count())
                        }
                        None if types.checks([&**length_of]) => {
                            return Err(type_error("a string, an array or an object", node));
                        }
                        None => None,
                    },
                    None => None,
                };
                length.map(|length| OperandValue::Count(Value::from(length)))
            }
            Operand::Count(query) => {
                Some(OperandValue::Count(Value::from(self.count_nodes(query, current, usize::MAX, types)?)))
            }
            Operand::Value(query) => {
                let (mut first, mut several) = (None, false);
                self.visit_nodes(query, current, types, &mut |node| {
                    several = first.replace(node).is_some();
                    if several { Err(WalkStop::Finished) } else { Ok(()) }
                })?;
                first.filter(|_| !several).map(OperandValue::Node)
            }
        })
    }

    fn compare(
        &mut self,
        left: Option<NodeRef<'_>>,
        comparison: ComparisonOperator,
        right: Option<NodeRef<'_>>,
    ) -> WalkResult<bool> {
        let equal = match (left, right) {
            (Some(left), Some(right)) if left.json_type() == right.json_type() => {
                // A comparison walks both values in parallel, so no further than either.
                self.spend_on_value(left, 0)?;
                left.equals(right)
            }
            (left, right) => left.is_none() && right.is_none(),
        };
        let order = left.zip(right).and_then(|(left, right)| ordering(left, right));
        Ok(match comparison {
            ComparisonOperator::Equal => equal,
            ComparisonOperator::NotEqual => !equal,
            ComparisonOperator::Less => order == Some(Ordering::Less),
            ComparisonOperator::LessOrEqual => equal || order == Some(Ordering::Less),
            ComparisonOperator::Greater => order == Some(Ordering::Greater),
            ComparisonOperator::GreaterOrEqual => equal || order == Some(Ordering::Greater),
        })
    }

    /// Spends the cost of walking a whole value, as a comparison does. Fails for a value that nests too deeply.
    fn spend_on_value(&mut self, node: NodeRef<'_>, depth: usize) -> WalkResult {
        if depth > json::MAX_DEPTH {
            return Err(WalkStop::Failed(PathEvaluationError::LimitExceeded));
        }
        self.spend(usize::from(depth > 0))?;
        match node {
            NodeRef::Json(Value::Array(items)) => {
                items.iter().try_for_each(|item| self.spend_on_value(NodeRef::Json(item), depth + 1))
            }
            NodeRef::Json(Value::Object(members)) => {
                members.values().try_for_each(|member| self.spend_on_value(NodeRef::Json(member), depth + 1))
            }
            NodeRef::Json(Value::Number(number)) => self.spend(number.text().len() / TEXT_PER_NODE),
            node => self.spend(node.as_str().map_or(0, str::len) / TEXT_PER_NODE),
        }
    }

    fn matches_pattern(
        &mut self,
        text: &Operand,
        pattern: &RegexPattern,
        current: NodeRef<'a>,
        types: TypeCheckMode,
    ) -> WalkResult<bool> {
        let checked = types.checks([text]);
        let text = self.operand_value(text, current, types)?;
        let Some(node) = text.as_ref().map(OperandValue::node) else { return Ok(false) };
        let Some(text) = node.as_str() else {
            return if checked { Err(type_error("a string", node)) } else { Ok(false) };
        };
        self.spend(text.len() / TEXT_PER_NODE)?;
        // A regular expression may take much longer for a byte than a comparison.
        work_limit::spend(text.len() as u64)
            .map_err(|_| WalkStop::Failed(PathEvaluationError::LimitExceeded))?;
        match pattern {
            RegexPattern::Compiled(pattern) => Ok(pattern.is_match(text)),
            RegexPattern::Dynamic(reach, pattern) => {
                self.spend(COMPILE_COST)?;
                let pattern = self.operand_value(pattern, current, types)?;
                let pattern = pattern.as_ref().and_then(|pattern| pattern.node().as_str());
                Ok(pattern
                    .and_then(|pattern| compile(pattern, *reach).ok())
                    .is_some_and(|pattern| pattern.is_match(text)))
            }
        }
    }
}

/// Whether the first step does not apply to a value of this type.
fn is_wrong_type_for_steps(start: NodeRef<'_>, steps: &[PathStep]) -> bool {
    let wanted = match steps.first() {
        Some(PathStep::Name(_)) => JsonType::Object,
        Some(PathStep::Index(_)) => JsonType::Array,
        None => return false,
    };
    start.json_type() != wanted
}

/// Whether the first segment selects only from values of other types.
fn is_wrong_type_for_segments(start: NodeRef<'_>, segments: &[Segment]) -> bool {
    matches!(segments.first(), Some(Segment::Child(selectors)) if !selectors.expected.includes(start.json_type()))
}

/// Checks that two present values have the same type.
fn check_types(left: Option<NodeRef<'_>>, right: Option<NodeRef<'_>>) -> WalkResult {
    match (left.map(NodeRef::json_type), right.map(NodeRef::json_type)) {
        (Some(left), Some(right)) if left != right => {
            Err(WalkStop::Failed(PathEvaluationError::DifferentTypes { left, right }))
        }
        _ => Ok(()),
    }
}

fn type_error(wanted: &'static str, found: NodeRef<'_>) -> WalkStop {
    WalkStop::Failed(PathEvaluationError::WrongTypeInFilter { wanted, found: found.json_type() })
}

/// A mismatch of a path inside a filter, whose segments are not those of the whole path.
fn into_filter_error(mismatch: PathEvaluationError) -> PathEvaluationError {
    match mismatch {
        PathEvaluationError::WrongType { expected, found, .. } => {
            PathEvaluationError::WrongTypeInFilter { wanted: expected.with_article(), found }
        }
        other => other,
    }
}

/// The order of two numbers or two strings. Returns `None` for other values.
fn ordering(left: NodeRef<'_>, right: NodeRef<'_>) -> Option<Ordering> {
    match (left, right) {
        (NodeRef::Json(Value::Number(left)), NodeRef::Json(Value::Number(right))) => Some(left.cmp(right)),
        (left, right) => Some(left.as_str()?.cmp(right.as_str()?)),
    }
}
