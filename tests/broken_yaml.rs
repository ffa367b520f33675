//! Diagnostics of invalid YAML: each file under `tests/broken_yaml/` contains one mistake, and its snapshot the diagnostics.

use std::fs;

use callgate::diagnostic::{Diagnostics, SourceMap, render};
use callgate::json::{Map, Number, Value};
use callgate::source::{LoadedSources, MAX_NESTING, load_texts, parse};
use proptest::prelude::*;

fn problems(loaded: &LoadedSources) -> String {
    let text = render::text(&loaded.diagnostics, &loaded.sources, false);
    format!("{text}\n{}\n", render::summary(&loaded.diagnostics, &loaded.sources))
}

#[test]
fn each_mistake_is_reported_at_its_position() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let mut cases: Vec<_> = fs::read_dir(crate::fixtures::root().join("tests/broken_yaml"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.sort();
    for case in cases {
        let name = case.file_stem().unwrap().to_str().unwrap();
        let text = fs::read_to_string(&case).unwrap();
        let loaded = load_texts([(format!("{name}.yaml"), text)]);
        assert!(loaded.diagnostics.has_errors(), "{name}");
        settings.bind(|| insta::assert_snapshot!(format!("broken_yaml_{name}"), problems(&loaded)));
    }
}

/// Returns the code and position (line, column) of the first problem.
fn first_problem(text: String) -> (&'static str, usize, usize) {
    let loaded = load_texts([("hostile.yaml", text)]);
    let shown = problems(&loaded);
    assert!(shown.len() < 10_000, "{} bytes of output", shown.len());
    let first = loaded.diagnostics.iter().next().unwrap();
    let place = loaded.sources.locate(first.span.unwrap()).unwrap();
    assert!(loaded.files.is_empty());
    (first.code.id, place.line, place.column)
}

#[test]
fn files_that_exhaust_resources_hit_a_limit() {
    let nested_maps: String = (0..3000).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    let laughs: String = (1..40)
        .map(|level| format!("l{level}: &l{level} [{}]\n", format!("*l{}, ", level - 1).repeat(10)))
        .collect();
    let anchors_in_anchors: String = (0..60).map(|level| format!("&a{level} [")).collect::<String>()
        + &"x, ".repeat(5000)
        + &"]".repeat(60);
    let long_text_copied = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(1000));
    let deep_alias =
        format!("a: &a {}{}\nb: {}*a{}\n", "[".repeat(40), "]".repeat(40), "[".repeat(40), "]".repeat(40));
    for (case, text, expected) in [
        ("20,000 brackets", "[".repeat(20_000), ("CG106", 1, MAX_NESTING + 1)),
        ("20,000 braces", "{a: ".repeat(20_000), ("CG106", 1, MAX_NESTING * 4 + 1)),
        ("3,000 block mappings", nested_maps, ("CG106", MAX_NESTING + 1, MAX_NESTING + 1)),
        ("3,000 block lists", "- ".repeat(3000), ("CG106", 1, MAX_NESTING * 2 + 1)),
        ("billion laughs", format!("l0: &l0 ha\n{laughs}"), ("CG106", 6, 40)),
        ("anchors in anchors", anchors_in_anchors, ("CG106", 1, 236)),
        ("a long text copied", long_text_copied, ("CG106", 2, 33)),
        ("depth through an alias", deep_alias, ("CG106", 2, 44)),
        ("4,000,000 values", format!("[{}]", "a,".repeat(4_000_000)), ("CG106", 1, 2_000_000)),
    ] {
        assert_eq!(first_problem(text), expected, "{case}");
    }
}

#[test]
fn number_of_reported_errors_is_limited() {
    let loaded = load_texts([("hostile.yaml", format!("{{{}}}", "a,".repeat(4_000_000)))]);
    let shown = problems(&loaded);
    assert!(shown.ends_with("\n101 errors in 1 file\n"), "{shown}");
    assert_eq!(loaded.diagnostics.iter().last().unwrap().code.id, "CG106");
}

#[test]
fn rejects_files_larger_than_8_mib() {
    let loaded = load_texts([("hostile.yaml", "# ".repeat(9 << 19))]);
    let codes: Vec<_> = loaded.diagnostics.iter().map(|diagnostic| diagnostic.code.id).collect();
    assert_eq!(codes, ["CG004"]);
    assert!(loaded.files.is_empty());
}

/// JSON with numbers, strings and keys on which YAML parsers disagree.
fn document() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        "[a-zé日]{0,8}",
        "[ -~]{0,12}",
        "[a-z\n\t: #'\"-]{0,12}",
        prop::sample::select(vec![
            "no", "yes", "null", "~", "1_0", "0x1F", "0o7", "017", "1e3", ".5", "=", "<<", "true", "- a"
        ])
        .prop_map(str::to_owned),
    ];
    let number = prop_oneof![
        any::<i64>().prop_map(Number::from),
        any::<u64>().prop_map(Number::from),
        (-1.0e6..1.0e6f64).prop_map(|value| Number::from_f64(value).unwrap()),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number.prop_map(Value::Number),
        word.clone().prop_map(Value::String),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec((word.clone(), inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map>())),
        ]
    })
}

fn to_yaml(value: &Value) -> serde_yaml::Value {
    match value {
        Value::Null => serde_yaml::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => value.into(),
            (None, Some(value)) => value.into(),
            (None, None) => number.as_f64().unwrap().into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(to_yaml).collect::<Vec<_>>().into(),
        Value::Object(entries) => serde_yaml::Value::Mapping(
            entries.iter().map(|(key, value)| (key.as_str().into(), to_yaml(value))).collect(),
        ),
    }
}

fn from_yaml(value: &serde_yaml::Value) -> Value {
    match value {
        serde_yaml::Value::Null => Value::Null,
        serde_yaml::Value::Bool(value) => Value::Bool(*value),
        serde_yaml::Value::Number(number) => Value::Number(number.to_string().parse().unwrap()),
        serde_yaml::Value::String(text) => Value::String(text.clone()),
        serde_yaml::Value::Sequence(items) => items.iter().map(from_yaml).collect(),
        serde_yaml::Value::Mapping(entries) => Value::Object(
            entries.iter().map(|(key, value)| (key.as_str().unwrap().to_owned(), from_yaml(value))).collect(),
        ),
        serde_yaml::Value::Tagged(tagged) => panic!("unexpected tag: {tagged:?}"),
    }
}

fn read(text: &str) -> Option<Value> {
    let mut sources = SourceMap::default();
    let mut diagnostics = Diagnostics::default();
    let source = sources.add("generated.yaml", text);
    let root = parse(source, text, &mut diagnostics);
    // Every diagnostic must be renderable, and without errors there must be a tree.
    render::text(&diagnostics, &sources, false);
    assert!(root.is_some() || diagnostics.has_errors());
    root.filter(|_| !diagnostics.has_errors()).map(|root| root.to_json())
}

/// Valid rules, to be corrupted.
const RULES: &str = "callgate: 1\ndefaults: &d { unmatched: allow }\npolicies:\n  - id: a # one\n    match:\n      tool: [x, \"y.*\"]\n\
    \x20   around:\n      script: |\n        let out = next(input);\n\n        out\n  - id: 'b'\n    more: *d\n    text: >-\n      é\n      ü\n";

proptest! {
    #[test]
    fn parser_never_panics_on_any_string(text in any::<String>()) {
        read(&text);
    }

    #[test]
    fn parser_never_panics_on_yaml_indicators(text in "[-a1 \n\r\t:#?*&!|>'\"%@`{}\\[\\],<~.é\u{feff}\\\\]{0,60}") {
        read(&text);
    }

    #[test]
    fn parser_never_panics_on_corrupted_rules(
        at in 0..RULES.len(), length in 0..8usize, insert in "[-a \n\t:#?*&!|>'\"{}\\[\\],é]{0,4}",
    ) {
        let start = RULES.floor_char_boundary(at);
        let end = RULES.ceil_char_boundary(at + length);
        let mut text = RULES.to_owned();
        text.replace_range(start..end, &insert);
        read(&text);
    }

    #[test]
    fn json_documents_parse_to_equal_values(value in document()) {
        let text = callgate::json::to_string_pretty(&value).unwrap();
        let ours = read(&text).expect("JSON is YAML");
        prop_assert!(ours == value, "{text}\n{ours}");
    }

    #[test]
    fn serde_yaml_output_parses_to_equal_values(value in document()) {
        let text = serde_yaml::to_string(&to_yaml(&value)).unwrap();
        // serde_yaml does not quote the key `<<`, which parses as a merge key.
        prop_assume!(!text.contains("<<"));
        // It does not quote strings that look like numbers either, which are errors here.
        prop_assume!(!problems(&load_texts([("generated.yaml", text.clone())])).contains("looks like a number"));
        let theirs = from_yaml(&serde_yaml::from_str(&text).unwrap());
        let ours = read(&text);
        prop_assert!(ours.as_ref().is_some_and(|ours| *ours == theirs), "{text}\n{ours:?}\n{theirs}");
    }
}
