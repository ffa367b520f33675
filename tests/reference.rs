//! `docs/reference.md` is written from the tables that check rules files, so it says what is so. A stale one fails here;
//! `UPDATE_GENERATED=1` writes it anew.

use std::fmt::Write as _;
use std::path::Path;

use callgate::authoring::{Record, Shape};
use callgate::detect::Detector;
use callgate::policy::rules_record;
use callgate::script::FUNCTIONS;
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
    page.push_str("\n## Functions of `expr`\n\nThe first argument can stand in front: `input.name.to_lower()`.\n\n| function | gives |\n| --- | --- |\n");
    for function in FUNCTIONS {
        let _ = writeln!(
            page,
            "| `{}` | {} |",
            function.signature().replace('|', "\\|"),
            function.about.replace('|', "\\|")
        );
    }
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
