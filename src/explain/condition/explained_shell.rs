//! The commands of a shell text: [`ExaminedShell`] → [`ExplainedShell`], with the result of the tests for each.

use serde::Serialize;

use super::TruthValue;
use crate::call::Root;
use crate::explain::explanation_redaction::{ExplanationRedactor, truncate_value};
use crate::json::Value;
use crate::matcher::{ExaminedShell, ShellQuantifier};
use crate::safe_text;

/// The maximum number of commands that are stored.
const MAX_COMMANDS: usize = 32;

/// The commands that a shell text runs.
#[derive(Clone, Debug, Serialize)]
pub struct ExplainedShell {
    /// The path or expression of the text, as written.
    pub path: String,
    /// How many commands must pass: `any`, `all`, `every` or `none`.
    pub quantifier: &'static str,
    /// The first commands, and the decisive one.
    pub commands: Vec<ExplainedCommand>,
    /// The number of all commands.
    pub count: usize,
    /// Why further commands can run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<&'static str>,
    #[serde(skip)]
    pub(in crate::explain) roots: Vec<Root>,
}

/// A command.
#[derive(Clone, Debug, Serialize)]
pub struct ExplainedCommand {
    /// Its number, from 1.
    pub number: usize,
    /// The command in one line, redacted, and truncated if long. Words that are known only when it runs stand as written.
    pub text: Value,
    /// Whether it passes one of the tests.
    pub truth: TruthValue,
}

/// Explains a condition on shell commands.
pub(super) fn explain_shell(
    redactor: &ExplanationRedactor<'_>,
    examined: &ExaminedShell<'_>,
) -> ExplainedShell {
    let roots = examined.source.roots();
    let decides = match examined.quantifier {
        ShellQuantifier::Every => TruthValue::No,
        ShellQuantifier::Any | ShellQuantifier::All | ShellQuantifier::None => TruthValue::Yes,
    };
    let truths = || examined.commands.iter().map(|command| TruthValue::from(&command.truth));
    let deciding = truths().position(|truth| truth == decides);
    let commands = (1..).zip(&examined.commands).filter(|(number, _)| {
        *number <= MAX_COMMANDS || deciding.is_some_and(|deciding| deciding + 1 == *number)
    });
    let commands = commands.map(|(number, command)| ExplainedCommand {
        number,
        text: truncate_value(redactor.part(&roots, &command.text)),
        truth: TruthValue::from(&command.truth),
    });
    ExplainedShell {
        path: examined.source.text().to_owned(),
        quantifier: examined.quantifier.key(),
        commands: commands.collect(),
        count: examined.commands.len(),
        doubts: examined.doubts.clone(),
        roots,
    }
}

impl ExplainedShell {
    /// The commands that decided the condition, in words.
    pub(in crate::explain) fn describe(&self, truth: TruthValue) -> String {
        let wanted = match (self.quantifier, truth) {
            ("every", TruthValue::No) => TruthValue::No,
            ("any" | "all", TruthValue::Yes) | ("none", TruthValue::No) => TruthValue::Yes,
            ("every", _) => return format!("every command of `{}` passes a test{}", self.path, self.list()),
            _ if self.count == 0 => return format!("`{}` has no commands", self.path),
            ("all", _) => {
                return format!("no command of `{}` passes one of the tests{}", self.path, self.list());
            }
            _ => return format!("no command of `{}` passes a test{}", self.path, self.list()),
        };
        let verb = if wanted == TruthValue::Yes { "passes a test" } else { "passes no test" };
        match self.commands.iter().find(|command| command.truth == wanted) {
            Some(command) => {
                let text = safe_text::truncate(&command.text.to_string());
                format!("command {} of `{}` {verb}: {text}", command.number, self.path)
            }
            None => format!("`{}` has no commands", self.path),
        }
    }

    /// The commands in parentheses.
    fn list(&self) -> String {
        let texts: Vec<String> = self
            .commands
            .iter()
            .take(3)
            .map(|command| safe_text::truncate(&command.text.to_string()))
            .collect();
        let more = self.count.saturating_sub(texts.len());
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        if texts.is_empty() { String::new() } else { format!(": {}{more}", texts.join(", ")) }
    }
}
