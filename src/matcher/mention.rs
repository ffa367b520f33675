//! `mentioned_in`: whether a value equals a whole token of other texts. Value + sources → [`Truth`].

use std::borrow::Cow;

use super::truth::Truth;
use super::value_source::{PATH_OPERAND, ValueSource};
use crate::call::{CallView, NodeRef, Root};
use crate::diagnostic::{CONFLICTING_KEYS, Diagnostic, MISSING_KEY};
use crate::json::Value;
use crate::rules_schema::{FieldShape, PolicyReader, Shape};
use crate::source::YamlNode;
use crate::tokens::{DecimalMark, TokenFormat, TokenIndex, TokenKind, TokenSubject};

const SOURCE: Shape = Shape::Record(&PATH_OPERAND);

pub const MENTIONED_IN: FieldShape = FieldShape::optional(
    "mentioned_in",
    Shape::OneOrMany(&SOURCE),
    "The value equals a whole token of this text, or of one of these: `{ path: … }` to a string, or to a value with strings at any \
     depth. `as` is the kind of token. The test is undecided for a value that is not exactly one token, and for texts of more than 1 MiB.",
);
pub const AS: FieldShape = FieldShape::optional(
    "as",
    Shape::Word(&[
        ("email", TokenKind::Email.description()),
        ("url", TokenKind::Url.description()),
        ("host", TokenKind::Host.description()),
        ("iban", TokenKind::Iban.description()),
        ("number", TokenKind::Number.description()),
        ("path", TokenKind::Path.description()),
        ("word", TokenKind::Word.description()),
    ]),
    "For `mentioned_in`: the kind of token.",
);
pub const DECIMAL: FieldShape = FieldShape::optional(
    "decimal",
    Shape::Word(&[(".", "`1.5`, `1,000`"), (",", "`1,5`, `1.000`")]),
    "For `mentioned_in` with `as: number`: the decimal mark. Without it, the test is undecided for a number with two readings, such as \
     `1.234`.",
);

/// A compiled `mentioned_in`.
#[derive(Debug)]
pub struct Mention {
    /// The texts.
    pub sources: Vec<ValueSource>,
    /// What a token is.
    pub format: TokenFormat,
    nearest_element: Option<u8>,
}

impl Mention {
    /// Reads `mentioned_in` of a test, with `as` and `decimal`.
    pub fn read(node: &YamlNode, test: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let items = node.items().unwrap_or(std::slice::from_ref(node)).iter();
        // Read every item before failing, so that every problem is reported.
        let sources: Vec<_> = items.map(|item| ValueSource::read_operand(item, reader).flatten()).collect();
        let Some(kind) = test.get(AS.name) else {
            reader.report(
                Diagnostic::new(&MISSING_KEY, node.span, "`mentioned_in` has no `as`")
                    .with_help("add the kind of token, such as `as: email`"),
            );
            return None;
        };
        let kind = kind.as_str().and_then(TokenKind::parse)?;
        let format = TokenFormat::new(kind);
        let decimal = test.get(DECIMAL.name).and_then(YamlNode::as_str).and_then(DecimalMark::parse);
        let format = decimal.map_or(format, |decimal| format.with_decimal(decimal));
        let sources: Vec<ValueSource> = sources.into_iter().collect::<Option<_>>()?;
        Some(Self { nearest_element: nearest_element(&sources), sources, format })
    }

    /// Reports `as` without `mentioned_in`, and `decimal` without `as: number`.
    pub fn check_options(test: &YamlNode, reader: &mut PolicyReader<'_>) {
        let kind = test.get(AS.name);
        if let (Some(kind), None) = (kind, test.get(MENTIONED_IN.name)) {
            reader.report(
                Diagnostic::new(&CONFLICTING_KEYS, kind.span, "`as` has no effect without `mentioned_in`")
                    .with_help("add `mentioned_in:`, or remove `as`"),
            );
        } else if let Some(decimal) = test.get(DECIMAL.name)
            && kind.and_then(YamlNode::as_str) != Some(TokenKind::Number.name())
        {
            reader.report(
                Diagnostic::new(
                    &CONFLICTING_KEYS,
                    decimal.span,
                    "`decimal` has no effect without `as: number`",
                )
                .with_help("remove it, or write `as: number`"),
            );
        }
    }

    /// Whether a value is mentioned. Absent if every source is absent or null.
    pub fn eval(&self, node: NodeRef<'_>, view: &CallView<'_>) -> Truth {
        let subject = match node {
            NodeRef::Json(Value::Number(number)) => Ok(TokenSubject::Number(number)),
            node => node.as_str().map(TokenSubject::Text).ok_or_else(|| {
                let found = node.json_type().with_article();
                Truth::Undecided(format!("it is {found}, `mentioned_in` needs a string or a number"))
            }),
        };
        // The source is read once for all elements of a quantifier.
        match view.elements.and_then(|scope| scope.memo_for(self.nearest_element)) {
            Some(memo) => {
                let key = std::ptr::from_ref(self).addr();
                let index = memo.get_or_compute(key, || self.read_sources(view));
                find_mention(subject, (*index).as_ref())
            }
            None => find_mention(subject, self.read_sources(view).as_ref()),
        }
    }

    /// Reads the tokens of the sources.
    ///
    /// # Errors
    /// Returns [`Truth::Absent`] if every source is absent or null, and [`Truth::Undecided`] if one cannot be read.
    fn read_sources(&self, view: &CallView<'_>) -> Result<TokenIndex, Truth> {
        let mut sources = Vec::new();
        for source in &self.sources {
            sources.extend(source.values(view)?);
        }
        let texts: Vec<Cow<'_, Value>> = sources
            .iter()
            .map(|value| match value.node() {
                NodeRef::Json(json) => Cow::Borrowed(json),
                text @ (NodeRef::Text(_) | NodeRef::Time(_)) => Cow::Owned(text.to_value()),
            })
            .filter(|value| !value.is_null())
            .collect();
        if texts.is_empty() {
            return Err(Truth::Absent);
        }
        self.format
            .index(texts.iter().map(AsRef::as_ref))
            .map_err(|error| Truth::Undecided(error.to_string()))
    }
}

fn find_mention(subject: Result<TokenSubject<'_>, Truth>, index: Result<&TokenIndex, &Truth>) -> Truth {
    // An absent source comes first: then the test does not hold, whatever the value is.
    let index = match index {
        Ok(index) => index,
        Err(open) => return open.clone(),
    };
    match subject.map(|subject| index.mentions(subject)) {
        Ok(Ok(is_mentioned)) => is_mentioned.into(),
        Ok(Err(error)) => Truth::Undecided(error.to_string()),
        Err(undecided) => undecided,
    }
}

/// The distance of the innermost element that a source reads.
fn nearest_element(sources: &[ValueSource]) -> Option<u8> {
    let roots = sources.iter().flat_map(ValueSource::roots_read);
    let distances = roots.filter_map(|root| match root {
        Root::Element(element) => Some(element.distance),
        _ => None,
    });
    distances.min()
}
