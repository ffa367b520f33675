//! Editor support for rules and test files: the YAML language server with the schemas that `callgate schema` prints. It reports all
//! errors and nothing else, completes exactly the existing keys, and documents each of them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use callgate::json::{Value, json};
use callgate::middleware::KINDS;
use callgate::rules_schema::{RecordShape, Shape};

use crate::packages::{install, installed, run};

fn here() -> PathBuf {
    crate::fixtures::root().join("tests/editors")
}

fn schema(of: &str) -> String {
    format!("file://{}/schemas/{of}.schema.json", crate::fixtures::root().display())
}

/// The workspace settings that docs/editors.md shows.
fn settings() -> Value {
    let mut schemas = callgate::json::Map::new();
    schemas.insert(schema("rules"), json!(["policies/**/*.yaml", "!*.test.yaml"]));
    schemas.insert(schema("tests"), json!(["*.test.yaml"]));
    json!({ "yaml": { "validate": true, "hover": true, "completion": true, "schemas": schemas } })
}

/// One open document. In its text, `‸` marks a completion and `¦` a hover position; neither is part of the text.
struct Document {
    name: String,
    text: String,
}

impl Document {
    fn rules(text: &str) -> Self {
        let modeline = format!("# yaml-language-server: $schema={}", schema("rules"));
        Self { name: "elsewhere/rules.yaml".to_owned(), text: format!("{modeline}\n{text}") }
    }

    fn tests(text: &str) -> Self {
        Self { name: "policies/shop/refunds.test.yaml".to_owned(), text: text.to_owned() }
    }

    fn request(&self, number: usize) -> Value {
        let (mut complete, mut hover, mut lines) = (Vec::new(), Vec::new(), Vec::new());
        for (number, line) in self.text.lines().enumerate() {
            let mut plain = String::new();
            for character in line.chars() {
                let at = json!([number, plain.encode_utf16().count()]);
                match character {
                    '‸' => complete.push(at),
                    '¦' => hover.push(at),
                    _ => plain.push(character),
                }
            }
            lines.push(plain);
        }
        let uri = format!("file:///work{number}/{}", self.name);
        json!({ "uri": uri, "text": lines.join("\n"), "complete": complete, "hover": hover })
    }
}

/// Diagnostics, completions and hover texts of the server for a document.
#[derive(serde::Deserialize)]
struct Findings {
    /// Lines from 0, with messages.
    diagnostics: Vec<(usize, String)>,
    /// Labels, with documentation.
    complete: Vec<Vec<(String, String)>>,
    hover: Vec<String>,
}

fn query(documents: &[Document]) -> Vec<Findings> {
    let pins = fs::read_to_string(here().join("package-lock.json")).unwrap();
    let home = installed("editors", &pins, |home| {
        for file in ["package.json", "package-lock.json"] {
            fs::copy(here().join(file), home.join(file)).unwrap();
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(home);
        install(&mut [npm]);
    });
    // Node resolves packages relative to the script. Concurrent tests write the same file.
    let script = home.join(format!("drive-{}.mjs", std::process::id()));
    fs::copy(here().join("drive.mjs"), &script).unwrap();
    let requests = (0..).zip(documents).map(|(number, document)| format!("{}\n", document.request(number)));
    let (printed, done) =
        run(Command::new("node").arg(&script).arg(settings().to_string()), &requests.collect::<String>());
    let _ = fs::remove_file(&script);
    assert!(done, "{printed}");
    let findings: Vec<Findings> =
        printed.lines().map(|line| callgate::json::from_str(line).expect(line)).collect();
    assert_eq!(findings.len(), documents.len(), "{printed}");
    findings
}

/// For each kind, a valid policy and one in which each line that ends with `# ✗ MESSAGE` is invalid.
const KIND_BY_KIND: &[(&str, &str, &str)] = &[
    (
        "transform",
        "transform: { input: [ { path: $.input.a, trim: true } ] }",
        "transform:\n      input:\n        path: $.input.a # ✗ Expected \"array\"\n      inptu: [] # ✗ Property inptu is not allowed",
    ),
    (
        "validate",
        "validate: { schema: tool }",
        "validate: { shcema: tool } # ✗ Property shcema is not allowed",
    ),
    (
        "deny",
        "deny: { message: No, code: never }",
        "deny:\n      message: 7 # ✗ Expected \"string\"\n      cod: never # ✗ Property cod is not allowed",
    ),
    (
        "require",
        "require: { values: [context.tenant], code: no_tenant }",
        "require:\n      values: [] # ✗ too few items\n      mesage: No # ✗ Property mesage is not allowed",
    ),
    ("allow", "allow: {}", "allow: { all: true } # ✗ Property all is not allowed"),
    ("halt", "halt: { message: Stop }", "halt: now # ✗ Expected \"halt\""),
    (
        "rate_limit",
        "rate_limit: { limit: 5, per: 1m, on_exceed: wait, max_wait: 10s }",
        "rate_limit:\n      limit: five # ✗ Expected \"number | constant\"\n      per: 1m\n      on_exceed: dney # ✗ Valid values: \"deny\", \"approval\", \"halt\", \"wait\"",
    ),
    ("concurrency", "concurrency: { max: 2 }", "concurrency: { max: 0 } # ✗ below the minimum of 1"),
    (
        "approval",
        "approval: { message: Sure?, expires: 24h, quorum: 2, edits: [$.input.note] }",
        "approval:\n      quorum: 0 # ✗ below the minimum of 1\n      remember: # ✗ Missing property \"scope\"\n        for: 8h",
    ),
    ("respond", "respond: { output: { ok: true } }", "respond: {} # ✗ Missing property \"output\""),
    (
        "cache",
        "cache: { ttl: 1m, key: [$.input.id], scope: tenant }",
        "cache: # ✗ Missing property \"ttl\"\n      scope: tennant # ✗ Valid values: \"tenant\", \"principal\", \"session\", \"shared\"",
    ),
    (
        "around",
        "around: { script: next(input) }",
        "around: { scirpt: next(input) } # ✗ Property scirpt is not allowed",
    ),
    (
        "retry",
        "retry: { attempts: 3, on: [timeout], backoff: { initial: 1s } }",
        "retry:\n      attempts: 1 # ✗ below the minimum of 2\n      backoff:\n        factor: two # ✗ Expected \"number\"",
    ),
    ("timeout", "timeout: 30s", "timeout: 30 # ✗ Expected \"string\""),
    (
        "recover",
        "recover: { on: /invalid/, attempts: 2 }",
        "recover:\n      attempts: 0 # ✗ below the minimum of 1",
    ),
    (
        "redact",
        "redact: { in: output, detect: [email], with: { keep_last: 4 } }",
        "redact:\n      in: reslut # ✗ Valid values: \"input\", \"output\"\n      with: { keep_last: 99 } # ✗ above the maximum of 32",
    ),
    ("label", "label: { add: [seen] }", "label:\n      add: seen # ✗ Expected \"array\""),
    (
        "fact",
        "fact: { name: order, key: $.input.id, value: $.output }",
        "fact: # ✗ Missing property \"name\"\n      key: $.input.id",
    ),
    ("audit", "audit: { fields: [$.input.a] }", "audit: { fields: [] } # ✗ too few items"),
    (
        "model",
        "model: { on: before_model, temperature: { max: 0.7 }, tools: { hide: 'admin*' } }",
        "model:\n      on: befor_model # ✗ Valid values\n      temperature:\n        most: 1 # ✗ Property most is not allowed",
    ),
    (
        "stream",
        "stream: { redact: [us_ssn], drop: [/profanity/] }",
        "stream: { redcat: [us_ssn] } # ✗ Property redcat is not allowed",
    ),
    (
        "budget",
        "budget: { tokens: 200000, per: run, on_exceed: halt }",
        "budget:\n      tokens: many # ✗ Expected \"integer | constant\"\n      per: day # ✗ Valid values: \"run\", \"conversation\"",
    ),
];

/// The lines that are marked as invalid, each with the expected message.
fn marked(text: &str) -> Vec<(usize, &str)> {
    let marked = |(number, line): (usize, &'static str)| Some((number, line.split_once("# ✗ ")?.1));
    let text: &'static str = Box::leak(text.to_owned().into_boxed_str());
    text.lines().enumerate().filter_map(marked).collect()
}

fn assert_marked(document: &Document, findings: &Findings) {
    let expected = marked(&document.text);
    let text = &document.text;
    for (line, message) in &expected {
        let reported = findings.diagnostics.iter().any(|(at, actual)| at == line && actual.contains(message));
        assert!(reported, "line {line}: {message}\n{text}\n{:?}", findings.diagnostics);
    }
    for (line, actual) in &findings.diagnostics {
        assert!(expected.iter().any(|(at, _)| at == line), "line {line}: {actual}\n{text}");
    }
}

#[test]
fn reports_exactly_the_errors_of_each_policy_kind() {
    let kinds: Vec<&str> = KIND_BY_KIND.iter().map(|(kind, ..)| *kind).collect();
    assert_eq!(kinds, KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>());
    let document = |policy: &str| {
        // A policy of the run cannot have `tool`.
        let matcher = "{ where: [ { path: $.context.principal, eq: ana } ] }";
        Document::rules(&format!("callgate: 1\npolicies:\n  - id: p\n    match: {matcher}\n    {policy}\n"))
    };
    let documents: Vec<Document> =
        KIND_BY_KIND.iter().flat_map(|(_, right, wrong)| [document(right), document(wrong)]).collect();
    for (document, findings) in documents.iter().zip(query(&documents)) {
        assert_marked(document, &findings);
    }
    for (document, right) in documents.iter().step_by(2).zip(KIND_BY_KIND) {
        assert!(marked(&document.text).is_empty());
        let built = callgate::policy::build_texts([("rules.yaml", document.text.as_str())]);
        assert!(built.policies.is_some(), "{}: {:?}", right.1, built.diagnostics);
    }
}

const WRONG_RULES: &str = "callgate: 1
defaults:
  unmatched: block # ✗ Valid values: \"allow\", \"deny\", \"approval\"
policies:
  - id: two-kinds
    match: t
    deny: {}
    allow: {} # ✗ a policy has this or `deny`, not both
  - id: no-kind # ✗ a policy has exactly one of the keys transform, validate, deny
    match: t
  - id: no-matcher # ✗ property match required by property deny
    deny: {}
  - match: t # ✗ Missing property \"id\"
    deny: {}
  - id: tests
    match:
      tool: t
      where:
        - { path: $.input.a, gtt: 1 } # ✗ Property gtt is not allowed
        - eq: 1 # ✗ a condition has exactly one of the keys path, all, any, not, expr
        - path: $.input.a
          type: nubmer # ✗ Valid values: \"null\", \"boolean\"
        - any: []  # ✗ too few items
        - path: $.input.a
          not: { path: $.input.b, exists: true } # ✗ a condition has this or `path`, not both
    deny: {}
";

const WRONG_TESTS: &str = "callgate: 1
stubs:
  - match: t
    retruns: 1 # ✗ Property retruns is not allowed
cases:
  - name: an outcome that is none
    call: { tool: t }
    expect: { outcome: blocked } # ✗ Valid values
  - call: { tool: t } # ✗ Missing property \"name\"
    expect: denied
  - name: two in one step
    steps:
      - tool: t
        wait: 1s # ✗ a step has this or `tool`, not both
      - wiat: 1s # ✗ wiat
";

#[test]
fn reports_each_error_on_its_line() {
    let documents = [Document::rules(WRONG_RULES), Document::tests(WRONG_TESTS)];
    for (document, findings) in documents.iter().zip(query(&documents)) {
        assert_marked(document, &findings);
    }
}

#[test]
fn shipped_files_are_valid_by_modeline_and_by_settings() {
    let policies = crate::fixtures::root().join("policies");
    let mut documents = Vec::new();
    let mut open = vec![policies.clone()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "yaml") {
                let below = path.strip_prefix(&policies).unwrap().display();
                let text = fs::read_to_string(&path).unwrap();
                documents.push(Document { name: format!("policies/{below}"), text });
            }
        }
    }
    assert!(documents.len() > 10);
    documents.push(Document { name: "policies/wrong.yaml".to_owned(), text: "polices: []".to_owned() });
    let mut findings = query(&documents);
    assert_eq!(findings.pop().unwrap().diagnostics.len(), 2, "the setting has no effect");
    for (document, findings) in documents.iter().zip(findings) {
        assert_eq!(findings.diagnostics, [], "{}", document.name);
    }
}

/// A record with the YAML lines that lead to it; the last line ends where its keys start.
struct Reached {
    record: &'static RecordShape,
    lines: String,
    indent: usize,
}

/// Every record that a file may contain, each once, with a path to it.
fn reach(root: &'static RecordShape) -> Vec<Reached> {
    let mut found = vec![Reached { record: root, lines: String::new(), indent: 0 }];
    let mut next = 0;
    while next < found.len() {
        let (record, lines, indent) = (found[next].record, found[next].lines.clone(), found[next].indent);
        for field in record.fields {
            let Some((inner, is_item)) = record_in(&field.shape) else { continue };
            if found.iter().any(|reached| reached.record.name == inner.name) {
                continue;
            }
            let (dash, deeper) = if is_item { ("- ", 4) } else { ("", 2) };
            let key = format!("{}{}:\n{}{dash}", lines, field.name, " ".repeat(indent + 2));
            found.push(Reached { record: inner, lines: key, indent: indent + deeper });
        }
        next += 1;
    }
    found
}

/// Returns the record in a shape, and whether it is an item of a list.
fn record_in(shape: &'static Shape) -> Option<(&'static RecordShape, bool)> {
    match shape {
        Shape::Record(record) => Some((record, false)),
        Shape::List(item) | Shape::NonEmptyList(item) => record_in(item).map(|(record, _)| (record, true)),
        Shape::OneOrMany(item) => record_in(item),
        Shape::Either(shapes) => shapes.iter().find_map(record_in),
        _ => None,
    }
}

/// A minimal value of a shape.
fn sample(shape: &Shape) -> String {
    match shape {
        Shape::Any | Shape::Number => "1".to_owned(),
        Shape::Bool | Shape::True => "true".to_owned(),
        Shape::String(_) => "text".to_owned(),
        Shape::Integer(least, _) => least.to_string(),
        Shape::Word(words) => format!("\"{}\"", words[0].0),
        Shape::List(item) | Shape::NonEmptyList(item) => format!("[{}]", sample(item)),
        Shape::OneOrMany(item) => sample(item),
        Shape::Record(_) | Shape::Map(_) => "{}".to_owned(),
        Shape::Either(shapes) => sample(&shapes[0]),
    }
}

/// Opens a string as a rules or a test file.
type Open = fn(&str) -> Document;

fn every_record() -> Vec<(Open, Reached)> {
    let rules = reach(callgate::policy::rules_record()).into_iter();
    let tests = reach(callgate_policy_tests::test_file_record()).into_iter();
    let rules = rules.map(|reached| (Document::rules as Open, reached));
    let tests = tests.map(|reached| (Document::tests as Open, reached));
    rules.chain(tests).collect()
}

#[test]
fn completes_exactly_the_keys_of_each_record() {
    let records = every_record();
    assert!(records.len() > 40, "{}", records.len());
    let documents: Vec<Document> =
        records.iter().map(|(open, reached)| open(&format!("{}‸\n", reached.lines))).collect();
    for (((_, reached), document), findings) in records.iter().zip(&documents).zip(query(&documents)) {
        let offered = &findings.complete[0];
        for field in reached.record.fields {
            let item = offered.iter().find(|(label, _)| label == field.name);
            let (_, text) =
                item.unwrap_or_else(|| panic!("`{}` is not offered\n{}", field.name, document.text));
            assert!(text.starts_with(field.doc), "`{}`: {text}\n{}", field.name, document.text);
        }
        // The server also offers a snippet of the whole record with its required keys, under the name of the record.
        let known = |label: &str| reached.record.fields.iter().any(|field| field.name == label);
        let whole = [reached.record.name, "Callgate rules file", "Callgate policy tests", "- (array item)"];
        let unexpected: Vec<_> = offered
            .iter()
            .filter(|(label, _)| !known(label) && !whole.iter().any(|whole| label.starts_with(whole)))
            .collect();
        assert!(unexpected.is_empty(), "{unexpected:?}\n{}", document.text);
    }
}

#[test]
fn hover_documents_each_key() {
    let records = every_record();
    let with_all_keys = |(open, reached): &(Open, Reached)| {
        let keys = reached.record.fields.iter();
        let lines: Vec<String> =
            keys.map(|field| format!("¦{}: {}", field.name, sample(&field.shape))).collect();
        let separator = format!("\n{}", " ".repeat(reached.indent));
        open(&format!("{}{}\n", reached.lines, lines.join(&separator)))
    };
    let documents: Vec<Document> = records.iter().map(with_all_keys).collect();
    for (((_, reached), document), findings) in records.iter().zip(&documents).zip(query(&documents)) {
        for (field, text) in reached.record.fields.iter().zip(&findings.hover) {
            assert!(text.contains(field.doc), "`{}` has hover text {text}\n{}", field.name, document.text);
        }
        assert_eq!(findings.hover.len(), reached.record.fields.len());
    }
}

#[test]
fn completes_and_documents_enum_values() {
    let documents = [
        Document::rules("policies:\n  - id: a\n    mode: ‸\n    match: t\n    deny: {}\n"),
        Document::rules("policies:\n  - id: a\n    ¦mode: shadow\n    match: t\n    deny: {}\n"),
        Document::tests("cases:\n  - name: a\n    call: { tool: t }\n    expect:\n      outcome: ‸\n"),
    ];
    let findings = query(&documents);
    let labels: Vec<&str> =
        findings[0].complete[0].iter().map(|(label, _)| label.trim_matches('"')).collect();
    assert_eq!(labels, ["enforce", "shadow", "off"]);
    assert_eq!(
        findings[0].complete[0][1].1,
        "shadow mode: the policy records what it would have done, and changes nothing"
    );
    let text = &findings[1].hover[0];
    assert!(
        text.contains(
            "* `shadow`: shadow mode: the policy records what it would have done, and changes nothing"
        ),
        "{text}"
    );
    assert!(
        findings[2].complete[0].iter().any(|(label, _)| label == "suspended"),
        "{:?}",
        findings[2].complete
    );
}
