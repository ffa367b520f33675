//! Parser: text → syntax tree, by the grammar of RFC 9535. Filters are read by `filter_parser`.

use std::ops::Range;

use super::PathError;
use super::ast::{ParsedQuery, QueryBase, Segment, Selector, Selectors, SliceSelector};
use super::cursor::{Cursor, WHITE_SPACE, is_name_part};
use crate::call::Root;
use crate::diagnostic::closest_match;

/// The maximum length of one query, in bytes.
const MAX_TEXT: usize = 4096;
/// The maximum number of segments of one query.
const MAX_SEGMENTS: usize = 64;

/// The value that `$` refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueryTarget {
    /// One JSON value.
    Value,
    /// The call document: the name of one of its members must follow `$`.
    Call,
}

pub(super) fn parse_query(text: &str, target: QueryTarget) -> Result<ParsedQuery, PathError> {
    if text.len() > MAX_TEXT {
        return Err(PathError::new(format!("the path is longer than {MAX_TEXT} bytes"), 0..text.len()));
    }
    if !text.starts_with('$') {
        return Err(PathError::new(format!("`{text}` is not a path: a path starts with `$`"), 0..text.len())
            .with_help(format!("write `$.{}`", text.trim().trim_start_matches('.'))));
    }
    let mut parser = Parser { cursor: Cursor::new(text), target };
    let query = parser.absolute_query()?;
    match parser.cursor.rest() {
        "" => Ok(query),
        _ => Err(parser.trailing_text_error()),
    }
}

pub(super) struct Parser<'t> {
    pub(super) cursor: Cursor<'t>,
    pub(super) target: QueryTarget,
}

impl Parser<'_> {
    /// Reads a query from `$`, with its base.
    pub(super) fn absolute_query(&mut self) -> Result<ParsedQuery, PathError> {
        let start = self.cursor.position();
        self.cursor.expect("$")?;
        if self.target == QueryTarget::Value {
            return Ok(ParsedQuery { base: QueryBase::Document, segments: self.segments()? });
        }
        let member = self.member_range(start);
        let mut segments = self.segments()?;
        if let Some(Segment::Child(Selectors { list, .. })) = segments.first()
            && let [Selector::Name(name)] = list.as_slice()
        {
            let base = QueryBase::CallMember(parse_root(name, member)?);
            segments.remove(0);
            return Ok(ParsedQuery { base, segments });
        }
        if segments.is_empty() && !self.ends_query() {
            return Err(self.cursor.unexpected());
        }
        Err(PathError::new("a path reads one member of the call, named directly after `$`", member)
            .with_help(format!("start with one of {}", list_roots())))
    }

    /// Whether a query can end here.
    fn ends_query(&self) -> bool {
        let next = self.cursor.rest().trim_start_matches(WHITE_SPACE).chars().next();
        next.is_none_or(|c| "])=!<>&|,".contains(c))
    }

    /// The position of the first name after the `$` at `start`, or of the `$` itself.
    fn member_range(&self, start: usize) -> Range<usize> {
        let mut ahead = self.cursor.clone();
        while ahead.eat(".") || ahead.eat("[") {
            ahead.skip_space();
        }
        let first = ahead.position();
        if matches!(ahead.string(), Ok(Some(_))) || ahead.name().is_ok() {
            first..ahead.position()
        } else {
            start..start + 1
        }
    }

    pub(super) fn segments(&mut self) -> Result<Vec<Segment>, PathError> {
        let mut segments = Vec::new();
        loop {
            let before = self.cursor.clone();
            self.cursor.skip_space();
            let Some(segment) = self.segment()? else {
                // White space after the last segment belongs to what follows.
                self.cursor = before;
                return Ok(segments);
            };
            segments.push(segment);
            if segments.len() > MAX_SEGMENTS {
                let message = format!("the path has more than {MAX_SEGMENTS} segments");
                return Err(PathError::new(message, 0..self.cursor.text().len()));
            }
        }
    }

    fn segment(&mut self) -> Result<Option<Segment>, PathError> {
        if self.cursor.eat("..") {
            let selectors = match self.bracketed_selectors()? {
                Some(selectors) => selectors,
                None => self.shorthand()?,
            };
            return Ok(Some(Segment::Descendant(selectors)));
        }
        if self.cursor.eat(".") {
            return Ok(Some(Segment::Child(self.shorthand()?)));
        }
        Ok(self.bracketed_selectors()?.map(Segment::Child))
    }

    /// Reads `*` or a name.
    fn shorthand(&mut self) -> Result<Selectors, PathError> {
        let selector = if self.cursor.eat("*") {
            Selector::Wildcard
        } else {
            Selector::Name(self.cursor.name()?.to_owned())
        };
        Ok(Selectors::new(vec![selector]))
    }

    fn bracketed_selectors(&mut self) -> Result<Option<Selectors>, PathError> {
        if !self.cursor.open("[")? {
            return Ok(None);
        }
        let mut list = vec![self.selector()?];
        while !self.cursor.close("]") {
            self.cursor.expect(",")?;
            self.cursor.skip_space();
            list.push(self.selector()?);
        }
        Ok(Some(Selectors::new(list)))
    }

    fn selector(&mut self) -> Result<Selector, PathError> {
        if self.cursor.eat("*") {
            return Ok(Selector::Wildcard);
        }
        if self.cursor.eat("?") {
            self.cursor.skip_space();
            return Ok(Selector::Filter(self.filter()?));
        }
        if let Some(name) = self.cursor.string()? {
            return Ok(Selector::Name(name));
        }
        let first = self.cursor.integer()?;
        let after_first = self.cursor.clone();
        self.cursor.skip_space();
        if self.cursor.eat(":") {
            return self.slice(first).map(Selector::Slice);
        }
        self.cursor = after_first;
        first.map(Selector::Index).ok_or_else(|| self.cursor.unexpected())
    }

    /// Reads what follows the first colon of a slice.
    fn slice(&mut self, start: Option<i64>) -> Result<SliceSelector, PathError> {
        self.cursor.skip_space();
        let end = self.cursor.integer()?;
        self.cursor.skip_space();
        let mut step = None;
        if self.cursor.eat(":") {
            self.cursor.skip_space();
            step = self.cursor.integer()?;
        }
        Ok(SliceSelector { start, end, step: step.unwrap_or(1) })
    }

    /// The error for text after the end of the query.
    fn trailing_text_error(&self) -> PathError {
        let (rest, at) = (self.cursor.rest(), self.cursor.position());
        let behind = rest.trim_start_matches(WHITE_SPACE);
        if behind.is_empty() {
            return PathError::new("the path ends with white space", at..at + rest.len());
        }
        let read = self.cursor.slice(0..at);
        let name = read.get(read.trim_end_matches(is_name_part).len()..).unwrap_or_default();
        if behind.len() < rest.len() && !name.is_empty() && behind.starts_with(is_name_part) {
            return PathError::new(format!("unexpected white space after `{name}`"), at..at + 1)
                .with_help("write a name that contains white space in brackets and quotes: `['…']`");
        }
        self.cursor.unexpected()
    }
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
