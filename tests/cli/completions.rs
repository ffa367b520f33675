//! `callgate completions`: real shells run the generated completions. Only bash must be installed; other missing shells are
//! skipped.

use std::process::Command;

use super::{CommandResult, TestDir};

/// Runs a script in a shell, next to its completions in a file of this name. Returns the output, or `None` if the shell is missing.
fn run_shell(shell: &str, file: &str, script: &str) -> Option<String> {
    let dir = TestDir::new(&[("rules.yaml", super::GOOD), (file, "")]);
    let printed = dir.run(&["completions", shell]);
    assert_eq!((printed.code, printed.stderr.as_str()), (Some(0), ""));
    std::fs::write(dir.0.path().join(file), printed.stdout).unwrap();
    let mut command = Command::new(shell);
    if shell == "bash" {
        command.args(["--noprofile", "--norc"]);
    }
    let output = command.args(["-c", script]).current_dir(dir.0.path()).output();
    match output {
        Ok(output) => {
            let ended = CommandResult::from(output);
            assert_eq!(ended.stderr, "", "{shell}");
            Some(ended.stdout)
        }
        Err(_) if shell != "bash" => None,
        Err(error) => panic!("bash could not be run: {error}"),
    }
}

/// Typed words, and the completions of the last one.
const TYPED: [(&[&str], &[&str]); 6] = [
    (&["callgate", "te"], &["test"]),
    (&["callgate", "c"], &["check", "completions"]),
    (&["callgate", "test", "--mu"], &["--mutate"]),
    (&["callgate", "test", "--format", ""], &["text", "json", "junit", "github", "lcov"]),
    (&["callgate", "schema", "t"], &["tests"]),
    (&["callgate", "completions", "z"], &["zsh"]),
];

#[test]
fn bash_completes_commands_options_values_and_paths() {
    let complete = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        // As bash does on a tab: it sets these variables and calls the registered function.
        let script = format!(
            "source ./callgate.bash
             COMP_WORDS=({}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
             function=$(complete -p callgate | sed 's/.*-F \\([^ ]*\\).*/\\1/')
             \"$function\" callgate \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            words.join(" ")
        );
        let printed = run_shell("bash", "callgate.bash", &script).unwrap();
        printed.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    for (typed, expected) in TYPED {
        assert_eq!(complete(typed), expected, "{typed:?}");
    }
    // Without completions, bash falls back to file names.
    assert_eq!(complete(&["callgate", "test", "ru"]), [""]);
    let registered =
        run_shell("bash", "callgate.bash", "source ./callgate.bash; complete -p callgate").unwrap();
    assert!(registered.contains("-o default"), "{registered}");
}

#[test]
fn fish_completes_commands_options_and_values() {
    for (typed, expected) in TYPED {
        let script = format!("source ./callgate.fish; complete -C '{}'", typed.join(" "));
        let Some(printed) = run_shell("fish", "callgate.fish", &script) else { return };
        let offered: Vec<&str> =
            printed.lines().map(|line| line.split('\t').next().unwrap_or_default()).collect();
        for word in expected {
            assert!(offered.contains(word), "{typed:?}: {offered:?}");
        }
    }
}

#[test]
fn zsh_can_read_its_completions() {
    run_shell("zsh", "_callgate", "zsh -n ./_callgate");
}

#[test]
fn completions_of_every_shell_contain_every_command() {
    let dir = TestDir::new(&[]);
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = dir.run(&["completions", shell]).stdout;
        for command in ["check", "test", "run", "approvals", "schema", "init", "rule", "completions"] {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
    assert_eq!(dir.run(&["completions", "tcsh"]).code, Some(2));
}
