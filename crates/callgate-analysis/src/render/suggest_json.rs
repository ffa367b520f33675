//! Renders a draft with its report as JSON.

use std::collections::BTreeMap;

use serde::Serialize;

use super::suggest::DraftReport;
use crate::recording::CallOrigin;
use crate::suggest::{DraftEvaluation, StoppedCalls, ToolName};

/// The version of the JSON document. It changes when a member is removed or changes its meaning.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    rules: &'a str,
    tests: &'a str,
    min_sessions: usize,
    tools: Vec<PermittedTool<'a>>,
    to_decide: Vec<Finding<'a>>,
    learned: Evaluation<'a>,
    held_out: Evaluation<'a>,
    not_learned_from: &'a BTreeMap<&'static str, u64>,
}

#[derive(Serialize)]
struct PermittedTool<'a> {
    #[serde(flatten)]
    name: Tool<'a>,
    to_decide: usize,
}

#[derive(Serialize)]
struct Tool<'a> {
    tool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
}

/// Something about a tool that the draft does not permit.
#[derive(Serialize)]
struct Finding<'a> {
    text: &'a str,
    calls: u64,
    sessions: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    example: Option<Example<'a>>,
}

#[derive(Serialize)]
struct Example<'a> {
    file: &'a str,
    line: u64,
}

#[derive(Serialize)]
struct Evaluation<'a> {
    calls: u64,
    permitted: u64,
    need_approval: u64,
    sessions: usize,
    stopped_sessions: usize,
    stopped: Vec<CallsOfTool<'a>>,
    newly_permitted: Vec<CallsOfTool<'a>>,
}

#[derive(Serialize)]
struct CallsOfTool<'a> {
    #[serde(flatten)]
    name: Tool<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    calls: u64,
    examples: Vec<Example<'a>>,
}

impl<'a> From<&'a ToolName> for Tool<'a> {
    fn from(name: &'a ToolName) -> Self {
        Self { tool: &name.tool, server: name.server.as_deref() }
    }
}

impl<'a> From<&'a CallOrigin> for Example<'a> {
    fn from(origin: &'a CallOrigin) -> Self {
        Self { file: &origin.file, line: origin.line }
    }
}

impl<'a> From<&'a DraftEvaluation> for Evaluation<'a> {
    fn from(evaluation: &'a DraftEvaluation) -> Self {
        let of_tool = |name: &'a ToolName, code: Option<&'a str>, stopped: &'a StoppedCalls| CallsOfTool {
            name: name.into(),
            code,
            calls: stopped.calls,
            examples: stopped.examples.iter().map(Example::from).collect(),
        };
        let stopped = evaluation.stopped.iter();
        let permitted = evaluation.newly_permitted.iter();
        Self {
            calls: evaluation.ran,
            permitted: evaluation.permitted,
            need_approval: evaluation.need_approval,
            sessions: evaluation.sessions.len(),
            stopped_sessions: evaluation.stopped_sessions.len(),
            stopped: stopped.map(|((name, code), calls)| of_tool(name, Some(code), calls)).collect(),
            newly_permitted: permitted.map(|(name, calls)| of_tool(name, None, calls)).collect(),
        }
    }
}

impl DraftReport<'_> {
    /// The report with the rules and their tests, as a JSON document.
    ///
    /// # Errors
    /// Returns an error if serialization fails, which strings and numbers do not cause.
    pub fn json(&self, rules: &str) -> callgate::json::Result<String> {
        let tools = self.draft.tools.iter();
        let findings = self.draft.findings.iter();
        callgate::json::to_string_pretty(&Document {
            version: VERSION,
            rules,
            tests: &self.draft.tests,
            min_sessions: self.min_sessions,
            tools: tools
                .map(|(name, findings)| PermittedTool { name: name.into(), to_decide: *findings })
                .collect(),
            to_decide: findings
                .map(|finding| Finding {
                    text: &finding.text,
                    calls: finding.calls,
                    sessions: finding.sessions,
                    example: finding.example.as_ref().map(Example::from),
                })
                .collect(),
            learned: self.learned.into(),
            held_out: self.held_out.into(),
            not_learned_from: self.skipped,
        })
    }
}
