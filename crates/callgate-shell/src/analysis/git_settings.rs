//! Settings of git that run programs: in `git -c NAME=VALUE`, and set by `git config`.

use super::Analysis;
use super::state::State;
use crate::command::DoubtKind;
use crate::programs::ParsedArguments;
use crate::word::ShellWord;

/// The ends of names of settings whose value is a command.
const COMMAND_SETTINGS: [&str; 14] = [
    "pager",
    "editor",
    "sshcommand",
    "askpass",
    "fsmonitor",
    "external",
    "helper",
    "cmd",
    "clean",
    "smudge",
    "process",
    "textconv",
    "driver",
    "program",
];

impl Analysis<'_> {
    pub(super) fn follow_git_settings(&mut self, parsed: &ParsedArguments, state: &State) {
        for flag in parsed.flags.iter().filter(|flag| flag.written == "-c" || flag.written == "--config") {
            let Some(setting) = &flag.value else { continue };
            let Some((name, value)) = setting.text.split_once('=') else { continue };
            let value = ShellWord { text: value.to_owned(), ..setting.clone() };
            self.follow_git_setting(name, &value, state);
        }
        let operands: Vec<&ShellWord> = parsed.operands.iter().collect();
        if let [subcommand, name, value, ..] = operands.as_slice()
            && subcommand.text == "config"
        {
            self.follow_git_setting(&name.text, value, state);
        }
    }

    fn follow_git_setting(&mut self, name: &str, value: &ShellWord, state: &State) {
        let name = name.to_ascii_lowercase();
        let last = name.rsplit('.').next().unwrap_or_default();
        let is_alias = name.starts_with("alias.");
        let is_flag = matches!(
            value.text.as_str(),
            "" | "true" | "false" | "store" | "cache" | "osxkeychain" | "manager"
        );
        if name == "core.hookspath" || name == "include.path" || name.starts_with("includeif.") {
            self.doubt(DoubtKind::Files, "git reads hooks or settings from other files");
        } else if is_alias && !value.text.starts_with('!') {
            let text = ShellWord { text: format!("git {}", value.text), ..value.clone() };
            self.run_word(&text, state);
        } else if (is_alias || COMMAND_SETTINGS.contains(&last)) && !is_flag {
            let text = ShellWord { text: value.text.trim_start_matches('!').to_owned(), ..value.clone() };
            self.run_word(&text, state);
        }
    }
}
