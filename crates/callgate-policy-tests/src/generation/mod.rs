//! Generates test cases: recorded calls → a test file that expects their current outcomes, for a person to review.

mod recorded_run;
mod record_redaction;
mod test_file_writer;

use std::collections::HashMap;
use std::sync::Arc;

use crate::loader::load_texts;
use crate::report::SuiteReport;
use crate::runner::declared_tools;
use callgate::call::CallRecord;
use callgate::diagnostic::render;
use callgate::policy::CompiledPolicies;
use callgate::tools::{ToolCatalog, ToolDescriptor};
use recorded_run::{RecordedRounds, run_recorded};
use test_file_writer::{GeneratedSession, write_test_file};

/// The origin of the recorded calls, and the known tools.
#[derive(Clone, Copy, Debug)]
pub struct RecordingSource<'a> {
    /// The name of the file of the calls, for comments.
    pub calls: &'a str,
    /// The known tools, with the file that the tests name for them.
    pub tools: Option<(&'a str, &'a [ToolDescriptor])>,
}

/// A generated test file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedTests {
    /// The text of the file.
    pub text: String,
    /// The number of cases.
    pub cases: usize,
    /// The number of calls.
    pub calls: usize,
    /// The policies that redact values in the calls; these values are not written to the file.
    pub redacted_by: Vec<String>,
}

/// The error of generating tests.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenerateError {
    /// There are no calls.
    #[error("there are no calls")]
    NoCalls,
    /// Redacted values can't be searched for in the rest of the calls.
    #[error("redacted values can't be searched for in the calls: {0}")]
    Redaction(String),
    /// The generated text is not a valid test file.
    #[error("the generated test file is invalid:\n{0}")]
    InvalidTestFile(String),
    /// The generated tests fail.
    #[error("the outcomes of these calls differ from run to run:\n{0}")]
    Unstable(String),
}

/// Generates a test file: one case for each session, which expects the current outcomes of its calls. The file passes under these
/// rules.
///
/// # Errors
/// Returns an error if there are no calls, if redacted values can't be searched for, or if the generated tests are invalid or fail.
pub fn generate(
    records: Vec<CallRecord>,
    policies: &Arc<CompiledPolicies>,
    origin: RecordingSource<'_>,
) -> Result<GeneratedTests, GenerateError> {
    if records.is_empty() {
        return Err(GenerateError::NoCalls);
    }
    let calls = records.len();
    let (hidden, redacted_by) = record_redaction::redact_records(records.clone(), policies)?;
    let tools = match origin.tools {
        Some((_, tools)) if !tools.is_empty() => Arc::new(ToolCatalog::new(tools.iter().cloned())),
        _ => declared_tools(policies),
    };
    let sessions: Vec<GeneratedSession> = group_by_session(&records)
        .iter()
        .map(|indices| {
            let rounds = select_rounds(indices, &hidden);
            let results = run_recorded(policies, &tools, &rounds);
            let before = match redacted_by.is_empty() {
                true => Vec::new(),
                false => run_recorded(policies, &tools, &select_rounds(indices, &records)),
            };
            let name = rounds.iter().flatten().next().and_then(|record| record.session.clone());
            GeneratedSession { name, rounds, results, unredacted_results: before }
        })
        .collect();
    let text = write_test_file(&sessions, &origin, &redacted_by);
    let report = run_generated(&text, policies, &tools)?;
    match report.passed() {
        true => Ok(GeneratedTests { text, cases: sessions.len(), calls, redacted_by }),
        false => Err(GenerateError::Unstable(crate::render::text(&report, false))),
    }
}

/// The sessions in the order of their first calls, each with the indices of its calls by round; calls without a session share
/// one.
fn group_by_session(records: &[CallRecord]) -> Vec<Vec<Vec<usize>>> {
    let mut known: HashMap<&Option<String>, usize> = HashMap::new();
    let mut sessions: Vec<Vec<Vec<usize>>> = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let session = *known.entry(&record.session).or_insert(sessions.len());
        if session == sessions.len() {
            sessions.push(Vec::new());
        }
        let Some(rounds) = sessions.get_mut(session) else { continue };
        let of_round = |index: &usize| records.get(*index).and_then(|record| record.round.as_ref());
        let same = |round: &&mut Vec<usize>| {
            record.round.is_some() && round.last().and_then(of_round) == record.round.as_ref()
        };
        match rounds.last_mut().filter(same) {
            Some(round) => round.push(index),
            None => rounds.push(vec![index]),
        }
    }
    sessions
}

fn select_rounds(rounds: &[Vec<usize>], records: &[CallRecord]) -> RecordedRounds {
    let records =
        |round: &Vec<usize>| round.iter().filter_map(|index| records.get(*index)).cloned().collect();
    rounds.iter().map(records).collect()
}

/// Runs the generated file.
fn run_generated(
    text: &str,
    policies: &Arc<CompiledPolicies>,
    tools: &Arc<ToolCatalog>,
) -> Result<SuiteReport, GenerateError> {
    // The file of the tools, beside the tests, need not exist yet.
    let without_tools: String =
        text.lines().filter(|line| !line.starts_with("tools: ")).map(|line| format!("{line}\n")).collect();
    let mut loaded = load_texts([("generated.test.yaml", without_tools)]);
    loaded.check_against(policies);
    if loaded.diagnostics.has_errors() {
        return Err(GenerateError::InvalidTestFile(render::text(
            &loaded.diagnostics,
            &loaded.sources,
            false,
        )));
    }
    for file in &mut loaded.suite.files {
        file.tools = Some(Arc::clone(tools));
    }
    Ok(loaded.suite.run(policies))
}
