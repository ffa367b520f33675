//! What `check` proves of the types in expressions. Each file under `tests/types/` is a bundle that is checked with the tools beside it:
//! those of `fires` have a snapshot, those of `silent` have no problem of a type. What is reported fails for every value: this is
//! compared with evaluations of generated expressions.

use std::fs;
use std::path::PathBuf;

use callgate::call::{CallView, Root, SessionState, ToolCall};
use callgate::diagnostic::{IMPOSSIBLE_TYPE, UNKNOWN_ENUM_VALUE, render};
use callgate::json::{Value, json};
use callgate::name_pattern::NamePattern;
use callgate::script::{Expression, TypeEnvironment, TypeKind, ValueType};
use callgate::{policy, tools};
use callgate_lint::{LintInputs, LintResult, lint};
use proptest::prelude::*;

fn cases(kind: &str) -> Vec<(String, LintResult)> {
    let root = crate::fixtures::root().join("tests/types");
    let tools = tools::parse_list(&fs::read_to_string(root.join("tools.json")).unwrap()).unwrap();
    let mut files: Vec<PathBuf> =
        fs::read_dir(root.join(kind)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let lint = |file: &PathBuf| {
        let built = policy::build_texts([("rules.yaml", fs::read_to_string(file).unwrap())]);
        lint(built, &LintInputs { tools: Some(&tools), tests: None })
    };
    files.iter().map(|file| (file.file_stem().unwrap().to_string_lossy().into_owned(), lint(file))).collect()
}

#[test]
fn impossible_types_are_reported_with_their_fix() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots/types");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for (name, linted) in cases("fires") {
        assert!(linted.policies.is_some(), "{name} does not load");
        let unreported: Vec<&str> = linted
            .policies
            .as_ref()
            .map(|policies| policies.policies().iter().map(|policy| policy.id.as_str()).collect())
            .unwrap_or_default();
        let reported: Vec<&str> =
            linted.diagnostics.iter().filter_map(|found| found.policy.as_deref()).collect();
        for id in unreported.into_iter().filter(|id| !id.starts_with("keep-")) {
            assert!(reported.contains(&id), "{name}: nothing is reported of {id}");
        }
        settings.bind(|| {
            insta::assert_snapshot!(name, render::text(&linted.diagnostics, &linted.sources, false))
        });
    }
}

#[test]
fn nothing_is_reported_of_possible_types() {
    for (name, linted) in cases("silent") {
        assert!(
            linted.policies.is_some(),
            "{name}: {}",
            render::text(&linted.diagnostics, &linted.sources, false)
        );
        let of_types = |code| code == &IMPOSSIBLE_TYPE || code == &UNKNOWN_ENUM_VALUE;
        assert!(
            !linted.diagnostics.iter().any(|diagnostic| of_types(diagnostic.code)),
            "{name}: {}",
            render::text(&linted.diagnostics, &linted.sources, false)
        );
    }
}

/// The types of the arguments `n`, `s`, `b`, `l` and `o`; `x` is a number or a string.
struct Arguments;

impl TypeEnvironment for Arguments {
    fn member(&self, root: Root) -> ValueType {
        match root {
            Root::Input => {
                let number = ValueType::new(TypeKind::Number);
                let string = ValueType::new(TypeKind::String);
                let members = [
                    ("n", number.clone()),
                    ("s", string.clone()),
                    ("b", ValueType::new(TypeKind::Boolean)),
                    ("l", ValueType::array(number.clone())),
                    ("o", ValueType::of(&json!({ "n": 1, "s": "a" }))),
                    ("x", number.or(&string)),
                ];
                let members = members.into_iter().map(|(name, member)| (name.to_owned(), member)).collect();
                ValueType::object(callgate::script::ObjectType { members, ..Default::default() })
            }
            Root::Now => ValueType::new(TypeKind::Time),
            _ => ValueType::ANY,
        }
    }

    fn named(&self, _: &str) -> ValueType {
        ValueType::ANY
    }

    fn data(&self, _: &[String], value: &Value) -> ValueType {
        ValueType::of(value)
    }

    fn is_tool(&self, _: &[NamePattern]) -> Option<bool> {
        None
    }
}

fn arguments() -> impl Strategy<Value = Value> {
    let number = prop::sample::select(vec![json!(-1), json!(0), json!(1), json!(2.5)]);
    let string = prop::sample::select(vec![json!(""), json!("a"), json!("1"), json!("a,b")]);
    let either = prop_oneof![number.clone(), string.clone()];
    (number.clone(), string, any::<bool>(), prop::collection::vec(number, 0..3), either).prop_map(
        |(n, s, b, l, x)| json!({ "n": n, "s": s, "b": b, "l": l, "o": { "n": 1, "s": "a" }, "x": x }),
    )
}

/// Expressions of one operation on arguments, literals and results of other operations.
fn expression() -> impl Strategy<Value = String> {
    let leaves = [
        "input.n",
        "input.s",
        "input.b",
        "input.l",
        "input.o",
        "input.x",
        "1",
        "\"a\"",
        "true",
        "()",
        "[1, 2]",
        "[\"a\"]",
        "now",
        "duration(\"1h\")",
        "#{ n: 1 }",
        "input.o.n",
        "input.o.s",
        "[]",
    ];
    let leaf = prop::sample::select(leaves.to_vec()).prop_map(str::to_owned);
    leaf.prop_recursive(3, 12, 3, |inner| {
        let operator =
            prop::sample::select(vec!["==", "!=", "<", ">=", "+", "-", "*", "in", "!in", "&&", "||", "??"]);
        let one = prop::sample::select(vec![
            "len", "is_empty", "abs", "round", "sum", "to_lower", "to_number", "to_text", "type_of", "is_null", "keys",
            "values", "first", "sort", "unique", "chars", "exists", "time_unix", "indices", "emails", "is_even",
        ]);
        let two = prop::sample::select(vec![
            "max", "min", "contains", "starts_with", "split", "join", "has", "at", "count", "index_of", "zip", "merge",
            "pow", "range",
        ]);
        let closure = prop::sample::select(vec!["all", "some", "filter", "map", "find"]);
        prop_oneof![
            4 => (inner.clone(), operator, inner.clone()).prop_map(|(a, operator, b)| format!("({a} {operator} {b})")),
            3 => (one, inner.clone()).prop_map(|(name, a)| format!("{name}({a})")),
            2 => (two, inner.clone(), inner.clone()).prop_map(|(name, a, b)| format!("{name}({a}, {b})")),
            1 => (inner.clone(), closure.clone(), inner.clone()).prop_map(|(a, name, b)| format!("{a}.{name}(|y| {b})")),
            1 => (inner.clone(), closure).prop_map(|(a, name)| format!("{a}.{name}(|y| y)")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}[{b}]")),
            1 => inner.clone().prop_map(|a| format!("{a}.n")),
            1 => inner.clone().prop_map(|a| format!("!{a}")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    /// An expression whose only operation is reported has no value for any arguments; the value of any other has its type.
    #[test]
    fn reported_operations_fail_and_values_have_their_types(text in expression(), inputs in prop::collection::vec(arguments(), 4)) {
        let Ok(expression) = Expression::compile(&text) else { return Ok(()) };
        let report = expression.check_types(&text, &Arguments);
        let session = SessionState::default();
        for input in inputs {
            let call = ToolCall::new("c1", "tool", input.clone());
            let Ok(value) = expression.value(&CallView::new(&call, &session)) else { continue };
            let kind = TypeKind::from_value(&value);
            // As JSON, times are strings.
            let is_time = kind == TypeKind::String && report.value.may_be_one_of(&[TypeKind::Time, TypeKind::Duration]);
            prop_assert!(report.value.may_be(kind) || is_time, "{text} is {value} for {input}, not {}", report.value.describe());
            if let Some(known) = report.value.single_value() {
                prop_assert_eq!(known, &value, "{} for {}", &text, &input);
            }
            // A problem in a part that is not evaluated does not matter.
            let skips = ["&&", "||", "??", "|y|"].iter().any(|part| text.contains(part));
            prop_assert!(report.problems.is_empty() || skips, "{text} is {value} for {input}: {:?}", report.problems);
        }
    }
}
