//! Parser: template text → literal pieces and placeholders.

use std::ops::Range;
use std::sync::Arc;

use super::{ExpressionPlaceholder, Placeholder, PlaceholderRoot, PlaceholderStep, TemplatePiece};
use crate::call::Root;
use crate::diagnostic::closest_match;
use crate::script::{Expression, Names};

/// A syntax error in a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    /// The problem.
    pub message: String,
    /// The position, in bytes from the start of the text.
    pub range: Range<usize>,
    /// The fix, if known.
    pub help: Option<String>,
}

impl TemplateError {
    fn new(message: impl Into<String>, range: Range<usize>) -> Self {
        Self { message: message.into(), range, help: None }
    }

    fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

const OPEN: &str = "{{";
const CLOSE: &str = "}}";
const LITERAL_OPEN: &str = "{{{{";
/// How many `}}` are tried as the end of an expression.
const MAX_ENDS: usize = 4;

pub(super) fn parse_pieces(
    text: &str,
    extra: &[&str],
    names: &Names,
) -> Result<Vec<TemplatePiece>, TemplateError> {
    let mut reader = TemplateParser { text, offset: 0, names };
    let mut pieces = Vec::new();
    let mut literal = String::new();
    while !reader.rest().is_empty() {
        if reader.consume(LITERAL_OPEN) {
            literal.push_str(OPEN);
        } else if reader.rest().starts_with(OPEN) {
            if !literal.is_empty() {
                pieces.push(TemplatePiece::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(reader.parse_piece(extra)?);
        } else {
            literal.extend(reader.next());
        }
    }
    if !literal.is_empty() {
        pieces.push(TemplatePiece::Literal(literal));
    }
    Ok(pieces)
}

struct TemplateParser<'t> {
    text: &'t str,
    offset: usize,
    names: &'t Names,
}

impl<'t> TemplateParser<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.offset..).unwrap_or_default()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.offset += next.len_utf8();
        Some(next)
    }

    fn consume(&mut self, expected: &str) -> bool {
        let found = self.rest().starts_with(expected);
        if found {
            self.offset += expected.len();
        }
        found
    }

    fn consume_while(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.offset += length;
        rest.get(..length).unwrap_or_default()
    }

    /// Parses `{{ … }}`, which starts here: a path, or else an expression.
    fn parse_piece(&mut self, extra: &[&str]) -> Result<TemplatePiece, TemplateError> {
        let open = self.offset;
        let error = match self.parse_placeholder(extra) {
            Ok(placeholder) => return Ok(TemplatePiece::Placeholder(placeholder)),
            Err(error) => error,
        };
        let start = open + OPEN.len();
        let inner = self.text.get(start..).unwrap_or_default();
        // An object in the expression may end in two braces, too.
        let mut first_problem = None;
        for (length, _) in inner.match_indices(CLOSE).take(MAX_ENDS) {
            let source = inner.get(..length).unwrap_or_default();
            match Expression::compile_with(source, self.names) {
                Ok(expression) => {
                    self.offset = start + length + CLOSE.len();
                    let (source, expression) = (source.trim().to_owned(), Arc::new(expression));
                    return Ok(TemplatePiece::Expression(ExpressionPlaceholder { source, expression }));
                }
                Err(problem) => {
                    first_problem.get_or_insert((source, problem));
                }
            }
        }
        match first_problem {
            Some((source, problem)) if is_computed(source) => {
                let offset = start + problem.offset.unwrap_or(0);
                let end = self
                    .text
                    .get(offset..)
                    .and_then(|rest| rest.chars().next())
                    .map_or(offset, |c| offset + c.len_utf8());
                Err(TemplateError { message: problem.message, range: offset..end, help: problem.help })
            }
            _ => Err(error),
        }
    }

    /// Parses `{{ … }}` with a path, which starts here.
    fn parse_placeholder(&mut self, extra: &[&str]) -> Result<Placeholder, TemplateError> {
        let open = self.offset;
        self.consume(OPEN);
        if !self.rest().contains(CLOSE) {
            return Err(TemplateError::new("`{{` is not closed", open..open + OPEN.len())
                .with_help("close it with `}}`, or write `{{{{` for two literal braces"));
        }
        self.consume_while(char::is_whitespace);
        let start = self.offset;
        if self.consume(CLOSE) {
            return Err(TemplateError::new("`{{ }}` is empty", open..self.offset)
                .with_help("name a value, as in `{{ input.amount }}`"));
        }
        self.consume("$.");
        let mut subject = self.parse_root(extra)?;
        let mut steps = Vec::new();
        while let Some(step) = self.parse_step()? {
            steps.push(step);
        }
        if matches!(subject, PlaceholderRoot::Root(Root::Session))
            && matches!(steps.first(), Some(PlaceholderStep::Key(key)) if key == "round")
        {
            subject = PlaceholderRoot::Root(Root::Round);
            steps.remove(0);
        }
        if let (PlaceholderRoot::Named(name), false) = (&subject, steps.is_empty()) {
            return Err(TemplateError::new(
                format!("`{name}` is a string and has no members"),
                start..self.offset,
            ));
        }
        let written = self.text.get(start..self.offset).unwrap_or_default().to_owned();
        self.consume_while(char::is_whitespace);
        if !self.consume(CLOSE) {
            return Err(self.unexpected_error());
        }
        Ok(Placeholder { source: written, root: subject, steps })
    }

    fn parse_root(&mut self, extra: &[&str]) -> Result<PlaceholderRoot, TemplateError> {
        let start = self.offset;
        let name = self.consume_while(is_name_char);
        if name.is_empty() {
            return Err(self.unexpected_error());
        }
        if extra.contains(&name) {
            return Ok(PlaceholderRoot::Named(name.to_owned()));
        }
        if let Some(root) = Root::from_name(name) {
            return Ok(PlaceholderRoot::Root(root));
        }
        let known = extra.iter().copied().chain(Root::ALL.map(Root::name));
        let known: Vec<_> = known.chain(self.names.let_names()).collect();
        let help = match closest_match(name, known.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => {
                let known: Vec<_> = known.iter().map(|name| format!("`{name}`")).collect();
                format!("available values: {}", known.join(", "))
            }
        };
        Err(TemplateError::new(format!("unknown value `{name}`"), start..self.offset).with_help(help))
    }

    fn parse_step(&mut self) -> Result<Option<PlaceholderStep>, TemplateError> {
        if self.consume(".") {
            let key = self.consume_while(is_name_char);
            return if key.is_empty() {
                Err(self.unexpected_error())
            } else {
                Ok(Some(PlaceholderStep::Key(key.to_owned())))
            };
        }
        if !self.consume("[") {
            return Ok(None);
        }
        let step = match self.rest().chars().next() {
            Some(quote @ ('"' | '\'')) => PlaceholderStep::Key(self.parse_quoted_key(quote)?),
            Some('0'..='9') => {
                let start = self.offset;
                let digits = self.consume_while(|c| c.is_ascii_digit());
                let index = digits.parse().map_err(|_| {
                    TemplateError::new(format!("`{digits}` is not a valid index"), start..self.offset)
                })?;
                PlaceholderStep::Index(index)
            }
            _ => return Err(self.unexpected_error()),
        };
        if self.consume("]") { Ok(Some(step)) } else { Err(self.unexpected_error()) }
    }

    /// Parses a quoted key; a backslash escapes any next character.
    fn parse_quoted_key(&mut self, quote: char) -> Result<String, TemplateError> {
        let start = self.offset;
        self.next();
        let mut key = String::new();
        loop {
            match self.next() {
                None => return Err(TemplateError::new("the quoted key is not closed", start..self.offset)),
                Some(c) if c == quote => return Ok(key),
                Some('\\') => key.extend(self.next()),
                Some(c) => key.push(c),
            }
        }
    }

    fn unexpected_error(&self) -> TemplateError {
        let found = self.rest().chars().next();
        let end = self.offset + found.map_or(0, char::len_utf8);
        let message = match found {
            Some(found) => format!("unexpected `{found}` in a placeholder"),
            None => "the text ends inside a placeholder".to_owned(),
        };
        TemplateError::new(message, self.offset..end)
            .with_help("a placeholder is a member of the call with keys and indices, as in `{{ input.items[0][\"odd key\"] }}`")
    }
}

/// Whether a placeholder that cannot be parsed was meant as an expression, and not as a path.
fn is_computed(source: &str) -> bool {
    source.contains(['(', '+', '*', '/', '?', '=', '<', '>', '&']) || source.contains(" - ")
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

#[cfg(test)]
mod tests {
    use super::super::Template;

    #[test]
    fn errors_have_the_range_of_the_problem() {
        for (text, range, message, help) in [
            ("a {{ input.x", 2..4, "not closed", "`{{{{`"),
            ("a {{ }} b", 2..7, "is empty", "{{ input.amount }}"),
            ("{{inptu.x}}", 2..7, "unknown value `inptu`", "did you mean `input`?"),
            ("ü {{ zzz }}", 6..9, "unknown value `zzz`", "`suggestion`, `tool`"),
            ("{{ sugestion }}", 3..12, "unknown value", "did you mean `suggestion`?"),
            ("{{ input. }}", 9..10, "unexpected ` `", ""),
            ("{{ input.a b }}", 11..12, "unexpected `b`", ""),
            ("{{ input[\"a }}", 9..14, "key is not closed", ""),
            ("{{ input[0 }}", 10..11, "unexpected ` `", ""),
            ("{{ suggestion.x }}", 3..15, "has no members", ""),
            ("{{ input.a | upper }}", 11..12, "unexpected `|`", ""),
            ("{{{ input.a }}}", 2..3, "unexpected `{`", ""),
        ] {
            let error = Template::parse_with_names(text, &["suggestion"]).expect_err(text);
            assert_eq!(error.range, range, "{text}: {error:?}");
            assert!(error.message.contains(message), "{text}: {error:?}");
            assert!(error.help.unwrap_or_default().contains(help), "{text}");
        }
    }
}
