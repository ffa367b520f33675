//! The files that a patch in the form of `apply_patch` changes.

use std::path::PathBuf;

use crate::event_error::EventError;

const FILE_MARKERS: [&str; 4] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];

/// The paths that a patch names, in order, each once.
///
/// # Errors
/// It names none, or has a marker that is unknown.
pub(crate) fn read(patch: &str) -> Result<Vec<String>, EventError> {
    let mut paths: Vec<String> = Vec::new();
    // Leading spaces and other spellings of line breaks are accepted, because the agent may accept them.
    for line in patch.split(['\n', '\r']).map(str::trim) {
        let Some(marker) = line.strip_prefix("***") else { continue };
        if let Some(path) = FILE_MARKERS.iter().find_map(|marker| line.strip_prefix(marker)) {
            let path = path.trim();
            if path.is_empty() {
                return Err(EventError::Patch("a file has no name"));
            }
            if !paths.iter().any(|known| known == path) {
                paths.push(path.to_owned());
            }
        } else if !matches!(marker.trim(), "Begin Patch" | "End Patch" | "End of File")
            && !marker.trim().starts_with("Environment ID:")
        {
            return Err(EventError::Patch("it has an unknown marker"));
        }
    }
    if paths.is_empty() { Err(EventError::Patch("it names no file")) } else { Ok(paths) }
}

/// The paths that patches in a shell command change, relative to the directory in which the command starts. Empty if it applies none.
///
/// Agents apply such a patch themselves, as the tool for patches does.
///
/// # Errors
/// The command applies a patch whose files are not certain.
pub(crate) fn read_command(command: &str) -> Result<Vec<String>, EventError> {
    let applies = ["apply_patch", "applypatch"].iter().any(|program| command.contains(program));
    let markers = FILE_MARKERS.iter().map(|marker| command.matches(marker).count()).sum::<usize>();
    if !applies || markers == 0 {
        return Ok(Vec::new());
    }
    let is_marker = |line: &str| line.trim_start().starts_with("***");
    let lines: Vec<&str> = command.split(['\n', '\r']).filter(|line| is_marker(line)).collect();
    let paths = read(&lines.join("\n"))?;
    let at_line_start = lines.iter().filter(|line| FILE_MARKERS.iter().any(|marker| line.contains(marker)));
    if at_line_start.count() != markers {
        return Err(EventError::Patch("its lines are not separated by line breaks"));
    }
    let Some(directory) = start_directory(command)? else { return Ok(paths) };
    Ok(paths.into_iter().map(|path| directory.join(path).to_string_lossy().into_owned()).collect())
}

/// The directory to which a command changes before it applies a patch: `cd DIRECTORY && apply_patch`. `None` if it changes to none.
fn start_directory(command: &str) -> Result<Option<PathBuf>, EventError> {
    let unknown = || EventError::Patch("the directory to which it is applied is not certain");
    let before = command.find("apply").map_or("", |at| command.split_at(at).0).trim();
    if before.is_empty() {
        return Ok(None);
    }
    let directory =
        before.strip_prefix("cd ").and_then(|rest| rest.strip_suffix("&&")).ok_or_else(unknown)?;
    let directory = directory.trim();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@".contains(c);
    let is_certain = !directory.is_empty() && !directory.starts_with('-') && directory.chars().all(is_plain);
    if is_certain { Ok(Some(PathBuf::from(directory))) } else { Err(unknown()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_a_patch_is_found() {
        let patch = "*** Begin Patch\n*** Update File: a.rs\n*** Move to: b.rs\n@@\n-x\n+y\n*** Delete File: ../c\n*** End Patch";
        assert_eq!(read(patch).unwrap(), ["a.rs", "b.rs", "../c"]);
        assert_eq!(read("  *** Add File: d\r+x").unwrap(), ["d"]);
    }

    #[test]
    fn a_patch_that_is_not_understood_is_an_error() {
        for patch in ["", "rm -rf /", "*** Begin Patch\n*** Copy File: a\n", "*** Add File: \n"] {
            assert!(read(patch).is_err(), "{patch}");
        }
    }

    #[test]
    fn patches_in_commands_are_found() {
        let patch = "*** Begin Patch\n*** Add File: a.rs\n+x\n*** End Patch\nEOF";
        for (command, paths) in [
            (format!("apply_patch <<'EOF'\n{patch}"), vec!["a.rs"]),
            (format!("cd sub && apply_patch <<'EOF'\n{patch}"), vec!["sub/a.rs"]),
            (format!("cd /etc && applypatch <<'EOF'\n{patch}"), vec!["/etc/a.rs"]),
            ("grep -rn apply_patch src".to_owned(), vec![]),
            (format!("cat > p.txt <<'EOF'\n{patch}"), vec![]),
        ] {
            assert_eq!(
                read_command(&command),
                Ok(paths.into_iter().map(str::to_owned).collect()),
                "{command}"
            );
        }
    }

    #[test]
    fn patches_in_commands_whose_files_are_not_certain_are_errors() {
        let patch = "*** Begin Patch\n*** Add File: a.rs\n+x\n*** End Patch\nEOF";
        for command in [
            format!("cd $X && apply_patch <<'EOF'\n{patch}"),
            format!("cd a && cd b && apply_patch <<'EOF'\n{patch}"),
            format!("true; pushd x; apply_patch <<'EOF'\n{patch}"),
            format!("cd - && apply_patch <<'EOF'\n{patch}"),
            "apply_patch $'*** Begin Patch\\n*** Add File: a\\n+x\\n*** End Patch'".to_owned(),
            format!("apply_patch <<'EOF'\n*** Copy File: b\n{patch}"),
        ] {
            assert!(read_command(&command).is_err(), "{command}");
        }
    }
}
