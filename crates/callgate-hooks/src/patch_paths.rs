//! The files that a patch in the form of `apply_patch` changes.

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
}
