//! `callgate completions`: the shells themselves complete by what it prints. Shells that are not installed are left out, but
//! bash.

use std::process::Command;

use super::{Desk, Ended};

/// What a shell prints that runs this script beside the completions of its kind, in a file of this name.
fn printed_by(shell: &str, file: &str, script: &str) -> Option<String> {
    let desk = Desk::new(&[("rules.yaml", super::GOOD), (file, "")]);
    let printed = desk.run(&["completions", shell]);
    assert_eq!((printed.code, printed.stderr.as_str()), (Some(0), ""));
    std::fs::write(desk.0.path().join(file), printed.stdout).unwrap();
    let mut command = Command::new(shell);
    if shell == "bash" {
        command.args(["--noprofile", "--norc"]);
    }
    let output = command.args(["-c", script]).current_dir(desk.0.path()).output();
    match output {
        Ok(output) => {
            let ended = Ended::from(output);
            assert_eq!(ended.stderr, "", "{shell}");
            Some(ended.stdout)
        }
        Err(_) if shell != "bash" => None,
        Err(error) => panic!("bash could not be run: {error}"),
    }
}

/// What is typed, and what is offered for its last word.
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
        // What bash does when the tab key is pressed: it fills these in and calls the function that was registered.
        let script = format!(
            "source ./callgate.bash
             COMP_WORDS=({}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
             function=$(complete -p callgate | sed 's/.*-F \\([^ ]*\\).*/\\1/')
             \"$function\" callgate \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            words.join(" ")
        );
        let printed = printed_by("bash", "callgate.bash", &script).unwrap();
        printed.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    for (typed, expected) in TYPED {
        assert_eq!(complete(typed), expected, "{typed:?}");
    }
    // Where nothing is offered, bash offers the files that there are.
    assert_eq!(complete(&["callgate", "test", "ru"]), [""]);
    let registered =
        printed_by("bash", "callgate.bash", "source ./callgate.bash; complete -p callgate").unwrap();
    assert!(registered.contains("-o default"), "{registered}");
}

#[test]
fn fish_completes_commands_options_and_values() {
    for (typed, expected) in TYPED {
        let script = format!("source ./callgate.fish; complete -C '{}'", typed.join(" "));
        let Some(printed) = printed_by("fish", "callgate.fish", &script) else { return };
        let offered: Vec<&str> =
            printed.lines().map(|line| line.split('\t').next().unwrap_or_default()).collect();
        for word in expected {
            assert!(offered.contains(word), "{typed:?}: {offered:?}");
        }
    }
}

#[test]
fn zsh_can_read_its_completions() {
    printed_by("zsh", "_callgate", "zsh -n ./_callgate");
}

#[test]
fn every_shell_is_told_of_every_command() {
    let desk = Desk::new(&[]);
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = desk.run(&["completions", shell]).stdout;
        for command in ["check", "test", "run", "approvals", "schema", "init", "rule", "completions"] {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
    assert_eq!(desk.run(&["completions", "tcsh"]).code, Some(2));
}
