//! Parser: text → syntax tree. `jsonpath-rust` parses; this module checks that the query is well-typed by RFC 9535.

mod filter_functions;

use std::ops::Range;

use jsonpath_rust::parser::errors::JsonPathError;
use jsonpath_rust::parser::model::{
    Comparable, Comparison as ParsedComparison, Filter as ParsedFilter, FilterAtom, Literal,
    Segment as ParsedSegment, Selector as ParsedSelector, SingularQuery, SingularQuerySegment, Test,
    TestFunction,
};
use jsonpath_rust::parser::parse_json_path;

use super::PathError;
use super::ast::{
    ComparisonOperator, Filter, Operand, ParsedQuery, PathStep, QueryBase, Segment, Selector, Selectors,
    SliceSelector,
};
use super::element_name::ElementNames;
use super::element_syntax::ElementSyntax;
use super::pattern::MatchScope;
use super::scanner::{TokenPositions, scan};
use crate::call::Root;
use crate::diagnostic::closest_match;
use crate::json::{Number, Value};

/// The maximum number of segments of one query.
const MAX_SEGMENTS: usize = 64;

/// The value that `$` refers to.
#[derive(Clone, Copy, Debug)]
pub(super) enum QueryTarget<'e> {
    /// One JSON value.
    Value,
    /// The call document: the name of one of its members must follow `$`. `$item` is an element with one of these names.
    Call(&'e ElementNames),
}

pub(super) fn parse_query(text: &str, target: QueryTarget<'_>) -> Result<ParsedQuery, PathError> {
    if let QueryTarget::Call(_) = target
        && let Some(expanded) = ElementSyntax::expand(text)
    {
        let parsed = parse_expanded(&expanded.text, target, &expanded.roots);
        return parsed.map_err(|error| PathError { range: expanded.original_range(error.range), ..error });
    }
    parse_expanded(text, target, &[])
}

/// Parses a query in which `$.item`, for the roots with these numbers, stands for `$item`.
fn parse_expanded(text: &str, target: QueryTarget<'_>, elements: &[usize]) -> Result<ParsedQuery, PathError> {
    let words = scan(text)?;
    let query = parse_json_path(text).map_err(|error| syntax_error(text, &words, &error))?;
    let mut lowering =
        AstBuilder { text, target, elements, positions: words, roots: 0, functions: 0, decimals: 0 };
    lowering.absolute_query(query.segments)
}

fn syntax_error(text: &str, words: &TokenPositions, error: &JsonPathError) -> PathError {
    if let Some(range) = words.huge_number.clone() {
        return PathError::new("the number is too large for a path", range)
            .with_help("whole numbers in paths go up to 9007199254740991");
    }
    let at = match error {
        // The parser's own error type cannot be named through its crate; its debug form is `Pos(8)` or `Span((8, 9))`.
        JsonPathError::PestError(error) => {
            let location = format!("{:?}", error.location);
            let digits = location.trim_start_matches(|c: char| !c.is_ascii_digit());
            digits
                .split(|c: char| !c.is_ascii_digit())
                .next()
                .and_then(|digits| digits.parse().ok())
                .unwrap_or(0)
        }
        JsonPathError::InvalidJsonPath(message) => {
            let mut letters = message.chars();
            let first = letters.next().map(|letter| letter.to_ascii_lowercase());
            let message: String = first.into_iter().chain(letters).collect();
            return PathError::new(format!("the path is not valid: {message}"), 0..text.len());
        }
        _ => return PathError::new(format!("`{text}` is not a valid path"), 0..text.len()),
    };
    let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) else {
        return PathError::new("the path ends too early", 0..text.len());
    };
    let error = PathError::new(format!("the path is not valid at `{c}`"), at..at + c.len_utf8());
    match c {
        '=' => error.with_help("equality is `==`"),
        '&' => error.with_help("both conditions are `&&`"),
        '|' => error.with_help("either condition is `||`"),
        '-' => error.with_help(
            "write a name with other characters than letters, digits and `_` in brackets and quotes: `['…']`",
        ),
        _ => error,
    }
}

struct AstBuilder<'t> {
    text: &'t str,
    target: QueryTarget<'t>,
    /// The numbers of the roots that are elements.
    elements: &'t [usize],
    positions: TokenPositions,
    /// The number of tokens of each kind that the tree has reached.
    roots: usize,
    functions: usize,
    decimals: usize,
}

impl AstBuilder<'_> {
    /// Converts a query from `$`, with its base.
    fn absolute_query(&mut self, segments: Vec<ParsedSegment>) -> Result<ParsedQuery, PathError> {
        let range = self.positions.roots.get(self.roots).cloned().unwrap_or(0..self.text.len());
        let is_element = self.elements.contains(&self.roots);
        self.roots += 1;
        let QueryTarget::Call(elements) = self.target else {
            return Ok(ParsedQuery { base: QueryBase::Document, segments: self.segments(segments)? });
        };
        let mut segments = segments.into_iter();
        match segments.next() {
            Some(ParsedSegment::Selector(ParsedSelector::Name(name))) => {
                let root = match is_element {
                    true => parse_element(&name, elements, range)?,
                    false if elements.root(&name).is_some() && Root::from_name(&name).is_none() => {
                        let error = PathError::new(format!("`{name}` is not a member of the call"), range);
                        return Err(error.with_help(format!("the element is `${name}`, without a dot")));
                    }
                    false => parse_root(&name, range)?,
                };
                let segments = self.segments(segments.collect())?;
                Ok(match (root, segments.split_first()) {
                    (Root::Session, Some((first, rest))) if names_round(first) => {
                        ParsedQuery { base: QueryBase::CallMember(Root::Round), segments: rest.to_vec() }
                    }
                    _ => ParsedQuery { base: QueryBase::CallMember(root), segments },
                })
            }
            _ => Err(PathError::new("a path reads one member of the call, named directly after `$`", range)
                .with_help(format!("start with one of {}", list_roots()))),
        }
    }

    fn segments(&mut self, segments: Vec<ParsedSegment>) -> Result<Vec<Segment>, PathError> {
        if segments.len() > MAX_SEGMENTS {
            return Err(PathError::new(
                format!("the path has more than {MAX_SEGMENTS} segments"),
                0..self.text.len(),
            ));
        }
        segments.into_iter().map(|segment| self.segment(segment)).collect()
    }

    fn segment(&mut self, segment: ParsedSegment) -> Result<Segment, PathError> {
        match segment {
            ParsedSegment::Selector(selector) => Ok(Segment::Child(self.selectors(vec![selector])?)),
            ParsedSegment::Selectors(selectors) => Ok(Segment::Child(self.selectors(selectors)?)),
            ParsedSegment::Descendant(segment) => match *segment {
                ParsedSegment::Selector(selector) => Ok(Segment::Descendant(self.selectors(vec![selector])?)),
                ParsedSegment::Selectors(selectors) => Ok(Segment::Descendant(self.selectors(selectors)?)),
                ParsedSegment::Descendant(_) => {
                    Err(PathError::new("`..` must be followed by a name or brackets", 0..self.text.len()))
                }
            },
        }
    }

    fn selectors(&mut self, selectors: Vec<ParsedSelector>) -> Result<Selectors, PathError> {
        let list: Result<Vec<_>, _> = selectors.into_iter().map(|selector| self.selector(selector)).collect();
        Ok(Selectors::new(list?))
    }

    fn selector(&mut self, selector: ParsedSelector) -> Result<Selector, PathError> {
        Ok(match selector {
            ParsedSelector::Name(name) => Selector::Name(name),
            ParsedSelector::Index(index) => Selector::Index(index),
            ParsedSelector::Wildcard => Selector::Wildcard,
            ParsedSelector::Slice(start, end, step) => {
                Selector::Slice(SliceSelector { start, end, step: step.unwrap_or(1) })
            }
            ParsedSelector::Filter(filter) => Selector::Filter(self.filter(filter)?),
        })
    }

    fn filter(&mut self, filter: ParsedFilter) -> Result<Filter, PathError> {
        let negated = |not: bool, filter| if not { Filter::Not(Box::new(filter)) } else { filter };
        Ok(match filter {
            ParsedFilter::Or(filters) => Filter::Any(self.filters(filters)?),
            ParsedFilter::And(filters) => Filter::All(self.filters(filters)?),
            ParsedFilter::Atom(FilterAtom::Filter { expr, not }) => negated(not, self.filter(*expr)?),
            ParsedFilter::Atom(FilterAtom::Test { expr, not }) => negated(not, self.test(*expr)?),
            ParsedFilter::Atom(FilterAtom::Comparison(comparison)) => self.comparison(*comparison)?,
        })
    }

    fn filters(&mut self, filters: Vec<ParsedFilter>) -> Result<Vec<Filter>, PathError> {
        filters.into_iter().map(|filter| self.filter(filter)).collect()
    }

    fn test(&mut self, test: Test) -> Result<Filter, PathError> {
        let function = match test {
            Test::RelQuery(_) | Test::AbsQuery(_) => return Ok(Filter::Exists(self.nested_query(test)?)),
            Test::Function(function) => *function,
        };
        let range = self.next_function();
        match function {
            TestFunction::Match(text, pattern) => self.pattern_test(text, pattern, MatchScope::Whole, range),
            TestFunction::Search(text, pattern) => self.pattern_test(text, pattern, MatchScope::Part, range),
            TestFunction::Length(_) | TestFunction::Count(_) | TestFunction::Value(_) => Err(self
                .type_error("returns a value, not true or false", range)
                .with_help("compare it: `… == 1`")),
            TestFunction::Custom(..) => Err(self.unknown_function_error(range)),
        }
    }

    fn comparison(&mut self, comparison: ParsedComparison) -> Result<Filter, PathError> {
        let (left, comparison, right) = match comparison {
            ParsedComparison::Eq(left, right) => (left, ComparisonOperator::Equal, right),
            ParsedComparison::Ne(left, right) => (left, ComparisonOperator::NotEqual, right),
            ParsedComparison::Lt(left, right) => (left, ComparisonOperator::Less, right),
            ParsedComparison::Lte(left, right) => (left, ComparisonOperator::LessOrEqual, right),
            ParsedComparison::Gt(left, right) => (left, ComparisonOperator::Greater, right),
            ParsedComparison::Gte(left, right) => (left, ComparisonOperator::GreaterOrEqual, right),
        };
        Ok(Filter::Compare(self.comparable(left)?, comparison, self.comparable(right)?))
    }

    fn comparable(&mut self, comparable: Comparable) -> Result<Operand, PathError> {
        match comparable {
            Comparable::Literal(literal) => Ok(Operand::Literal(self.literal(literal)?)),
            Comparable::Function(function) => self.value_function(function),
            Comparable::SingularQuery(SingularQuery::Current(segments)) => {
                Ok(Operand::Singular(QueryBase::Current, segments.into_iter().map(convert_step).collect()))
            }
            Comparable::SingularQuery(SingularQuery::Root(segments)) => {
                let as_parsed = |segment| match segment {
                    SingularQuerySegment::Name(name) => ParsedSegment::Selector(ParsedSelector::Name(name)),
                    SingularQuerySegment::Index(index) => {
                        ParsedSegment::Selector(ParsedSelector::Index(index))
                    }
                };
                let nested = self.absolute_query(segments.into_iter().map(as_parsed).collect())?;
                let steps = nested.segments.iter().filter_map(Segment::as_step).collect();
                Ok(Operand::Singular(nested.base, steps))
            }
        }
    }

    fn literal(&mut self, literal: Literal) -> Result<Value, PathError> {
        Ok(match literal {
            Literal::Null => Value::Null,
            Literal::Bool(value) => Value::Bool(value),
            Literal::String(text) => Value::String(text),
            Literal::Int(number) => Value::from(number),
            Literal::Float(rounded) => Value::Number(self.exact_number(rounded)?),
        })
    }

    /// Reads the exact number from the text, since the parser keeps only the nearest float.
    fn exact_number(&mut self, rounded: f64) -> Result<Number, PathError> {
        let range = self.positions.decimals.get(self.decimals).cloned().unwrap_or(0..self.text.len());
        self.decimals += 1;
        let written = self.text.get(range.clone()).unwrap_or_default();
        written
            .parse::<Number>()
            .ok()
            .filter(|_| written.parse() == Ok(rounded))
            .ok_or_else(|| PathError::new(format!("`{written}` is not a number"), range))
    }
}

fn convert_step(segment: SingularQuerySegment) -> PathStep {
    match segment {
        SingularQuerySegment::Name(name) => PathStep::Name(name),
        SingularQuerySegment::Index(index) => PathStep::Index(index),
    }
}

/// Whether a segment below the session selects the place in the round, which is supplied with the call and no part of the state.
fn names_round(segment: &Segment) -> bool {
    segment.as_step() == Some(PathStep::Name("round".to_owned()))
}

fn parse_element(name: &str, elements: &ElementNames, range: Range<usize>) -> Result<Root, PathError> {
    elements.root(name).ok_or_else(|| {
        let error = PathError::new(format!("`${name}` is not the name of an element"), range);
        if Root::from_name(name).is_some() {
            return error.with_help(format!("write `$.{name}` for a member of the call"));
        }
        match elements.innermost() {
            Some(known) => {
                let meant = closest_match(name, elements.names()).unwrap_or(known);
                error.with_help(format!("the element is `${meant}` here"))
            }
            None => error.with_help("elements exist only in conditions of `every`, `any_of` and `none`"),
        }
    })
}

fn parse_root(name: &str, range: Range<usize>) -> Result<Root, PathError> {
    Root::from_name(name).ok_or_else(|| {
        let error = PathError::new(format!("`{name}` is not a member of the call"), range);
        match closest_match(name, Root::ALL.map(Root::name)) {
            Some(meant) => error.with_help(format!("did you mean `$.{meant}`?")),
            None => error.with_help(format!("start with one of {}", list_roots())),
        }
    })
}

fn list_roots() -> String {
    Root::ALL.map(|root| format!("`$.{}`", root.name())).join(", ")
}
