//! Comparison of two bundles: each file under `tests/diff/` contains two versions of a bundle; its snapshot is the report.

use std::cell::RefCell;
use std::sync::LazyLock;

use callgate::json::{Value, json};
use callgate::{Effect, Engine, SessionState, ToolCall, ToolDescriptor};
use callgate_analysis::{
    BundleComparison, ComparisonInputs, Direction, RulesVersion, Witness, WitnessBasis, compare, render,
};
use pulldown_cmark::{Event, Options, Parser, Tag};

use crate::fixtures::root;

fn version(text: &str) -> RulesVersion {
    RulesVersion::from_texts([("rules.yaml", text)])
        .unwrap_or_else(|built| panic!("{text}\n{:?}", built.diagnostics))
}

fn compare_texts(old: &str, new: &str, inputs: &ComparisonInputs<'_>) -> BundleComparison {
    compare(&version(old), &version(new), inputs, &mut |_, _| {})
}

fn diff(old: &str, new: &str) -> BundleComparison {
    compare_texts(old, new, &ComparisonInputs::default())
}

fn settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots/diff");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings
}

static SCHEMA: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
    let text = std::fs::read_to_string(root().join("schemas/diff.schema.json")).unwrap();
    let schema = serde_json::from_str(&text).unwrap();
    assert!(jsonschema::draft202012::meta::is_valid(&schema));
    jsonschema::draft202012::new(&schema).unwrap()
});

fn schema_errors(document: &str) -> Vec<String> {
    let document = serde_json::from_str(document).unwrap();
    SCHEMA.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// The strictness of the decision on a witness.
fn decide(rules: &str, witness: &Witness) -> Option<&'static str> {
    if witness.now.is_some() {
        return None;
    }
    let mut session = SessionState::default();
    if let Some(state) = &witness.session {
        for (name, value) in state["facts"].as_object().into_iter().flat_map(|facts| facts.iter()) {
            session.set_fact(name, None, value.clone());
        }
        for label in state["labels"].as_array().into_iter().flatten() {
            session.add_label(label.as_str().unwrap());
        }
    }
    let mut call =
        ToolCall::recorded("c1", witness.call["tool"].as_str().unwrap(), witness.call["input"].clone());
    call.server = witness.call["server"].as_str().map(str::to_owned);
    call.context = witness.call["context"].clone();
    let decision = Engine::from_text(rules).unwrap().decide(&call, &session).effect();
    Some(match decision {
        Effect::Run => "run",
        Effect::Answer => "answer",
        Effect::Suspend => "suspend",
        Effect::Invalid => "invalid",
        Effect::Deny => "deny",
        Effect::Halt => "halt",
    })
}

#[test]
fn each_report_matches_its_snapshot_and_the_schema() {
    let problems = RefCell::new(Vec::new());
    settings().bind(|| {
        insta::glob!("diff/*.yaml", |path| {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let file: Value = serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
            let (old, new) = (file["old"].as_str().unwrap(), file["new"].as_str().unwrap());
            let tools: Vec<ToolDescriptor> = match file.get("tools") {
                Some(tools) => callgate::parse_tools(&tools.to_string()).unwrap(),
                None => Vec::new(),
            };
            let compared =
                compare_texts(old, new, &ComparisonInputs { tools: &tools, ..ComparisonInputs::default() });
            let report = format!("{}{}", render::text(&compared, false), render::summary(&compared));
            insta::assert_snapshot!(name, report);
            let mut problems = problems.borrow_mut();
            let document = render::json(&compared).unwrap();
            problems.extend(schema_errors(&document).into_iter().map(|error| format!("{name}: {error}")));
            for witness in compared.changes.iter().flat_map(|change| &change.witnesses) {
                for (rules, said) in [(old, &witness.before), (new, &witness.after)] {
                    if decide(rules, witness).is_some_and(|effect| effect != said.effect) {
                        problems.push(format!("{name}: {witness:?}"));
                    }
                }
            }
        });
    });
    assert_eq!(problems.take(), Vec::<String>::new());
}

#[test]
fn comment_for_pull_requests_matches_its_snapshot() {
    let rules = |limit: u32, quorum: u32| {
        format!(
            "policies:\n  - {{ id: large, match: {{ tool: pay, where: {{ path: $.input.amount, gt: {limit} }} }}, deny: {{}} }}\n  \
             - {{ id: ask, match: ship, approval: {{ quorum: {quorum} }} }}\n  - {{ id: hide, match: search, redact: {{ patterns: ['[0-9]{{{quorum}}}'] }} }}\n"
        )
    };
    let compared = diff(&rules(100, 1), &rules(200, 2));
    settings().bind(|| {
        insta::assert_snapshot!("github", render::github(&compared));
        insta::assert_snapshot!("json", render::json(&compared).unwrap());
    });
}

#[test]
fn schema_rejects_invalid_reports() {
    let compared = diff("policies: []", "policies: [ { id: a, match: t, deny: {} } ]");
    let whole: Value = callgate::json::from_str(&render::json(&compared).unwrap()).unwrap();
    assert_eq!(schema_errors(&whole.to_string()), Vec::<String>::new());
    for (member, value) in
        [("version", json!(2)), ("changes", json!([{}])), ("summary", json!({})), ("new", json!(1))]
    {
        let mut broken = whole.clone();
        broken[member] = value;
        assert!(!schema_errors(&broken.to_string()).is_empty(), "{member}");
    }
}

#[test]
fn recorded_calls_are_tried_and_their_arguments_are_not_shown() {
    let old = "policies: [ { id: p, match: { tool: pay, where: { path: $.input.account, length: 23, ends_with: '0130' } }, deny: {} } ]";
    let call = ToolCall::new("c1", "pay", json!({ "account": "secret-account-****0130" }));
    let origin = callgate_analysis::SampleOrigin::Recording { file: "calls.jsonl".into(), line: 7 };
    let samples = [callgate_analysis::CallSample::new(call, origin)];
    let inputs = ComparisonInputs { samples: &samples, calls_per_policy: 0, ..ComparisonInputs::default() };
    let compared = compare_texts(old, "policies: []", &inputs);
    let witness = &compared.changes[0].witnesses[0];
    assert_eq!(
        (witness.source.as_deref(), &witness.call),
        (Some("calls.jsonl:7"), &json!({ "tool": "pay" }))
    );
    for report in
        [render::text(&compared, false), render::github(&compared), render::json(&compared).unwrap()]
    {
        assert!(report.contains("calls.jsonl:7") && !report.contains("secret-account"), "{report}");
    }
}

/// Names and values that try to be markup, as far as an id may contain them.
const HOSTILE: [&str; 6] =
    ["<img/src=x>", "`](https://evil.example)", "|**x**|", "@everyone", "```", "</details><script>"];

#[test]
fn names_and_values_from_rules_are_never_markup() {
    let rules = |amount: u32| {
        let policies = HOSTILE.iter().map(|text| {
            let quoted = json!(text);
            format!("{{ id: {quoted}, match: {{ tool: pay, where: [ {{ path: $.input.to, eq: {quoted} }}, {{ path: $.input.amount, gt: {amount} }} ] }}, deny: {{}} }}")
        });
        format!("policies: [ {} ]", policies.collect::<Vec<_>>().join(", "))
    };
    let compared = diff(&rules(1), &rules(2));
    assert_eq!(compared.count(Direction::Looser), HOSTILE.len());
    let body = render::github(&compared);
    let markup: Vec<String> = Parser::new_ext(&body, Options::all())
        .filter(|event| match event {
            Event::Html(html) => html.trim() != "<!-- callgate diff -->",
            Event::InlineHtml(_) | Event::FootnoteReference(_) => true,
            Event::Start(tag) => {
                matches!(
                    tag,
                    Tag::Link { .. } | Tag::Image { .. } | Tag::Strong | Tag::Emphasis | Tag::Table(_)
                )
            }
            _ => false,
        })
        .map(|event| format!("{event:?}"))
        .collect();
    assert_eq!(markup, Vec::<String>::new(), "{body}");
    assert!(!body.contains("@everyone"), "{body}");
    let escapes = diff(
        r#"policies: [ { id: p, match: { tool: t, where: { path: $.input.a, eq: "\e[31m\u202e" } }, deny: {} } ]"#,
        "policies: []",
    );
    let text = render::text(&escapes, false);
    assert!(!text.contains(['\u{1b}', '\u{202e}']) && text.contains(r"\u001b[31m\u202e"), "{text}");
}

#[test]
fn comment_fits_the_limit_of_github() {
    let rules = |amount: u32| {
        let policies = (0..400).map(|number| {
            format!("{{ id: policy-{number}, match: {{ tool: tool-{number}, where: {{ path: $.input.amount, gt: {amount} }} }}, deny: {{}} }}")
        });
        format!("policies: [ {} ]", policies.collect::<Vec<_>>().join(", "))
    };
    let inputs = ComparisonInputs { calls_per_policy: 20, ..ComparisonInputs::default() };
    let compared = compare_texts(&rules(1), &rules(2), &inputs);
    assert_eq!(compared.count(Direction::Looser), 400);
    let body = render::github(&compared);
    assert!(body.len() < 65_536 && body.contains("more: run `callgate diff`"), "{}", body.len());
}

#[test]
fn work_is_bounded_for_many_changes() {
    let rules = |amount: u32| {
        let policies = (0..300).map(|number| {
            format!("{{ id: policy-{number}, match: {{ where: 'input.a{number} + input.b > {amount}' }}, deny: {{}} }}")
        });
        format!("policies: [ {} ]", policies.collect::<Vec<_>>().join(", "))
    };
    let inputs = ComparisonInputs { calls_per_policy: 10, ..ComparisonInputs::default() };
    let compared = compare_texts(&rules(1), &rules(2), &inputs);
    assert!(compared.changes.iter().all(|change| change.tried <= 10 && change.direction.allows_more()));
}

#[test]
fn witness_of_the_bundles_is_preferred_to_one_of_the_policy_alone() {
    let compared = diff(
        "policies: [ { id: a, match: '*', deny: {} }, { id: b, match: [pay, ship], approval: {} } ]",
        "policies: [ { id: a, match: pay, deny: {} }, { id: b, match: pay, approval: {} } ]",
    );
    let of = |index: usize| &compared.changes[index].witnesses[0];
    assert_eq!((of(0).basis, of(1).basis), (WitnessBasis::Decision, WitnessBasis::Decision));
}
