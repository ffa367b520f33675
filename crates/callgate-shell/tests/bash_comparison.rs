//! Compares the analysis with bash: whatever bash executes of a generated text is among the commands that are reported, or the text has
//! doubts.
//!
//! Bash runs in an empty directory. Its path has only programs that record their arguments, and a few wrappers.

#![cfg(test)]

#[path = "bash_comparison/generator.rs"]
mod generator;
#[path = "bash_comparison/sandbox.rs"]
mod sandbox;

use callgate_shell::{Analyzer, Certainty, ShellCommand, ShellScript, ShellWord};
use generator::Generator;
use sandbox::{Execution, Sandbox};

/// Whether the words of an execution can be those that are reported.
fn can_be(reported: &[ShellWord], executed: &[String]) -> bool {
    let Some((first, rest)) = reported.split_first() else { return executed.is_empty() };
    if first.is_several {
        return (0..=executed.len()).any(|count| can_be(rest, &executed[count..]));
    }
    let Some((word, others)) = executed.split_first() else { return false };
    let fits = match first.certainty {
        Certainty::Known => first.text == *word || first.text.starts_with('~'),
        Certainty::Pattern | Certainty::Unknown => true,
    };
    fits && can_be(rest, others)
}

fn is_reported(script: &ShellScript, execution: &Execution) -> bool {
    let fits = |command: &ShellCommand| {
        let is_program = command.program_names().any(|name| name == execution.program);
        let is_there = command.directories == callgate_shell::Directories::Unknown
            || command.directories.paths(".").is_some_and(|paths| {
                paths
                    .iter()
                    .any(|path| std::fs::canonicalize(path).is_ok_and(|path| path == execution.directory))
            });
        is_program && is_there && can_be(&command.arguments, &execution.arguments)
    };
    script.commands.iter().any(fits)
}

/// The first execution that is not reported, with what is.
fn find_unreported(sandbox: &Sandbox, text: &str) -> Option<String> {
    let script = Analyzer::default().analyze(text, Some(sandbox.directory()));
    if !script.doubts.is_empty() {
        return None;
    }
    let unreported = sandbox.run(text).into_iter().find(|execution| !is_reported(&script, execution))?;
    let commands: Vec<String> = script
        .commands
        .iter()
        .map(|command| {
            format!(
                "{:?} {:?} in {:?}",
                command.program,
                command
                    .arguments
                    .iter()
                    .map(|word| (&word.text, word.certainty, word.is_several))
                    .collect::<Vec<_>>(),
                command.directories
            )
        })
        .collect();
    Some(format!("bash executed {unreported:?}\nof:\n{text}\nreported:\n{}", commands.join("\n")))
}

#[test]
fn what_bash_executes_is_reported() {
    let sandbox = Sandbox::new();
    let count: usize = std::env::var("SHELL_TEXTS").ok().and_then(|count| count.parse().ok()).unwrap_or(400);
    let seed: u64 = std::env::var("SHELL_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut generator = Generator::new(seed);
    let (mut decided, mut executed) = (0, 0);
    let mut failures = Vec::new();
    for _ in 0..count {
        let text = generator.text();
        if Analyzer::default().analyze(&text, Some(sandbox.directory())).doubts.is_empty() {
            decided += 1;
            executed += usize::from(!sandbox.run(&text).is_empty());
        }
        failures.extend(find_unreported(&sandbox, &text));
    }
    assert!(
        failures.is_empty(),
        "{} failures\n{}",
        failures.len(),
        failures.iter().take(6).cloned().collect::<Vec<_>>().join("\n\n")
    );
    // A comparison of texts that are all doubted, or run nothing, would prove nothing.
    assert!(
        decided * 8 > count && executed * 9 > count,
        "{decided} without doubts, {executed} executed of {count}"
    );
}
