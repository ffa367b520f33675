//! Filters, by the rules of RFC 9535: what does not fit is nothing, and nothing is only equal to nothing.

use std::cmp::Ordering;

use serde_json::Value;

use super::ast::{Comparison, Filter, Nested, Operand};
use super::evaluate::{Evaluator, Misfits, Stop, Walked};
use super::mismatch::Mismatch;
use super::pattern::{Pattern, compile};
use super::singular::walk_leniently;
use crate::call::Node;
use crate::json::{self, Decimal};

/// Bytes of text that are compared or searched for the cost of one node.
const TEXT_PER_NODE: usize = 256;
/// What compiling a pattern costs.
const COMPILE: usize = 1_000;

/// The value of an operand.
enum Found<'v> {
    Node(Node<'v>),
    Count(Value),
}

impl Found<'_> {
    fn node(&self) -> Node<'_> {
        match self {
            Self::Node(node) => *node,
            Self::Count(count) => Node::Json(count),
        }
    }
}

impl<'a> Evaluator<'a> {
    pub(super) fn holds(&mut self, filter: &Filter, current: Node<'a>) -> Walked<bool> {
        self.spend(1)?;
        match filter {
            Filter::Any(filters) => {
                for filter in filters {
                    if self.holds(filter, current)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Filter::All(filters) => {
                for filter in filters {
                    if !self.holds(filter, current)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Filter::Not(filter) => Ok(!self.holds(filter, current)?),
            Filter::Exists(query) => Ok(self.count(query, current, 1)? > 0),
            Filter::Compare(left, comparison, right) => {
                let left = self.value(left, current)?;
                let right = self.value(right, current)?;
                self.compare(left.as_ref().map(Found::node), *comparison, right.as_ref().map(Found::node))
            }
            Filter::Fits(text, pattern) => self.fits(text, pattern, current),
        }
    }

    /// How many nodes a query has, counted no further than `enough`.
    fn count(&mut self, query: &Nested, current: Node<'a>, enough: usize) -> Walked<usize> {
        let mut count = 0;
        self.visit(query, current, &mut |_| {
            count += 1;
            if count == enough { Err(Stop::Enough) } else { Ok(()) }
        })?;
        Ok(count)
    }

    fn visit(
        &mut self,
        query: &Nested,
        current: Node<'a>,
        receive: &mut dyn FnMut(Node<'a>) -> Walked,
    ) -> Walked {
        let Some(start) = self.start(query.base, Some(current)) else { return Ok(()) };
        let walked = self.aside(|evaluator| {
            evaluator.walk(start, &query.segments, Misfits::Ignored, &mut |node, _| receive(node))
        });
        match walked {
            Err(Stop::Enough) => Ok(()),
            walked => walked,
        }
    }

    fn value<'v>(&mut self, operand: &'v Operand, current: Node<'a>) -> Walked<Option<Found<'v>>>
    where
        'a: 'v,
    {
        Ok(match operand {
            Operand::Literal(value) => Some(Found::Node(Node::Json(value))),
            Operand::Singular(base, steps) => {
                self.spend(1)?;
                self.start(*base, Some(current))
                    .and_then(|start| walk_leniently(start, steps))
                    .map(Found::Node)
            }
            Operand::Length(of) => {
                let of = self.value(of, current)?;
                let length = match of.as_ref().map(Found::node) {
                    Some(Node::Json(Value::Array(items))) => Some(items.len()),
                    Some(Node::Json(Value::Object(members))) => Some(members.len()),
                    Some(node) => match node.as_str() {
                        Some(text) => {
                            self.spend(text.len() / TEXT_PER_NODE)?;
                            Some(text.chars().count())
                        }
                        None => None,
                    },
                    None => None,
                };
                length.map(|length| Found::Count(Value::from(length)))
            }
            Operand::Count(query) => {
                Some(Found::Count(Value::from(self.count(query, current, usize::MAX)?)))
            }
            Operand::Value(query) => {
                let (mut first, mut several) = (None, false);
                self.visit(query, current, &mut |node| {
                    several = first.replace(node).is_some();
                    if several { Err(Stop::Enough) } else { Ok(()) }
                })?;
                first.filter(|_| !several).map(Found::Node)
            }
        })
    }

    fn compare(
        &mut self,
        left: Option<Node<'_>>,
        comparison: Comparison,
        right: Option<Node<'_>>,
    ) -> Walked<bool> {
        let equal = match (left, right) {
            (Some(left), Some(right)) if left.json_type() == right.json_type() => {
                // A comparison walks both values side by side, and so no further than either.
                self.weigh(left, 0)?;
                left.equals(right)
            }
            (left, right) => left.is_none() && right.is_none(),
        };
        let order = left.zip(right).and_then(|(left, right)| order(left, right));
        Ok(match comparison {
            Comparison::Equal => equal,
            Comparison::NotEqual => !equal,
            Comparison::Less => order == Some(Ordering::Less),
            Comparison::LessOrEqual => equal || order == Some(Ordering::Less),
            Comparison::Greater => order == Some(Ordering::Greater),
            Comparison::GreaterOrEqual => equal || order == Some(Ordering::Greater),
        })
    }

    /// Pays for walking a whole value, which a comparison does, and refuses one that nests too deep for it.
    fn weigh(&mut self, node: Node<'_>, depth: usize) -> Walked {
        if depth > json::MAX_DEPTH {
            return Err(Stop::Failed(Mismatch::TooMuch));
        }
        self.spend(usize::from(depth > 0))?;
        match node {
            Node::Json(Value::Array(items)) => {
                items.iter().try_for_each(|item| self.weigh(Node::Json(item), depth + 1))
            }
            Node::Json(Value::Object(members)) => {
                members.values().try_for_each(|member| self.weigh(Node::Json(member), depth + 1))
            }
            Node::Json(Value::Number(number)) => self.spend(number.as_str().len() / TEXT_PER_NODE),
            node => self.spend(node.as_str().map_or(0, str::len) / TEXT_PER_NODE),
        }
    }

    fn fits(&mut self, text: &Operand, pattern: &Pattern, current: Node<'a>) -> Walked<bool> {
        let text = self.value(text, current)?;
        let Some(text) = text.as_ref().and_then(|text| text.node().as_str()) else { return Ok(false) };
        self.spend(text.len() / TEXT_PER_NODE)?;
        match pattern {
            Pattern::Compiled(pattern) => Ok(pattern.is_match(text)),
            Pattern::FromDocument(reach, pattern) => {
                self.spend(COMPILE)?;
                let pattern = self.value(pattern, current)?;
                let pattern = pattern.as_ref().and_then(|pattern| pattern.node().as_str());
                Ok(pattern
                    .and_then(|pattern| compile(pattern, *reach).ok())
                    .is_some_and(|pattern| pattern.is_match(text)))
            }
        }
    }
}

/// The order of two numbers or two strings; other values have none.
fn order(left: Node<'_>, right: Node<'_>) -> Option<Ordering> {
    match (left, right) {
        (Node::Json(Value::Number(left)), Node::Json(Value::Number(right))) => {
            Some(Decimal::of(left).cmp(&Decimal::of(right)))
        }
        (left, right) => Some(left.as_str()?.cmp(right.as_str()?)),
    }
}
