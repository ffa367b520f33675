//! `let`: named values, compiled in the order in which they use each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{DefinitionReader, shapes};
use crate::diagnostic::{CYCLIC_DEFINITION, Diagnostic, OUT_OF_RANGE};
use crate::json;
use crate::matcher::Condition;
use crate::rules_schema::{Polarity, PolicyReader};
use crate::script::{ConditionReads, DefinitionName, Expression, NamedValue, Names};
use crate::source::{MappingEntry, YamlNode, YamlValue};

/// The maximum number of named values.
const MAX_LETS: usize = 1_000;
/// How many named values can use each other in a row.
const MAX_DEPTH: usize = 64;

/// Reads all named values. A value is compiled after those that it names.
pub(super) fn read(reader: &mut DefinitionReader<'_>, names: Arc<Names>) -> Arc<Names> {
    let lets = reader.section(&shapes::LETS);
    if let Some(entry) = lets.values().nth(MAX_LETS) {
        let message = format!("a bundle has at most {MAX_LETS} named values");
        reader.diagnostics.push(
            Diagnostic::new(&OUT_OF_RANGE, entry.key_span, message)
                .with_help("remove named values that no policy uses"),
        );
        return names;
    }
    let mut order =
        LetOrder { lets: &lets, done: BTreeMap::new(), sorted: Vec::new(), cyclic: BTreeSet::new() };
    for name in lets.keys() {
        order.visit(name, &mut Vec::new(), reader);
    }
    let (sorted, cyclic) = (order.sorted, order.cyclic);
    let mut names = names;
    for name in sorted {
        let Some(entry) = lets.get(name) else { continue };
        let value = match cyclic.contains(name) {
            true => None,
            false => compile(entry, &names, reader)
                .map(|value| value.with_source(definition_text(entry, reader), entry.key_span)),
        };
        let known = Arc::make_mut(&mut names);
        if let Some(value) = &value {
            let used: Vec<_> = known
                .digests_of(value.definitions())
                .map(|(name, digest)| json::json!([name.section(), name.name(), digest.to_string()]))
                .collect();
            let digest = json::digest(&json::json!([entry.value.to_json(), used]));
            known.add_digest(DefinitionName::Let(name.to_owned()), digest);
        }
        known.add_let(name, value);
    }
    names
}

/// The text of a definition, on one line.
fn definition_text(entry: &MappingEntry, reader: &DefinitionReader<'_>) -> String {
    let span = entry.value.span;
    let written = || reader.sources.get(span.source)?.text().get(span.start()..span.end());
    let text = entry.value.as_str().or_else(written).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Compiles a definition. Problems are reported.
fn compile(
    entry: &MappingEntry,
    names: &Arc<Names>,
    reader: &mut DefinitionReader<'_>,
) -> Option<NamedValue> {
    let mut policy_reader = PolicyReader::new(reader.diagnostics, reader.sources);
    policy_reader.polarity = Polarity::Restricting;
    policy_reader.absent_matches = reader.defaults.absent_matches;
    policy_reader.principals = reader.defaults.principals;
    policy_reader.after_tool = true;
    policy_reader.in_definition = true;
    policy_reader.names = Arc::clone(names);
    if let YamlValue::String(_) = entry.value.value {
        let expression =
            policy_reader.read_expression(&entry.value, "write for example `input.amount * 100`")?;
        return Some(expression.into_named(&entry.key));
    }
    let condition = Condition::read_all(&entry.value, &mut policy_reader)?;
    let reads = ConditionReads {
        roots: std::mem::take(&mut policy_reader.roots_read),
        context: std::mem::take(&mut policy_reader.context_reads),
        arguments: std::mem::take(&mut policy_reader.arguments),
        definitions: std::mem::take(&mut policy_reader.definitions),
    };
    Some(NamedValue::from_condition(&entry.key, Box::new(condition), reads))
}

/// Sorts named values so that each stands after those that it names.
struct LetOrder<'l> {
    lets: &'l BTreeMap<&'l str, &'l MappingEntry>,
    /// The depth of each value that was visited.
    done: BTreeMap<&'l str, usize>,
    sorted: Vec<&'l str>,
    /// Values that are part of a circle or nest too deep.
    cyclic: BTreeSet<&'l str>,
}

impl<'l> LetOrder<'l> {
    /// Visits a value after those that it names, and returns its depth. `open` has the values that name it.
    fn visit(&mut self, name: &'l str, open: &mut Vec<&'l str>, reader: &mut DefinitionReader<'_>) -> usize {
        if let Some(depth) = self.done.get(name) {
            return *depth;
        }
        let Some((known, entry)) = self.lets.get_key_value(name) else { return 0 };
        let name: &'l str = known;
        if let Some(start) = open.iter().position(|known| *known == name) {
            let circle: Vec<String> =
                open.iter().skip(start).chain([&name]).map(|name| format!("`{name}`")).collect();
            let message = format!("named values use each other in a circle: {}", circle.join(" → "));
            self.cyclic.extend(open.iter().skip(start).copied());
            reader.diagnostics.push(
                Diagnostic::new(&CYCLIC_DEFINITION, entry.key_span, message)
                    .with_help("define one of them from members of the call"),
            );
            return 0;
        }
        open.push(name);
        let mut used = BTreeSet::new();
        collect_condition(&entry.value, &mut used);
        let mut depth = 0;
        for inner in &used {
            let known = self.lets.get_key_value(inner.as_str()).map(|(known, _)| *known);
            if let Some(known) = known {
                depth = depth.max(self.visit(known, open, reader));
            }
        }
        open.pop();
        let depth = depth + 1;
        if depth == MAX_DEPTH + 1 {
            let message =
                format!("more than {MAX_DEPTH} named values use each other in a row, the last is `{name}`");
            reader.diagnostics.push(
                Diagnostic::new(&OUT_OF_RANGE, entry.key_span, message)
                    .with_help("join some of the values that it uses"),
            );
        }
        if depth > MAX_DEPTH {
            self.cyclic.insert(name);
        }
        if self.done.insert(name, depth).is_none() {
            self.sorted.push(name);
        }
        depth
    }
}

/// Collects the named values that a condition, a list of conditions or an expression may name.
fn collect_condition(node: &YamlNode, found: &mut BTreeSet<String>) {
    match &node.value {
        YamlValue::String(text) => {
            let names = Expression::names_in(&text.text);
            found.extend(names.into_iter().filter_map(|name| match name {
                DefinitionName::Let(name) => Some(name),
                _ => None,
            }));
        }
        YamlValue::Sequence(items) => items.iter().for_each(|item| collect_condition(item, found)),
        YamlValue::Mapping(entries) => {
            for entry in entries {
                match entry.key.as_str() {
                    "expr" | "all" | "any" | "not" | "every" | "any_of" | "none" | "shell" | "arguments"
                    | "operands" | "reads" | "writes" => collect_condition(&entry.value, found),
                    _ => collect_operand(&entry.value, found),
                }
            }
        }
        YamlValue::Null | YamlValue::Bool(_) | YamlValue::Number(_) => {}
    }
}

/// Collects the named values of an operand: only `{ expr: … }` names some.
fn collect_operand(node: &YamlNode, found: &mut BTreeSet<String>) {
    if let Some([entry]) = node.entries()
        && entry.key == "expr"
    {
        collect_condition(&entry.value, found);
    }
}
