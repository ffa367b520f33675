//! Subsumption index: finds the policies that cover another one by tool pattern and first condition, without comparing all pairs.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::condition_source::member_path;
use crate::lint_context::LintContext;
use crate::policy_source::PolicySource;
use crate::subsumption::covers;
use callgate::json::{self, Value};
use callgate::matcher::{EXPR_KEY, NamePattern};
use callgate::source::YamlNode;

/// Maximum number of policies with the same tool pattern and first condition that are compared. Later ones are skipped.
const MAX_COMPARED: usize = 64;

/// Index of policies by what they cover.
pub(super) struct SubsumptionIndex<'c, 'a> {
    context: &'c LintContext<'a>,
    /// Indices of policies by tool pattern and first condition.
    wide: HashMap<String, HashMap<String, Vec<usize>>>,
    /// Cache of the patterns that match an exact name.
    matching_patterns: RefCell<HashMap<String, Rc<Vec<String>>>>,
}

impl<'c, 'a> SubsumptionIndex<'c, 'a> {
    /// Indexes the enforced policies for which `is_wide` returns `true`.
    pub(super) fn new(context: &'c LintContext<'a>, is_wide: impl Fn(&PolicySource<'a>) -> bool) -> Self {
        let mut wide: HashMap<String, HashMap<String, Vec<usize>>> = HashMap::new();
        for (index, written) in context.policies.iter().enumerate() {
            if !written.is_enforced() || !is_wide(written) {
                continue;
            }
            let demands = first_condition_keys(written);
            for tool in tool_patterns(written) {
                let of_tool = wide.entry(tool).or_default();
                for demand in &demands {
                    let alike = of_tool.entry(demand.clone()).or_default();
                    if alike.len() < MAX_COMPARED {
                        alike.push(index);
                    }
                }
            }
        }
        Self { context, wide, matching_patterns: RefCell::default() }
    }

    /// Returns the policies that cover this one, in evaluation order, without the policy itself.
    pub(super) fn covering(&self, narrow: &PolicySource<'a>) -> Vec<&'c PolicySource<'a>> {
        let mut found: Vec<&PolicySource<'a>> = Vec::new();
        let mut demands = None;
        for tool in self.candidate_patterns(narrow).iter() {
            let Some(of_tool) = self.wide.get(tool) else { continue };
            for demand in demands.get_or_insert_with(|| implied_keys(narrow)).iter() {
                let alike = of_tool.get(demand).into_iter().flatten();
                let others = alike.filter_map(|index| self.context.policies.get(*index));
                found.extend(others.filter(|wide| wide.index != narrow.index && covers(wide, narrow)));
            }
        }
        found.sort_by_key(|wide| wide.index);
        found.dedup_by_key(|wide| wide.index);
        found
    }

    /// Returns the patterns that cover the first pattern of a policy, and so may cover all of them.
    fn candidate_patterns(&self, narrow: &PolicySource<'a>) -> Rc<Vec<String>> {
        match narrow.policy.matcher.tools.first() {
            None | Some(NamePattern::Nothing) => Rc::new(vec!["*".to_owned()]),
            Some(NamePattern::Regex(regex)) => Rc::new(vec!["*".to_owned(), format!("/{}/", regex.as_str())]),
            Some(NamePattern::Glob(glob)) => {
                let mut texts = vec!["*".to_owned(), glob.clone()];
                let head = glob.split('*').next().unwrap_or_default();
                let tail = glob.rsplit('*').next().unwrap_or_default();
                let offsets = |text: &'_ str| (0..=text.len()).collect::<Vec<_>>();
                texts.extend(
                    offsets(head).into_iter().filter_map(|end| Some(format!("{}*", head.get(..end)?))),
                );
                texts
                    .extend(offsets(tail).into_iter().filter_map(|at| Some(format!("*{}", tail.get(at..)?))));
                texts.sort();
                texts.dedup();
                Rc::new(texts)
            }
            Some(NamePattern::Exact(name)) => self.patterns_matching(name),
        }
    }

    fn patterns_matching(&self, name: &str) -> Rc<Vec<String>> {
        if let Some(known) = self.matching_patterns.borrow().get(name) {
            return Rc::clone(known);
        }
        let mut texts = vec!["*".to_owned(), name.to_owned()];
        for written in self.context.policies_matching_tool(name) {
            let fitting = written.policy.matcher.tools.iter().filter(|pattern| pattern.matches(name));
            texts.extend(fitting.map(pattern_text));
        }
        texts.sort();
        texts.dedup();
        let texts = Rc::new(texts);
        self.matching_patterns.borrow_mut().insert(name.to_owned(), Rc::clone(&texts));
        texts
    }
}

fn tool_patterns(written: &PolicySource<'_>) -> Vec<String> {
    match written.policy.matcher.tools.as_slice() {
        [] => vec!["*".to_owned()],
        tools => tools.iter().map(pattern_text).collect(),
    }
}

fn pattern_text(pattern: &NamePattern) -> String {
    match pattern {
        NamePattern::Regex(regex) => format!("/{}/", regex.as_str()),
        NamePattern::Exact(text) | NamePattern::Glob(text) => text.clone(),
        NamePattern::Nothing => String::new(),
    }
}

/// Returns the index keys of a policy's first condition: for a test for certain values, one key per value.
fn first_condition_keys(written: &PolicySource<'_>) -> Vec<String> {
    let Some(demand) = written.required_conditions.first() else { return vec![String::new()] };
    let Some(path) = subject_text(demand) else {
        return vec![condition_key(demand)];
    };
    match wanted_values(demand) {
        Some(values) => values.iter().map(|value| value_key(&path, value)).collect(),
        None => vec![format!("{path} ?")],
    }
}

/// Returns the keys of all conditions that hold whenever a policy matches.
fn implied_keys(written: &PolicySource<'_>) -> Vec<String> {
    let mut keys = vec![String::new()];
    let conditions = written.required_conditions.iter().filter(|demand| subject_text(demand).is_none());
    keys.extend(conditions.map(|demand| condition_key(demand)));
    // Also those of named values.
    for test in written.required_tests().filter(|test| test.positive) {
        keys.push(format!("{} ?", test.text()));
        let values = wanted_values(test.node);
        keys.extend(values.iter().flatten().take(1).map(|value| value_key(test.text(), value)));
    }
    keys
}

/// The path of a test, or its expression. Returns `None` for other conditions.
fn subject_text(demand: &YamlNode) -> Option<String> {
    if let Some(path) = demand.get("path") {
        return path.as_str().map(str::to_owned);
    }
    let expression = demand.get(EXPR_KEY).filter(|_| demand.entries().is_some_and(|keys| keys.len() > 1))?;
    let text = expression.as_str()?;
    Some(member_path(text).unwrap_or_else(|| text.to_owned()))
}

fn wanted_values(demand: &YamlNode) -> Option<Vec<Value>> {
    let scalar =
        |node: &YamlNode| (node.entries().is_none() && node.items().is_none()).then(|| node.to_json());
    match (demand.get("eq"), demand.get("in")) {
        (Some(value), _) => scalar(value).map(|value| vec![value]),
        (None, Some(list)) => list.items()?.iter().map(scalar).collect(),
        (None, None) => None,
    }
    .filter(|values| !values.is_empty())
}

fn value_key(path: &str, value: &Value) -> String {
    format!("{path} = {}", json::canonical_text(value))
}

fn condition_key(demand: &YamlNode) -> String {
    json::canonical_text(&demand.to_json())
}
