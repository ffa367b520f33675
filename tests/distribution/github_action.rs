//! The GitHub Action: its steps run as a runner would run them, with inputs and contexts in the environment.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_yaml::Value;
use tempfile::TempDir;

use super::{GOOD_RULES, GOOD_TESTS, bash, finished, release_archives, write_program, yaml};

/// A runner with a work directory that contains a good bundle, `rules`, and a bad one, `bad rules`.
struct Runner {
    home: TempDir,
}

/// A finished step.
struct Step {
    succeeded: bool,
    log: String,
    outputs: String,
}

impl Runner {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("work/rules/rules.yaml", GOOD_RULES),
            ("work/rules/rules.test.yaml", GOOD_TESTS),
            ("work/bad rules/rules.yaml", "policies:\n  - { id: a, denny: {} }\n"),
            ("work/failing/rules.yaml", "policies:\n  - { id: no-refunds, match: pay, deny: {} }\n"),
            ("work/failing/rules.test.yaml", GOOD_TESTS),
            ("work/tools.json", r#"[{ "name": "createRefunds", "input_schema": {} }]"#),
        ] {
            let path = home.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir(home.path().join("temp")).unwrap();
        Self { home }
    }

    fn path(&self) -> &Path {
        self.home.path()
    }

    /// Runs a step with these inputs, the others having their defaults, and these variables.
    fn run(&self, step: &str, inputs: &[(&str, &str)], variables: &[(&str, &str)]) -> Step {
        let action = yaml("action.yml");
        let steps = action["runs"]["steps"].as_sequence().unwrap();
        let step = steps.iter().find(|candidate| candidate["name"] == step).unwrap();
        let mut command = bash(step["run"].as_str().unwrap(), &self.path().join("programs"));
        command.current_dir(self.path().join("work")).env("RUNNER_TEMP", self.path().join("temp"));
        for file in ["GITHUB_OUTPUT", "GITHUB_PATH"] {
            fs::write(self.path().join(file), "").unwrap();
            command.env(file, self.path().join(file));
        }
        set_environment(&mut command, &action, &step["env"], inputs);
        let (code, stdout, stderr) = finished(command.envs(variables.iter().copied()).output().unwrap());
        let outputs = fs::read_to_string(self.path().join("GITHUB_OUTPUT")).unwrap();
        Step { succeeded: code == 0, log: format!("{stdout}{stderr}"), outputs }
    }

    fn check(&self, inputs: &[(&str, &str)]) -> Step {
        self.run("Check the policies", inputs, &[])
    }

    fn test(&self, inputs: &[(&str, &str)]) -> Step {
        self.run("Test the policies", inputs, &[])
    }
}

/// Sets the variables of a step. Expressions are inputs, or members of the `github` context, which `variables` of a test supply.
fn set_environment(command: &mut Command, action: &Value, variables: &Value, inputs: &[(&str, &str)]) {
    for (name, expression) in variables.as_mapping().unwrap() {
        let expression = expression.as_str().unwrap().trim_start_matches("${{ ").trim_end_matches(" }}");
        let value = match expression.split_once('.').unwrap() {
            ("inputs", input) => {
                let default = action["inputs"][input]["default"].as_str().unwrap();
                inputs.iter().find(|(name, _)| *name == input).map_or(default, |(_, value)| value)
            }
            _ => "",
        };
        command.env(name.as_str().unwrap(), value);
    }
}

#[test]
fn check_succeeds_for_good_rules_and_annotates_bad_ones() {
    let runner = Runner::new();
    assert!(runner.check(&[("rules", "rules")]).succeeded);
    let bad = runner.check(&[("rules", "rules\nbad rules\n")]);
    assert!(!bad.succeeded);
    assert!(bad.log.contains("::error file=bad rules/rules.yaml,line=2,"), "{}", bad.log);
}

#[test]
fn check_passes_tools_and_arguments() {
    let runner = Runner::new();
    let inputs = [("rules", "rules"), ("tools", "tools.json")];
    let warned = runner.check(&inputs);
    assert!(warned.succeeded && warned.log.contains("::warning file=rules/rules.yaml"), "{}", warned.log);
    assert!(!runner.check(&[&inputs[..], &[("args", "--deny-warnings\n")]].concat()).succeeded);
}

#[test]
fn check_writes_reports_for_programs_to_a_file() {
    let runner = Runner::new();
    let bad = runner.check(&[("rules", "bad rules"), ("format", "sarif")]);
    assert!(!bad.succeeded);
    let report = bad.outputs.trim_end().strip_prefix("report=").unwrap();
    let report: serde_json::Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
    assert_eq!(report["runs"][0]["results"][0]["ruleId"], "CG201");
}

#[test]
fn inputs_are_never_run_as_commands_or_read_as_options() {
    let runner = Runner::new();
    for injected in
        ["$(touch run)", "`touch run`", "rules; touch run", "\" ; touch run ; \"", "--fix", "--coverage"]
    {
        let with_rules = format!("rules\n{injected}");
        for (input, value) in
            [("rules", with_rules.as_str()), ("tools", injected), ("args", injected), ("format", injected)]
        {
            let mut inputs = vec![(input, value)];
            inputs.extend((input != "rules").then_some(("rules", "rules")));
            let step = runner.check(&inputs);
            let is_option = input == "args" && injected == "--fix";
            assert_eq!(step.succeeded, is_option, "{input}: {injected}: {}", step.log);
        }
        assert!(!runner.test(&[("rules", &with_rules)]).succeeded);
    }
    assert!(!runner.path().join("work/run").exists());
}

#[test]
fn tests_of_the_policies_pass_or_annotate_failures() {
    let runner = Runner::new();
    let passed = runner.test(&[("rules", "rules")]);
    assert!(passed.succeeded, "{}", passed.log);
    let failed = runner.test(&[("rules", "failing")]);
    assert!(
        !failed.succeeded && failed.log.contains("::error file=failing/rules.test.yaml"),
        "{}",
        failed.log
    );
}

/// A server with one release, and the variables of a runner that installs from it.
fn publish(runner: &Runner) -> (std::path::PathBuf, Vec<(&'static str, String)>) {
    let archive = release_archives::package_into(&runner.path().join("build"));
    let version = env!("CARGO_PKG_VERSION");
    let release = runner.path().join(format!("server/OWNER/callgate/releases/download/v{version}"));
    fs::create_dir_all(&release).unwrap();
    // The action installs static binaries.
    let name = format!("callgate-{version}-x86_64-unknown-linux-musl.tar.gz");
    let sums = fs::read_to_string(archive.with_file_name("SHA256SUMS")).unwrap();
    fs::write(release.join("SHA256SUMS"), sums.replace("linux-gnu", "linux-musl")).unwrap();
    fs::copy(archive, release.join(&name)).unwrap();
    let variables = vec![
        ("GITHUB_SERVER_URL", format!("file://{}", runner.path().join("server").display())),
        ("ACTION_REPOSITORY", "OWNER/callgate".to_owned()),
        ("RUNNER_OS", "Linux".to_owned()),
        ("RUNNER_ARCH", "X64".to_owned()),
    ];
    (release.join(name), variables)
}

#[test]
fn install_verifies_the_checksum_and_puts_the_release_into_the_path() {
    let runner = Runner::new();
    let (archive, variables) = publish(&runner);
    let install = |version: &str, changed: &[(&str, &str)]| {
        let variables = variables.iter().map(|(name, value)| (*name, value.as_str()));
        let variables: Vec<_> = variables.chain(changed.iter().copied()).collect();
        runner.run("Install Callgate", &[("version", version)], &variables)
    };
    let version = env!("CARGO_PKG_VERSION");
    let tag = format!("v{version}");
    for (input, reference) in [(version, "main"), (tag.as_str(), "main"), ("", tag.as_str())] {
        let installed = install(input, &[("ACTION_REF", reference)]);
        assert!(installed.succeeded, "{}", installed.log);
        assert_eq!(installed.outputs, format!("version={version}\n"));
        let path = fs::read_to_string(runner.path().join("GITHUB_PATH")).unwrap();
        assert!(Path::new(path.trim_end()).join("callgate").exists(), "{path}");
    }
    for (input, changed, message) in [
        ("9.9.9", ("A", ""), "/v9.9.9/callgate-9.9.9-x86_64-unknown-linux-musl.tar.gz can't be downloaded"),
        ("latest", ("A", ""), "`latest` is not a version"),
        ("../../1.0.0", ("A", ""), "`../../1.0.0` is not a version"),
        (version, ("RUNNER_OS", "Windows"), "Callgate has no release for Windows X64"),
    ] {
        let failed = install(input, &[changed]);
        assert!(!failed.succeeded && failed.log.contains(message), "{input}: {}", failed.log);
    }
    let mut bytes = fs::read(&archive).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&archive, bytes).unwrap();
    let damaged = install(version, &[]);
    assert!(
        !damaged.succeeded && damaged.log.contains("::error title=Callgate::the checksum of"),
        "{}",
        damaged.log
    );
}

#[test]
fn install_builds_the_source_for_refs_that_are_no_release() {
    let runner = Runner::new();
    let cargo =
        "echo \"cargo $*\"; mkdir -p \"${@: -1}/bin\"; cp \"$(command -v callgate)\" \"${@: -1}/bin\"";
    write_program(&runner.path().join("programs/cargo"), cargo);
    for (input, reference) in [("", "main"), ("", ""), ("source", "v0.1.0")] {
        let variables = [("ACTION_REF", reference), ("ACTION_PATH", "/action")];
        let built = runner.run("Install Callgate", &[("version", input)], &variables);
        assert!(built.succeeded, "{}", built.log);
        assert!(built.log.starts_with("cargo install --locked --path /action/crates/callgate-cli --root "));
    }
}
