//! Writes the rules of a draft: [`ToolDraft`]s → YAML, each rule with its evidence as a comment.

use callgate::json::{Map, Value, json};
use callgate::safe_text::is_hidden;
use callgate_policy_tests::yaml_writer;

use super::policy_ids::{PolicyIds, exact_pattern};
use super::rare_finding::RareFinding;
use super::tool_draft::{ExemptCalls, LimitRule, Permission, ToolDraft};
use super::usage_profile::ToolName;
use super::value_rule::{AbsentForm, FieldRule, MemberRule, ValueRule};

/// The maximum length of a line, as far as values allow.
const MAX_WIDTH: usize = 120;

/// The ids of a tool's policies.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolIds {
    pub(super) arguments: String,
    pub(super) permissions: Vec<String>,
    pub(super) limits: Vec<String>,
}

/// Writes rules line by line.
#[derive(Default)]
pub(super) struct RulesWriter {
    text: String,
    ids: PolicyIds,
}

impl RulesWriter {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// The beginning of the file.
    pub(super) fn begin(&mut self, has_tools: bool, has_policies: bool) {
        self.line(0, "callgate: 1");
        self.line(0, "# A call that no policy below permits is denied.");
        self.line(0, "defaults: { unmatched: deny }");
        if has_tools {
            self.line(0, "tools: tools.json");
        }
        self.line(0, if has_policies { "policies:" } else { "policies: []" });
    }

    /// The policies of one tool.
    pub(super) fn tool(&mut self, draft: &ToolDraft) -> ToolIds {
        let mut ids = ToolIds::default();
        let server = draft.name.server.as_deref().map(|server| format!(" of {server}")).unwrap_or_default();
        if !self.text.ends_with("policies:\n") {
            self.blank();
        }
        self.comment(2, &format!("{}{server}: {}", draft.name.tool, draft.evidence.join(", ")));
        ids.permissions =
            draft.permissions.iter().map(|permission| self.permission(&draft.name, permission)).collect();
        ids.arguments = self.arguments(&draft.name, &draft.arguments);
        ids.limits = draft.limits.iter().map(|limit| self.limit(&draft.name, limit)).collect();
        self.findings(2, &draft.findings);
        ids
    }

    /// What a person has to decide on.
    pub(super) fn findings(&mut self, indent: usize, findings: &[RareFinding]) {
        let (rare, notes): (Vec<_>, Vec<_>) = findings.iter().partition(|finding| finding.calls > 0);
        if !rare.is_empty() {
            self.comment(indent, "To decide: seen rarely.");
        }
        for finding in rare {
            self.comment(indent, &format!("- {}", finding.line()));
        }
        if !notes.is_empty() {
            self.comment(indent, "To decide: not limited by this draft.");
        }
        for finding in notes {
            self.comment(indent, &format!("- {}", finding.line()));
        }
    }

    pub(super) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// A comment on a line of its own. Whatever the text is, it stays a comment.
    pub(super) fn comment(&mut self, indent: usize, text: &str) {
        let safe: String = text
            .chars()
            .flat_map(|c| match c.is_control() || is_hidden(c) {
                true => c.escape_unicode().collect::<Vec<char>>(),
                false => vec![c],
            })
            .collect();
        self.line(indent, &format!("# {safe}"));
    }

    fn permission(&mut self, name: &ToolName, permission: &Permission) -> String {
        let id = self.ids.next(name, &permission.suffix);
        self.lines(2, yaml_writer::list_item(yaml_writer::entry("id", &id.as_str().into(), MAX_WIDTH)));
        let form = if permission.requires_approval { AbsentForm::Any } else { AbsentForm::Match };
        let conditions = permission.rule.conditions(form);
        if conditions.is_empty() && permission.principals.is_none() && permission.exempt.is_empty() {
            self.matched(name);
        } else {
            self.line(4, "match:");
            for (key, value) in matched_tool(name) {
                self.lines(6, yaml_writer::entry(&key, &value, MAX_WIDTH));
            }
            self.line(6, "where:");
            if let Some(principals) = &permission.principals {
                self.condition(&principals_condition(principals));
            }
            for commented in conditions {
                if !commented.comment.is_empty() {
                    self.comment(8, &commented.comment);
                }
                self.condition(&commented.condition);
            }
            if !permission.exempt.is_empty() {
                self.comment(8, "Other calls than those that are permitted without an approval.");
                let exempt: Vec<Value> = permission.exempt.iter().map(exempt_condition).collect();
                self.condition(&match exempt.as_slice() {
                    [only] => json!({ "not": only }),
                    several => json!({ "not": { "any": several } }),
                });
            }
        }
        self.line(4, if permission.requires_approval { "approval: {}" } else { "allow: {}" });
        id
    }

    fn condition(&mut self, condition: &Value) {
        let lines = match yaml_writer::flow(condition) {
            flow if flow.chars().count() <= MAX_WIDTH - 10 => vec![flow],
            _ => yaml_writer::lines(condition, MAX_WIDTH - 10),
        };
        self.lines(8, yaml_writer::list_item(lines));
    }

    fn arguments(&mut self, name: &ToolName, arguments: &FieldRule) -> String {
        let id = self.ids.next(name, "arguments");
        self.lines(2, yaml_writer::list_item(yaml_writer::entry("id", &id.as_str().into(), MAX_WIDTH)));
        self.matched(name);
        let ValueRule::Members(members) = &arguments.rule else {
            self.line(4, "validate: { schema: { type: object } }");
            return id;
        };
        self.line(4, "validate:");
        if members.is_empty() {
            self.line(6, "arguments: {}");
            return id;
        }
        self.line(6, "arguments:");
        for (name, MemberRule { is_required, field }) in members {
            let key = if *is_required { name.clone() } else { format!("{name}?") };
            self.lines(8, yaml_writer::entry(&key, &field.argument_type(), MAX_WIDTH - 8));
        }
        id
    }

    fn limit(&mut self, name: &ToolName, limit: &LimitRule) -> String {
        let id = self.ids.next(name, limit.suffix);
        self.comment(2, &limit.evidence);
        self.lines(2, yaml_writer::list_item(yaml_writer::entry("id", &id.as_str().into(), MAX_WIDTH)));
        self.matched(name);
        let mut settings = Map::new();
        settings.insert("limit", limit.limit.into());
        settings.insert("per", limit.per.into());
        if limit.per != "run" {
            settings.insert("algorithm", "sliding_window".into());
        }
        if limit.by_principal {
            settings.insert("key", "$.context.principal".into());
        }
        self.lines(4, yaml_writer::entry("rate_limit", &settings.into(), MAX_WIDTH));
        id
    }

    /// `match`, without conditions.
    fn matched(&mut self, name: &ToolName) {
        let matched = match &name.server {
            None => exact_pattern(&name.tool).into(),
            Some(_) => Value::Object(matched_tool(name)),
        };
        self.lines(4, yaml_writer::entry("match", &matched, MAX_WIDTH));
    }

    fn lines(&mut self, indent: usize, lines: Vec<String>) {
        lines.iter().for_each(|line| self.line(indent, line));
    }

    fn line(&mut self, indent: usize, text: &str) {
        let line = format!("{:indent$}{text}", "");
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }
}

fn principals_condition(principals: &[String]) -> Value {
    match principals {
        [principal] => json!({ "path": "$.context.principal", "eq": principal }),
        several => json!({ "path": "$.context.principal", "in": several }),
    }
}

fn exempt_condition(exempt: &ExemptCalls) -> Value {
    let principals = exempt.principals.iter().map(|principals| principals_condition(principals));
    let conditions = exempt.rule.conditions(AbsentForm::Any).into_iter().map(|commented| commented.condition);
    json!({ "all": principals.chain(conditions).collect::<Vec<Value>>() })
}

fn matched_tool(name: &ToolName) -> Map {
    let mut matched = Map::new();
    if let Some(server) = &name.server {
        matched.insert("server", exact_pattern(server).into());
    }
    matched.insert("tool", exact_pattern(&name.tool).into());
    matched
}
