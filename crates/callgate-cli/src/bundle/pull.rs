//! `callgate bundle pull`: a published bundle → its files in a directory, for commands that read files.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::exit::{CommandError, ExitStatus};
use crate::output::{Output, count_noun, print_error};
use crate::reload_output::print_reason;
use callgate::file_access::read_regular_file;
use callgate::json;
use callgate::reload;
use callgate_bundle::SignedBundle;
use callgate_policy_tests::PolicyTests;

/// The file that says which bundle a directory has. Rules files are never hidden, so it is none.
const PULLED: &str = ".callgate-bundle.json";
/// The longest such file, in bytes.
const MAX_PULLED_BYTES: u64 = 4096;

/// Which bundle a directory has.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PulledBundle {
    name: String,
    version: u64,
    digest: String,
}

impl PulledBundle {
    /// What a directory has. `None` if there is no directory, or an empty one.
    fn of(directory: &Path) -> Result<Option<Self>, CommandError> {
        match fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(directory, &error)),
            Ok(mut entries) => {
                if entries.next().is_none() {
                    return Ok(None);
                }
            }
        }
        let path = directory.join(PULLED);
        match read_regular_file(&path, MAX_PULLED_BYTES) {
            Ok(text) => json::from_str(&text).map(Some).map_err(|error| failed(&path, &error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(CommandError::new(format!(
                "`{}` has files that no bundle put there, and `pull` replaces all: name a directory that is empty or does not exist",
                directory.display()
            ))),
            Err(error) => Err(failed(&path, &error)),
        }
    }

    /// Why this bundle must not take the place of the one that is there.
    fn refusal(&self, there: &Self) -> Option<String> {
        let Self { name, version, digest } = self;
        if *name != there.name {
            return Some(format!("the directory has the bundle `{}`, and not `{name}`", there.name));
        }
        if *version < there.version {
            return Some(format!(
                "version {version} is older than version {} in the directory; to go back, publish the old rules with a new version",
                there.version
            ));
        }
        (*version == there.version && *digest != there.digest)
            .then(|| format!("version {version} was published before with other content"))
    }
}

/// Writes the files of a bundle in place of those of an older version. The directory always has all files of one version.
pub(super) fn pull(
    signed: &SignedBundle,
    out: &Path,
    output: &mut Output,
) -> Result<ExitStatus, CommandError> {
    let bundle = &signed.bundle;
    let pulled = PulledBundle {
        name: bundle.name().to_owned(),
        version: bundle.version(),
        digest: signed.digest.clone(),
    };
    if let Some(refusal) = PulledBundle::of(out)?.and_then(|there| pulled.refusal(&there)) {
        print_error(format!("the bundle is refused: {refusal}"));
        return Ok(ExitStatus::Failure);
    }
    let parent = match out.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // Beside it, so that it can be renamed. What is in its place afterwards is removed.
    let beside =
        TempDir::with_prefix_in(".callgate-pull-", parent).map_err(|error| failed(parent, &error))?;
    let new = beside.path().join("files");
    fs::create_dir(&new).map_err(|error| failed(&new, &error))?;
    bundle.write_to(&new).map_err(|error| CommandError::new(error.to_string()))?;
    let prefix = format!("{}/", new.display());
    if let Err(reason) = reload::load(std::slice::from_ref(&new), &PolicyTests) {
        print_reason(&reason, &|text| text.replace(&prefix, ""));
        print_error(format!(
            "`{}` is not changed, because the rules of the bundle can't be used",
            out.display()
        ));
        return Ok(ExitStatus::Failure);
    }
    let text = json::to_string_pretty(&pulled).map_err(|error| CommandError::new(error.to_string()))?;
    fs::write(new.join(PULLED), text).map_err(|error| failed(&new, &error))?;
    replace(&new, out, &beside.path().join("before")).map_err(|error| failed(out, &error))?;
    writeln!(
        output,
        "`{}`: version {} of the bundle `{}`, {}, sha256:{}",
        out.display(),
        pulled.version,
        pulled.name,
        count_noun(bundle.files().len(), "file", "files"),
        pulled.digest
    )?;
    Ok(ExitStatus::Success)
}

/// Puts a directory in the place of another one, or of none. Where the system can exchange both at once, readers never find none.
fn replace(new: &Path, out: &Path, before: &PathBuf) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        if renameat_with(CWD, new, CWD, out, RenameFlags::EXCHANGE).is_ok() {
            return Ok(());
        }
    }
    match fs::rename(out, before) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    fs::rename(new, out).inspect_err(|_| {
        // What was there is better than nothing.
        let _ = fs::rename(before, out);
    })
}

fn failed(path: &Path, error: &dyn std::fmt::Display) -> CommandError {
    CommandError::new(format!("`{}`: {error}", path.display()))
}
