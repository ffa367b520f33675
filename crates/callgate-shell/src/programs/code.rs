//! Code of other languages in arguments: which programs of `sed` and `awk` only read and print, and commands of other shells.

/// Whether code of this program is certain to run no program and to write no file.
pub(crate) fn inline_code_is_harmless(program: &str, code: &str) -> bool {
    match program {
        "sed" => code.split([';', '\n']).all(|command| is_plain_sed(command.trim())),
        // Only calls of `system`, pipes, redirections and extensions reach beyond the program.
        "awk" => !["system", "|", "getline", ">", "@", "close("].iter().any(|part| code.contains(part)),
        _ => false,
    }
}

/// Whether a command of `sed` only edits and prints: it may have an address before it, and no `e`, `w`, `r` and further commands.
fn is_plain_sed(command: &str) -> bool {
    let Some(rest) = behind_address(command) else { return false };
    let mut chars = rest.trim_start_matches(['!', ' ']).chars();
    match chars.next() {
        None => true,
        Some('p' | 'd' | 'q' | '=' | 'g' | 'G' | 'h' | 'H' | 'x' | 'n' | 'N' | 'D' | 'P') => {
            chars.all(|c| c.is_ascii_digit() || c == ' ')
        }
        Some('s') => {
            let Some(delimiter) = chars.next() else { return false };
            let mut parts = 0;
            let mut is_escaped = false;
            for c in chars.by_ref() {
                match c {
                    _ if is_escaped => is_escaped = false,
                    '\\' => is_escaped = true,
                    c if c == delimiter => parts += 1,
                    _ => {}
                }
                if parts == 2 {
                    break;
                }
            }
            parts == 2 && chars.all(|c| matches!(c, 'g' | 'p' | 'i' | 'I' | '0'..='9' | ' '))
        }
        Some(_) => false,
    }
}

/// The command behind its addresses: numbers, `$` and patterns between slashes. `None` if an address is not understood.
fn behind_address(command: &str) -> Option<&str> {
    let mut rest = command;
    loop {
        rest =
            rest.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '$' | ',' | ' ' | '~' | '+'));
        let Some(pattern) = rest.strip_prefix('/') else { return Some(rest) };
        let mut is_escaped = false;
        let end = pattern.char_indices().find(|(_, c)| {
            let is_end = *c == '/' && !is_escaped;
            is_escaped = *c == '\\' && !is_escaped;
            is_end
        });
        rest = pattern.get(end?.0 + 1..)?;
    }
}

/// Programs of Windows, whose rules of quoting and whose effects are not known here.
const WINDOWS_PROGRAMS: [&str; 27] = [
    "bcdedit",
    "bitsadmin",
    "certutil",
    "cipher",
    "cmdkey",
    "cscript",
    "diskpart",
    "icacls",
    "mshta",
    "msiexec",
    "net",
    "net1",
    "netsh",
    "ntdsutil",
    "reagentc",
    "reg",
    "regedit",
    "regsvr32",
    "rundll32",
    "sc",
    "schtasks",
    "setx",
    "takeown",
    "vssadmin",
    "wevtutil",
    "wmic",
    "wscript",
];

/// Why a command may be one of PowerShell or `cmd.exe`, of which other rules hold. `None` if it looks like one of a POSIX shell.
pub(crate) fn powershell_reason(program: &str, arguments: &[crate::word::ShellWord]) -> Option<&'static str> {
    let mut halves = program.split('-');
    let is_capital =
        |half: Option<&str>| half.is_some_and(|half| half.starts_with(|c: char| c.is_ascii_uppercase()));
    if is_capital(halves.next()) && is_capital(halves.next()) && halves.next().is_none() {
        return Some("it may be a command of PowerShell");
    }
    let name = program.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let name = name.strip_suffix(".exe").unwrap_or(&name);
    if WINDOWS_PROGRAMS.contains(&name) {
        return Some("it may be a command of `cmd.exe`");
    }
    if matches!(name, "powershell" | "pwsh") && arguments.iter().any(|word| is_encoded_command(&word.text)) {
        return Some("it has commands of another shell");
    }
    let has_slash_flag = arguments.iter().any(|word| {
        let mut chars = word.text.chars();
        chars.next() == Some('/')
            && chars.next().is_some_and(|c| c.is_ascii_alphabetic())
            && chars.next().is_none()
    });
    let is_builtin = ["del", "erase", "rd", "rmdir", "copy", "xcopy", "robocopy", "move", "format"];
    (is_builtin.contains(&program.to_ascii_lowercase().as_str()) && has_slash_flag)
        .then_some("it may be a command of `cmd.exe`")
}

/// Whether a word is the flag of PowerShell for code in Base64, of which any beginning is accepted.
fn is_encoded_command(word: &str) -> bool {
    let name = word.to_ascii_lowercase();
    let name = name.strip_prefix(['-', '/']).unwrap_or_default();
    !name.is_empty() && ("encodedcommand".starts_with(name) || name == "ec")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_editing_and_printing_is_harmless() {
        for code in ["s/a/b/g", "1,5p", "$d", "/x/d", "/a\\/b/,/c/p", "s|a;b|c|", "s/a/b/; s/c/d/gI", "1!G"] {
            assert_eq!(inline_code_is_harmless("sed", code), !code.contains("a;b"), "{code}");
        }
        for code in
            ["1e id", "s/a/id/e", "w /etc/passwd", "s/a/b/w x", "r x", "{p;e\n}", "s/a", "/x", "\\%x%e id"]
        {
            assert!(!inline_code_is_harmless("sed", code), "{code}");
        }
        assert!(inline_code_is_harmless("awk", "{ print $1 }"));
        for code in ["BEGIN { system(\"id\") }", "{ print | \"sh\" }", "{ print > \"x\" }", "@load \"x\""] {
            assert!(!inline_code_is_harmless("awk", code), "{code}");
        }
    }
}
