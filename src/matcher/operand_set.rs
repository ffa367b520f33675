//! Operands with several values, for `in`, `not_in` and `contains_any`. Rules + call → whether a value equals one of them.

use smallvec::SmallVec;

use super::comparison;
use super::operand::ResolvedOperand;
use super::truth::Truth;
use super::value_index::ValueIndex;
use super::value_source::ValueSource;
use super::work_units::{node_cost, spend_for, value_cost};
use crate::call::{CallView, NodeRef};
use crate::json::Value;
use crate::rules_schema::{Polarity, PolicyReader};
use crate::source;

/// An operand with several values.
#[derive(Debug)]
pub enum OperandSet {
    /// Literals of the rules file.
    Literals(Vec<Value>),
    /// The values that are read on each call, or the items of the one array among them.
    Source {
        /// Where they are read.
        source: ValueSource,
        /// The result for a path to several values that finds none.
        when_empty: WhenEmpty,
        /// The values by hash, if they are a constant of the bundle.
        constant: Option<Box<ValueIndex>>,
    },
}

/// The meaning of a path to several values that finds none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenEmpty {
    /// An empty set: in a restricting policy, so that a value is not in the set.
    Empty,
    /// An absent operand: in a permitting policy, so that nothing is permitted.
    Absent,
    /// Undecided: in a definition, which policies of both kinds may use.
    Undecided,
}

impl OperandSet {
    /// Reads an operand: a list of literals, `{ path: … }` or `{ expr: … }`.
    pub fn read(node: &source::YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let Some(source) = ValueSource::read_operand(node, reader) else {
            return Some(Self::Literals(node.items()?.iter().map(source::YamlNode::to_json).collect()));
        };
        let source = source?;
        let when_empty = match reader.polarity {
            _ if source.is_singular() => WhenEmpty::Absent,
            _ if reader.in_definition => WhenEmpty::Undecided,
            Polarity::Permitting => WhenEmpty::Absent,
            Polarity::Restricting | Polarity::Forming => WhenEmpty::Empty,
        };
        let constant = source.constant().and_then(index_constant).map(Box::new);
        Some(Self::Source { source, when_empty, constant })
    }

    /// Reads an operand whose values are searched for in texts and arrays.
    pub fn read_parts(node: &source::YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        Some(match Self::read(node, reader)? {
            Self::Source { source, when_empty, constant: Some(index) } => {
                Self::Source { source, when_empty, constant: Some(Box::new(index.with_parts())) }
            }
            other => other,
        })
    }

    /// Whether a text or an array contains one of the set.
    pub fn has_part_of(&self, node: NodeRef<'_>, view: &CallView<'_>) -> Truth {
        let (source, when_empty, constant) = match self {
            Self::Literals(values) => {
                return Truth::any(values.iter().map(|value| {
                    let operand = ResolvedOperand { value: NodeRef::Json(value), is_literal: true };
                    comparison::contains(node, operand)
                }));
            }
            Self::Source { source, when_empty, constant } => (source, *when_empty, constant),
        };
        if let Some(found) = constant.as_ref().and_then(|index| index.has_part_of(node)) {
            return found;
        }
        let found = with_set(source, when_empty, view, |values| {
            spend_for(values.len().saturating_mul(1 + node_cost(node)), 1)?;
            Ok(Truth::any(values.iter().map(|value| {
                comparison::contains(node, ResolvedOperand { value: *value, is_literal: false })
            })))
        });
        found.flatten().unwrap_or_else(|open| open)
    }

    /// Whether a value equals one of the set. A condition on elements reads the set once for all of them.
    pub fn has_equal(&self, node: NodeRef<'_>, operator: &str, view: &CallView<'_>) -> Truth {
        let (source, when_empty) = match self {
            Self::Literals(values) => return comparison::is_member(node, values, operator),
            Self::Source { constant: Some(index), source, when_empty } => {
                match index.contains(node, operator) {
                    Some(found) => return found,
                    None => (source, *when_empty),
                }
            }
            Self::Source { source, when_empty, constant: None } => (source, *when_empty),
        };
        if let Some(memo) = source.element_memo(view) {
            let index = memo.get_or_compute(std::ptr::from_ref(self).addr(), || {
                with_set(source, when_empty, view, index_values).flatten()
            });
            match &*index {
                Ok(Some(index)) => {
                    if let Some(found) = index.contains(node, operator) {
                        return found;
                    }
                }
                Ok(None) => {}
                Err(open) => return open.clone(),
            }
        }
        let found = with_set(source, when_empty, view, |values| {
            // A comparison walks both values in parallel, so no further than this one.
            spend_for(values.len().saturating_mul(comparison_units(node)), 1)?;
            Ok(Truth::any(values.iter().map(|value| {
                comparison::equals(node, ResolvedOperand { value: *value, is_literal: false }, operator)
            })))
        });
        found.flatten().unwrap_or_else(|open| open)
    }
}

/// Passes the values of a set to `use_values`.
///
/// # Errors
/// Returns the truth of the test if the set is absent or can't be read.
pub fn with_set<T>(
    source: &ValueSource,
    when_empty: WhenEmpty,
    view: &CallView<'_>,
    use_values: impl FnOnce(&[NodeRef<'_>]) -> T,
) -> Result<T, Truth> {
    source.with_values(view, |values| match values {
        Err(open) => Err(open),
        Ok([]) => match when_empty {
            WhenEmpty::Empty => Ok(use_values(&[])),
            WhenEmpty::Absent => Err(Truth::Absent),
            WhenEmpty::Undecided => Err(Truth::Undecided(format!("`{}` finds no value", source.text()))),
        },
        Ok([NodeRef::Json(Value::Array(items))]) if source.is_singular() => {
            spend_for(items.len(), 8)?;
            let items: SmallVec<[NodeRef<'_>; 8]> = items.iter().map(NodeRef::Json).collect();
            Ok(use_values(&items))
        }
        Ok([_]) if source.is_singular() => {
            Err(Truth::Undecided(format!("`{}` is not an array", source.text())))
        }
        Ok(several) => Ok(use_values(several)),
    })
}

/// The elements of a constant by hash. Returns `None` if it is not a list.
fn index_constant(constant: &Value) -> Option<ValueIndex> {
    let nodes: Vec<NodeRef<'_>> = constant.as_array()?.iter().map(NodeRef::Json).collect();
    ValueIndex::new(&nodes)
}

fn index_values(values: &[NodeRef<'_>]) -> Result<Option<ValueIndex>, Truth> {
    let bytes: usize = values.iter().filter_map(|value| value.as_str()).map(str::len).sum();
    spend_for(values.len().saturating_mul(8).saturating_add(bytes / 8), 1)?;
    Ok(ValueIndex::new(values))
}

/// The work units of comparing a value with one of any size, beside those of visiting that one.
fn comparison_units(node: NodeRef<'_>) -> usize {
    match node {
        NodeRef::Json(value @ (Value::Array(_) | Value::Object(_))) => value_cost(value),
        node => node.as_str().map_or(0, |text| text.len() / 256),
    }
}
