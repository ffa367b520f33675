//! Generates `docs/reference.md` from the tables that validate rules files. The test fails if the page is stale;
//! `UPDATE_GENERATED=1` regenerates it.

use std::fmt::Write as _;

use callgate::policy::rules_record;
use callgate::redaction::Detector;
use callgate::rules_schema::{RecordShape, Shape};
use callgate::script::{
    self, AroundScript, MAX_EFFECTS, MAX_JOURNAL, MAX_SCRIPT, NUMBERS, SCRIPT_LIMITS, STATEMENTS,
    ScriptFunction, VARIABLES,
};
use callgate_policy_tests::test_file_record;

/// Describes the values of a shape. Adds the records that it refers to to `named`.
fn describe(shape: &Shape, named: &mut Vec<&'static RecordShape>) -> String {
    match shape {
        Shape::Any => "anything".to_owned(),
        Shape::Bool => "`true` or `false`".to_owned(),
        Shape::True => "`true`".to_owned(),
        Shape::String(form) => (*form).to_owned(),
        Shape::Number => "a number".to_owned(),
        Shape::Integer(min, i64::MAX) => format!("a whole number, {min} or more"),
        Shape::Integer(min, max) => format!("a whole number from {min} to {max}"),
        Shape::Word(words) => {
            let listed: Vec<String> = words.iter().map(|(word, doc)| format!("`{word}`: {doc}")).collect();
            format!("one of {}", listed.join("; "))
        }
        Shape::List(item) | Shape::NonEmptyList(item) => format!("a list of: {}", describe(item, named)),
        Shape::Map(value) => format!("a mapping of names to: {}", describe(value, named)),
        Shape::OneOrMany(item) => format!("{}; or a list of these", describe(item, named)),
        Shape::Record(record) => {
            if !named.iter().any(|known| known.name == record.name) {
                named.push(record);
            }
            format!("[{}](#{})", record.name, record.name)
        }
        Shape::Either(shapes) => {
            shapes.iter().map(|shape| describe(shape, named)).collect::<Vec<_>>().join("; or ")
        }
    }
}

fn functions(page: &mut String, wanted: impl Fn(&ScriptFunction) -> bool) {
    page.push_str("\n| function | returns |\n| --- | --- |\n");
    for function in script::functions().filter(|function| wanted(function)) {
        let _ = writeln!(
            page,
            "| `{}` | {} |",
            function.signature().replace('|', "\\|"),
            function.description.replace('|', "\\|")
        );
    }
}

/// The section about `around: { script: … }`.
fn scripts(page: &mut String) {
    page.push_str(
        "\n## Scripts of `around`\n\nStatements around the execution of a call. `next` returns the tool's output; the value of the last statement is the\n\
         output of the call. Operators are those of `expr`, and as strict: comparing values of different types and reading absent\n\
         values are errors. A script may run several times from its start, with the same results of its effects.\n\n\
         | variable | contains |\n| --- | --- |\n",
    );
    for (name, holds) in VARIABLES {
        let _ = writeln!(page, "| `{name}` | {holds} |");
    }
    page.push_str("\nOnly `input` can be changed.\n\n| statement | does |\n| --- | --- |\n");
    for (example, does) in STATEMENTS {
        let _ = writeln!(page, "| `{}` | {} |", example.replace('|', "\\|"), does.replace('|', "\\|"));
    }
    page.push_str(
        "\nThe language is Rhai's. What Rhai has and this table lacks is refused when the rules are loaded, and so is a statement that changes\n\
         nothing and drops its value, such as `s.trim();`. What remains different:\n\n\
         | script | in Rhai | here | rule |\n| --- | --- | --- | --- |\n",
    );
    for difference in script::DIFFERENCES {
        let script::RhaiDifference { script, in_rhai, here, rule, .. } = difference;
        let script = script.replace('|', "\\|");
        let script = match script.contains('`') {
            true => format!("<code>{}</code>", script.replace('`', "&#96;")),
            false => format!("`{script}`"),
        };
        let _ = writeln!(page, "| {script} | `{in_rhai}` | `{here}` | {rule} |");
    }
    page.push_str("\nEffects, whose results are stored in the journal of the call:\n");
    functions(page, ScriptFunction::is_effect);
    page.push_str("\nFunctions, in addition to those of `expr`:\n");
    functions(page, |function| function.is_scripts_only() && !function.is_effect());
    page.push_str("\nLimits, of each run of a script unless noted otherwise. Exceeding one is an error that cannot be caught.\n\n| limit | |\n| --- | --- |\n");
    let limits = &SCRIPT_LIMITS;
    for (what, most) in [
        ("source code", format!("{} KiB", MAX_SCRIPT >> 10)),
        ("steps, over all replays", limits.steps.to_string()),
        ("nested calls of the script's own functions", limits.call_depth.to_string()),
        ("nesting depth at run time", limits.nesting.to_string()),
        ("one string that it creates", format!("{} KiB", limits.string_bytes >> 10)),
        ("all strings that it creates", format!("{} MiB", limits.total_string_bytes >> 20)),
        ("array elements and object members that it creates", limits.values.to_string()),
        (
            "values passed to effects and returned as output, except those passed on unchanged",
            format!("{} MiB, each value counting 64 bytes plus its text", limits.output_bytes >> 20),
        ),
        ("effects of a call", MAX_EFFECTS.to_string()),
        ("a stored journal", format!("{} MiB, counted likewise", MAX_JOURNAL >> 20)),
    ] {
        let _ = writeln!(page, "| {what} | {most} |");
    }
}

#[test]
fn script_examples_of_the_reference_compile() {
    for (name, _) in VARIABLES {
        assert!(AroundScript::compile(name).is_ok(), "{name}");
    }
    for (example, _) in STATEMENTS {
        assert!(AroundScript::compile(example).is_ok(), "{example}: {:?}", AroundScript::compile(example));
    }
}

fn reference() -> String {
    let mut page = String::from(
        "# Reference of the policy language\n\n\
         Generated from the tables that validate rules files; do not edit. Editors show the same descriptions with\n\
         [`schemas/rules.schema.json`](../schemas/rules.schema.json), and in test files ([tests](#tests)) with\n\
         [`schemas/tests.schema.json`](../schemas/tests.schema.json). [ARCHITECTURE.md](../ARCHITECTURE.md) describes how policies\n\
         compose, and [failures.md](failures.md) what happens on errors.\n",
    );
    let mut named = vec![rules_record()];
    write_records(&mut page, &mut named, 0);
    let _ = write!(
        page,
        "\n## Numbers\n\n{NUMBERS}\n\n## Functions of `expr`\n\nThe first argument can be written as a receiver: `input.name.to_lower()`.\n",
    );
    functions(&mut page, |function| !function.is_scripts_only());
    scripts(&mut page);
    page.push_str("\n## Detectors\n\n| detector | finds |\n| --- | --- |\n");
    for detector in Detector::ALL {
        let _ = writeln!(page, "| `{}` | {} |", detector.name(), detector.description());
    }
    let written = named.len();
    named.push(test_file_record());
    write_records(&mut page, &mut named, written);
    page
}

/// Writes the records from index `next` on, and the records that they refer to.
fn write_records(page: &mut String, named: &mut Vec<&'static RecordShape>, mut next: usize) {
    while let Some(record) = named.get(next).copied() {
        next += 1;
        let _ = write!(page, "\n## {}\n\n{}\n", record.name, record.doc);
        if record.fields.is_empty() {
            continue;
        }
        page.push_str("\n| key | value | meaning |\n| --- | --- | --- |\n");
        for field in record.fields {
            let needed = if field.required { " (required)" } else { "" };
            let value = describe(&field.shape, named);
            let _ = writeln!(
                page,
                "| `{}`{needed} | {} | {} |",
                field.name,
                value.replace('|', "\\|"),
                field.doc.replace('|', "\\|")
            );
        }
    }
}

#[test]
fn reference_is_up_to_date() {
    let path = crate::fixtures::root().join("docs/reference.md");
    let now = reference();
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(&path, &now).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(&path).unwrap_or_default(),
        now,
        "docs/reference.md is stale: run the tests with UPDATE_GENERATED=1"
    );
}
