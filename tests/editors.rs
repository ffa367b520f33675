//! Rules files and test files in editors: the YAML language server itself, driven with the schemas that `callgate schema`
//! prints. It underlines what is wrong and nothing else, offers exactly the keys that there are, and says of each what it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use callgate::authoring::{Record, Shape};
use callgate::json::{Value, json};
use callgate::middleware::KINDS;

use crate::packages::{install, installed, run};

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/editors")
}

fn schema(of: &str) -> String {
    format!("file://{}/schemas/{of}.schema.json", env!("CARGO_MANIFEST_DIR"))
}

/// As docs/editors.md says it of a workspace.
fn settings() -> Value {
    let mut schemas = callgate::json::Map::new();
    schemas.insert(schema("rules"), json!(["policies/**/*.yaml", "!*.test.yaml"]));
    schemas.insert(schema("tests"), json!(["*.test.yaml"]));
    json!({ "yaml": { "validate": true, "hover": true, "completion": true, "schemas": schemas } })
}

/// One open document. In its text `‸` is where something is completed, `¦` where the pointer is; neither is part of it.
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
            let mut kept = String::new();
            for character in line.chars() {
                let at = json!([number, kept.encode_utf16().count()]);
                match character {
                    '‸' => complete.push(at),
                    '¦' => hover.push(at),
                    _ => kept.push(character),
                }
            }
            lines.push(kept);
        }
        let uri = format!("file:///work{number}/{}", self.name);
        json!({ "uri": uri, "text": lines.join("\n"), "complete": complete, "hover": hover })
    }
}

/// What the server said of a document.
#[derive(serde::Deserialize)]
struct Said {
    /// Lines from 0, with messages.
    diagnostics: Vec<(usize, String)>,
    /// Labels, with documentation.
    complete: Vec<Vec<(String, String)>>,
    hover: Vec<String>,
}

fn ask(documents: &[Document]) -> Vec<Said> {
    let pins = fs::read_to_string(here().join("package-lock.json")).unwrap();
    let home = installed("editors", &pins, |home| {
        for file in ["package.json", "package-lock.json"] {
            fs::copy(here().join(file), home.join(file)).unwrap();
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(home);
        install(&mut [npm]);
    });
    // Packages are looked for beside the script. Tests that run at once write the same.
    let script = home.join(format!("drive-{}.mjs", std::process::id()));
    fs::copy(here().join("drive.mjs"), &script).unwrap();
    let requests = (0..).zip(documents).map(|(number, document)| format!("{}\n", document.request(number)));
    let (printed, done) =
        run(Command::new("node").arg(&script).arg(settings().to_string()), &requests.collect::<String>());
    let _ = fs::remove_file(&script);
    assert!(done, "{printed}");
    let said: Vec<Said> = printed.lines().map(|line| callgate::json::from_str(line).expect(line)).collect();
    assert_eq!(said.len(), documents.len(), "{printed}");
    said
}

/// Of each kind a policy that is right, and one in which each line that ends with `# ✗ MESSAGE` is wrong.
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
    ("allow", "allow: {}", "allow: { all: true } # ✗ Property all is not allowed"),
    ("halt", "halt: { message: Stop }", "halt: now # ✗ Expected \"halt\""),
    (
        "rate_limit",
        "rate_limit: { limit: 5, per: 1m, on_exceed: wait, max_wait: 10s }",
        "rate_limit:\n      limit: five # ✗ Expected \"number\"\n      per: 1m\n      on_exceed: dney # ✗ Valid values: \"deny\", \"halt\", \"wait\"",
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
        "budget:\n      tokens: many # ✗ Expected \"integer\"\n      per: day # ✗ Valid values: \"run\", \"conversation\"",
    ),
];

/// The lines of a text that say they are wrong, with what is to be said of them.
fn marked(text: &str) -> Vec<(usize, &str)> {
    let marked = |(number, line): (usize, &'static str)| Some((number, line.split_once("# ✗ ")?.1));
    let text: &'static str = Box::leak(text.to_owned().into_boxed_str());
    text.lines().enumerate().filter_map(marked).collect()
}

fn assert_marked(document: &Document, said: &Said) {
    let expected = marked(&document.text);
    let text = &document.text;
    for (line, message) in &expected {
        let told = said.diagnostics.iter().any(|(at, told)| at == line && told.contains(message));
        assert!(told, "line {line}: {message}\n{text}\n{:?}", said.diagnostics);
    }
    for (line, told) in &said.diagnostics {
        assert!(expected.iter().any(|(at, _)| at == line), "line {line}: {told}\n{text}");
    }
}

#[test]
fn what_is_wrong_is_underlined_and_nothing_else_in_a_policy_of_each_kind() {
    let kinds: Vec<&str> = KIND_BY_KIND.iter().map(|(kind, ..)| *kind).collect();
    assert_eq!(kinds, KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>());
    let document = |policy: &str| {
        // A policy of the run can't say `tool`.
        let matcher = "{ where: [ { path: $.context.principal, eq: ana } ] }";
        Document::rules(&format!("callgate: 1\npolicies:\n  - id: p\n    match: {matcher}\n    {policy}\n"))
    };
    let documents: Vec<Document> =
        KIND_BY_KIND.iter().flat_map(|(_, right, wrong)| [document(right), document(wrong)]).collect();
    for (document, said) in documents.iter().zip(ask(&documents)) {
        assert_marked(document, &said);
    }
    for (document, right) in documents.iter().step_by(2).zip(KIND_BY_KIND) {
        assert!(marked(&document.text).is_empty());
        let built = callgate::policy::build_texts([("rules.yaml", document.text.as_str())]);
        assert!(built.chains.is_some(), "{}: {:?}", right.1, built.diagnostics);
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
fn every_mistake_of_a_file_is_on_its_line() {
    let documents = [Document::rules(WRONG_RULES), Document::tests(WRONG_TESTS)];
    for (document, said) in documents.iter().zip(ask(&documents)) {
        assert_marked(document, &said);
    }
}

#[test]
fn the_shipped_files_are_right_whether_a_modeline_or_a_setting_names_the_schema() {
    let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
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
    let mut said = ask(&documents);
    assert_eq!(said.pop().unwrap().diagnostics.len(), 2, "the setting is not followed");
    for (document, said) in documents.iter().zip(said) {
        assert_eq!(said.diagnostics, [], "{}", document.name);
    }
}

/// A record with the lines that lead to it; the last of them ends where its keys begin.
struct Reached {
    record: &'static Record,
    lines: String,
    indent: usize,
}

/// Every record that a file may hold, each once, with a way to it.
fn reach(root: &'static Record) -> Vec<Reached> {
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

/// The record in a shape, and whether it is the item of a list there.
fn record_in(shape: &'static Shape) -> Option<(&'static Record, bool)> {
    match shape {
        Shape::Record(record) => Some((record, false)),
        Shape::Items(item) | Shape::List(item) => record_in(item).map(|(record, _)| (record, true)),
        Shape::OneOrMany(item) => record_in(item),
        Shape::Either(shapes) => shapes.iter().find_map(record_in),
        _ => None,
    }
}

/// A value of a shape, as short as may be.
fn sample(shape: &Shape) -> String {
    match shape {
        Shape::Any | Shape::Number => "1".to_owned(),
        Shape::Bool | Shape::True => "true".to_owned(),
        Shape::Text(_) => "text".to_owned(),
        Shape::Integer(least, _) => least.to_string(),
        Shape::Word(words) => format!("\"{}\"", words[0].0),
        Shape::Items(item) | Shape::List(item) => format!("[{}]", sample(item)),
        Shape::OneOrMany(item) => sample(item),
        Shape::Record(_) => "{}".to_owned(),
        Shape::Either(shapes) => sample(&shapes[0]),
    }
}

/// How a text of a kind of file is opened.
type Open = fn(&str) -> Document;

fn every_record() -> Vec<(Open, Reached)> {
    let rules = reach(callgate::policy::rules_record()).into_iter();
    let tests = reach(callgate::suite::tests_record()).into_iter();
    let rules = rules.map(|reached| (Document::rules as Open, reached));
    let tests = tests.map(|reached| (Document::tests as Open, reached));
    rules.chain(tests).collect()
}

#[test]
fn exactly_the_keys_that_there_are_are_offered_with_their_texts() {
    let records = every_record();
    assert!(records.len() > 40, "{}", records.len());
    let documents: Vec<Document> =
        records.iter().map(|(open, reached)| open(&format!("{}‸\n", reached.lines))).collect();
    for (((_, reached), document), said) in records.iter().zip(&documents).zip(ask(&documents)) {
        let offered = &said.complete[0];
        for field in reached.record.fields {
            let item = offered.iter().find(|(label, _)| label == field.name);
            let (_, text) =
                item.unwrap_or_else(|| panic!("`{}` is not offered\n{}", field.name, document.text));
            assert!(text.starts_with(field.doc), "`{}`: {text}\n{}", field.name, document.text);
        }
        // The server offers the whole, with all that must be there, under the name of the record.
        let known = |label: &str| reached.record.fields.iter().any(|field| field.name == label);
        let whole = [reached.record.name, "Callgate rules file", "Callgate policy tests", "- (array item)"];
        let strange: Vec<_> = offered
            .iter()
            .filter(|(label, _)| !known(label) && !whole.iter().any(|whole| label.starts_with(whole)))
            .collect();
        assert!(strange.is_empty(), "{strange:?}\n{}", document.text);
    }
}

#[test]
fn each_key_says_what_it_is() {
    let records = every_record();
    let with_all_keys = |(open, reached): &(Open, Reached)| {
        let keys = reached.record.fields.iter();
        let lines: Vec<String> =
            keys.map(|field| format!("¦{}: {}", field.name, sample(&field.shape))).collect();
        let separator = format!("\n{}", " ".repeat(reached.indent));
        open(&format!("{}{}\n", reached.lines, lines.join(&separator)))
    };
    let documents: Vec<Document> = records.iter().map(with_all_keys).collect();
    for (((_, reached), document), said) in records.iter().zip(&documents).zip(ask(&documents)) {
        for (field, text) in reached.record.fields.iter().zip(&said.hover) {
            assert!(text.contains(field.doc), "`{}` says {text}\n{}", field.name, document.text);
        }
        assert_eq!(said.hover.len(), reached.record.fields.len());
    }
}

#[test]
fn words_are_offered_and_explained() {
    let documents = [
        Document::rules("policies:\n  - id: a\n    mode: ‸\n    match: t\n    deny: {}\n"),
        Document::rules("policies:\n  - id: a\n    ¦mode: shadow\n    match: t\n    deny: {}\n"),
        Document::tests("cases:\n  - name: a\n    call: { tool: t }\n    expect:\n      outcome: ‸\n"),
    ];
    let said = ask(&documents);
    let labels: Vec<&str> = said[0].complete[0].iter().map(|(label, _)| label.trim_matches('"')).collect();
    assert_eq!(labels, ["enforce", "shadow", "off"]);
    assert_eq!(said[0].complete[0][1].1, "it records what it would have done, and changes nothing");
    let text = &said[1].hover[0];
    assert!(text.contains("* `shadow`: it records what it would have done, and changes nothing"), "{text}");
    assert!(said[2].complete[0].iter().any(|(label, _)| label == "suspended"), "{:?}", said[2].complete);
}
