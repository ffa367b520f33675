//! The result of a suite run, as data. The serialized form is a contract: members are added, never changed.

use serde::Serialize;

use callgate::call::OutcomeKind;
use callgate::diagnostic::Location;
use callgate::json::Value;

/// The result of a suite run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SuiteReport {
    /// The digest of the tested rules.
    pub revision: String,
    /// The test files, in the order they were found.
    pub files: Vec<FileReport>,
}

/// The results of the cases of one file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileReport {
    /// The file's name, as given or found.
    pub file: String,
    /// The cases, in order; each row of a table is one case.
    pub cases: Vec<CaseReport>,
}

/// The result of one case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseReport {
    /// The case's name: a description of what is expected.
    pub name: String,
    /// The row's number, from 1, if the case is a row of a table.
    pub row: Option<usize>,
    /// The row's name, if it has one.
    pub row_name: Option<String>,
    /// The location of the case, or of the row.
    pub place: Location,
    /// Whether all expectations hold.
    pub passed: bool,
    /// The expectations that do not hold.
    pub failures: Vec<Failure>,
    /// The result of each call, in order, up to the point where the case ended.
    pub calls: Vec<CallReport>,
}

/// The result of one call of a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallReport {
    /// The call's id.
    pub id: String,
    /// Its tool.
    pub tool: String,
    /// The kind of outcome.
    pub outcome: OutcomeKind,
    /// The policy that gave the reason, if any.
    pub policy: Option<String>,
    /// The reason's code.
    pub code: String,
    /// The reason's message.
    pub message: String,
    /// The policies that matched, in order.
    pub policies: Vec<String>,
    /// How often the tool ran.
    pub runs: usize,
    /// The answer to an approval request that led to this result, if any.
    pub reply: Option<ReplyReport>,
}

/// An answer to an approval request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplyReport {
    /// `approve`, `deny`, `edit`, `answer` or `cancel`; `resume` if nobody answered.
    pub said: String,
    /// The approver; `None` if anonymous.
    pub by: Option<String>,
    /// Why the answer does not count, if it does not.
    pub ignored: Option<String>,
}

/// An expectation that does not hold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failure {
    /// The location of the expectation.
    pub place: Location,
    /// The call's number in its case, from 1; `None` if the case as a whole failed.
    pub call: Option<usize>,
    /// The compared field: a key of `expect`, or `case`.
    pub field: String,
    /// The expected value.
    pub expected: Value,
    /// The actual value; null if there is none.
    pub actual: Value,
    /// An explanation, if the two values alone do not suffice.
    pub note: Option<String>,
    /// The paths at which two JSON values differ.
    pub differences: Vec<Difference>,
}

/// A path at which two JSON values differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The path, such as `$.output.items[0].price`.
    pub path: String,
    /// The expected value; `None` if the path should be absent.
    pub expected: Option<Value>,
    /// The actual value; `None` if the path is absent.
    pub actual: Option<Value>,
}

impl SuiteReport {
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
    /// The case's name, followed by the row's number and name.
    pub fn full_name(&self) -> String {
        match (self.row, &self.row_name) {
            (Some(number), Some(name)) => format!("{} [row {number}: {name}]", self.name),
            (Some(number), None) => format!("{} [row {number}]", self.name),
            (None, _) => self.name.clone(),
        }
    }
}
