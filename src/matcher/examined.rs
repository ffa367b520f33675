//! What an examination finds: a condition as it was written, with what each part of it says of one call, and of which values.
//!
//! Values are those of the call itself, not yet redacted: who shows them hides first.

use super::compare::Comparison;
use super::test::Each;
use super::truth::Truth;
use crate::call::{Node, Root};
use crate::diagnostic::Span;
use crate::json::Value;
use crate::path::Nodes;

/// A matcher with what each part of it says of one call.
#[derive(Clone, Debug)]
pub struct ExaminedMatcher<'a> {
    /// The patterns for tools; every tool fits if there are none.
    pub tools: Vec<ExaminedPattern<'a>>,
    /// The patterns for servers; every server, and none, fits if there are none.
    pub servers: Vec<ExaminedPattern<'a>>,
    /// The conditions, also where tool or server do not fit; nothing where there are none.
    pub condition: Option<Examined<'a>>,
}

/// One pattern for names.
#[derive(Clone, Copy, Debug)]
pub struct ExaminedPattern<'a> {
    /// As it was written, without the slashes of a regular expression.
    pub text: &'a str,
    /// Where it stands.
    pub span: Option<Span>,
    /// Whether the name fits.
    pub fits: bool,
}

impl ExaminedMatcher<'_> {
    /// Whether a pattern for tools fits.
    pub fn fits_tool(&self) -> bool {
        self.tools.is_empty() || self.tools.iter().any(|pattern| pattern.fits)
    }

    /// Whether a pattern for servers fits.
    pub fn fits_server(&self) -> bool {
        self.servers.is_empty() || self.servers.iter().any(|pattern| pattern.fits)
    }

    /// What the matcher as a whole says.
    pub fn truth(&self) -> Truth {
        match (self.fits_tool() && self.fits_server(), &self.condition) {
            (false, _) => Truth::No,
            (true, None) => Truth::Yes,
            (true, Some(condition)) => condition.truth.clone(),
        }
    }
}

/// A condition with what it says of one call.
#[derive(Clone, Debug)]
pub struct Examined<'a> {
    /// Where it stands.
    pub span: Span,
    /// What it says.
    pub truth: Truth,
    /// Whether evaluating the whole comes to it: nothing before it has decided the whole already.
    pub reached: bool,
    /// What it is.
    pub form: ExaminedForm<'a>,
}

/// The forms of a condition.
#[derive(Clone, Debug)]
pub enum ExaminedForm<'a> {
    /// All hold. A list of conditions is this, too.
    All(Vec<Examined<'a>>),
    /// One holds.
    Any(Vec<Examined<'a>>),
    /// It does not hold.
    Not(Box<Examined<'a>>),
    /// A test of one place.
    Test(ExaminedTest<'a>),
    /// An expression, with its text. Why it failed is in the truth.
    Expr(&'a str),
}

impl<'a> Examined<'a> {
    /// The conditions directly in it, in order.
    pub fn parts(&self) -> &[Self] {
        match &self.form {
            ExaminedForm::All(parts) | ExaminedForm::Any(parts) => parts,
            ExaminedForm::Not(part) => std::slice::from_ref(&**part),
            ExaminedForm::Test(_) | ExaminedForm::Expr(_) => &[],
        }
    }

    /// Calls `visit` with it and everything in it, each before its parts.
    pub fn each(&self, visit: &mut impl FnMut(&Examined<'a>)) {
        visit(self);
        for part in self.parts() {
            part.each(visit);
        }
    }
}

/// A test of one place.
#[derive(Clone, Debug)]
pub struct ExaminedTest<'a> {
    /// The place, as it was written.
    pub path: &'a str,
    /// The member of the call document that it is in.
    pub root: Root,
    /// Where the path stands.
    pub path_span: Span,
    /// How the operators apply to several values.
    pub each: Each,
    /// What stands in the place.
    pub found: Found<'a>,
    /// The operators, `exists` first, each with what it says.
    pub operators: Vec<Asked<'a>>,
}

/// What stands in the place of a test.
#[derive(Clone, Debug)]
pub enum Found<'a> {
    /// Nothing.
    Absent,
    /// Something on the way to it has a type that the path does not fit; with what.
    Misfit(String),
    /// Values.
    Values {
        /// The first ones, and the one that decided the test.
        first: Vec<ExaminedValue<'a>>,
        /// How many there are in all.
        count: usize,
    },
}

/// One value that stands in the place of a test.
#[derive(Clone, Debug)]
pub struct ExaminedValue<'a> {
    /// The value.
    pub value: Node<'a>,
    /// What the operators, but for `exists`, say of it together.
    pub truth: Truth,
    /// What each says by itself.
    pub answers: Vec<Truth>,
}

/// One operator of a test.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// Its key: `gt`.
    pub key: &'static str,
    /// Where key and operand stand.
    pub span: Span,
    /// What the place is compared with.
    pub operand: Compared<'a>,
    /// The place that the operand is read from, and the member of the call document that it is in; nothing for a literal.
    pub operand_path: Option<(&'a str, Root)>,
    /// What it says of the values together; nothing where there is no value to ask it about.
    pub truth: Option<Truth>,
}

/// What a value is compared with.
#[derive(Clone, Debug)]
pub enum Compared<'a> {
    /// One value.
    One(Node<'a>),
    /// Values of the rules file.
    Literals(&'a [Value]),
    /// Texts of the rules file: patterns, types.
    Texts(&'a [String]),
    /// One text of the rules file: a regular expression.
    Text(&'a str),
    /// What a path yields.
    Several(Nodes<'a>),
    /// Bounds on a length, with their keys.
    Bounds(Vec<(&'static str, u64)>),
    /// Yes or no.
    Bool(bool),
    /// Nothing: the place that it is read from is absent or does not fit. With the truth that follows.
    Open(Truth),
}

impl Compared<'_> {
    /// A copy as JSON; nothing where there is none.
    pub fn to_value(&self) -> Option<Value> {
        Some(match self {
            Self::One(node) => node.to_value(),
            Self::Literals(values) => Value::from(values.to_vec()),
            Self::Texts([text]) => Value::from(text.as_str()),
            Self::Texts(texts) => Value::from(texts.to_vec()),
            Self::Text(text) => Value::from(*text),
            Self::Several(nodes) => nodes.iter().map(|node| node.to_value()).collect(),
            Self::Bounds(bounds) => match bounds.as_slice() {
                [(key, bound)] if *key == Comparison::Eq.name() => Value::from(*bound),
                bounds => {
                    bounds.iter().map(|(key, bound)| ((*key).to_owned(), Value::from(*bound))).collect()
                }
            },
            Self::Bool(value) => Value::from(*value),
            Self::Open(_) => return None,
        })
    }
}
