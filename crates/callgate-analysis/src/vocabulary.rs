//! The values that policies and definitions compare: YAML nodes → fields of the call, each with candidate values.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::candidate_values::{candidates_of_operator, common_values, value_of_type, with_neighbours};
use crate::field_path::{FieldPath, FieldRoot, FieldStep};
use crate::shell_examples::example_texts;
use crate::source_scanner::{PathAliases, SourceTerms, scan};
use callgate::json::{Value, json};
use callgate::matcher::ITEM;
use callgate::source::YamlNode;

/// A field of the call with the values that samples give it. Samples can also lack it.
#[derive(Debug)]
pub(crate) struct Dimension {
    pub(crate) path: FieldPath,
    pub(crate) values: Vec<Value>,
}

/// The most fields of a sample.
const MAX_DIMENSIONS: usize = 60;
/// The most values of a field.
const MAX_VALUES: usize = 40;
/// The most constants of expressions.
const MAX_CONSTANTS: usize = 24;
/// The most values that are read from one constant of `data`.
const MAX_DATA_VALUES: usize = 50;
/// The deepest nesting of conditions and schemas that is read.
const MAX_DEPTH: usize = 32;
/// The texts of a policy that people read.
const MESSAGES: [&str; 4] = ["message", "code", "description", "question"];

/// Collects the fields that policies read, and the values that they compare them with.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    now: Timestamp,
    fields: BTreeMap<FieldPath, Vec<Value>>,
    /// The fields that expressions read. Any constant of an expression may be compared with each of them.
    expression_fields: BTreeSet<FieldPath>,
    constants: Vec<Value>,
}

/// What names stand for in a condition.
#[derive(Clone, Default)]
struct ConditionScope {
    aliases: PathAliases,
    /// The element that a test without `path` is about.
    element: Option<FieldPath>,
}

impl Vocabulary {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self { now, fields: BTreeMap::new(), expression_fields: BTreeSet::new(), constants: Vec::new() }
    }

    /// Adds what a policy reads.
    pub(crate) fn add_policy(&mut self, policy: &YamlNode) {
        if let Some(conditions) = policy.get("match").and_then(|matcher| matcher.get("where")) {
            self.add_condition(conditions, &ConditionScope::default(), 0);
        }
        for entry in policy.entries().unwrap_or_default() {
            match entry.key.as_str() {
                "id" | "match" | "mode" | "priority" | "description" => {}
                _ => self.add_settings(&entry.value, 0),
            }
        }
    }

    /// Adds what a named value reads: an expression, a condition or a list of conditions.
    pub(crate) fn add_named_value(&mut self, definition: &YamlNode) {
        self.add_condition(definition, &ConditionScope::default(), 0);
    }

    /// Adds a constant. Expressions may compare any field that they read with the values in it.
    pub(crate) fn add_constant(&mut self, definition: &YamlNode) {
        let mut left = MAX_DATA_VALUES;
        add_scalars(&definition.to_json(), &mut self.constants, &mut left);
    }

    /// Adds the text of functions.
    pub(crate) fn add_text(&mut self, text: &str) {
        self.add_expression(scan(text, &PathAliases::new()));
    }

    /// The fields, each with its candidate values.
    pub(crate) fn into_dimensions(self) -> Vec<Dimension> {
        let Self { mut fields, expression_fields, constants, .. } = self;
        let of_expressions: Vec<Value> =
            constants.iter().take(MAX_CONSTANTS).flat_map(with_neighbours).collect();
        for field in expression_fields {
            fields.entry(field).or_default().extend(of_expressions.iter().cloned());
        }
        let dimensions = fields.into_iter().take(MAX_DIMENSIONS).map(|(path, mut values)| {
            if path.root != FieldRoot::Now {
                values.extend(common_values());
            }
            let mut distinct: Vec<Value> = Vec::new();
            for value in values {
                if distinct.len() < MAX_VALUES && !distinct.contains(&value) {
                    distinct.push(value);
                }
            }
            Dimension { path, values: distinct }
        });
        dimensions.collect()
    }

    fn add_expression(&mut self, terms: SourceTerms) {
        for path in terms.paths {
            if path.root == FieldRoot::Now {
                self.add_times(path);
            } else {
                self.expression_fields.insert(path);
            }
        }
        self.constants.extend(terms.literals);
    }

    /// A day of the week and one of the weekend, each at noon and at night.
    fn add_times(&mut self, path: FieldPath) {
        let times = ["2026-01-03T12:00:00Z", "2026-01-05T02:00:00Z", "2026-01-03T23:00:00Z"];
        self.fields.insert(path, times.map(Value::from).into());
    }

    fn add_condition(&mut self, node: &YamlNode, scope: &ConditionScope, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        if let Some(items) = node.items() {
            items.iter().for_each(|item| self.add_condition(item, scope, depth + 1));
        } else if let Some(text) = node.as_str() {
            self.add_expression(scan(text, &scope.aliases));
        }
        let Some(entries) = node.entries() else { return };
        let (path, expression) = (node.get("path"), node.get("expr"));
        let subject = path.or(expression).and_then(YamlNode::as_str);
        let terms = subject.map(|text| scan(text, &scope.aliases)).unwrap_or_default();
        // The fields that the operators are about; those of a computation are only known to be read by it.
        let mut tested: Vec<FieldPath> = match (subject, &scope.element) {
            (None, Some(element)) => vec![element.clone()],
            _ => Vec::new(),
        };
        if terms.literals.is_empty() && (path.is_some() || terms.paths.len() == 1) {
            tested.extend(terms.paths);
        } else {
            self.add_expression(terms);
        }
        for entry in entries {
            match entry.key.as_str() {
                "path" | "expr" => {}
                "all" | "any" | "not" => self.add_condition(&entry.value, scope, depth + 1),
                "every" | "any_of" | "none" => self.add_elements(&entry.value, scope, depth + 1),
                "shell" => self.add_shell(&entry.value, scope),
                operator => self.add_operator(operator, &entry.value, &tested, scope),
            }
        }
        for field in tested {
            if field.root == FieldRoot::Now {
                self.add_times(field);
            } else {
                self.fields.entry(field).or_default();
            }
        }
    }

    fn add_operator(
        &mut self,
        operator: &str,
        operand: &YamlNode,
        tested: &[FieldPath],
        scope: &ConditionScope,
    ) {
        let candidates = candidates_of_operator(operator, operand, self.now);
        for field in tested {
            self.fields.entry(field.clone()).or_default().extend(candidates.iter().cloned());
        }
        if tested.is_empty() {
            self.constants.extend(candidates);
        }
        for key in ["path", "expr"] {
            if let Some(text) = operand.get(key).and_then(YamlNode::as_str) {
                self.add_expression(scan(text, &scope.aliases));
                self.expression_fields.extend(tested.iter().cloned());
            }
        }
    }

    /// Adds a condition on shell commands: texts with a command that passes a test.
    fn add_shell(&mut self, node: &YamlNode, scope: &ConditionScope) {
        for source in ["path", "expr"].iter().filter_map(|key| node.get(key).and_then(YamlNode::as_str)) {
            for path in scan(source, &scope.aliases).paths {
                self.fields.entry(path).or_default().extend(example_texts(node));
            }
        }
    }

    /// Adds a condition on elements.
    fn add_elements(&mut self, node: &YamlNode, scope: &ConditionScope, depth: usize) {
        let list = node.get("path").or_else(|| node.get("expr")).and_then(YamlNode::as_str);
        let terms = list.map(|text| scan(text, &scope.aliases)).unwrap_or_default();
        let Some(base) = terms.paths.last() else { return };
        let element = match base.steps.last() {
            Some(FieldStep::Element) => base.clone(),
            _ => base.with_step(FieldStep::Element),
        };
        let name = node.get("as").and_then(YamlNode::as_str).unwrap_or(ITEM);
        let mut inner = ConditionScope { element: Some(element.clone()), ..scope.clone() };
        inner.aliases.insert(name.to_owned(), element);
        let tests = node.entries().unwrap_or_default().iter();
        let tests = tests.filter(|entry| !["path", "expr", "as", "min"].contains(&entry.key.as_str()));
        for entry in tests {
            match entry.key.as_str() {
                "all" | "any" | "not" | "where" => self.add_condition(&entry.value, &inner, depth + 1),
                "every" | "any_of" | "none" => self.add_elements(&entry.value, &inner, depth + 1),
                operator => {
                    let tested: Vec<FieldPath> = inner.element.iter().cloned().collect();
                    self.add_operator(operator, &entry.value, &tested, &inner);
                }
            }
        }
        self.expression_fields.extend(terms.paths);
    }

    /// Adds the settings of a kind: expressions, paths, scripts and schemas.
    fn add_settings(&mut self, node: &YamlNode, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        if let Some(text) = node.as_str() {
            self.add_expression(scan(text, &PathAliases::new()));
        }
        if node.as_number().is_some() {
            self.constants.push(node.to_json());
        }
        node.items().unwrap_or_default().iter().for_each(|item| self.add_settings(item, depth + 1));
        for entry in node.entries().unwrap_or_default() {
            match entry.key.as_str() {
                "schema" => {
                    self.add_schema(&entry.value.to_json(), &FieldPath::new(FieldRoot::Input), depth + 1)
                }
                "arguments" => self.add_argument_types(&entry.value),
                key if MESSAGES.contains(&key) => {}
                _ => self.add_settings(&entry.value, depth + 1),
            }
        }
    }

    fn add_argument_types(&mut self, types: &YamlNode) {
        for entry in types.entries().unwrap_or_default() {
            let name = entry.key.trim_end_matches('?').to_owned();
            let field = FieldPath::new(FieldRoot::Input).with_step(FieldStep::Member(name));
            match entry.value.as_str() {
                Some(word) => self.fields.entry(field).or_default().extend(value_of_type(word)),
                None => self.add_schema(&entry.value.to_json(), &field, 0),
            }
        }
    }

    /// Adds the bounds of a JSON Schema.
    fn add_schema(&mut self, schema: &Value, field: &FieldPath, depth: usize) {
        let Some(keywords) = schema.as_object().filter(|_| depth <= MAX_DEPTH) else { return };
        let span = callgate::diagnostic::SourceMap::default().add("", "");
        let span = callgate::diagnostic::Span::new(span, 0, 0);
        let mut values = Vec::new();
        for (keyword, value) in keywords {
            let operator = match keyword.as_str() {
                "maximum" => "lte",
                "exclusiveMaximum" => "lt",
                "minimum" => "gte",
                "exclusiveMinimum" => "gt",
                "enum" => "in",
                "const" => "eq",
                "pattern" => "matches",
                "maxLength" | "minLength" | "maxItems" | "minItems" => "length",
                "type" => "type",
                _ => continue,
            };
            values.extend(candidates_of_operator(operator, &YamlNode::from_json(value, span), self.now));
        }
        if !field.steps.is_empty() {
            self.fields.entry(field.clone()).or_default().extend(values);
        }
        for (name, property) in keywords
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(|members| members.iter())
        {
            self.add_schema(property, &field.with_step(FieldStep::Member(name.to_string())), depth + 1);
        }
        if let Some(items) = keywords.get("items") {
            self.add_schema(items, &field.with_step(FieldStep::Element), depth + 1);
        }
        for word in ["allOf", "anyOf", "oneOf"] {
            for branch in keywords.get(word).and_then(Value::as_array).into_iter().flatten() {
                self.add_schema(branch, field, depth + 1);
            }
        }
    }
}

fn add_scalars(value: &Value, into: &mut Vec<Value>, left: &mut usize) {
    if *left == 0 {
        return;
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| add_scalars(item, into, left)),
        Value::Object(members) => {
            for (key, value) in members {
                *left = left.saturating_sub(1);
                into.push(json!(key));
                add_scalars(value, into, left);
            }
        }
        scalar => {
            *left -= 1;
            into.push(scalar.clone());
        }
    }
}
