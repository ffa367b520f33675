//! What a draft permits of one tool: its arguments, who may call it with which values, and how often.

mod call_limits;
mod group_rules;

use std::collections::BTreeMap;

use callgate::safe_text::look_alike_form;

use self::call_limits::limits;
use self::group_rules::{differs, group_rule};
use super::confidential_values::ConfidentialValues;
use super::field_rules::FieldRules;
use super::rare_finding::{MAX_FINDINGS, RareFinding, shown_text};
use super::support::Support;
use super::usage_profile::{CallGroup, PrincipalCounts, ToolName, ToolProfile};
use super::value_rule::{AbsentForm, FieldRule};

pub(super) use call_limits::LimitRule;

/// The most principals of a rule.
const MAX_PRINCIPALS: usize = 20;
/// The least calls of a principal whose calls have a rule of their own.
const MIN_PRINCIPAL_CALLS: u64 = 10;

/// The rules of one tool.
#[derive(Clone, Debug)]
pub(super) struct ToolDraft {
    pub(super) name: ToolName,
    /// What was seen, for comments.
    pub(super) evidence: Vec<String>,
    pub(super) arguments: FieldRule,
    pub(super) permissions: Vec<Permission>,
    pub(super) limits: Vec<LimitRule>,
    pub(super) findings: Vec<RareFinding>,
}

/// Calls that are permitted, or that require an approval.
#[derive(Clone, Debug)]
pub(super) struct Permission {
    /// What ends the policy's id; empty for the first one.
    pub(super) suffix: String,
    pub(super) requires_approval: bool,
    /// The principals whose calls these are; `None` for all.
    pub(super) principals: Option<Vec<String>>,
    pub(super) rule: FieldRule,
    /// Calls that are permitted without an approval.
    pub(super) exempt: Vec<ExemptCalls>,
}

/// Calls that need no approval.
#[derive(Clone, Debug)]
pub(super) struct ExemptCalls {
    pub(super) principals: Option<Vec<String>>,
    pub(super) rule: FieldRule,
}

/// What the drafts of all tools share.
pub(super) struct DraftSettings<'a> {
    pub(super) required: usize,
    pub(super) confidential: &'a ConfidentialValues,
    pub(super) principals: &'a PrincipalCounts,
}

impl DraftSettings<'_> {
    /// Drafts the rules of a tool with usual calls. `declared` are the names of the arguments that it declares. Returns the findings
    /// alone if nothing can be drafted.
    pub(super) fn draft(
        &self,
        name: &ToolName,
        profile: &ToolProfile,
        declared: &[String],
    ) -> Result<ToolDraft, Vec<RareFinding>> {
        let mut rules = FieldRules {
            required: self.required,
            confidential: self.confidential,
            declared,
            findings: Vec::new(),
        };
        let tool = shown_text(&name.tool);
        let Some(arguments) = rules.arguments(&profile.arguments) else {
            let text = format!("{tool}: its arguments are usually no object");
            return Err(vec![RareFinding::new(text, &profile.calls)]);
        };
        let mut draft = ToolDraft {
            name: name.clone(),
            evidence: evidence(profile),
            permissions: Vec::new(),
            limits: limits(profile, self.required),
            findings: Vec::new(),
            arguments,
        };
        let principals = self.principals_of(profile, &mut rules.findings);
        self.add_run(&mut draft, profile, principals.clone(), &mut rules);
        self.add_approved(&mut draft, profile, principals, &mut rules);
        draft.findings = rules.findings;
        if draft.permissions.is_empty() {
            let mut findings = draft.findings;
            findings.push(RareFinding::new(format!("{tool}: too few sessions for a rule"), &profile.calls));
            return Err(findings);
        }
        Ok(draft)
    }

    /// Adds the calls that ran without an approval.
    fn add_run(
        &self,
        draft: &mut ToolDraft,
        profile: &ToolProfile,
        principals: Option<Vec<String>>,
        rules: &mut FieldRules<'_>,
    ) {
        let Some(run) = profile.groups.get(&CallGroup::Run) else { return };
        if !run.present.is_usual(self.required) {
            let text = "calls without an approval; the others were approved";
            rules.findings.push(RareFinding::new(text, &run.present));
            return;
        }
        let permission = |suffix: String, principals, rule| Permission {
            suffix,
            requires_approval: false,
            principals,
            rule,
            exempt: Vec::new(),
        };
        if let Some(by_principal) = self.split(draft, profile, rules) {
            for (principal, rule) in by_principal {
                let suffix = format!("for-{principal}");
                draft.permissions.push(permission(suffix, Some(vec![principal]), rule));
            }
            return;
        }
        let rule = match profile.groups.contains_key(&CallGroup::Approved) {
            true => group_rule(&draft.arguments, run, rules),
            false => Some(draft.arguments.clone()),
        };
        draft.permissions.extend(rule.map(|rule| permission(String::new(), principals, rule)));
    }

    /// The rules of each principal, if there are few, all have enough calls, and their calls differ.
    fn split(
        &self,
        draft: &ToolDraft,
        profile: &ToolProfile,
        rules: &FieldRules<'_>,
    ) -> Option<Vec<(String, FieldRule)>> {
        if profile.principals.unnamed.is_usual(self.required) {
            return None;
        }
        let mut found = Vec::new();
        for (principal, support) in profile.principals.named.usual(self.required) {
            if support.calls() < MIN_PRINCIPAL_CALLS {
                return None;
            }
            let group = profile.groups.get(&CallGroup::RunBy(principal.clone()))?;
            let mut rules = FieldRules { findings: Vec::new(), ..*rules };
            found.push((principal.clone(), group_rule(&draft.arguments, group, &mut rules)?));
        }
        let differ = found.iter().enumerate().any(|(index, (_, one))| {
            found.iter().skip(index + 1).any(|(_, other)| differs(&one.rule, &other.rule))
        });
        differ.then_some(found)
    }

    /// Adds the calls that ran after an approval.
    fn add_approved(
        &self,
        draft: &mut ToolDraft,
        profile: &ToolProfile,
        principals: Option<Vec<String>>,
        rules: &mut FieldRules<'_>,
    ) {
        let Some(approved) = profile.groups.get(&CallGroup::Approved) else { return };
        if !approved.present.is_usual(self.required) {
            rules.findings.push(RareFinding::new("calls that were approved", &approved.present));
            return;
        }
        let Some(rule) = group_rule(&draft.arguments, approved, rules) else { return };
        let permits_all = |permission: &Permission| {
            permission.principals.is_none() && permission.rule.conditions(AbsentForm::Match).is_empty()
        };
        if draft.permissions.iter().any(permits_all) {
            let text = "calls that were approved, although others like them were not";
            rules.findings.push(RareFinding::new(text, &approved.present));
            return;
        }
        let exempt = draft
            .permissions
            .iter()
            .map(|permission| ExemptCalls {
                principals: permission.principals.clone(),
                rule: permission.rule.clone(),
            })
            .collect();
        draft.permissions.push(Permission {
            suffix: "approved".to_owned(),
            requires_approval: true,
            principals,
            rule,
            exempt,
        });
    }

    /// The principals of a tool that only some of all principals call. Returns `None` if it needs no rule.
    fn principals_of(&self, profile: &ToolProfile, findings: &mut Vec<RareFinding>) -> Option<Vec<String>> {
        let counts = &profile.principals;
        if counts.unnamed.is_usual(self.required) {
            return None;
        }
        let usual = without_look_alikes(counts.named.usual(self.required));
        let all = self.principals.named.usual(self.required).count();
        if usual.is_empty() || usual.len() > MAX_PRINCIPALS || usual.len() >= all {
            return None;
        }
        for (principal, support) in
            counts.named.iter().filter(|(name, _)| !usual.contains(name)).take(MAX_FINDINGS)
        {
            findings
                .push(RareFinding::new(format!("calls of the principal {}", shown_text(principal)), support));
        }
        Some(usual)
    }
}

/// Of names that look alike, the one with the most calls.
pub(super) fn without_look_alikes<'n>(names: impl Iterator<Item = (&'n String, &'n Support)>) -> Vec<String> {
    let mut by_form: BTreeMap<String, (&String, u64)> = BTreeMap::new();
    for (name, support) in names {
        let kept = by_form.entry(look_alike_form(name)).or_insert((name, support.calls()));
        if support.calls() > kept.1 {
            *kept = (name, support.calls());
        }
    }
    let mut names: Vec<String> = by_form.into_values().map(|(name, _)| name.clone()).collect();
    names.sort();
    names
}

fn evidence(profile: &ToolProfile) -> Vec<String> {
    let count = |number: u64, one: &str, several: &str| {
        format!("{number} {}", if number == 1 { one } else { several })
    };
    let mut parts = vec![
        count(profile.calls.calls(), "call", "calls"),
        count(profile.sessions.len() as u64, "session", "sessions"),
    ];
    let principals = profile.principals.named.iter().count() as u64;
    if principals > 0 {
        parts.push(count(principals, "principal", "principals"));
    }
    if let (Some(first), Some(last)) = (profile.first, profile.last) {
        let day = |time: jiff::Timestamp| time.strftime("%Y-%m-%d").to_string();
        parts.push(match day(first) == day(last) {
            true => day(first),
            false => format!("{} to {}", day(first), day(last)),
        });
    }
    vec![parts.join(", ")]
}
