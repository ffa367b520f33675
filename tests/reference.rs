//! `docs/reference.md` is written from the tables that check rules files, so it says what is so. A stale one fails here;
//! `UPDATE_GENERATED=1` writes it anew.

use std::fmt::Write as _;
use std::path::Path;

use callgate::authoring::{Record, Shape};
use callgate::detect::Detector;
use callgate::policy::rules_record;
use callgate::script::{
    Around, FUNCTIONS, Function, MAX_EFFECTS, MAX_JOURNAL, MAX_SCRIPT, NUMBERS, SCRIPT_LIMITS, STATEMENTS,
    VARIABLES,
};
use callgate::suite::tests_record;

/// What a value may be, in a few words, with the records that it names.
fn words(shape: &Shape, named: &mut Vec<&'static Record>) -> String {
    match shape {
        Shape::Any => "anything".to_owned(),
        Shape::Bool => "`true` or `false`".to_owned(),
        Shape::True => "`true`".to_owned(),
        Shape::Text(form) => (*form).to_owned(),
        Shape::Number => "a number".to_owned(),
        Shape::Integer(min, i64::MAX) => format!("a whole number, {min} or more"),
        Shape::Integer(min, max) => format!("a whole number from {min} to {max}"),
        Shape::Word(words) => {
            let listed: Vec<String> = words.iter().map(|(word, doc)| format!("`{word}`: {doc}")).collect();
            format!("one of {}", listed.join("; "))
        }
        Shape::Items(item) | Shape::List(item) => format!("a list of: {}", words(item, named)),
        Shape::OneOrMany(item) => format!("{}; or a list of such", words(item, named)),
        Shape::Record(record) => {
            if !named.iter().any(|known| known.name == record.name) {
                named.push(record);
            }
            format!("[{}](#{})", record.name, record.name)
        }
        Shape::Either(shapes) => {
            shapes.iter().map(|shape| words(shape, named)).collect::<Vec<_>>().join("; or ")
        }
    }
}

fn functions(page: &mut String, wanted: impl Fn(&Function) -> bool) {
    page.push_str("\n| function | gives |\n| --- | --- |\n");
    for function in FUNCTIONS.iter().filter(|function| wanted(function)) {
        let _ = writeln!(
            page,
            "| `{}` | {} |",
            function.signature().replace('|', "\\|"),
            function.about.replace('|', "\\|")
        );
    }
}

/// What can stand in `around: { script: … }`.
fn scripts(page: &mut String) {
    page.push_str(
        "\n## Scripts of `around`\n\nStatements around the execution of a call. What `next` gives is the tool's output; the value of the last statement is\n\
         the output of the call. Operators are those of `expr`, and as strict: values of different types are not compared, what is\n\
         not there is not read. A script may run several times from its start, with the same answers to its effects.\n\n\
         | variable | holds |\n| --- | --- |\n",
    );
    for (name, holds) in VARIABLES {
        let _ = writeln!(page, "| `{name}` | {holds} |");
    }
    page.push_str("\nOnly `input` can be changed.\n\n| statement | does |\n| --- | --- |\n");
    for (example, does) in STATEMENTS {
        let _ = writeln!(page, "| `{}` | {} |", example.replace('|', "\\|"), does.replace('|', "\\|"));
    }
    page.push_str("\nEffects, whose answers are kept in the journal of the call:\n");
    functions(page, Function::is_effect);
    page.push_str("\nFunctions, beside those of `expr`:\n");
    functions(page, |function| function.scripts_only() && !function.is_effect());
    page.push_str("\nLimits, of each run of a script unless it says otherwise. What exceeds one fails, and cannot be caught.\n\n| limit | |\n| --- | --- |\n");
    let limits = &SCRIPT_LIMITS;
    for (what, most) in [
        ("the script's text", format!("{} KiB", MAX_SCRIPT >> 10)),
        ("steps, over all replays", limits.steps.to_string()),
        ("functions of its own inside one another", limits.calls.to_string()),
        ("code inside of code while it runs", limits.depth.to_string()),
        ("one string that it makes", format!("{} KiB", limits.text >> 10)),
        ("all strings that it makes", format!("{} MiB", limits.texts >> 20)),
        ("elements and members that it makes", limits.values.to_string()),
        (
            "what it hands to effects and gives as output, where that is not passed on as it came",
            format!("{} MiB, each value counting 64 bytes beside its text", limits.output >> 20),
        ),
        ("effects of a call", MAX_EFFECTS.to_string()),
        ("a journal that is kept", format!("{} MiB, counted in the same way", MAX_JOURNAL >> 20)),
    ] {
        let _ = writeln!(page, "| {what} | {most} |");
    }
}

#[test]
fn what_the_reference_shows_of_scripts_compiles() {
    for (name, _) in VARIABLES {
        assert!(Around::compile(name).is_ok(), "{name}");
    }
    for (example, _) in STATEMENTS {
        assert!(Around::compile(example).is_ok(), "{example}: {:?}", Around::compile(example));
    }
}

fn reference() -> String {
    let mut page = String::from(
        "# Reference of the policy language\n\n\
         Written from the tables that check rules files; do not edit. What is said under a key here is also what editors show\n\
         with [`schemas/rules.schema.json`](../schemas/rules.schema.json), or in test files ([tests](#tests)) with\n\
         [`schemas/tests.schema.json`](../schemas/tests.schema.json). How policies compose is in\n\
         [ARCHITECTURE.md](../ARCHITECTURE.md), what happens when something goes wrong in [failures.md](failures.md).\n",
    );
    let mut named = vec![rules_record()];
    write_records(&mut page, &mut named, 0);
    let _ = write!(
        page,
        "\n## Numbers\n\n{NUMBERS}\n\n## Functions of `expr`\n\nThe first argument can stand in front: `input.name.to_lower()`.\n",
    );
    functions(&mut page, |function| !function.scripts_only());
    scripts(&mut page);
    page.push_str("\n## Detectors\n\n| detector | finds |\n| --- | --- |\n");
    for detector in Detector::ALL {
        let _ = writeln!(page, "| `{}` | {} |", detector.name(), detector.description());
    }
    let written = named.len();
    named.push(tests_record());
    write_records(&mut page, &mut named, written);
    page
}

/// Writes the records from the place `next` on, and those that they name.
fn write_records(page: &mut String, named: &mut Vec<&'static Record>, mut next: usize) {
    while let Some(record) = named.get(next).copied() {
        next += 1;
        let _ = write!(page, "\n## {}\n\n{}\n", record.name, record.doc);
        if record.fields.is_empty() {
            continue;
        }
        page.push_str("\n| key | value | meaning |\n| --- | --- | --- |\n");
        for field in record.fields {
            let needed = if field.required { " (needed)" } else { "" };
            let value = words(&field.shape, named);
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
fn the_reference_is_what_the_tables_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference.md");
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
