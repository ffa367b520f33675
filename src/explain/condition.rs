//! A condition of a rules file with what each part of it says of a call.

use serde::Serialize;

use super::veil::{Veil, bounded};
use crate::call::Root;
use crate::diagnostic::{Location, SourceMap, Span};
use crate::json::Value;
use crate::matcher::{Asked, Compared, Each, Examined, ExaminedForm, ExaminedTest, Found, Truth};

/// What a test says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TruthWord {
    /// It holds.
    Yes,
    /// It does not hold.
    No,
    /// What it reads is absent, and absence counts as the policy's acting.
    Absent,
    /// It can't be decided.
    Undecided,
}

impl From<&Truth> for TruthWord {
    fn from(truth: &Truth) -> Self {
        match truth {
            Truth::Yes => Self::Yes,
            Truth::No => Self::No,
            Truth::Absent => Self::Absent,
            Truth::Undecided(_) => Self::Undecided,
        }
    }
}

/// The forms of a condition, by their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// All of its parts hold. A list of conditions is this, too.
    All,
    /// One of its parts holds.
    Any,
    /// Its part does not hold.
    Not,
    /// A test of one place.
    Test,
    /// An expression.
    Expr,
}

/// A condition.
#[derive(Clone, Debug, Serialize)]
pub struct Condition {
    /// What it is.
    pub form: Form,
    /// What it says.
    pub truth: TruthWord,
    /// Why it can't be decided, where that is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Whether evaluating the whole comes to it: nothing before it has decided the whole already.
    pub reached: bool,
    /// Where it stands.
    pub at: Option<Location>,
    /// The test, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<Test>,
    /// The expression, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expr: Option<String>,
    /// The conditions in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Condition>,
}

/// A test of one place.
#[derive(Clone, Debug, Serialize)]
pub struct Test {
    /// The place, as it was written.
    pub path: String,
    /// How the operators apply to several values: `any`, `every` or `none`.
    pub each: &'static str,
    /// The first values that stand there, and the one that decided.
    pub found: Vec<FoundValue>,
    /// How many values stand there.
    pub count: usize,
    /// Why the path does not fit what stands there, where that is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub misfit: Option<String>,
    /// What is asked of it.
    pub operators: Vec<Operator>,
    #[serde(skip)]
    pub(super) root: Root,
}

/// One value.
#[derive(Clone, Debug, Serialize)]
pub struct FoundValue {
    /// The value, redacted. Of a long one not all.
    pub value: Value,
    /// What the operators say of it together.
    pub truth: TruthWord,
}

/// One operator.
#[derive(Clone, Debug, Serialize)]
pub struct Operator {
    /// Its key: `gt`.
    pub key: &'static str,
    /// What the place is compared with; null where nothing stands in the operand's place.
    pub operand: Value,
    /// Where the operand is read from, where it is no literal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operand_path: Option<String>,
    /// What it says of the values; nothing where there are none to ask it about.
    pub truth: Option<TruthWord>,
    /// Where key and operand stand.
    pub at: Option<Location>,
    #[serde(skip)]
    pub(super) operand_root: Option<Root>,
}

/// What an examined condition is made into for people.
pub(super) struct Telling<'t> {
    pub(super) veil: &'t Veil<'t>,
    /// The files of the rules, where they are known.
    pub(super) sources: Option<&'t SourceMap>,
}

impl Telling<'_> {
    pub(super) fn locate(&self, span: Span) -> Option<Location> {
        self.sources?.locate(span)
    }

    pub(super) fn condition(&self, examined: &Examined<'_>) -> Condition {
        let (form, test, expr) = match &examined.form {
            ExaminedForm::All(_) => (Form::All, None, None),
            ExaminedForm::Any(_) => (Form::Any, None, None),
            ExaminedForm::Not(_) => (Form::Not, None, None),
            ExaminedForm::Test(test) => (Form::Test, Some(self.test(test)), None),
            ExaminedForm::Expr(text) => (Form::Expr, None, Some((*text).to_owned())),
        };
        Condition {
            form,
            truth: TruthWord::from(&examined.truth),
            why: match &examined.truth {
                Truth::Undecided(why) => Some(self.veil.text(why)),
                _ => None,
            },
            reached: examined.reached,
            at: self.locate(examined.span),
            test,
            expr,
            parts: examined.parts().iter().map(|part| self.condition(part)).collect(),
        }
    }

    fn test(&self, test: &ExaminedTest<'_>) -> Test {
        let (found, count, misfit) = match &test.found {
            Found::Absent => (Vec::new(), 0, None),
            Found::Misfit(why) => (Vec::new(), 0, Some(self.veil.text(why))),
            Found::Values { first, count } => {
                let found = first.iter().map(|value| FoundValue {
                    value: self.veil.value(test.root, value.value),
                    truth: TruthWord::from(&value.truth),
                });
                (found.collect(), *count, None)
            }
        };
        Test {
            path: test.path.to_owned(),
            each: Each::name(test.each),
            found,
            count,
            misfit,
            operators: test.operators.iter().map(|asked| self.operator(asked)).collect(),
            root: test.root,
        }
    }

    fn operator(&self, asked: &Asked<'_>) -> Operator {
        let operand = match (asked.operand_path, &asked.operand) {
            (Some((_, root)), Compared::One(node)) => self.veil.value(root, *node),
            (Some((_, root)), Compared::Several(nodes)) => {
                bounded(nodes.iter().map(|node| self.veil.value(root, *node)).collect())
            }
            (_, compared) => compared.to_value().map(bounded).unwrap_or_default(),
        };
        Operator {
            key: asked.key,
            operand,
            operand_path: asked.operand_path.map(|(path, _)| path.to_owned()),
            truth: asked.truth.as_ref().map(TruthWord::from),
            at: self.locate(asked.span),
            operand_root: asked.operand_path.map(|(_, root)| root),
        }
    }
}

impl Condition {
    /// The tests and expressions that make it say what it says: those without which it might say otherwise.
    pub fn deciding(&self) -> Vec<&Condition> {
        let mut found = Vec::new();
        self.collect_deciding(&mut found);
        found
    }

    fn collect_deciding<'c>(&'c self, found: &mut Vec<&'c Condition>) {
        if self.parts.is_empty() && !matches!(self.form, Form::All | Form::Any) {
            found.push(self);
            return;
        }
        // One part that says the same decides by itself, where the form is such; else all that say it do.
        let by_one = match (self.form, self.truth) {
            (Form::All, TruthWord::No) | (Form::Any, TruthWord::Yes) => true,
            (_, TruthWord::Yes | TruthWord::No) => false,
            (_, TruthWord::Absent | TruthWord::Undecided) => true,
        };
        let says_so = |part: &&Condition| self.form == Form::Not || part.truth == self.truth;
        let parts = self.parts.iter().filter(says_so);
        let parts: Vec<&Condition> = if by_one { parts.take(1).collect() } else { parts.collect() };
        for part in parts {
            part.collect_deciding(found);
        }
    }

    /// Calls `visit` with it and everything in it.
    pub(super) fn each_mut(&mut self, visit: &mut impl FnMut(&mut Condition)) {
        visit(self);
        for part in &mut self.parts {
            part.each_mut(visit);
        }
    }
}
