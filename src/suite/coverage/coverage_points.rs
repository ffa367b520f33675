//! The coverage points of a bundle: compiled rules + rules files → points, each with the branches that tests should reach.

use std::collections::HashMap;

use regex::Regex;

use super::branch_kind::Side;
use super::report::WhyNot;
use crate::call::{CallView, SessionState, ToolCall};
use crate::diagnostic::{SourceId, Span};
use crate::json::{Map, Value};
use crate::matcher::{ExaminedCondition, ExaminedForm, ExaminedMatcher, ExaminedPattern};
use crate::middleware::{KINDS, Kind, Redact};
use crate::policy::{CompiledPolicies, Mode, Policy, Unmatched};
use crate::redaction::{Detector, Redactor, Style};
use crate::source::{LoadedFile, Node};

/// One coverage point of a rules file.
#[derive(Debug)]
pub(super) struct Place {
    /// The kind of point, as in the report.
    pub(super) what: &'static str,
    pub(super) span: Span,
    /// One or two branches.
    pub(super) sides: Vec<Side>,
}

/// The indices of a policy's coverage points among all.
#[derive(Debug)]
pub(super) struct PolicyPoints {
    /// The policy as a whole.
    pub(super) policy: usize,
    /// The policy's kind, if its effect has branches of its own.
    pub(super) kind: Option<usize>,
    pub(super) tools: usize,
    pub(super) servers: usize,
    /// The conditions, each before its parts; `None` for one that is equivalent to its only part.
    pub(super) conditions: Vec<Option<usize>>,
    /// The steps of a transform on the arguments, and on the result.
    pub(super) steps: [usize; 2],
    /// Each detector and each pattern by itself.
    pub(super) finders: Vec<(Redactor, usize)>,
    /// The patterns of `on`.
    pub(super) errors: usize,
    /// One past the last.
    pub(super) end: usize,
}

/// A policy of a rules file, enabled or not, with its location.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) id: String,
    pub(super) kind: &'static str,
    pub(super) mode: Mode,
    pub(super) span: Span,
    /// Why the policy is not counted, if it is not.
    pub(super) not_counted: Option<WhyNot>,
}

/// All coverage points of a bundle.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) all: Vec<Place>,
    /// The policies that cases can reach, by id.
    pub(super) by_policy: HashMap<String, PolicyPoints>,
    /// `defaults.unmatched`, if it stops calls.
    pub(super) unmatched: Option<usize>,
    /// The policies, ordered by file and position.
    pub(super) written: Vec<Written>,
    pub(super) files: Vec<SourceId>,
}

impl Places {
    pub(super) fn of(chains: &CompiledPolicies, files: &[LoadedFile]) -> Self {
        let mut places = Self { files: files.iter().map(|file| file.source).collect(), ..Self::default() };
        if chains.defaults().unmatched != Unmatched::Allow
            && let Some(node) = files.iter().find_map(|file| file.root.get("defaults")?.get("unmatched"))
        {
            places.unmatched = Some(places.add("unmatched", node.span, vec![Side::Applied, Side::Lifted]));
        }
        let nodes: HashMap<&str, &Node> =
            nodes(files).filter_map(|node| Some((node.get("id")?.as_str()?, node))).collect();
        for policy in chains.policies().iter().filter(|policy| is_reachable(&policy.kind)) {
            let of_policy = places.of_policy(policy, nodes.get(policy.id.as_str()).copied());
            places.by_policy.insert(policy.id.clone(), of_policy);
        }
        places.written = places.declared_policies(files, chains);
        places
    }

    fn add(&mut self, what: &'static str, span: Span, sides: Vec<Side>) -> usize {
        self.all.push(Place { what, span, sides });
        self.all.len() - 1
    }

    fn of_policy(&mut self, policy: &Policy, node: Option<&Node>) -> PolicyPoints {
        let call = ToolCall::new("", "", Value::Object(Map::new()));
        let session = SessionState::default();
        // The results for this call do not matter, only the structure of the conditions.
        let examined = policy.matcher.examine(&CallView::new(&call, &session));
        let id_span = node.and_then(|node| node.get("id")).map_or(policy.span, |id| id.span);
        // A budget's conditions read the run, which no case defines.
        let examined = match policy.kind.is_of_run() {
            true => ExaminedMatcher { condition: None, ..examined },
            false => examined,
        };
        let patterns = || examined.tools.iter().chain(&examined.servers);
        let narrows = examined.condition.is_some() || patterns().any(|pattern| pattern.text != "*");
        let mut sides = vec![Side::Matched];
        sides.extend(narrows.then_some(Side::NotMatched));
        let whole = self.add("policy", id_span, sides);
        let tools = self.patterns("tool", &examined.tools, policy);
        let servers = self.patterns("server", &examined.servers, policy);
        let mut conditions = Vec::new();
        if let Some(condition) = &examined.condition {
            condition.each(&mut |part| {
                let place = what(part).map(|what| self.add(what, part.span, vec![Side::True, Side::False]));
                conditions.push(place);
            });
        }
        let entry =
            node.and_then(|node| node.entries()?.iter().find(|entry| entry.key == policy.kind.entry().name));
        let sides = kind_branches(policy);
        let key_span = entry.map_or(id_span, |entry| entry.key_span);
        let kind = (!sides.is_empty()).then(|| self.add("kind", key_span, sides));
        let value = entry.map(|entry| &entry.value);
        let under = |key: &str| value.and_then(|value| value.get(key));
        let mut list = |what, key: &str, sides: &[Side]| {
            let start = self.all.len();
            for item in items(under(key)) {
                self.add(what, item.span, sides.to_vec());
            }
            start
        };
        let steps = ["input", "output"].map(|key| match policy.kind {
            Kind::Transform(_) => list("step", key, &[Side::Changed]),
            _ => 0,
        });
        let errors = match policy.kind {
            Kind::Recover(_) | Kind::Retry(_) => list("error", "on", &[Side::True, Side::False]),
            _ => 0,
        };
        let finders = match &policy.kind {
            Kind::Redact(redact) => {
                let detectors = list("detector", "detect", &[Side::Found]);
                let patterns = list("pattern", "patterns", &[Side::Found]);
                finders(redact, items(under("detect")), detectors, patterns)
            }
            _ => Vec::new(),
        };
        let end = self.all.len();
        PolicyPoints { policy: whole, kind, tools, servers, conditions, steps, finders, errors, end }
    }

    fn patterns(&mut self, what: &'static str, patterns: &[ExaminedPattern<'_>], policy: &Policy) -> usize {
        let start = self.all.len();
        for pattern in patterns {
            // A star matches every name.
            let sides = if pattern.text == "*" { vec![Side::True] } else { vec![Side::True, Side::False] };
            self.add(what, pattern.span.unwrap_or(policy.span), sides);
        }
        start
    }

    /// The policies as written, including disabled ones.
    fn declared_policies(&self, files: &[LoadedFile], chains: &CompiledPolicies) -> Vec<Written> {
        let modes: HashMap<&str, Mode> =
            chains.policies().iter().map(|policy| (policy.id.as_str(), policy.mode)).collect();
        let written = nodes(files).filter_map(|node| {
            let kind = KINDS.into_iter().find(|kind| node.get(kind.name).is_some())?;
            let id_node = node.get("id")?;
            let id = id_node.as_str()?;
            let mode = modes.get(id).copied().unwrap_or(Mode::Off);
            let not_counted = match mode {
                Mode::Off => Some(WhyNot::Off),
                _ => (!self.by_policy.contains_key(id)).then_some(WhyNot::OfRun),
            };
            Some(Written { id: id.to_owned(), kind: kind.name, mode, span: id_node.span, not_counted })
        });
        written.collect()
    }
}

/// Whether cases can reach the effect of a kind. Of budgets, they consume only calls.
fn is_reachable(kind: &Kind) -> bool {
    match kind {
        Kind::Budget(budget) => budget.bounds.calls.is_some(),
        kind => !kind.is_of_run(),
    }
}

/// The name of a condition's form. Returns `None` if it is equivalent to its only part.
fn what(condition: &ExaminedCondition<'_>) -> Option<&'static str> {
    match &condition.form {
        ExaminedForm::All(parts) | ExaminedForm::Any(parts) if parts.len() == 1 => None,
        ExaminedForm::All(_) => Some("all"),
        ExaminedForm::Any(_) => Some("any"),
        ExaminedForm::Not(_) => Some("not"),
        ExaminedForm::Test(_) => Some("test"),
        ExaminedForm::Expr(_) => Some("expr"),
    }
}

/// The branches of a matching policy's effect. In shadow mode, only those that are visible before the effect.
fn kind_branches(policy: &Policy) -> Vec<Side> {
    let side = match policy.kind {
        Kind::Validate(_) => return vec![Side::Misfits, Side::Fits],
        Kind::RateLimit(_) => return vec![Side::UsedUp, Side::Enough],
        // The calls of a case run one after the other, so that a slot is always free.
        Kind::Concurrency(_) => Side::Enough,
        Kind::Recover(_) => Side::Recovered,
        Kind::Deny(_) | Kind::Halt(_) | Kind::Allow(_) => Side::Reason,
        Kind::Budget(_) => Side::UsedUp,
        Kind::Approval(_) => Side::Asked,
        Kind::Respond(_) => Side::Answered,
        Kind::Cache(_) => Side::Kept,
        Kind::Around(_) => Side::Ran,
        Kind::Retry(_) => Side::Repeated,
        Kind::Timeout(_) => Side::GivenUp,
        // Their effects are covered by their matching, or by their parts.
        Kind::Transform(_) | Kind::Redact(_) | Kind::Label(_) | Kind::Fact(_) | Kind::Audit(_) => {
            return Vec::new();
        }
        Kind::Model(_) | Kind::Stream(_) => return Vec::new(),
    };
    let shows_in_shadow = matches!(policy.kind, Kind::Recover(_) | Kind::Concurrency(_));
    if policy.mode == Mode::Shadow && !shows_in_shadow { Vec::new() } else { vec![side] }
}

/// Each detector and each pattern by itself, with its coverage point.
fn finders(redact: &Redact, detectors: &[Node], mut at: usize, patterns: usize) -> Vec<(Redactor, usize)> {
    let mut found = Vec::new();
    for node in detectors {
        if let Some(detector) = node.as_str().and_then(Detector::from_name) {
            found.push((Redactor::new(vec![detector], Vec::new(), Style::Mask), at));
        }
        at += 1;
    }
    let alone = |pattern: &Regex| Redactor::new(Vec::new(), vec![pattern.clone()], Style::Mask);
    found.extend(redact.redactor.patterns().iter().map(alone).zip(patterns..));
    found
}

/// The items of a list, or a single node as one item.
fn items(node: Option<&Node>) -> &[Node] {
    node.map(|node| node.items().unwrap_or(std::slice::from_ref(node))).unwrap_or_default()
}

fn nodes(files: &[LoadedFile]) -> impl Iterator<Item = &Node> {
    files.iter().flat_map(|file| items(file.root.get("policies")))
}
