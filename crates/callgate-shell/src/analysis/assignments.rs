//! Variables that change what programs do.

use super::Analysis;
use super::state::State;
use crate::command::DoubtKind;
use crate::syntax::Assignment;
use crate::word::ShellWord;

/// Variables that name code which other programs run.
const CODE_VARIABLES: [&str; 36] = [
    "PATH",
    "CDPATH",
    "BASH_ENV",
    "ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "PS0",
    "PS4",
    "GLOBIGNORE",
    "EXECIGNORE",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "SHELL",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "PERL5OPT",
    "PERL5LIB",
    "RUBYOPT",
    "RUBYLIB",
    "NODE_OPTIONS",
    "NODE_PATH",
    "JAVA_TOOL_OPTIONS",
    "CLASSPATH",
    "MAKEFLAGS",
    "RUSTC_WRAPPER",
    "RUSTC",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "GIT_DIR",
    "ZDOTDIR",
    "NPM_CONFIG_SCRIPT_SHELL",
    "FPATH",
];

/// Variables whose value is a command.
const COMMAND_VARIABLES: [&str; 18] = [
    "EDITOR",
    "VISUAL",
    "PAGER",
    "MANPAGER",
    "BROWSER",
    "PROMPT_COMMAND",
    "LESSOPEN",
    "LESSCLOSE",
    "GIT_PAGER",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_EXTERNAL_DIFF",
    "GIT_ASKPASS",
    "GIT_PROXY_COMMAND",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
];

impl Analysis<'_> {
    /// Follows assignments. They change the state if there is no command behind them.
    pub(super) fn follow_assignments(
        &mut self,
        assignments: &[Assignment],
        state: &mut State,
        is_lasting: bool,
    ) {
        for assignment in assignments {
            let values: Vec<ShellWord> =
                assignment.values.iter().map(|value| self.expand_word(value, state)).collect();
            if assignment.is_partial {
                self.has_evaluation = true;
            }
            let value = match values.as_slice() {
                [value] if !assignment.is_partial => Some(value.clone()),
                _ => None,
            };
            self.check_variable(&assignment.name, value.as_ref(), state);
            if is_lasting {
                let known = value.as_ref().and_then(ShellWord::as_known).map(str::to_owned);
                state.set(&assignment.name, known);
            }
        }
    }

    /// Checks what a variable is set to: it may make programs run other code.
    pub(super) fn check_variable(&mut self, name: &str, value: Option<&ShellWord>, state: &State) {
        if COMMAND_VARIABLES.contains(&name) {
            match value {
                Some(value) if value.as_known() == Some("") => {}
                Some(value) => self.run_word(value, state),
                None => self.doubt(DoubtKind::Dynamic, "a variable names a command that is not known"),
            }
        }
        let is_git_setting = name.starts_with("GIT_CONFIG") || name.starts_with("BASH_FUNC");
        if CODE_VARIABLES.contains(&name) || is_git_setting {
            self.doubt(DoubtKind::Dynamic, "it sets a variable that decides which code programs run");
        }
    }

    /// Follows a `NAME=value` that is an argument, of `env` or `export`.
    pub(super) fn follow_argument_assignment(&mut self, word: &ShellWord, state: &State) -> Option<String> {
        let (name, value) = word.text.split_once('=')?;
        let name = name.trim_end_matches('+');
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_name {
            return None;
        }
        self.check_variable(name, Some(&ShellWord { text: value.to_owned(), ..word.clone() }), state);
        Some(name.to_owned())
    }
}
