//! Recorded calls → test cases that say what the rules make of them now, for a person to review.

mod play;
mod secrets;
mod write;
mod yaml;

use std::collections::HashMap;
use std::sync::Arc;

use super::load::load_texts;
use super::report::Report;
use crate::call::CallRecord;
use crate::diagnostic::render;
use crate::policy::Chains;
use crate::tools::ToolDescriptor;
use play::{Rounds, play};
use write::{Written, write};

/// What is generated from, beside the calls.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// What the file of the calls is called in comments.
    pub calls: &'a str,
    /// The known tools, with the file that the tests name for them; none are known without it.
    pub tools: Option<(&'a str, &'a [ToolDescriptor])>,
}

/// A generated test file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// The file.
    pub text: String,
    /// How many cases it has.
    pub cases: usize,
    /// How many calls.
    pub calls: usize,
    /// The policies that hide something in the calls, which was therefore not written down.
    pub hidden_by: Vec<String>,
}

/// Why no tests can be generated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenerateError {
    /// There are no calls.
    #[error("there are no calls")]
    NoCalls,
    /// What is to be hidden can't be looked for.
    #[error("what policies hide can't be looked for everywhere: {0}")]
    Secrets(String),
    /// What was written is no test file.
    #[error("what would be written can't be read as a test file:\n{0}")]
    Unreadable(String),
    /// What was written fails.
    #[error("what the rules make of these calls is not the same each time:\n{0}")]
    Fails(String),
}

/// Generates a test file: one case for each session, which expects what the rules make of its calls now. It passes under these
/// rules.
pub fn generate(
    records: Vec<CallRecord>,
    chains: &Arc<Chains>,
    origin: Origin<'_>,
) -> Result<Generated, GenerateError> {
    if records.is_empty() {
        return Err(GenerateError::NoCalls);
    }
    let calls = records.len();
    let (hidden, hidden_by) = secrets::hide(records.clone(), chains)?;
    let tools = origin.tools.map_or(&[][..], |(_, tools)| tools);
    let sessions: Vec<Written> = sessions(&records)
        .iter()
        .map(|places| {
            let rounds_of = rounds(places, &hidden);
            let came = play(chains, tools, &rounds_of);
            let before = match hidden_by.is_empty() {
                true => Vec::new(),
                false => play(chains, tools, &rounds(places, &records)),
            };
            let name = rounds_of.iter().flatten().next().and_then(|record| record.session.clone());
            Written { name, rounds: rounds_of, came, before }
        })
        .collect();
    let text = write(&sessions, &origin, &hidden_by);
    let report = try_out(&text, chains, tools)?;
    match report.passed() {
        true => Ok(Generated { text, cases: sessions.len(), calls, hidden_by }),
        false => Err(GenerateError::Fails(super::render::text(&report, false))),
    }
}

/// The sessions in the order of their first calls, with the places of their calls round by round; calls without one share a
/// session.
fn sessions(records: &[CallRecord]) -> Vec<Vec<Vec<usize>>> {
    let mut known: HashMap<&Option<String>, usize> = HashMap::new();
    let mut sessions: Vec<Vec<Vec<usize>>> = Vec::new();
    for (place, record) in records.iter().enumerate() {
        let session = *known.entry(&record.session).or_insert(sessions.len());
        if session == sessions.len() {
            sessions.push(Vec::new());
        }
        let Some(rounds) = sessions.get_mut(session) else { continue };
        let of_round = |place: &usize| records.get(*place).and_then(|record| record.round.as_ref());
        let same = |round: &&mut Vec<usize>| {
            record.round.is_some() && round.last().and_then(of_round) == record.round.as_ref()
        };
        match rounds.last_mut().filter(same) {
            Some(round) => round.push(place),
            None => rounds.push(vec![place]),
        }
    }
    sessions
}

fn rounds(places: &[Vec<usize>], records: &[CallRecord]) -> Rounds {
    let records =
        |round: &Vec<usize>| round.iter().filter_map(|place| records.get(*place)).cloned().collect();
    places.iter().map(records).collect()
}

/// What comes of the file that was written.
fn try_out(text: &str, chains: &Arc<Chains>, tools: &[ToolDescriptor]) -> Result<Report, GenerateError> {
    // The tools are named by a file beside the tests, which need not be there yet.
    let without_tools: String =
        text.lines().filter(|line| !line.starts_with("tools: ")).map(|line| format!("{line}\n")).collect();
    let mut loaded = load_texts([("generated.test.yaml", without_tools)]);
    loaded.check_against(chains);
    if loaded.diagnostics.has_errors() {
        return Err(GenerateError::Unreadable(render::text(&loaded.diagnostics, &loaded.sources, false)));
    }
    for file in &mut loaded.suite.files {
        file.tools = Arc::new(tools.to_vec());
    }
    Ok(loaded.suite.run(chains))
}
