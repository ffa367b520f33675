//! The coverage points of a bundle: compiled rules + rules files → points, each with the branches that tests should reach.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use regex::Regex;

use super::branch_kind::BranchKind;
use super::definition_points::CountedDefinitions;
use super::report::UncountedReason;
use callgate::call::{CallView, SessionState, ToolCall};
use callgate::diagnostic::{SourceId, Span};
use callgate::json::{Map, Value};
use callgate::matcher::{ExaminedCondition, ExaminedForm, ExaminedMatcher, ExaminedPattern};
use callgate::middleware::{KINDS, PolicyKind, Redact};
use callgate::policy::{CompiledPolicies, Mode, Policy, Unmatched};
use callgate::redaction::{Detector, RedactionStyle, Redactor};
use callgate::script::{BranchId, CodeBranch, CodeBranchKind, NamedValue, PolicyScript};
use callgate::source::{LoadedFile, YamlNode};

/// The greatest bound of a set that a case should reach.
const MAX_TESTED_SET: usize = 100;

/// One coverage point of a rules file.
#[derive(Debug)]
pub(super) struct CoveragePoint {
    /// The kind of point, as in the report.
    pub(super) what: &'static str,
    pub(super) span: Span,
    /// One or two branches.
    pub(super) branches: Vec<BranchKind>,
}

/// The indices of a policy's coverage points among all.
#[derive(Debug)]
pub(super) struct PolicyPoints {
    /// The policy as a whole.
    pub(super) policy: usize,
    /// The policy's kind, if its effect has branches of its own.
    pub(super) kind: Option<usize>,
    /// The point of each pattern for tools: those of a group have one.
    pub(super) tools: Vec<usize>,
    /// The point of each pattern for servers.
    pub(super) servers: Vec<usize>,
    /// The conditions, each before its parts; `None` for one that is equivalent to its only part.
    pub(super) conditions: Vec<Option<usize>>,
    /// The steps of a transform on the arguments, and on the result.
    pub(super) steps: [usize; 2],
    /// Each detector and each pattern by itself.
    pub(super) detectors: Vec<(Redactor, usize)>,
    /// The patterns of `on`.
    pub(super) errors: usize,
    /// The values of `require`.
    pub(super) required: usize,
    /// One past the last.
    pub(super) end: usize,
}

/// A policy of a rules file, enabled or not, with its location.
#[derive(Debug)]
pub(super) struct DeclaredPolicy {
    pub(super) id: String,
    pub(super) kind: &'static str,
    pub(super) mode: Mode,
    pub(super) span: Span,
    /// Why the policy is not counted, if it is not.
    pub(super) not_counted: Option<UncountedReason>,
}

/// All coverage points of a bundle.
#[derive(Debug, Default)]
pub(super) struct CoveragePoints {
    pub(super) all: Vec<CoveragePoint>,
    /// The policies that cases can reach, by id.
    pub(super) by_policy: HashMap<String, PolicyPoints>,
    /// `defaults.unmatched`, if it stops calls.
    pub(super) unmatched: Option<usize>,
    /// The boolean named values.
    pub(super) lets: Vec<(Arc<NamedValue>, usize)>,
    /// The patterns for tools and servers in policies, those of groups among them.
    tool_patterns: HashSet<String>,
    /// The patterns of groups, by text.
    pub(super) group_patterns: HashMap<String, Vec<usize>>,
    /// The functions and the arms of `switch`.
    pub(super) code: HashMap<BranchId, usize>,
    /// The points of definitions.
    pub(super) definitions: Range<usize>,
    /// The policies, ordered by file and position.
    pub(super) policies: Vec<DeclaredPolicy>,
    pub(super) files: Vec<SourceId>,
}

impl CoveragePoints {
    pub(super) fn new(policies: &CompiledPolicies, files: &[LoadedFile]) -> Self {
        let mut points = Self { files: files.iter().map(|file| file.source).collect(), ..Self::default() };
        if policies.defaults().unmatched != Unmatched::Allow
            && let Some(node) = files.iter().find_map(|file| file.root.get("defaults")?.get("unmatched"))
        {
            points.unmatched =
                Some(points.add("unmatched", node.span, vec![BranchKind::Applied, BranchKind::Lifted]));
        }
        let nodes: HashMap<&str, &YamlNode> =
            policy_nodes(files).filter_map(|node| Some((node.get("id")?.as_str()?, node))).collect();
        for policy in policies.policies().iter().filter(|policy| is_reachable(&policy.kind)) {
            let of_policy = points.add_policy(policy, nodes.get(policy.id.as_str()).copied());
            points.by_policy.insert(policy.id.clone(), of_policy);
        }
        points.add_definitions(CountedDefinitions::new(policies, files));
        points.policies = points.declared_policies(files, policies);
        points
    }

    fn add(&mut self, what: &'static str, span: Span, sides: Vec<BranchKind>) -> usize {
        self.all.push(CoveragePoint { what, span, branches: sides });
        self.all.len() - 1
    }

    fn add_definitions(&mut self, counted: CountedDefinitions) {
        let start = self.all.len();
        for (value, span) in counted.lets {
            let point = self.add("let", span, vec![BranchKind::True, BranchKind::False]);
            self.lets.push((value, point));
        }
        // Groups also name what is no tool, such as programs in `shell` conditions.
        let (tools, groups) = (&self.tool_patterns, counted.patterns);
        let groups: Vec<_> = groups.into_iter().filter(|(text, _)| tools.contains(text)).collect();
        for (text, span) in groups {
            let point = self.add("group", span, vec![BranchKind::True]);
            self.group_patterns.entry(text).or_default().push(point);
        }
        self.add_code(&counted.functions);
        self.definitions = start..self.all.len();
    }

    /// Adds functions and arms of `switch`. One that is compiled several times has one point.
    fn add_code(&mut self, branches: &[CodeBranch]) {
        let mut known: HashMap<Span, usize> = HashMap::new();
        for branch in branches {
            let Some(span) = branch.span else { continue };
            let what = match branch.kind {
                CodeBranchKind::Function => "function",
                CodeBranchKind::Arm => "arm",
            };
            let point = *known.entry(span).or_insert_with(|| self.add(what, span, vec![BranchKind::Ran]));
            self.code.insert(branch.id(), point);
        }
    }

    fn add_policy(&mut self, policy: &Policy, node: Option<&YamlNode>) -> PolicyPoints {
        let call = ToolCall::new("", "", Value::Object(Map::new()));
        let session = SessionState::default();
        // The results for this call do not matter, only the structure of the conditions.
        let examined = policy.matcher.examine(&CallView::new(&call, &session));
        let id_span = node.and_then(|node| node.get("id")).map_or(policy.span, |id| id.span);
        // A budget's conditions read the run, which no case defines.
        let examined = match policy.kind.applies_to_run() {
            true => ExaminedMatcher { condition: None, ..examined },
            false => examined,
        };
        let patterns = || examined.tools.iter().chain(&examined.servers);
        let narrows = examined.condition.is_some() || patterns().any(|pattern| pattern.text != "*");
        let mut sides = vec![BranchKind::Matched];
        sides.extend(narrows.then_some(BranchKind::NotMatched));
        let whole = self.add("policy", id_span, sides);
        let tools = self.add_patterns("tool", &examined.tools, policy);
        let servers = self.add_patterns("server", &examined.servers, policy);
        let mut conditions = Vec::new();
        if let Some(condition) = &examined.condition {
            condition.visit(&mut |part| {
                let point = form_name(part)
                    .map(|what| self.add(what, part.span, vec![BranchKind::True, BranchKind::False]));
                conditions.push(point);
            });
        }
        let entry = node
            .and_then(|node| node.entries()?.iter().find(|entry| entry.key == policy.kind.definition().name));
        let sides = kind_branches(policy);
        let key_span = entry.map_or(id_span, |entry| entry.key_span);
        let kind = (!sides.is_empty()).then(|| self.add("kind", key_span, sides));
        let value = entry.map(|entry| &entry.value);
        let under = |key: &str| value.and_then(|value| value.get(key));
        let mut list = |what, key: &str, sides: &[BranchKind]| {
            let start = self.all.len();
            for item in items(under(key)) {
                self.add(what, item.span, sides.to_vec());
            }
            start
        };
        let steps = ["input", "output"].map(|key| match policy.kind {
            PolicyKind::Transform(_) => list("step", key, &[BranchKind::Changed]),
            _ => 0,
        });
        let errors = match policy.kind {
            PolicyKind::Recover(_) | PolicyKind::Retry(_) => {
                list("error", "on", &[BranchKind::True, BranchKind::False])
            }
            _ => 0,
        };
        let required = match policy.kind {
            PolicyKind::Require(_) => list("value", "values", &[BranchKind::Missing, BranchKind::Present]),
            _ => 0,
        };
        let script = policy.kind.script().map(PolicyScript::branches);
        match &policy.kind {
            PolicyKind::Around(around) => self.add_code(around.script.branches()),
            _ => self.add_code(script.unwrap_or_default()),
        }
        let mut list = |what, key: &str, sides: &[BranchKind]| {
            let start = self.all.len();
            for item in items(under(key)) {
                self.add(what, item.span, sides.to_vec());
            }
            start
        };
        let finders = match &policy.kind {
            PolicyKind::Redact(redact) => {
                let detectors = list("detector", "detect", &[BranchKind::Found]);
                let patterns = list("pattern", "patterns", &[BranchKind::Found]);
                single_detectors(redact, items(under("detect")), detectors, patterns)
            }
            _ => Vec::new(),
        };
        let end = self.all.len();
        PolicyPoints {
            policy: whole,
            kind,
            tools,
            servers,
            conditions,
            steps,
            detectors: finders,
            errors,
            required,
            end,
        }
    }

    fn add_patterns(
        &mut self,
        what: &'static str,
        patterns: &[ExaminedPattern<'_>],
        policy: &Policy,
    ) -> Vec<usize> {
        self.tool_patterns.extend(patterns.iter().map(|pattern| pattern.text.to_owned()));
        // The patterns of a group have one location: that of its name.
        let of_one_name = patterns.chunk_by(|a, b| a.span.is_some() && a.span == b.span);
        let points = of_one_name.flat_map(|patterns| {
            let span = patterns.first().and_then(|pattern| pattern.span).unwrap_or(policy.span);
            let sides = match patterns.iter().any(|pattern| pattern.text == "*") {
                // A star matches every name.
                true => vec![BranchKind::True],
                false => vec![BranchKind::True, BranchKind::False],
            };
            let point = self.add(what, span, sides);
            patterns.iter().map(move |_| point)
        });
        points.collect()
    }

    /// The policies as written, including disabled ones.
    fn declared_policies(&self, files: &[LoadedFile], policies: &CompiledPolicies) -> Vec<DeclaredPolicy> {
        let modes: HashMap<&str, Mode> =
            policies.policies().iter().map(|policy| (policy.id.as_str(), policy.mode)).collect();
        let written = policy_nodes(files).filter_map(|node| {
            let kind = KINDS.into_iter().find(|kind| node.get(kind.name).is_some())?;
            let id_node = node.get("id")?;
            let id = id_node.as_str()?;
            let mode = modes.get(id).copied().unwrap_or(Mode::Off);
            let not_counted = match mode {
                Mode::Off => Some(UncountedReason::Off),
                _ => (!self.by_policy.contains_key(id)).then_some(UncountedReason::OfRun),
            };
            Some(DeclaredPolicy { id: id.to_owned(), kind: kind.name, mode, span: id_node.span, not_counted })
        });
        written.collect()
    }
}

/// Whether cases can reach the effect of a kind. Of budgets, they consume only calls.
fn is_reachable(kind: &PolicyKind) -> bool {
    match kind {
        PolicyKind::Budget(budget) => budget.bounds.calls.is_some(),
        kind => !kind.applies_to_run(),
    }
}

/// The name of a condition's form. Returns `None` if it is equivalent to its only part.
fn form_name(condition: &ExaminedCondition<'_>) -> Option<&'static str> {
    match &condition.form {
        ExaminedForm::All(parts) | ExaminedForm::Any(parts) if parts.len() == 1 => None,
        ExaminedForm::All(_) => Some("all"),
        ExaminedForm::Any(_) => Some("any"),
        ExaminedForm::Not(_) => Some("not"),
        ExaminedForm::Test(_) => Some("test"),
        ExaminedForm::Expr(_) => Some("expr"),
        ExaminedForm::Elements(elements) => Some(elements.quantifier.key()),
        ExaminedForm::Shell(_) => Some("shell"),
    }
}

/// The branches of a matching policy's effect. In shadow mode, only those that are visible before the effect.
fn kind_branches(policy: &Policy) -> Vec<BranchKind> {
    let side = match policy.kind {
        PolicyKind::Validate(_) => return vec![BranchKind::Misfits, BranchKind::Fits],
        PolicyKind::RateLimit(_) => return vec![BranchKind::UsedUp, BranchKind::Enough],
        // The calls of a case run one after the other, so that a slot is always free.
        PolicyKind::Concurrency(_) => BranchKind::Enough,
        PolicyKind::Recover(_) => BranchKind::Recovered,
        PolicyKind::Deny(_) | PolicyKind::Halt(_) | PolicyKind::Allow(_) => BranchKind::Reason,
        PolicyKind::Budget(_) => BranchKind::UsedUp,
        PolicyKind::Approval(_) => BranchKind::Asked,
        PolicyKind::Respond(_) => BranchKind::Answered,
        PolicyKind::Cache(_) => BranchKind::Kept,
        PolicyKind::Around(_) => BranchKind::Ran,
        PolicyKind::Retry(_) => BranchKind::Repeated,
        PolicyKind::Timeout(_) => BranchKind::GivenUp,
        PolicyKind::Fact(ref fact) if fact.set_bound().is_some_and(|bound| bound.max <= MAX_TESTED_SET) => {
            BranchKind::Full
        }
        // Their effects are covered by their matching, or by their parts.
        PolicyKind::Transform(_)
        | PolicyKind::Redact(_)
        | PolicyKind::Label(_)
        | PolicyKind::Fact(_)
        | PolicyKind::Require(_)
        | PolicyKind::Audit(_) => {
            return Vec::new();
        }
        PolicyKind::Model(_) | PolicyKind::Stream(_) => return Vec::new(),
    };
    let shows_in_shadow = matches!(policy.kind, PolicyKind::Recover(_) | PolicyKind::Concurrency(_));
    if policy.mode == Mode::Shadow && !shows_in_shadow { Vec::new() } else { vec![side] }
}

/// Each detector and each pattern by itself, with its coverage point.
fn single_detectors(
    redact: &Redact,
    detectors: &[YamlNode],
    mut at: usize,
    patterns: usize,
) -> Vec<(Redactor, usize)> {
    let mut found = Vec::new();
    for node in detectors {
        if let Some(detector) = node.as_str().and_then(Detector::from_name) {
            found.push((Redactor::new(vec![detector], Vec::new(), RedactionStyle::Mask), at));
        }
        at += 1;
    }
    let alone = |pattern: &Regex| Redactor::new(Vec::new(), vec![pattern.clone()], RedactionStyle::Mask);
    found.extend(redact.redactor.patterns().iter().map(alone).zip(patterns..));
    found
}

/// The items of a list, or a single node as one item.
fn items(node: Option<&YamlNode>) -> &[YamlNode] {
    node.map(|node| node.items().unwrap_or(std::slice::from_ref(node))).unwrap_or_default()
}

fn policy_nodes(files: &[LoadedFile]) -> impl Iterator<Item = &YamlNode> {
    files.iter().flat_map(|file| items(file.root.get("policies")))
}
