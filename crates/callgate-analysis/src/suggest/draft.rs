//! Drafts a bundle: a [`UsageProfile`] + the known tools → rules and tests as texts, and what is left to decide.

use std::collections::{BTreeMap, BTreeSet};

use callgate::json::{Key, Value};
use callgate::safe_text::look_alike_form;
use callgate::tools::ToolDescriptor;

use super::confidential_values::ConfidentialValues;
use super::policy_ids::is_valid_name;
use super::rare_finding::{RareFinding, shown_text};
use super::rules_writer::RulesWriter;
use super::tests_writer::TestsWriter;
use super::tool_draft::{DraftSettings, ToolDraft};
use super::usage_profile::{ToolName, ToolProfile, UsageProfile};

/// A drafted bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The text of the rules file.
    pub rules: String,
    /// The text of its policy tests.
    pub tests: String,
    /// The tools that it permits, with the number of things to decide for each.
    pub tools: Vec<(ToolName, usize)>,
    /// What concerns tools that it does not permit.
    pub findings: Vec<RareFinding>,
}

impl UsageProfile {
    /// Drafts a bundle that permits what is usual. With known tools, no other ones are permitted, and the rules name the file
    /// `tools.json` beside them.
    pub fn draft(&self, tools: Option<&[ToolDescriptor]>) -> Draft {
        let confidential = ConfidentialValues::new();
        let settings = DraftSettings {
            required: self.required,
            confidential: &confidential,
            principals: &self.principals,
        };
        let mut findings = Vec::new();
        let mut drafts = Vec::new();
        let imitations = self.imitations(tools);
        for (name, profile) in &self.tools {
            if let Some(why) = self.why_not(name, profile, tools, &imitations) {
                findings.push(RareFinding::new(
                    format!("{}{why}", tool_phrase(name, &confidential)),
                    &profile.calls,
                ));
                continue;
            }
            let declared = tools.and_then(|tools| find(tools, name)).map(argument_names).unwrap_or_default();
            match settings.draft(name, profile, &declared) {
                Ok(draft) => drafts.push(draft),
                Err(problems) => findings.extend(problems),
            }
        }
        if self.further_tools > 0 {
            let calls = self.further_tools;
            findings
                .push(RareFinding { calls, ..RareFinding::note("further tools: there are too many names") });
        }
        findings.extend(self.never_called(tools));
        write(&drafts, findings, tools.is_some())
    }

    /// Why a tool is not permitted. Returns `None` for one whose rules can be drafted.
    fn why_not(
        &self,
        name: &ToolName,
        profile: &ToolProfile,
        tools: Option<&[ToolDescriptor]>,
        imitations: &BTreeSet<&str>,
    ) -> Option<&'static str> {
        if !is_valid_name(&name.tool) || !name.server.as_deref().is_none_or(is_valid_name) {
            return Some(": its name is not valid");
        }
        if imitations.contains(name.tool.as_str()) {
            return Some(": its name looks like that of another tool");
        }
        if tools.is_some_and(|tools| find(tools, name).is_none()) {
            return Some(": it is not a known tool");
        }
        (!profile.calls.is_usual(self.required)).then_some("")
    }

    /// Names that look like another one, which is known or has more calls.
    fn imitations(&self, tools: Option<&[ToolDescriptor]>) -> BTreeSet<&str> {
        let is_known = |name: &str| tools.is_some_and(|tools| tools.iter().any(|tool| tool.name == name));
        let mut by_form: BTreeMap<String, BTreeMap<&str, u64>> = BTreeMap::new();
        for (name, profile) in &self.tools {
            *by_form.entry(look_alike_form(&name.tool)).or_default().entry(&name.tool).or_default() +=
                profile.calls.calls();
        }
        for tool in tools.unwrap_or_default() {
            by_form.entry(look_alike_form(&tool.name)).or_default().entry(&tool.name).or_default();
        }
        let mut imitations = BTreeSet::new();
        for names in by_form.into_values().filter(|names| names.len() > 1) {
            let genuine =
                names.iter().max_by_key(|(name, calls)| (is_known(name), **calls)).map(|(name, _)| *name);
            imitations.extend(names.into_keys().filter(|name| Some(*name) != genuine && !is_known(name)));
        }
        // Names of known tools borrow from `tools`; the imitations are names of recordings.
        self.tools.keys().map(|name| name.tool.as_str()).filter(|name| imitations.contains(name)).collect()
    }

    /// Known tools that were never called.
    fn never_called(&self, tools: Option<&[ToolDescriptor]>) -> Option<RareFinding> {
        let is_called = |tool: &ToolDescriptor| {
            self.tools.keys().any(|name| {
                name.tool == tool.name
                    && (tool.server.is_none() || name.server.is_none() || tool.server == name.server)
            })
        };
        let names: Vec<String> =
            tools?.iter().filter(|tool| !is_called(tool)).map(|tool| shown_text(&tool.name)).collect();
        (!names.is_empty()).then(|| RareFinding::note(format!("never called: {}", names.join(", "))))
    }
}

fn write(drafts: &[ToolDraft], findings: Vec<RareFinding>, has_tools: bool) -> Draft {
    let mut rules = RulesWriter::new();
    let mut tests = TestsWriter::new(has_tools);
    rules.begin(has_tools, !drafts.is_empty());
    for draft in drafts {
        let ids = rules.tool(draft);
        tests.tool(draft, &ids);
    }
    if drafts.is_empty() {
        tests.nothing_permitted();
    }
    if !findings.is_empty() {
        rules.blank();
        rules.comment(0, "To decide: these tools are not permitted.");
        for finding in &findings {
            rules.comment(0, &format!("- {}", finding.line()));
        }
    }
    let permitted = drafts.iter().map(|draft| (draft.name.clone(), draft.findings.len())).collect();
    Draft { rules: rules.into_text(), tests: tests.into_text(), tools: permitted, findings }
}

fn find<'t>(tools: &'t [ToolDescriptor], name: &ToolName) -> Option<&'t ToolDescriptor> {
    tools.iter().find(|tool| {
        tool.name == name.tool
            && (tool.server.is_none() || name.server.is_none() || tool.server == name.server)
    })
}

/// The names of the arguments that a tool declares; empty if it declares none, or accepts others.
fn argument_names(tool: &ToolDescriptor) -> Vec<String> {
    let schema = tool.input_schema.as_ref();
    let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    properties.map(|properties| properties.keys().map(Key::to_string).collect()).unwrap_or_default()
}

fn tool_phrase(name: &ToolName, confidential: &ConfidentialValues) -> String {
    if confidential.is_confidential_name(&name.tool) {
        return "a tool with a confidential name".to_owned();
    }
    let server = name.server.as_deref().map(|server| format!(" of {}", shown_text(server)));
    format!("{}{}", shown_text(&name.tool), server.unwrap_or_default())
}
