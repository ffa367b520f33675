//! Type check of a bundle: conditions, values and scripts of each policy, for each tool that it applies to → errors and lints.

use std::ops::Range;

use crate::bundle_types::{BundleTypes, CallTypes};
use crate::expression_source::{SourceKind, leading_name, values_and_conditions};
use crate::lint_context::LintContext;
use crate::policy_source::PolicySource;
use crate::scalars::{display_value, is_literal};
use crate::test_of_wrong_type::{decidable_types, list_types};
use crate::type_findings::{Finding, FindingKind, Findings};
use crate::unknown_member;
use callgate::diagnostic::{Diagnostics, Span, closest_match};
use callgate::json::{JsonType, Value};
use callgate::matcher::{EXPR_KEY, ITEM};
use callgate::script::{TypeKind, TypeReport, UnlistedValue, ValueType};
use callgate::source::{MappingEntry, YamlNode, YamlValue, span_in};

/// The most tools of one policy for which it is checked.
const MAX_TOOLS: usize = 64;

/// Reports operations that fail for every value of their types, and literals that no value equals.
pub(super) fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    let bundle = BundleTypes::new(checked);
    bundle.read_facts();
    for written in &checked.policies {
        let tools = checked.tools_for(written);
        let mut findings = Findings::default();
        findings.add(None, PolicyWalk::new(checked, bundle.call(written, None)).walk(written));
        for tool in tools.iter().take(MAX_TOOLS) {
            let walk = PolicyWalk::new(checked, bundle.call(written, Some(tool)));
            findings.add(Some(&tool.name), walk.walk(written));
        }
        findings.report(written, tools.len(), found);
    }
}

/// Walks through a policy for the calls of one tool.
struct PolicyWalk<'w, 'c, 'a> {
    checked: &'w LintContext<'a>,
    call: CallTypes<'w, 'c, 'a>,
    found: Vec<Finding>,
}

impl<'w, 'c, 'a> PolicyWalk<'w, 'c, 'a> {
    fn new(checked: &'w LintContext<'a>, call: CallTypes<'w, 'c, 'a>) -> Self {
        Self { checked, call, found: Vec::new() }
    }

    fn walk(mut self, written: &PolicySource<'a>) -> Vec<Finding> {
        let conditions = written.node.get("match").and_then(|matcher| matcher.get("where"));
        let holds = conditions.is_none_or(|conditions| self.conditions(conditions) != Some(false));
        // What never applies to this tool reads nothing of its calls.
        if holds {
            self.walk_kind(&written.kind.value);
        }
        self.report_definitions(0);
        self.found
    }

    /// Checks the values, templates and the script of a kind.
    fn walk_kind(&mut self, kind: &'a YamlNode) {
        let script = kind.get("script").filter(|_| kind.get("scope").is_none());
        if let Some((node, text)) = script.and_then(|node| Some((node, node.as_str()?)))
            && let Some(report) = self.call.check_script(text)
        {
            self.report(node, 0, text, &report);
        }
        if kind.entries().is_none() {
            return;
        }
        for source in values_and_conditions(kind) {
            if source.kind == SourceKind::Path {
                self.report_path(source.node);
                continue;
            }
            let Some(report) = self.call.check(source.text) else { continue };
            self.report(source.node, source.start, source.text, &report);
            let is_cost = kind.get("cost").is_some_and(|cost| std::ptr::eq(cost, source.node));
            if is_cost && !report.value.may_be(TypeKind::Number) {
                let found = format!("`{}` is {}", source.text.trim(), report.value.describe());
                self.push(source.node.span, found, "a cost is a number".to_owned(), NUMBER_HELP);
            }
        }
    }

    /// Checks conditions that must all hold. Returns their truth if it is the same for every call.
    ///
    /// A condition that is false decides, whatever the others are: problems beside it are not reported.
    fn conditions(&mut self, node: &'a YamlNode) -> Option<bool> {
        self.combination(node.items().unwrap_or(std::slice::from_ref(node)), false)
    }

    fn combination(&mut self, items: &'a [YamlNode], decisive: bool) -> Option<bool> {
        let (known, in_definitions) = (self.found.len(), self.call.in_definitions.borrow().len());
        let mut truth = Some(!decisive);
        for item in items {
            match self.condition(item) {
                Some(value) if value == decisive => {
                    self.found.truncate(known);
                    self.call.in_definitions.borrow_mut().truncate(in_definitions);
                    return Some(decisive);
                }
                Some(_) => {}
                None => truth = None,
            }
        }
        truth
    }

    fn condition(&mut self, node: &'a YamlNode) -> Option<bool> {
        let items = |key| node.get(key).and_then(YamlNode::items);
        if let Some(text) = node.as_str() {
            return match self.call.bundle.lets.get(text.trim()) {
                Some(definition) if definition.as_str().is_none() && self.call.elements.is_empty() => {
                    self.conditions(definition)
                }
                _ => self.predicate(node, text),
            };
        }
        if let Some(all) = items("all") {
            return self.combination(all, false);
        }
        if let Some(any) = items("any") {
            return self.combination(any, true);
        }
        if let Some(inner) = node.get("not") {
            return self.conditions(inner).map(|truth| !truth);
        }
        for quantifier in ["every", "any_of", "none"] {
            if let Some(elements) = node.get(quantifier) {
                self.elements(elements);
                return None;
            }
        }
        match node.entries() {
            Some([MappingEntry { key, value, .. }]) if key == EXPR_KEY => {
                self.predicate(value, value.as_str()?)
            }
            Some(_) => {
                self.test(node);
                None
            }
            None => None,
        }
    }

    /// An expression that is a condition.
    fn predicate(&mut self, node: &'a YamlNode, text: &str) -> Option<bool> {
        let report = self.call.check(text)?;
        self.report(node, 0, text, &report);
        if !report.value.may_be(TypeKind::Boolean) {
            let found = format!("`{}` is {}", text.trim(), report.value.describe());
            self.push(
                node.span,
                found,
                "a condition is a boolean".to_owned(),
                "compare it with a value, as in `… == 1`",
            );
        }
        report.value.constant_boolean()
    }

    /// A condition on elements.
    fn elements(&mut self, node: &'a YamlNode) {
        if let Some(path) = node.get("path") {
            self.report_path(path);
        }
        let source = match (node.get("path"), node.get(EXPR_KEY)) {
            (Some(path), _) => path.as_str().map(|text| match text.trim().strip_suffix("[*]") {
                Some(list) => self.call.path_type(list).element(),
                None => self.call.path_type(text).element(),
            }),
            (None, Some(list)) => list.as_str().and_then(|text| {
                let report = self.call.check(text)?;
                self.report(list, 0, text, &report);
                if !report.value.may_be_one_of(&[TypeKind::Array, TypeKind::Null]) {
                    let found = format!("`{}` is {}", text.trim(), report.value.describe());
                    self.push(list.span, found, "only an array has elements".to_owned(), "name an array");
                }
                Some(report.value.element())
            }),
            (None, None) => None,
        };
        let name = node.get("as").and_then(YamlNode::as_str).unwrap_or(ITEM);
        // With another operator, `as` is the kind of a token.
        let name = if node.get("mentioned_in").is_some() { ITEM } else { name };
        self.call.elements.push((name.to_owned(), source.unwrap_or_default()));
        for entry in node.entries().unwrap_or_default() {
            match entry.key.as_str() {
                "all" | "any" => {
                    for item in entry.value.items().unwrap_or_default() {
                        self.condition(item);
                    }
                }
                "not" => {
                    self.conditions(&entry.value);
                }
                _ => {}
            }
        }
        self.call.elements.pop();
    }

    /// A test on a path or an expression.
    fn test(&mut self, node: &'a YamlNode) {
        let path = node.get("path").and_then(YamlNode::as_str);
        if let Some(path) = node.get("path") {
            self.report_path(path);
        }
        let (text, subject) = match (path, node.get(EXPR_KEY)) {
            (Some(path), _) => (path, self.call.path_type(path)),
            (None, Some(expression)) => {
                let Some(text) = expression.as_str() else { return };
                let Some(report) = self.call.check(text) else { return };
                self.report(expression, 0, text, &report);
                (text, report.value)
            }
            (None, None) => return,
        };
        let is_each = path.is_some() && node.get("each").is_some();
        for entry in node.entries().unwrap_or_default() {
            if let Some(path) = entry.value.get("path") {
                self.report_path(path);
            }
            let operand = entry.value.get(EXPR_KEY).filter(|_| !is_literal(&entry.value));
            if let Some((operand, operand_text)) =
                operand.and_then(|operand| Some((operand, operand.as_str()?)))
            {
                let Some(report) = self.call.check(operand_text) else { continue };
                self.report(operand, 0, operand_text, &report);
                if !is_each {
                    self.compare(entry, (text, &subject), (operand_text, &report.value));
                }
            } else if path.is_none() && is_literal(&entry.value) {
                self.compare_with_literal(entry, text, &subject);
            }
        }
    }

    /// A comparison with an expression.
    fn compare(&mut self, entry: &MappingEntry, subject: (&str, &ValueType), operand: (&str, &ValueType)) {
        if !["eq", "ne", "gt", "gte", "lt", "lte"].contains(&entry.key.as_str()) {
            return;
        }
        if !subject.1.has_common_kind(operand.1) {
            let shown =
                |(text, value): (&str, &ValueType)| format!("`{}` is {}", text.trim(), value.describe());
            let found = format!("{} and {}", shown(subject), shown(operand));
            let needed = format!("`{}` compares values of one type", entry.key);
            self.push(entry.value.span, found, needed, TYPE_HELP);
        }
    }

    /// An operator that an expression of this type never decides.
    fn compare_with_literal(&mut self, entry: &MappingEntry, text: &str, subject: &ValueType) {
        let needed = decidable_types(entry);
        let Some(kinds) = subject.kinds().filter(|_| !needed.is_empty()) else { return };
        let fits = kinds.iter().any(|kind| match json_type(*kind) {
            Some(json_type) => needed.contains(&json_type),
            None => true,
        });
        if !fits {
            let found = format!("`{}` is {}", text.trim(), subject.describe());
            let needed = format!("`{}` needs {}", entry.key, list_types(&needed));
            self.push(entry.value.span, found, needed, TYPE_HELP);
        }
    }

    /// Reports what an expression was found to have. `start` is the position of its text in the string of the node.
    fn report(&mut self, node: &'a YamlNode, start: usize, text: &str, report: &TypeReport) {
        for problem in &report.problems {
            let at = problem.offset(text);
            let rest = text.get(at..).unwrap_or_default();
            let length = if rest.starts_with(problem.operation.as_str()) {
                problem.operation.len()
            } else {
                token(rest)
            };
            let span = self.span(node, start + at..start + at + length);
            self.push(span, problem.found.clone(), problem.needed.clone(), &problem.help);
        }
        for value in &report.unlisted {
            let at = value.offset(text);
            let length = token(text.get(at..).unwrap_or_default());
            let span = self.span(node, start + at..start + at + length);
            let (subject, literal) = (value.subject.clone(), format!("`{}`", display_value(&value.literal)));
            self.found.push(Finding {
                span,
                found: subject,
                needed: literal,
                help: listed_help(value),
                kind: FindingKind::UnlistedValue,
            });
        }
        self.report_members(node, start, text, report);
    }

    /// Reports the members that an expression reads of objects without them.
    fn report_members(&mut self, node: &'a YamlNode, start: usize, text: &str, report: &TypeReport) {
        for unknown in &report.unknown_members {
            let at = unknown.offset(text);
            let length = token(text.get(at..).unwrap_or_default());
            let span = self.span(node, start + at..start + at + length);
            self.found.push(unknown_member::finding(unknown, span));
        }
    }

    /// Reports the members that a path reads of objects without them.
    fn report_path(&mut self, node: &'a YamlNode) {
        let Some((start, expression)) = node.as_str().and_then(unknown_member::path_as_expression) else {
            return;
        };
        if let Some(report) = self.call.check(expression) {
            self.report_members(node, start, expression, &report);
        }
    }

    fn span(&self, node: &YamlNode, range: Range<usize>) -> Span {
        span_in(self.checked.sources, node, range)
    }

    fn push(&mut self, span: Span, found: String, needed: String, help: &str) {
        self.found.push(Finding {
            span,
            found,
            needed,
            help: help.to_owned(),
            kind: FindingKind::Impossible,
        });
    }

    /// Reports what the definitions that were read have, from this one on.
    fn report_definitions(&mut self, from: usize) {
        let definitions = self.call.in_definitions.borrow().get(from..).unwrap_or_default().to_vec();
        for (node, report) in definitions {
            if let YamlValue::String(text) = &node.value {
                self.report(node, 0, &text.text, &report);
            }
        }
    }
}

const TYPE_HELP: &str = "the test is undecided for every call; compare values of one type";
const NUMBER_HELP: &str =
    "the cost is unknown for every call, which refuses it; write an expression that results in a number";

/// The length of the literal or name at the start of a text.
fn token(text: &str) -> usize {
    if let Some(quote) = text.chars().next().filter(|c| ['"', '`'].contains(c)) {
        return text.get(1..).and_then(|rest| rest.find(quote)).map_or(text.len(), |end| end + 2);
    }
    leading_name(text).len().max(text.chars().next().map_or(0, char::len_utf8))
}

fn listed_help(value: &UnlistedValue) -> String {
    let texts = || value.permitted.iter().filter_map(Value::as_str);
    let near = value.literal.as_str().and_then(|text| {
        texts()
            .find(|permitted| permitted.eq_ignore_ascii_case(text))
            .or_else(|| closest_match(text, texts()))
    });
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let all: Vec<String> =
                value.permitted.iter().map(|value| format!("`{}`", display_value(value))).collect();
            format!("permitted values: {}", all.join(", "))
        }
    }
}

fn json_type(kind: TypeKind) -> Option<JsonType> {
    Some(match kind {
        TypeKind::Null => JsonType::Null,
        TypeKind::Boolean => JsonType::Boolean,
        TypeKind::Number => JsonType::Number,
        TypeKind::String => JsonType::String,
        TypeKind::Array => JsonType::Array,
        TypeKind::Object => JsonType::Object,
        TypeKind::Time | TypeKind::Duration => return None,
    })
}
