//! Builtins that change the state of the shell: directories, variables, functions.

use super::Analysis;
use super::command_builder::{Invocation, has_flag};
use super::state::{Flow, State};
use crate::command::DoubtKind;
use crate::directories::Directories;
use crate::word::ShellWord;

impl Analysis<'_> {
    /// Applies what a builtin changes. Programs change nothing.
    pub(super) fn run_builtin(&mut self, invocation: &Invocation<'_>, state: &State) -> Flow {
        let mut changed = state.clone();
        let operands = &invocation.parsed.operands;
        match invocation.name {
            "cd" | "pushd" | "popd" => {
                let first = operands.first();
                let is_known = invocation.name != "popd" && operands.len() <= 1 && !state.is_set("CDPATH");
                changed.directories = match first.map(|word| (word, word.as_known())) {
                    None if invocation.name == "cd" && !state.is_set("HOME") => state.directories.change("~"),
                    Some((_, Some(path))) if is_known && path != "-" && !path.starts_with('+') => {
                        state.directories.change(path)
                    }
                    _ => Directories::Unknown,
                };
                // Where it fails, the directory stays.
                return Flow { succeeded: changed, failed: state.clone() };
            }
            "export" | "declare" | "typeset" | "local" | "readonly" | "unset" | "read" | "mapfile"
            | "readarray" | "printf" | "getopts" | "let" | "wait" | "set" | "shift" => {
                self.set_variables(invocation, &mut changed);
            }
            "source" | "." => {
                // Who trusts this code trusts it to change neither directories nor variables.
                self.doubt(DoubtKind::Files, "it runs shell code of a file");
            }
            "alias" => {
                for word in operands.iter().filter(|word| word.text.contains('=')) {
                    let value = word.text.split_once('=').map_or("", |(_, value)| value);
                    self.run_word(&ShellWord { text: value.to_owned(), ..word.clone() }, state);
                    self.doubt(DoubtKind::Dynamic, "it gives a command another name");
                }
            }
            "trap" => {
                if let Some(text) = operands.first().filter(|text| !matches!(text.text.as_str(), "" | "-")) {
                    // It runs later, wherever the shell is then.
                    let mut later = state.clone();
                    later.directories = Directories::Unknown;
                    later.is_any_set = true;
                    self.run_word(text, &later);
                }
            }
            "hash" if has_flag(&invocation.parsed, "-p") => {
                self.doubt(DoubtKind::Dynamic, "it gives a command another name");
            }
            "enable" | "bind" | "complete" | "compgen" | "coproc" | "fc" | "noglob" | "autoload"
            | "zmodload" => {
                self.doubt(DoubtKind::Dynamic, "a builtin changes which commands run");
            }
            "test" | "[" => {
                self.has_evaluation |= invocation.arguments.iter().any(|word| word.text == "-v");
            }
            _ => {}
        }
        Flow::same(changed)
    }

    fn set_variables(&mut self, invocation: &Invocation<'_>, state: &mut State) {
        let sets_values = matches!(invocation.name, "export" | "declare" | "typeset" | "local" | "readonly");
        self.has_evaluation |= invocation.name != "export" && invocation.name != "set";
        if has_flag(&invocation.parsed, "-n") && sets_values && invocation.name != "export"
            || has_flag(&invocation.parsed, "-C")
        {
            self.doubt(DoubtKind::Dynamic, "a variable is another name of one, or its value is run");
        }
        if invocation.name == "set" {
            return;
        }
        if invocation.name == "printf" && !has_flag(&invocation.parsed, "-v") {
            return;
        }
        for word in invocation.arguments {
            let snapshot = state.clone();
            if sets_values && let Some(name) = self.follow_argument_assignment(word, &snapshot) {
                let value =
                    word.as_known().and_then(|text| text.split_once('=')).map(|(_, value)| value.to_owned());
                let is_plain = !word.text.contains("+=") && invocation.parsed.flags.is_empty();
                state.set(&name, value.filter(|_| is_plain));
            } else if word.as_known().is_some() {
                state.set(&word.text, None);
            } else {
                state.is_any_set = true;
            }
        }
    }
}
