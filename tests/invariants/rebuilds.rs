//! Property test: a build that takes over what has not changed since an earlier one equals a build of all files.

use std::collections::BTreeMap;
use std::fs;

use callgate::diagnostic::render;
use callgate::policy::{self, LoadedBundle};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tempfile::TempDir;

use super::vocabulary::{EVERYTHING, policies};

/// Files with policies. That of the first name moves all others.
const FILES: [&str; 4] = ["0.yaml", "b.yaml", "deep/c.yaml", "z.yml"];
/// The file with most definitions.
const DEFINITIONS: &str = "a.yaml";
/// What the definitions may have beside the names that policies use.
const SETTINGS: [&str; 8] = [
    "",
    "# a comment that moves what follows\n",
    "defaults: { absent: match }\n",
    "defaults: { unmatched: deny }\n",
    "reload: { widening: confirm }\n",
    "results: { read: json }\n",
    "tools: tools.json\n",
    "policies: [ { id: own, match: pay, deny: {} } ]\n",
];
/// Policies that depend on more than their own text, first those that need no names of the bundle.
const DEPENDING: [&str; 8] = [
    "{ id: ID, match: pay, validate: { schema: { file: schema.json } } }",
    "{ id: ID, match: pay, around: { file: wrapper.rhai } }",
    "{ id: ID, match: { tool: \"/^p[a-z]{1,3}$/\", where: [ { path: $.input.to, matches: \"^[a-e]{2}\" } ] }, deny: {} }",
    "{ id: ID, match: { tool: pay, where: input.amount > most }, deny: {} }",
    "{ id: ID, match: { tool: \"@paying\" }, approval: {} }",
    "{ id: ID, match: { tool: pay, where: double(input.amount) > 2 }, deny: {} }",
    "{ id: ID, match: { tool: pay, where: input.to in data.people }, deny: {} }",
    "{ id: ID, match: pay, approval: { approvers: { data: people } } }",
];
/// The number of those that need no names.
const WITHOUT_NAMES: usize = 3;
/// What a file may have before its policies. The others of the bundle may depend on all but the first two.
const HEADS: [&str; 6] = [
    "",
    "callgate: 1\n",
    "let: { least: \"1\" }\n",
    "defaults: { absent: match }\n",
    "reload: { widening: confirm }\n",
    "groups: { reading: [read] }\n",
];
/// Texts that are no rules, or wrong ones.
const WRONG: [&str; 4] = ["", "policies: [\n", "policies: [ { id: wrong, deny: {} } ]\n", "[ana, bob]\n"];
/// Files that rules may refer to, each with two contents.
const REFERENCED: [(&str, [&str; 2]); 8] = [
    // Without a reference it is a rules file with an error.
    ("data.yaml", ["[1, 2]", "{ a: 1, b: { c: 2 } }"]),
    ("lib.rhai", ["fn double(x) { x * 2 }", "fn double(x) { x + x + 1 }"]),
    ("people.json", ["[\"ana@a.test\"]", "[\"bob@b.test\"]"]),
    ("schema.json", ["{ \"required\": [\"amount\"] }", "{ \"required\": [\"to\"] }"]),
    ("deep/schema.json", ["{ \"required\": [\"amount\"] }", "{ \"required\": [\"to\"] }"]),
    ("wrapper.rhai", ["next(input)", "next(#{ amount: 1 })"]),
    ("deep/wrapper.rhai", ["next(input)", "next(#{ amount: 1 })"]),
    ("tools.json", ["[]", "[ { \"name\": \"pay\", \"inputSchema\": { \"type\": \"object\" } } ]"]),
];

/// What is written to a file: `None` removes it.
type Edit = (&'static str, Option<String>);

fn definitions(with_names: bool) -> impl Strategy<Value = Edit> {
    let most = select(&["'2'", "'2'", "'3'", "input.amount + 1"][..]);
    let paying = select(&["pay, send", "read"][..]);
    let data = select(&[", others: { file: data.yaml }", ", others: { file: data.yaml }", ""][..]);
    (most, paying, data, select(&SETTINGS[..])).prop_map(move |(most, paying, data, settings)| {
        let names = format!(
            "let: {{ most: {most} }}\ngroups: {{ paying: [{paying}] }}\nfunctions: {{ file: lib.rhai }}\n\
             data: {{ people: {{ file: people.json }}{data} }}\n"
        );
        (DEFINITIONS, Some(format!("{settings}{}", if with_names { &names } else { "callgate: 1\n" })))
    })
}

/// A list of policies, whose ids have the name of their file. A few share one.
fn policies_of(file: &'static str, with_names: bool) -> impl Strategy<Value = String> {
    let mode = select(&["enforce", "enforce", "shadow", "off"][..]);
    let plain = (policies(EVERYTHING), mode, -1i64..2).prop_map(|(policies, mode, priority)| {
        let mut policy = policies[0].clone();
        policy["id"] = "ID".into();
        policy["mode"] = mode.into();
        policy["priority"] = priority.into();
        policy.to_string()
    });
    let depending = if with_names { &DEPENDING[..] } else { &DEPENDING[..WITHOUT_NAMES] };
    let policy = prop_oneof![3 => plain, 2 => select(depending).prop_map(str::to_owned)];
    let head = prop_oneof![8 => Just(HEADS[0]), 3 => select(&HEADS[..])];
    let comment = select(&["", "# a comment that moves what follows\n"][..]);
    (head, comment, vec((policy, prop::bool::weighted(0.04)), 0..4)).prop_map(
        move |(head, comment, policies)| {
            let items = policies.iter().zip(0..).map(|((policy, is_shared), number)| {
                let id = if *is_shared { "shared".to_owned() } else { format!("{file}-{number}") };
                format!("  - {}\n", policy.replace("ID", &id))
            });
            let items: String = items.collect();
            format!("{head}{comment}policies:{}\n{items}", if items.is_empty() { " []" } else { "" })
        },
    )
}

fn rules(with_names: bool) -> impl Strategy<Value = Edit> {
    select(&FILES[..]).prop_flat_map(move |file| {
        let text = prop_oneof![
            30 => policies_of(file, with_names).prop_map(Some),
            2 => Just(None),
            1 => select(&WRONG[..]).prop_map(|text| Some(text.to_owned())),
        ];
        (Just(file), text)
    })
}

fn referenced_file(with_names: bool) -> impl Strategy<Value = Edit> {
    let files = if with_names { &REFERENCED[..] } else { &REFERENCED[1..] };
    (select(files), 0..2usize).prop_map(|((name, texts), which)| (name, Some(texts[which].to_owned())))
}

/// Edits between builds. The first ones make a bundle of several files.
fn histories() -> impl Strategy<Value = Vec<Vec<Edit>>> {
    prop::bool::weighted(0.7).prop_flat_map(|with_names| {
        let files = ["b.yaml", "deep/c.yaml", "z.yml"];
        let texts = files.map(|file| policies_of(file, with_names));
        let first = (definitions(with_names), texts).prop_map(move |(definitions, texts)| {
            let mut edits: Vec<Edit> = files.into_iter().zip(texts.map(Some)).collect();
            edits.push(definitions);
            edits.extend(REFERENCED.map(|(name, texts)| (name, Some(texts[0].to_owned()))));
            // Data that nothing names is an error.
            edits.retain(|(name, _)| with_names || *name != REFERENCED[0].0);
            edits
        });
        let edit = prop_oneof![6 => rules(with_names), 2 => definitions(with_names), 2 => referenced_file(with_names)];
        (first, vec(vec(edit, 1..3), 1..8)).prop_map(|(first, mut later)| {
            later.insert(0, first);
            later
        })
    })
}

fn write(directory: &TempDir, (name, text): &Edit) {
    let path = directory.path().join(name);
    match text {
        Some(text) => {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        None => drop(fs::remove_file(path)),
    }
}

/// Everything that a build says and does.
fn description(built: &LoadedBundle) -> BTreeMap<&'static str, String> {
    let problems = render::text(&built.diagnostics, &built.sources, false);
    let mut all =
        BTreeMap::from([("problems", problems), ("references", format!("{:?}", built.referenced_files))]);
    if let Some(policies) = &built.policies {
        let by_tool = ["pay", "send", "read", "pxy", "other"].map(|tool| policies.matching_call("", tool));
        all.extend([
            ("policies", without_numbers_of_builds(&format!("{:#?}", policies.policies()))),
            ("tools", format!("{by_tool:?}")),
            ("settings", format!("{:?} {:?}", policies.defaults(), policies.reload_settings())),
            ("results", format!("{:?} {:?}", policies.results(), policies.tools())),
            ("disabled", format!("{:?}", policies.disabled_ids())),
            ("revision", policies.revision().to_owned()),
        ]);
    }
    all
}

/// Numbers that count up with everything that is compiled.
fn without_numbers_of_builds(text: &str) -> String {
    let numbers = regex::Regex::new(r"\bid: \d+|BranchId\(\s*\d+,?\s*\)").unwrap();
    numbers.replace_all(text, "NUMBER").into_owned()
}

/// Both builds are equal in everything, and files that are wrong have the same errors.
fn assert_equal(rebuilt: &LoadedBundle, built: &LoadedBundle) -> Result<(), TestCaseError> {
    let (found, expected) = (description(rebuilt), description(built));
    prop_assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (part, expected) in expected {
        let mut lines = found[part].lines().map(str::trim).zip(expected.lines().map(str::trim));
        let different = lines.find(|(found, expected)| found != expected);
        prop_assert!(found[part] == expected, "{}: {:?}", part, different);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_rebuild_equals_a_build_of_all_files(history in histories()) {
        let directory = tempfile::tempdir().unwrap();
        let paths = [directory.path().to_owned()];
        let mut previous = policy::build_texts([("rules.yaml", "policies: []")]).policies.unwrap();
        for edits in history {
            edits.iter().for_each(|edit| write(&directory, edit));
            let mut rebuilt = policy::rebuild(&paths, &previous);
            assert_equal(&rebuilt, &policy::build(&paths))?;
            if let Some(policies) = rebuilt.policies.take() {
                previous = policies;
            }
        }
    }
}
