//! What depending on Callgate does to the features of the embedder's `serde_json`.

use std::collections::BTreeSet;
use std::process::Command;

use crate::playback::project;

/// The features with which `serde_json` is built for a program that depends on Callgate alone.
fn serde_json_features(of_callgate: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--offline",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
            "--format",
            "{p}|{f}",
        ])
        .arg("--manifest-path")
        .arg(project("Cargo.toml"))
        .args(of_callgate)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let line =
        text.lines().find(|line| line.starts_with("serde_json v")).expect("serde_json is a dependency");
    let features = line.split_once('|').unwrap().1.trim_end_matches(" (*)");
    features.split(',').map(str::to_owned).collect()
}

/// Each of these would change what the embedder's own code does: how numbers are held, compared and written, and the order of objects.
#[test]
fn no_feature_of_serde_json_changes_the_values_of_an_embedder() {
    // `jsonschema` demands `float_roundtrip`: floats of a text are read to the nearest, not to within one place of it.
    let expected: BTreeSet<String> = BTreeSet::from(["default", "float_roundtrip", "std"].map(str::to_owned));
    for features in [&["--no-default-features"][..], &[], &["--all-features"]] {
        let found = serde_json_features(features);
        assert!(found.is_subset(&expected), "{features:?}: {found:?}");
    }
}
