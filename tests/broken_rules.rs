//! Diagnostics of invalid rules: each file under `tests/broken_rules/` contains one mistake, and its snapshot the diagnostics. A file
//! whose name starts with `several_` contains more than one. Add a file to add a case.

use std::cell::RefCell;

use callgate::diagnostic::render;
use callgate::policy::{self, LoadedBundle};

fn shown(built: &LoadedBundle) -> String {
    render::text(&built.diagnostics, &built.sources, false)
}

/// Violations of the rules for diagnostics: errors are reported, with a position, help and the form of a message.
fn violations(built: &LoadedBundle) -> Vec<String> {
    let mut found = Vec::new();
    if !built.diagnostics.has_errors() || built.policies.is_some() {
        found.push("the file is accepted".to_owned());
    }
    for diagnostic in built.diagnostics.iter() {
        let place = diagnostic.span.and_then(|span| built.sources.locate(span));
        if place.is_none() && diagnostic.file.is_none() {
            found.push(format!("no position: {}", diagnostic.message));
        }
        if diagnostic.help.is_none() {
            found.push(format!("no help: {}", diagnostic.message));
        }
        if diagnostic.message.ends_with('.') || diagnostic.message.starts_with(char::is_uppercase) {
            found.push(format!("not formatted as a message: {}", diagnostic.message));
        }
    }
    found
}

#[test]
fn each_mistake_is_reported_once_with_position_and_help() {
    let found = RefCell::new(Vec::new());
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots/broken_rules");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_snapshot_suffix("");
    settings.set_omit_expression(true);
    settings.bind(|| {
        insta::glob!("broken_rules/*.yaml", |path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let built = policy::build_texts([("rules.yaml", std::fs::read_to_string(path).unwrap())]);
            let mut problems = violations(&built);
            if built.diagnostics.len() > 1 && !name.starts_with("several_") {
                problems.push("one mistake is reported more than once".to_owned());
            }
            found.borrow_mut().extend(problems.into_iter().map(|problem| format!("{name}: {problem}")));
            insta::assert_snapshot!("diagnostics", shown(&built));
        });
    });
    let found = found.into_inner();
    assert!(found.is_empty(), "{}", found.join("\n"));
}
