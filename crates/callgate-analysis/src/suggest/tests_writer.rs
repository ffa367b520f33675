//! Writes the policy tests of a draft: for each tool a table with an example that is permitted and one call beyond each bound.

use callgate::json::{Map, Value, json};
use callgate_policy_tests::yaml_writer;

use super::rules_writer::ToolIds;
use super::tool_draft::{LimitRule, Permission, ToolDraft};
use super::value_rule::ValueRule;

/// The maximum length of a line, as far as values allow.
const MAX_WIDTH: usize = 120;
/// The most calls of a test of a limit.
const MAX_LIMIT: u64 = 100;
/// A principal of no rule.
const STRANGER: &str = "someone else";
const UNKNOWN_ARGUMENT: &str = "unknown_argument";

/// Writes tests line by line.
#[derive(Default)]
pub(super) struct TestsWriter {
    text: String,
    anchors: usize,
}

impl TestsWriter {
    pub(super) fn new(has_tools: bool) -> Self {
        let mut writer = Self::default();
        writer.line(0, "# The tests of the draft in rules.yaml. Their values are made up.");
        writer.line(0, "callgate: 1");
        if has_tools {
            writer.line(0, "tools: tools.json");
        }
        writer.line(0, "cases:");
        writer
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// A case for bundles without a rule.
    pub(super) fn nothing_permitted(&mut self) {
        self.line(2, "- { name: nothing is permitted, call: { tool: any }, expect: denied }");
    }

    pub(super) fn tool(&mut self, draft: &ToolDraft, ids: &ToolIds) {
        for (index, (permission, id)) in draft.permissions.iter().zip(&ids.permissions).enumerate() {
            let arguments = (index == 0).then_some(ids.arguments.as_str());
            self.permission(draft, permission, id, arguments);
        }
        let runs = draft.permissions.iter().find(|permission| !permission.requires_approval);
        let limits = draft.limits.iter().map(|limit| limit.limit).min();
        for (limit, id) in draft.limits.iter().zip(&ids.limits) {
            if let Some(permission) = runs
                && limit.limit <= MAX_LIMIT
                && limits == Some(limit.limit)
                // Of two equal limits the first one refuses the call.
                && draft.limits.iter().position(|other| other.limit == limit.limit)
                    == draft.limits.iter().position(|other| other.suffix == limit.suffix)
            {
                self.limit(draft, permission, limit, id);
            }
        }
    }

    fn permission(&mut self, draft: &ToolDraft, permission: &Permission, id: &str, arguments: Option<&str>) {
        let what = if permission.requires_approval { "requires approval" } else { "is permitted" };
        self.entry(2, "- ", "name", &format!("{id} {what} within its bounds").into());
        self.entry(4, "", "call", &call(draft, permission).into());
        self.line(4, "rows:");
        let outcome = if permission.requires_approval { "suspended" } else { "executed" };
        self.row(&json!({ "expect": { "outcome": outcome, "policy": id } }));
        let denied = json!({ "outcome": "denied", "code": "unmatched" });
        if permission.principals.is_some() && !permission.requires_approval {
            self.row(&json!({
                "name": "another principal", "context": { "principal": STRANGER }, "expect": &denied,
            }));
        }
        let ValueRule::Members(members) = &permission.rule.rule else { return };
        // A call beyond the bounds of one principal or without an approval may be within others.
        let is_only = draft.permissions.len() == 1 || permission.principals.is_some();
        let has_approval = draft.permissions.iter().any(|permission| permission.requires_approval);
        for (name, member) in
            members.iter().filter(|_| is_only && (!has_approval || draft.permissions.len() == 1))
        {
            for (problem, value) in member.field.counterexamples() {
                let mut input = Map::new();
                input.insert(name.clone(), value);
                self.row(&json!({ "name": format!("{name}: {problem}"), "input": input, "expect": &denied }));
            }
        }
        if let Some(arguments) = arguments {
            let mut unknown = UNKNOWN_ARGUMENT.to_owned();
            while members.contains_key(&unknown) {
                unknown.push('_');
            }
            let mut input = Map::new();
            input.insert(unknown, 1.into());
            self.row(&json!({
                "name": "an argument that was never seen", "input": input,
                "expect": { "outcome": "invalid", "policy": arguments },
            }));
        }
    }

    /// As many calls as are permitted, and one more.
    fn limit(&mut self, draft: &ToolDraft, permission: &Permission, limit: &LimitRule, id: &str) {
        self.anchors += 1;
        let anchor = format!("call_{}", self.anchors);
        let mut step = call(draft, permission);
        step.insert("expect", "executed".into());
        self.entry(2, "- ", "name", &format!("{id} permits {} and no more", limit.limit).into());
        self.line(4, "steps:");
        self.line(6, &format!("- &{anchor} {}", yaml_writer::flow(&step.clone().into())));
        for _ in 1..limit.limit {
            self.line(6, &format!("- *{anchor}"));
        }
        step.insert("expect", json!({ "outcome": "denied", "policy": id }));
        self.line(6, &format!("- {}", yaml_writer::flow(&step.into())));
    }

    fn row(&mut self, row: &Value) {
        let lines = match yaml_writer::flow(row) {
            flow if flow.chars().count() <= MAX_WIDTH - 8 => vec![flow],
            _ => yaml_writer::lines(row, MAX_WIDTH - 8),
        };
        yaml_writer::list_item(lines).iter().for_each(|line| self.line(6, line));
    }

    fn entry(&mut self, indent: usize, mark: &str, key: &str, value: &Value) {
        for (index, line) in yaml_writer::entry(key, value, MAX_WIDTH - indent).into_iter().enumerate() {
            let mark = if index == 0 || mark.is_empty() { mark } else { "  " };
            self.line(indent, &format!("{mark}{line}"));
        }
    }

    fn line(&mut self, indent: usize, text: &str) {
        let line = format!("{:indent$}{text}", "");
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }
}

/// A call that is permitted.
fn call(draft: &ToolDraft, permission: &Permission) -> Map {
    let mut call = Map::new();
    call.insert("tool", draft.name.tool.as_str().into());
    if let Some(server) = &draft.name.server {
        call.insert("server", server.as_str().into());
    }
    call.insert("input", permission.rule.example());
    let principal = permission.principals.as_ref().and_then(|principals| principals.first());
    let needs_principal = draft.limits.iter().any(|limit| limit.by_principal);
    if let Some(principal) = principal.map(String::as_str).or(needs_principal.then_some("someone")) {
        call.insert("context", json!({ "principal": principal }));
    }
    call
}
