//! OPA, which is a program of its own: its `eval` command decides, and its `bench` command measures the evaluation inside the program.

use std::fs;
use std::path::Path;
use std::process::Command;

use callgate::{Effect, ToolCall};
use serde_json::Value;

use crate::rego::{QUERY, input, module, strictest};
use crate::workload;

/// The calls that are measured; each takes OPA a second.
const MEASURED: usize = 5;

/// The median of the nanoseconds that OPA takes for a decision.
pub fn median_of_decision(binary: &Path, size: usize, calls: &[ToolCall], expected: &[Effect]) -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let (rules, document) = (folder.path().join("rules.rego"), folder.path().join("input.json"));
    fs::write(&rules, module(&workload::rules(size))).expect("the rules can be written");
    let run = |command: &str| -> Value {
        let mut opa = Command::new(binary);
        opa.args([command, "--format", "json", "--data"])
            .arg(&rules)
            .arg("--input")
            .arg(&document)
            .arg(QUERY);
        let output = opa.output().expect("OPA starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let mut times: Vec<f64> = calls[..MEASURED]
        .iter()
        .zip(expected)
        .map(|(call, expected)| {
            fs::write(&document, input(call)).expect("the input can be written");
            let result = run("eval");
            let effects = result["result"][0]["expressions"][0]["value"].as_array().expect("a set");
            assert_eq!(
                strictest(effects.iter().filter_map(Value::as_str)),
                *expected,
                "OPA with {size} rules"
            );
            let measured = run("bench");
            let figure = |name: &str| measured[name].as_f64().expect("a figure");
            figure("T") / figure("N")
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[MEASURED / 2]
}
