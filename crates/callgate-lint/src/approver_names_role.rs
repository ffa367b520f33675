//! Lint: entries of `approvers` that name a principal and are probably meant as a role, without the prefix `role:`.

use std::collections::BTreeSet;

use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use crate::scalars::{replaceable_span, replacement_source};
use callgate::approval::ApproverEntry;
use callgate::call::Root;
use callgate::diagnostic::{APPROVER_NAMES_ROLE, Diagnostics, Fix};
use callgate::path::PathStep;
use callgate::principal::{Principal, PrincipalComparison};
use callgate::source::YamlNode;

pub(super) static LINT: Lint = Lint { code: &APPROVER_NAMES_ROLE, needs: RequiredInput::Nothing, check };

/// Last words of names that are probably roles, not people.
const ROLE_WORDS: [&str; 37] = [
    "accounting",
    "admin",
    "admins",
    "analysts",
    "approver",
    "approvers",
    "board",
    "compliance",
    "controller",
    "controllers",
    "devops",
    "director",
    "directors",
    "engineering",
    "finance",
    "group",
    "hr",
    "it",
    "lead",
    "leads",
    "legal",
    "manager",
    "managers",
    "oncall",
    "operations",
    "operator",
    "operators",
    "ops",
    "owner",
    "owners",
    "reviewer",
    "reviewers",
    "security",
    "sre",
    "staff",
    "support",
    "team",
];

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    let known = KnownNames::collect(checked);
    for written in &checked.policies {
        let Some(settings) = written.approval_settings() else { continue };
        let entries = settings.get("approvers").and_then(YamlNode::items).unwrap_or_default();
        for entry in entries {
            let Some(ApproverEntry::Principal(name)) = entry.as_str().map(ApproverEntry::parse) else {
                continue;
            };
            let why = match known.role_source(name) {
                Some(location) => format!("which {location} use as a role"),
                None if known.is_principal(name) || !looks_like_role(name) => continue,
                None => "which looks like a role".to_owned(),
            };
            let span = replaceable_span(checked.sources, entry);
            let is_sure = known.role_source(name).is_some() && !known.is_principal(name);
            let fix = span.filter(|_| is_sure).map(|span| {
                let role = format!("role:{name}");
                Fix::replace(format!("write `{role}`"), span, replacement_source(entry, &role))
            });
            let message = format!("only a principal named `{name}` can approve, {why}");
            let help = format!(
                "write `role:{name}` for everybody with the role, or suppress this lint if a principal has that name"
            );
            found.push(
                written.diagnostic(&APPROVER_NAMES_ROLE, entry.span, message).with_help(help).with_fix(fix),
            );
        }
    }
}

/// The names of roles and principals in the rules and their tests.
struct KnownNames {
    in_rules: BTreeSet<String>,
    in_tests: BTreeSet<String>,
    principals: Vec<Principal>,
}

impl KnownNames {
    fn collect(checked: &LintContext<'_>) -> Self {
        let mut in_rules = BTreeSet::new();
        for test in checked.policies.iter().flat_map(|written| &written.tests) {
            let of_roles = test.steps().map_or_else(
                || test.text().starts_with("$.context.roles"),
                |steps| matches!(steps.first(), Some(PathStep::Name(name)) if name == "roles"),
            );
            if test.root() == Some(Root::Context) && of_roles {
                let operands = test.operators().map(|operator| &operator.value);
                let nodes =
                    operands.flat_map(|operand| operand.items().unwrap_or(std::slice::from_ref(operand)));
                in_rules.extend(nodes.filter_map(YamlNode::as_str).map(str::to_owned));
            }
        }
        let names = checked.tests.map(|tests| tests.suite.identities()).unwrap_or_default();
        let parse = |name: &String| Principal::parse(name, PrincipalComparison::Canonical);
        Self {
            in_rules,
            in_tests: names.roles,
            principals: names.principals.iter().filter_map(parse).collect(),
        }
    }

    /// Returns where a name is used as a role.
    fn role_source(&self, name: &str) -> Option<&'static str> {
        let locations = [(&self.in_rules, "conditions of these rules"), (&self.in_tests, "the policy tests")];
        locations.into_iter().find(|(roles, _)| roles.contains(name)).map(|(_, location)| location)
    }

    fn is_principal(&self, name: &str) -> bool {
        Principal::parse(name, PrincipalComparison::Canonical)
            .is_some_and(|name| self.principals.contains(&name))
    }
}

fn looks_like_role(name: &str) -> bool {
    let last = name.rsplit(['-', '_', '.', '/', ':', ' ']).next().unwrap_or(name).to_lowercase();
    !name.contains('@') && ROLE_WORDS.contains(&last.as_str())
}
