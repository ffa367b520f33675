//! What came of a suite, as data. The serialized form is a contract: members are added, never changed.

use serde::Serialize;

use crate::call::OutcomeKind;
use crate::diagnostic::Location;
use crate::json::Value;

/// What came of a suite.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The digest of the rules that were tested.
    pub revision: String,
    /// The test files, in the order in which they were found.
    pub files: Vec<FileReport>,
}

/// What came of the cases of one file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileReport {
    /// The file's name, as it was given or found.
    pub file: String,
    /// Its cases, in order; each row of a table is one.
    pub cases: Vec<CaseReport>,
}

/// What came of one case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseReport {
    /// What is expected, in words.
    pub name: String,
    /// Of a row its number, from 1.
    pub row: Option<usize>,
    /// Of a row its name, where it has one.
    pub row_name: Option<String>,
    /// Where the case, or the row, stands.
    pub place: Location,
    /// Whether everything came as expected.
    pub passed: bool,
    /// What did not.
    pub failures: Vec<Failure>,
    /// What each call came to, in order, up to where the case ended.
    pub calls: Vec<CallReport>,
}

/// What one call of a case came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallReport {
    /// The call's id.
    pub id: String,
    /// Its tool.
    pub tool: String,
    /// How it ended.
    pub outcome: OutcomeKind,
    /// The policy that gave the reason, where one did.
    pub policy: Option<String>,
    /// The reason's code.
    pub code: String,
    /// The reason's message.
    pub message: String,
    /// The policies that took part, in order.
    pub policies: Vec<String>,
    /// How often the tool was run.
    pub runs: usize,
    /// What a person had said before it came to this, if one had.
    pub reply: Option<ReplyReport>,
}

/// What a person said to a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplyReport {
    /// `approve`, `deny`, `edit`, `answer` or `cancel`; `resume` where nobody said anything.
    pub said: String,
    /// Who said it.
    pub by: Option<String>,
    /// Why it does not count.
    pub ignored: Option<String>,
}

/// Something that did not come as expected.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failure {
    /// Where it is expected.
    pub place: Location,
    /// The call's number in its case, from 1; nothing where the case as a whole failed.
    pub call: Option<usize>,
    /// What was compared: a key of `expect`, or `case`.
    pub field: String,
    /// What was expected.
    pub expected: Value,
    /// What came; null for nothing.
    pub actual: Value,
    /// In words, where the two values do not say it.
    pub note: Option<String>,
    /// Of JSON values, the places that differ.
    pub differences: Vec<Difference>,
}

/// A place at which two JSON values differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The place, such as `$.output.items[0].price`.
    pub path: String,
    /// What was expected there; nothing if nothing was.
    pub expected: Option<Value>,
    /// What came; nothing if nothing did.
    pub actual: Option<Value>,
}

impl Report {
    /// All cases.
    pub fn cases(&self) -> impl Iterator<Item = &CaseReport> {
        self.files.iter().flat_map(|file| &file.cases)
    }

    /// Whether all cases passed.
    pub fn passed(&self) -> bool {
        self.cases().all(|case| case.passed)
    }
}

impl CaseReport {
    /// The name, with that of the row.
    pub fn full_name(&self) -> String {
        match (self.row, &self.row_name) {
            (Some(number), Some(name)) => format!("{} [row {number}: {name}]", self.name),
            (Some(number), None) => format!("{} [row {number}]", self.name),
            (None, _) => self.name.clone(),
        }
    }
}
