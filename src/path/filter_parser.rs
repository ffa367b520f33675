//! Parser of filters: `?…` → [`Filter`], well-typed by RFC 9535 section 2.4.3.

use std::ops::Range;

use super::PathError;
use super::ast::{ComparisonOperator, Filter, Operand, ParsedQuery, PathStep, QueryBase, Segment};
use super::parser::{Parser, QueryTarget};
use super::pattern::{MatchScope, RegexPattern, compile};
use crate::json::Value;

/// The operators of comparisons, each before its own prefixes.
const COMPARISONS: [(&str, ComparisonOperator); 6] = [
    ("==", ComparisonOperator::Equal),
    ("!=", ComparisonOperator::NotEqual),
    ("<=", ComparisonOperator::LessOrEqual),
    (">=", ComparisonOperator::GreaterOrEqual),
    ("<", ComparisonOperator::Less),
    (">", ComparisonOperator::Greater),
];

/// A part of a filter whose type is known only from what follows it.
enum Term {
    Literal(Value),
    Query(ParsedQuery),
    /// `length`, `count` or `value`.
    ValueFunction(Operand),
    /// `match` or `search`.
    LogicalFunction(Filter),
}

/// A term, and the range that errors name: of a function its name, otherwise the term.
struct LocatedTerm {
    term: Term,
    range: Range<usize>,
}

impl Parser<'_> {
    /// Reads a logical expression.
    pub(super) fn filter(&mut self) -> Result<Filter, PathError> {
        let first = self.conjunction()?;
        let mut filters = vec![first];
        while self.operator("||") {
            filters.push(self.conjunction()?);
        }
        Ok(single_or(filters, Filter::Any))
    }

    fn conjunction(&mut self) -> Result<Filter, PathError> {
        let mut filters = vec![self.basic_filter()?];
        while self.operator("&&") {
            filters.push(self.basic_filter()?);
        }
        Ok(single_or(filters, Filter::All))
    }

    /// Reads an operator and the white space around it, if it comes next.
    fn operator(&mut self, operator: &str) -> bool {
        self.cursor.skip_space();
        let found = self.cursor.eat(operator);
        if found {
            self.cursor.skip_space();
        }
        found
    }

    /// Reads an expression in parentheses, a comparison or a test.
    fn basic_filter(&mut self) -> Result<Filter, PathError> {
        let is_negated = self.operator("!");
        let filter = if self.cursor.open("(")? {
            let filter = self.filter()?;
            if !self.cursor.close(")") {
                return Err(self.cursor.unexpected());
            }
            filter
        } else {
            let left = self.term()?;
            let comparison =
                COMPARISONS.into_iter().find(|(operator, _)| !is_negated && self.operator(operator));
            match comparison {
                Some((_, operator)) => {
                    let left = self.comparable(left)?;
                    let right = self.term()?;
                    Filter::Compare(left, operator, self.comparable(right)?)
                }
                None => self.test(left)?,
            }
        };
        Ok(if is_negated { Filter::Not(Box::new(filter)) } else { filter })
    }

    /// A term that stands alone.
    fn test(&self, located: LocatedTerm) -> Result<Filter, PathError> {
        match located.term {
            Term::Query(query) => Ok(Filter::Exists(query)),
            Term::LogicalFunction(filter) => Ok(filter),
            Term::ValueFunction(_) => Err(self
                .function_error("returns a value, not true or false", located.range)
                .with_help("compare it: `… == 1`")),
            Term::Literal(_) => Err(self.literal_test_error(located.range)),
        }
    }

    fn literal_test_error(&self, range: Range<usize>) -> PathError {
        // The literal may be the left side of a comparison that is misspelled.
        if !self.cursor.rest().starts_with([']', ')', '&', '|', ',']) {
            return self.cursor.unexpected();
        }
        let literal = self.cursor.slice(range.clone());
        PathError::new(format!("`{literal}` is not a condition"), range)
            .with_help("compare it: `@.name == …`")
    }

    /// A term that is compared.
    fn comparable(&self, located: LocatedTerm) -> Result<Operand, PathError> {
        match located.term {
            Term::Literal(value) => Ok(Operand::Literal(value)),
            Term::ValueFunction(operand) => Ok(operand),
            Term::LogicalFunction(_) => {
                Err(self.function_error("returns true or false, not a value", located.range))
            }
            Term::Query(query) => singular(query).ok_or_else(|| {
                PathError::new(
                    "a comparison takes one value, and this query may yield several",
                    located.range,
                )
                .with_help(
                    "`count(…)` counts the nodes of a query, `value(…)` takes the value of its only node",
                )
            }),
        }
    }

    fn term(&mut self) -> Result<LocatedTerm, PathError> {
        let start = self.cursor.position();
        if let Some(term) = self.literal()? {
            return Ok(LocatedTerm { term, range: start..self.cursor.position() });
        }
        if let Some(query) = self.query()? {
            return Ok(LocatedTerm { term: Term::Query(query), range: start..self.cursor.position() });
        }
        self.function()
    }

    fn literal(&mut self) -> Result<Option<Term>, PathError> {
        if let Some(text) = self.cursor.string()? {
            return Ok(Some(Term::Literal(Value::String(text))));
        }
        if let Some(number) = self.cursor.number()? {
            return Ok(Some(Term::Literal(number)));
        }
        let mut ahead = self.cursor.clone();
        let value = match ahead.name() {
            Ok("null") => Value::Null,
            Ok("true") => Value::Bool(true),
            Ok("false") => Value::Bool(false),
            _ => return Ok(None),
        };
        self.cursor = ahead;
        Ok(Some(Term::Literal(value)))
    }

    fn query(&mut self) -> Result<Option<ParsedQuery>, PathError> {
        if self.cursor.eat("@") {
            return Ok(Some(ParsedQuery { base: QueryBase::Current, segments: self.segments()? }));
        }
        if self.cursor.peek() == Some('$') { self.absolute_query().map(Some) } else { Ok(None) }
    }

    /// Reads a function with its arguments.
    fn function(&mut self) -> Result<LocatedTerm, PathError> {
        let (before, start) = (self.cursor.clone(), self.cursor.position());
        let name = self.cursor.name().map_err(|_| before.unexpected())?;
        let range = start..self.cursor.position();
        if !self.cursor.open("(")? {
            return Err(before.unexpected());
        }
        let (term, arguments) = match name {
            "length" => {
                let operand = self.value_argument(&range, "one argument")?;
                (Term::ValueFunction(Operand::Length(Box::new(operand))), "one argument")
            }
            "count" => (Term::ValueFunction(Operand::Count(self.query_argument(&range)?)), "one argument"),
            "value" => (Term::ValueFunction(Operand::Value(self.query_argument(&range)?)), "one argument"),
            "match" => (self.pattern_test(MatchScope::Whole, &range)?, "two arguments"),
            "search" => (self.pattern_test(MatchScope::Part, &range)?, "two arguments"),
            _ => {
                return Err(self
                    .function_error("is not a JSONPath function", range)
                    .with_help("the functions are `length`, `count`, `value`, `match` and `search`"));
            }
        };
        if self.cursor.close(")") {
            return Ok(LocatedTerm { term, range });
        }
        match self.cursor.peek() {
            Some(',') => Err(self.function_error(&format!("takes {arguments}"), range)),
            _ => Err(self.cursor.unexpected()),
        }
    }

    /// Reads an argument that must have one value. `arguments`: how many the function takes.
    fn value_argument(&mut self, function: &Range<usize>, arguments: &str) -> Result<Operand, PathError> {
        let not_a_condition =
            |parser: &Self| Err(parser.function_error("takes a value, not a condition", function.clone()));
        match self.cursor.peek() {
            Some(')') => return Err(self.function_error(&format!("takes {arguments}"), function.clone())),
            Some('!' | '(') => return not_a_condition(self),
            _ => {}
        }
        let located = self.term()?;
        self.cursor.skip_space();
        if self.cursor.rest().starts_with(['=', '!', '<', '>', '&', '|']) {
            return not_a_condition(self);
        }
        match located.term {
            Term::Literal(value) => Ok(Operand::Literal(value)),
            Term::ValueFunction(operand) => Ok(operand),
            Term::LogicalFunction(_) => {
                Err(self.function_error("returns true or false, not a value", located.range))
            }
            Term::Query(query) => singular(query).ok_or_else(|| {
                self.function_error("takes one value, and this query may yield several", function.clone())
                    .with_help(
                        "`count(…)` counts the nodes of a query, `value(…)` takes the value of its only node",
                    )
            }),
        }
    }

    /// Reads an argument that must be a query.
    fn query_argument(&mut self, function: &Range<usize>) -> Result<ParsedQuery, PathError> {
        match self.cursor.peek() {
            Some(')') => return Err(self.function_error("takes one argument", function.clone())),
            Some('@' | '$') => {}
            Some('!' | '(') => return Err(self.query_argument_error(function)),
            _ => {
                let located = self.term()?;
                return Err(match located.term {
                    Term::ValueFunction(_) | Term::LogicalFunction(_) => {
                        self.function_error("is not a query", located.range)
                    }
                    _ => self.query_argument_error(function),
                });
            }
        }
        let query = self.query()?.ok_or_else(|| self.query_argument_error(function))?;
        self.cursor.skip_space();
        if self.cursor.rest().starts_with(['=', '!', '<', '>', '&', '|']) {
            return Err(self.query_argument_error(function));
        }
        Ok(query)
    }

    fn query_argument_error(&self, function: &Range<usize>) -> PathError {
        self.function_error("takes a query, such as `@.items[*]`", function.clone())
    }

    /// Reads the arguments of `match` or `search`.
    fn pattern_test(&mut self, reach: MatchScope, function: &Range<usize>) -> Result<Term, PathError> {
        let text = self.value_argument(function, "two arguments")?;
        if self.cursor.peek() == Some(')') {
            return Err(self.function_error("takes two arguments", function.clone()));
        }
        self.cursor.expect(",")?;
        self.cursor.skip_space();
        let pattern = self.value_argument(function, "two arguments")?;
        let compiled = match &pattern {
            Operand::Literal(Value::String(pattern)) => Some(compile(pattern, reach)),
            _ => None,
        };
        let pattern = match (compiled, self.target) {
            (Some(Ok(compiled)), _) => RegexPattern::Compiled(compiled),
            (_, QueryTarget::Value) => RegexPattern::Dynamic(reach, pattern),
            (Some(Err(error)), QueryTarget::Call) => {
                return Err(PathError::new(format!("the pattern is not valid: {error}"), function.clone()));
            }
            (None, QueryTarget::Call) => {
                return Err(self
                    .function_error("takes a pattern that is a string literal", function.clone())
                    .with_help("test the nodes of the path with `matches` instead"));
            }
        };
        Ok(Term::LogicalFunction(Filter::Matches(text, pattern)))
    }

    fn function_error(&self, problem: &str, function: Range<usize>) -> PathError {
        let name = self.cursor.slice(function.clone());
        PathError::new(format!("`{name}()` {problem}"), function)
    }
}

/// One filter, or several joined.
fn single_or(mut filters: Vec<Filter>, join: fn(Vec<Filter>) -> Filter) -> Filter {
    match filters.pop() {
        Some(only) if filters.is_empty() => only,
        last => {
            filters.extend(last);
            join(filters)
        }
    }
}

/// The operand of a query that yields at most one node. Returns `None` for any other query.
fn singular(query: ParsedQuery) -> Option<Operand> {
    let steps: Option<Vec<PathStep>> = query.segments.iter().map(Segment::as_step).collect();
    Some(Operand::Singular(query.base, steps?))
}
