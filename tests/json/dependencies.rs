//! Features of `serde_json` that depending on Callgate enables for the embedder.

use std::collections::BTreeSet;
use std::process::Command;

use crate::recorded_calls::project;

/// The features of `serde_json` in a program that depends only on Callgate.
fn serde_json_features(of_callgate: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--offline",
            "--package",
            "callgate",
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

/// Other features would change the behaviour of the embedder's code: how numbers are stored, compared and written, and the order of
/// objects.
#[test]
fn serde_json_features_do_not_change_for_embedders() {
    // `jsonschema` requires `float_roundtrip`: floats are parsed to the nearest value, not to within one unit in the last place.
    for (of_callgate, expected) in [
        (&[][..], &["default", "std"][..]),
        (&["--features", "json-schema"], &["default", "float_roundtrip", "std"]),
        (&["--all-features"], &["default", "float_roundtrip", "std"]),
    ] {
        let expected: BTreeSet<String> = expected.iter().map(|&feature| feature.to_owned()).collect();
        let found = serde_json_features(of_callgate);
        assert!(found.is_subset(&expected), "{of_callgate:?}: {found:?}");
    }
}
