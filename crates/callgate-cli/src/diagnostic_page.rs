//! `callgate rule`: prints the documentation page of a diagnostic.

use std::io::Write;

use super::exit::{CommandError, ExitStatus};
use super::output::{BOLD, Output};
use callgate::diagnostic::{self, ALL, find_code};

/// Explain a diagnostic code, with a bad and a good example.
///
/// Without CODE, lists all codes.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  callgate rule CG201\n  callgate rule unknown-key")]
pub(super) struct RuleArgs {
    /// A code such as `CG201`, or its name such as `unknown-key`
    code: Option<String>,
}

pub(super) fn rule(arguments: &RuleArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let Some(word) = &arguments.code else {
        for code in ALL {
            let id = output.paint(BOLD, code.id).into_owned();
            writeln!(output, "{id}  {}", code.name)?;
        }
        return Ok(ExitStatus::Success);
    };
    let Some(code) = find_code(word) else {
        let known = ALL.iter().flat_map(|code| [code.id, code.name]);
        let help = match diagnostic::closest_match(word, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`callgate rule` lists all codes".to_owned(),
        };
        return Err(CommandError::new(format!("unknown diagnostic `{word}`; {help}")));
    };
    writeln!(output, "{}", code.page.trim_end())?;
    Ok(ExitStatus::Success)
}
