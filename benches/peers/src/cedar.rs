//! Cedar. It knows `permit` and `forbid`, so that a rule that requires approval is a `forbid` whose identifier says so. A tool is an action.

use std::fmt::Write as _;

use callgate::{Effect, ToolCall};
use cedar_policy::{Authorizer, Context, Entities, EntityUid, Policy, PolicyId, PolicySet, Request};
use serde_json::{Value, json};

use crate::PolicyEngine;
use crate::workload::{FIELDS, Rule, Test, rules};

pub struct Cedar {
    authorizer: Authorizer,
    policies: PolicySet,
    entities: Entities,
    requests: Vec<Request>,
}

impl Cedar {
    pub fn new(size: usize, calls: &[ToolCall]) -> Self {
        let mut policies = PolicySet::new();
        let mut add = |id: String, text: &str| {
            let policy = Policy::parse(Some(PolicyId::new(id)), text).expect("a policy");
            policies.add(policy).expect("identifiers that do not repeat");
        };
        add("all".to_owned(), "permit(principal, action, resource);");
        for (number, rule) in rules(size).iter().enumerate() {
            let kind = match rule.effect {
                Effect::Deny => "deny",
                Effect::Suspend => "suspend",
                _ => "permit",
            };
            add(format!("{kind}{number}"), &policy_text(rule));
        }
        let requests = calls.iter().map(request).collect();
        Self { authorizer: Authorizer::new(), policies, entities: Entities::empty(), requests }
    }
}

impl PolicyEngine for Cedar {
    fn decide(&mut self, call: usize) -> Effect {
        let response = self.authorizer.is_authorized(&self.requests[call], &self.policies, &self.entities);
        let effect = |policy: &PolicyId| {
            let id: &str = policy.as_ref();
            match id {
                _ if id.starts_with("deny") => Effect::Deny,
                _ if id.starts_with("suspend") => Effect::Suspend,
                _ => Effect::Run,
            }
        };
        response.diagnostics().reason().map(effect).max().expect("a policy that applies")
    }
}

fn policy_text(rule: &Rule) -> String {
    let effect = if rule.effect == Effect::Run { "permit" } else { "forbid" };
    let (action, mut conditions) = match (rule.tool.strip_prefix("/^"), rule.tool.strip_suffix('*')) {
        // Regexes are not part of Cedar: a name of the desk's tools whose last digit is even.
        (Some(regex), _) => {
            let desk = regex.split('\\').next().unwrap_or_default();
            let ends = [0, 2, 4, 6, 8].map(|digit| format!("context.tool like \"{desk}.tool*{digit}\""));
            ("action".to_owned(), vec![format!("({})", ends.join(" || "))])
        }
        (None, Some(start)) => ("action".to_owned(), vec![format!("context.tool like \"{start}*\"")]),
        (None, None) => (format!("action == Action::{:?}", rule.tool), Vec::new()),
    };
    conditions.extend(rule.tests.iter().map(|(field, test)| {
        let path = FIELDS[*field].join(".");
        let mut condition = format!("context.{path} ");
        let written = match test {
            Test::Equal(value) => write!(condition, "== {value:?}"),
            Test::NotEqual(value) => write!(condition, "!= {value:?}"),
            Test::Above(bound) => write!(condition, "> {bound}"),
            Test::Below(bound) => write!(condition, "< {bound}"),
            Test::StartsWith(start) => write!(condition, "like \"{start}*\""),
            Test::Contains(part) => write!(condition, "like \"*{part}*\""),
        };
        written.expect("text can be written to");
        condition
    }));
    format!("{effect}(principal, {action}, resource) when {{ {} }};", conditions.join(" && "))
}

fn request(call: &ToolCall) -> Request {
    let mut context: Value = serde_json::from_str(&call.input.to_string()).expect("arguments are JSON");
    context["tool"] = json!(call.tool);
    let context = Context::from_json_value(context, None).expect("a context");
    let uid = |text: String| text.parse::<EntityUid>().expect("an entity");
    let action = uid(format!("Action::{:?}", call.tool));
    Request::new(uid("Agent::\"a\"".to_owned()), action, uid("Host::\"h\"".to_owned()), context, None)
        .expect("a request")
}
