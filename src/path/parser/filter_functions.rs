//! Functions in the filters of a path: `length`, `count`, `value`, `match` and `search`, each with arguments of the types that it takes.

use std::ops::Range;

use jsonpath_rust::parser::model::{FnArg, Test, TestFunction};

use super::{AstBuilder, QueryTarget};
use crate::json::Value;
use crate::path::PathError;
use crate::path::ast::{Filter, Operand, ParsedQuery, PathStep, QueryBase, RegexPattern, Segment};
use crate::path::pattern::{MatchScope, compile};

impl AstBuilder<'_> {
    /// Converts a function that returns a value.
    pub(super) fn value_function(&mut self, function: TestFunction) -> Result<Operand, PathError> {
        let range = self.next_function();
        match function {
            TestFunction::Length(argument) => {
                Ok(Operand::Length(Box::new(self.value_argument(*argument, range)?)))
            }
            TestFunction::Count(argument) => Ok(Operand::Count(self.query_argument(argument, range)?)),
            TestFunction::Value(argument) => Ok(Operand::Value(self.query_argument(argument, range)?)),
            TestFunction::Match(..) | TestFunction::Search(..) => {
                Err(self.type_error("returns true or false, not a value", range))
            }
            TestFunction::Custom(..) => Err(self.unknown_function_error(range)),
        }
    }

    /// Converts an argument that must have one value.
    pub(super) fn value_argument(
        &mut self,
        argument: FnArg,
        function: Range<usize>,
    ) -> Result<Operand, PathError> {
        let query = match argument {
            FnArg::Literal(literal) => return Ok(Operand::Literal(self.literal(literal)?)),
            FnArg::Filter(_) => return Err(self.type_error("takes a value, not a condition", function)),
            FnArg::Test(test) => match *test {
                Test::Function(function) => return self.value_function(*function),
                query => self.nested_query(query)?,
            },
        };
        let steps: Option<Vec<PathStep>> = query.segments.iter().map(Segment::as_step).collect();
        match steps {
            Some(steps) => Ok(Operand::Singular(query.base, steps)),
            None => {
                Err(self.type_error("takes one value, and this query may yield several", function).with_help(
                    "`count(…)` counts the nodes of a query, `value(…)` takes the value of its only node",
                ))
            }
        }
    }

    /// Converts an argument that must be a query.
    pub(super) fn query_argument(
        &mut self,
        argument: FnArg,
        function: Range<usize>,
    ) -> Result<ParsedQuery, PathError> {
        match argument {
            FnArg::Test(test) => self.nested_query(*test),
            FnArg::Literal(_) | FnArg::Filter(_) => {
                Err(self.type_error("takes a query, such as `@.items[*]`", function))
            }
        }
    }

    pub(super) fn nested_query(&mut self, query: Test) -> Result<ParsedQuery, PathError> {
        match query {
            Test::RelQuery(segments) => {
                Ok(ParsedQuery { base: QueryBase::Current, segments: self.segments(segments)? })
            }
            Test::AbsQuery(query) => self.absolute_query(query.segments),
            Test::Function(_) => {
                let range = self.next_function();
                Err(self.type_error("is not a query", range))
            }
        }
    }

    pub(super) fn pattern_test(
        &mut self,
        text: FnArg,
        pattern: FnArg,
        reach: MatchScope,
        function: Range<usize>,
    ) -> Result<Filter, PathError> {
        let text = self.value_argument(text, function.clone())?;
        let pattern = self.value_argument(pattern, function.clone())?;
        let compiled = match &pattern {
            Operand::Literal(Value::String(pattern)) => Some(compile(pattern, reach)),
            _ => None,
        };
        match (compiled, self.target) {
            (Some(Ok(compiled)), _) => Ok(Filter::Matches(text, RegexPattern::Compiled(compiled))),
            (_, QueryTarget::Value) => Ok(Filter::Matches(text, RegexPattern::Dynamic(reach, pattern))),
            (Some(Err(error)), QueryTarget::Call(_)) => {
                Err(PathError::new(format!("the pattern is not valid: {error}"), function))
            }
            (None, QueryTarget::Call(_)) => Err(self
                .type_error("takes a pattern that is a string literal", function)
                .with_help("test the nodes of the path with `matches` instead")),
        }
    }

    /// The position of the next function.
    pub(super) fn next_function(&mut self) -> Range<usize> {
        self.functions += 1;
        self.positions.functions.get(self.functions - 1).cloned().unwrap_or(0..self.text.len())
    }

    pub(super) fn type_error(&self, problem: &str, function: Range<usize>) -> PathError {
        let name = self.text.get(function.clone()).unwrap_or_default();
        PathError::new(format!("`{name}()` {problem}"), function)
    }

    pub(super) fn unknown_function_error(&self, range: Range<usize>) -> PathError {
        self.type_error("is not a JSONPath function", range)
            .with_help("the functions are `length`, `count`, `value`, `match` and `search`")
    }
}
