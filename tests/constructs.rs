//! Every construct of the language, and what exists for it: a snapshot of which keys of rules files have cases, broken cases, a description
//! (which the reference and the hover texts of editors show), branches of coverage, mutations, and explanations.
//!
//! The keys come from the schema of rules files; everything else is looked for in the files of the other tests.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;

use callgate::json::Value;
use callgate::policy;
use callgate::source::{self, YamlNode};
use callgate_policy_tests::{Coverage, load_texts, mutation};

use crate::recorded_calls::project;

/// A record of the schema and one of its keys.
type Construct = (String, String);

/// The records that decide calls.
const DECIDING: [&str; 13] = [
    "condition",
    "deny",
    "during",
    "elements",
    "fact",
    "halt",
    "length",
    "path_operand",
    "require",
    "shell",
    "shell_command",
    "shell_words",
    "shell_wrapper",
];

/// The keys that take any value, so that none is a mistake.
const ANY_VALUE: [&str; 1] = ["respond.output"];

/// What exists for a construct.
#[derive(Default)]
struct Support {
    is_described: bool,
    has_cases: bool,
    has_broken_cases: bool,
    is_explained: bool,
    has_branches: bool,
    is_mutated: bool,
}

fn schema() -> Value {
    callgate::json::parse(&fs::read_to_string(project("schemas/rules.schema.json")).unwrap()).unwrap()
}

/// The keys of every record, without those of records that only repeat a condition.
fn constructs(schema: &Value) -> BTreeMap<Construct, Support> {
    let records = schema["$defs"].as_object().unwrap();
    let mut found = BTreeMap::new();
    for (record, definition) in records {
        let Some(keys) = definition.get("properties").and_then(Value::as_object) else { continue };
        for (key, property) in keys {
            let Some(construct) = construct(record, key) else { continue };
            let is_described =
                property.get("description").and_then(Value::as_str).is_some_and(|text| !text.is_empty());
            found.insert(construct, Support { is_described, ..Support::default() });
        }
    }
    found
}

/// Conditions have one home, wherever they stand.
fn construct(record: &str, key: &str) -> Option<Construct> {
    let record = match (record, key) {
        ("elements", "min") => "elements",
        ("shell_words", "patterns" | "unknown") => "shell_words",
        ("elements" | "element_condition" | "shell_words", _) => "condition",
        (record, _) => record,
    };
    Some((record.to_owned(), key.to_owned()))
}

/// Calls `visit` with each key of a tree that the schema knows, outer keys first: its construct, and the bytes from the key to the end of
/// its value.
fn walk(
    schema: &Value,
    at: &Value,
    record: Option<&str>,
    node: &YamlNode,
    visit: &mut dyn FnMut(Construct, (usize, usize)),
) {
    if let Some(name) = at.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix("#/$defs/"))
    {
        return walk(schema, &schema["$defs"][name], Some(name), node, visit);
    }
    for choice in ["anyOf", "oneOf"].iter().filter_map(|key| at.get(key)?.as_array()).flatten() {
        walk(schema, choice, record, node, visit);
    }
    if let Some(entries) = node.entries() {
        for entry in entries {
            if let Some(property) = at.get("properties").and_then(|keys| keys.get(&entry.key)) {
                if let Some(construct) = record.and_then(|record| construct(record, &entry.key)) {
                    visit(construct, (entry.key_span.start(), entry.value.span.end()));
                }
                walk(schema, property, None, &entry.value, visit);
            } else if let Some(others) = at.get("additionalProperties") {
                walk(schema, others, None, &entry.value, visit);
            }
        }
    }
    if let (Some(items), Some(schema_of_items)) = (node.items(), at.get("items")) {
        items.iter().for_each(|item| walk(schema, schema_of_items, None, item, visit));
    }
}

/// The constructs in a rules file, with their bytes.
fn used(schema: &Value, rules: &str) -> Vec<(Construct, (usize, usize))> {
    let mut found = Vec::new();
    for file in source::load_texts([("rules.yaml", rules)]).files {
        walk(schema, schema, None, &file.root, &mut |construct, bytes| found.push((construct, bytes)));
    }
    found
}

/// The texts of a folder of tests: whole files, or the rules in them.
fn texts(folder: &str, are_whole: bool) -> Vec<String> {
    let files = fs::read_dir(project(folder)).unwrap().map(|entry| entry.unwrap().path());
    let files: BTreeSet<_> = files.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect();
    let texts = files.iter().filter_map(|path| {
        let text = fs::read_to_string(path).ok()?;
        match are_whole {
            true => Some(text),
            false => {
                Some(serde_yaml::from_str::<serde_json::Value>(&text).ok()?["rules"].as_str()?.to_owned())
            }
        }
    });
    texts.collect()
}

/// The innermost construct around each of these positions: lines and columns from 1.
fn innermost(
    rules: &str,
    used: &[(Construct, (usize, usize))],
    positions: &BTreeSet<(usize, usize)>,
) -> BTreeSet<Construct> {
    let starts: Vec<usize> =
        std::iter::once(0).chain(rules.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let offset = |(line, column): &(usize, usize)| {
        let start = starts.get(line - 1).copied().unwrap_or_default();
        start + rules.get(start..).unwrap().chars().take(column - 1).map(char::len_utf8).sum::<usize>()
    };
    let around = |at: usize| used.iter().filter(move |(_, (start, end))| (*start..*end).contains(&at));
    positions.iter().filter_map(|position| Some(around(offset(position)).next_back()?.0.clone())).collect()
}

/// The positions of coverage points and of mutations of a bundle.
fn tested_positions(rules: &str) -> Option<[BTreeSet<(usize, usize)>; 2]> {
    let mut built = policy::build_texts([("rules.yaml", rules)]);
    let policies = Arc::new(built.policies.take()?);
    let points = Coverage::new(&policies, &built.files).report(&built.sources);
    let points = points.points().map(|point| (point.place.line, point.place.column)).collect();
    // A case that no change fails.
    let tests = "cases: [ { name: a, call: { tool: no_such_tool }, expect: { not_policies: none } } ]";
    let suite = load_texts([("rules.test.yaml", tests)]).suite;
    let built = policy::build_texts([("rules.yaml", rules)]);
    let report = mutation::mutate(&built, &suite, None, &mut |_, _| {}).ok()?;
    let changes = report.survivors.iter().map(|change| (change.line, change.column)).collect();
    Some([points, changes])
}

#[test]
fn every_construct_has_its_support() {
    let schema = schema();
    let mut table = constructs(&schema);
    let mut find = |folder: &str, are_whole: bool, set: fn(&mut Support)| {
        for rules in texts(folder, are_whole) {
            let known: BTreeSet<Construct> =
                used(&schema, &rules).into_iter().map(|(construct, _)| construct).collect();
            for construct in known {
                table.get_mut(&construct).map(set).unwrap_or_default();
            }
        }
    };
    find("tests/cases", false, |support| support.has_cases = true);
    find("tests/broken_rules", true, |support| support.has_broken_cases = true);
    find("tests/explaining", false, |support| support.is_explained = true);
    let mut tested: HashMap<Construct, [bool; 2]> = HashMap::new();
    for rules in texts("tests/cases", false).into_iter().chain(texts("tests/explaining", false)) {
        let Some(positions) = tested_positions(&rules) else { continue };
        let used = used(&schema, &rules);
        for (column, positions) in positions.iter().enumerate() {
            for construct in innermost(&rules, &used, positions) {
                tested.entry(construct).or_default()[column] = true;
            }
        }
    }
    for (construct, [has_branches, is_mutated]) in tested {
        if let Some(support) = table.get_mut(&construct) {
            (support.has_branches, support.is_mutated) = (has_branches, is_mutated);
        }
    }
    let undescribed: Vec<&Construct> =
        table.iter().filter(|(_, support)| !support.is_described).map(|(construct, _)| construct).collect();
    assert_eq!(undescribed, Vec::<&Construct>::new(), "these have no text in the reference and in editors");
    let without = |is_missing: fn(&Support) -> bool, records: &[&str]| -> Vec<String> {
        let missing = table.iter().filter(|((record, _), support)| {
            is_missing(support) && (records.is_empty() || records.contains(&record.as_str()))
        });
        missing.map(|((record, key), _)| format!("{record}.{key}")).collect()
    };
    assert_eq!(without(|support| !support.has_broken_cases, &[]), ANY_VALUE, "these have no broken case");
    assert_eq!(without(|support| !support.has_cases, &DECIDING), [""; 0], "these have no case");
    assert_eq!(without(|support| !support.is_explained, &DECIDING), [""; 0], "these have no explanation");
    let mut text = String::from(
        "Whether a construct has cases, broken cases and explanations, branches of coverage, and changes of mutation testing.\n\n\
         | construct | cases | broken | explained | coverage | mutation |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for ((record, key), support) in &table {
        let Support { has_cases, has_broken_cases, is_explained, has_branches, is_mutated, .. } = support;
        let marks = [has_cases, has_broken_cases, is_explained, has_branches, is_mutated]
            .map(|is| if *is { "yes" } else { "" })
            .join(" | ");
        writeln!(text, "| {record}.{key} | {marks} |").unwrap();
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("constructs", text));
}
