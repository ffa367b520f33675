//! The directory of an instance: the last bundle whose rules took effect, and the newest version that was accepted. With it an instance starts without
//! the publisher, and refuses older versions also after a restart.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use callgate::file_access::{PermissionError, check_private_directory, read_regular_file};
use callgate::json;
use tempfile::TempDir;

use crate::acceptance::{NewestVersion, SignedBundle};
use crate::bundle::BundleError;
use crate::envelope::MAX_ENVELOPE_BYTES;

/// The envelope of the last bundle whose rules took effect.
const ACTIVE: &str = "active.bundle.json";
/// The newest accepted version, and the version of the active bundle.
const VERSIONS: &str = "versions.json";
/// Held while one of the files is replaced: processes may share the directory.
const LOCK: &str = "lock";
/// The name of the instance, locked by the process that has it.
const INSTANCE: &str = "instance";
/// Begins the names of directories with unpacked files.
const UNPACKED: &str = "unpacked-";
/// After this time, unpacked files are those of a process that was killed.
const UNPACKED_AGE: Duration = Duration::from_secs(60 * 60);
/// The largest file of versions, in bytes.
const MAX_VERSIONS_BYTES: u64 = 4096;

/// The directory of an instance.
#[derive(Clone, Debug)]
pub struct BundleDirectory(PathBuf);

#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Versions {
    newest: Option<NewestVersion>,
    active: Option<u64>,
}

/// The name of a process among the instances that share a state store.
#[derive(Debug)]
pub(crate) struct InstanceName {
    pub(crate) name: String,
    /// Nobody else has this name while the file is open.
    _lock: Option<File>,
}

/// Why the directory can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DirectoryError {
    /// Other users can write to it.
    #[error(transparent)]
    Permission(#[from] PermissionError),
    /// A file can't be read or written.
    #[error("`{}`: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The file with versions was damaged. Without it, older bundles could not be told from newer ones.
    #[error("`{}` is damaged: restore it, or remove the directory to accept the bundle that is published now, whatever its version", .0.display())]
    Damaged(PathBuf),
    /// The files of a bundle can't be unpacked.
    #[error(transparent)]
    Unpack(#[from] BundleError),
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> DirectoryError {
    let path = path.to_owned();
    move |error| DirectoryError::File { path, error }
}

impl BundleDirectory {
    /// Opens a directory, which is created if missing. Only its owner may write to it.
    ///
    /// # Errors
    /// It can't be created, other users can write to it, or its file with versions is damaged.
    pub fn open(path: &Path) -> Result<Self, DirectoryError> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path).map_err(failed(path))?;
        check_private_directory(&path.join(VERSIONS))?;
        let directory = Self(path.to_owned());
        directory.versions()?;
        directory.remove_abandoned();
        Ok(directory)
    }

    /// The newest accepted version.
    ///
    /// # Errors
    /// The file with versions can't be read.
    pub fn newest(&self) -> Result<Option<NewestVersion>, DirectoryError> {
        Ok(self.versions()?.newest)
    }

    /// Stores the newest accepted version, unless it is known or a newer one is.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn raise_newest(&self, newest: &NewestVersion) -> Result<(), DirectoryError> {
        let _lock = self.lock()?;
        let mut versions = self.versions()?;
        if versions.newest.as_ref().is_none_or(|known| known.version < newest.version) {
            versions.newest = Some(newest.clone());
            self.write_versions(&versions)?;
        }
        Ok(())
    }

    /// The envelope of the last bundle whose rules took effect. Its signature is verified by whoever uses it.
    ///
    /// # Errors
    /// It can't be read.
    pub fn active(&self) -> Result<Option<Vec<u8>>, DirectoryError> {
        let path = self.0.join(ACTIVE);
        match read_regular_file(&path, MAX_ENVELOPE_BYTES as u64) {
            Ok(text) => Ok(Some(text.into_bytes())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(&path)(error)),
        }
    }

    /// Stores a bundle whose rules took effect, unless a newer one is stored.
    ///
    /// # Errors
    /// The files can't be written.
    pub fn store_active(&self, bundle: &SignedBundle) -> Result<(), DirectoryError> {
        let _lock = self.lock()?;
        let mut versions = self.versions()?;
        let version = bundle.bundle.version();
        if versions.active.is_none_or(|active| active < version) {
            self.replace(ACTIVE, &bundle.envelope)?;
            versions.active = Some(version);
            self.write_versions(&versions)?;
        }
        Ok(())
    }

    /// The name of this process among the instances: the same after a restart. Another process that shares the directory has another name.
    pub(crate) fn instance(&self) -> Result<InstanceName, DirectoryError> {
        let path = self.0.join(INSTANCE);
        let options = fs::OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path);
        let mut file = options.map_err(failed(&path))?;
        let new_name = format!("{:08x}", fastrand::u32(..));
        if file.try_lock().is_err() {
            return Ok(InstanceName { name: new_name, _lock: None });
        }
        let mut name = String::new();
        (&file).take(MAX_VERSIONS_BYTES).read_to_string(&mut name).map_err(failed(&path))?;
        if name.len() != new_name.len() || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            name = new_name;
            file.set_len(0).and_then(|()| file.rewind()).map_err(failed(&path))?;
            file.write_all(name.as_bytes()).map_err(failed(&path))?;
        }
        Ok(InstanceName { name, _lock: Some(file) })
    }

    /// Unpacks a bundle into a new directory, which is removed when the returned value is dropped.
    ///
    /// # Errors
    /// The files can't be written.
    pub fn unpack(&self, bundle: &SignedBundle) -> Result<TempDir, DirectoryError> {
        let unpacked =
            tempfile::Builder::new().prefix(UNPACKED).tempdir_in(&self.0).map_err(failed(&self.0))?;
        bundle.bundle.write_to(unpacked.path())?;
        Ok(unpacked)
    }

    /// A text about unpacked files, with their names in the bundle instead of their paths.
    pub fn with_bundle_names(&self, text: &str) -> String {
        let prefix = format!("{}/{UNPACKED}", self.0.display());
        let mut parts = text.split(&prefix);
        let mut shown = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            shown.push_str(part.split_once('/').map_or(part, |(_, name)| name));
        }
        shown
    }

    fn versions(&self) -> Result<Versions, DirectoryError> {
        let path = self.0.join(VERSIONS);
        match read_regular_file(&path, MAX_VERSIONS_BYTES) {
            Ok(text) => json::from_str(&text).map_err(|_| DirectoryError::Damaged(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Versions::default()),
            Err(error) => Err(failed(&path)(error)),
        }
    }

    fn write_versions(&self, versions: &Versions) -> Result<(), DirectoryError> {
        // Strings and numbers only.
        let text = json::to_string(versions).unwrap_or_default();
        self.replace(VERSIONS, text.as_bytes())
    }

    /// Replaces a file as a whole, also if the machine stops in between.
    fn replace(&self, name: &str, content: &[u8]) -> Result<(), DirectoryError> {
        let path = self.0.join(name);
        let written = tempfile::NamedTempFile::new_in(&self.0).and_then(|mut draft| {
            draft.write_all(content)?;
            draft.as_file().sync_all()?;
            draft.persist(&path)?;
            File::open(&self.0)?.sync_all()
        });
        written.map_err(failed(&path))
    }

    fn lock(&self) -> Result<File, DirectoryError> {
        let path = self.0.join(LOCK);
        let options = fs::OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = options.map_err(failed(&path))?;
        file.lock().map_err(failed(&path))?;
        Ok(file)
    }

    /// Removes unpacked files of processes that were killed.
    fn remove_abandoned(&self) {
        let Ok(entries) = fs::read_dir(&self.0) else { return };
        let limit = SystemTime::now().checked_sub(UNPACKED_AGE);
        for entry in entries.flatten() {
            let is_unpacked = entry.file_name().to_string_lossy().starts_with(UNPACKED);
            let modified = entry.metadata().and_then(|metadata| metadata.modified()).ok();
            if is_unpacked && modified.is_some_and(|modified| Some(modified) < limit) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::bundle::Bundle;

    fn signed(version: u64) -> SignedBundle {
        let files = BTreeMap::from([("rules.yaml".to_owned(), "policies: []".to_owned())]);
        let bundle = Bundle::new("a", version, files).unwrap();
        SignedBundle { digest: bundle.digest(), bundle, envelope: format!("envelope {version}").into_bytes() }
    }

    #[test]
    fn the_newest_version_and_the_last_active_bundle_survive() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("bundles");
        let directory = BundleDirectory::open(&path).unwrap();
        assert_eq!((directory.newest().unwrap(), directory.active().unwrap()), (None, None));
        directory.raise_newest(&signed(3).as_newest()).unwrap();
        directory.store_active(&signed(2)).unwrap();
        // Another process that is slower changes nothing.
        directory.raise_newest(&signed(1).as_newest()).unwrap();
        directory.store_active(&signed(1)).unwrap();
        let opened = BundleDirectory::open(&path).unwrap();
        assert_eq!(opened.newest().unwrap(), Some(signed(3).as_newest()));
        assert_eq!(opened.active().unwrap().unwrap(), b"envelope 2");
    }

    #[test]
    fn damaged_versions_are_an_error_and_not_a_fresh_start() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("bundles");
        let directory = BundleDirectory::open(&path).unwrap();
        directory.raise_newest(&signed(3).as_newest()).unwrap();
        fs::write(path.join(VERSIONS), "{").unwrap();
        assert!(matches!(BundleDirectory::open(&path), Err(DirectoryError::Damaged(_))));
        assert!(matches!(directory.raise_newest(&signed(9).as_newest()), Err(DirectoryError::Damaged(_))));
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_that_others_can_write_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let parent = tempfile::tempdir().unwrap();
        fs::set_permissions(parent.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(BundleDirectory::open(parent.path()), Err(DirectoryError::Permission(_))));
    }

    #[test]
    fn a_process_keeps_its_name_and_shares_it_with_nobody() {
        let parent = tempfile::tempdir().unwrap();
        let directory = BundleDirectory::open(&parent.path().join("bundles")).unwrap();
        let first = directory.instance().unwrap();
        let second = directory.instance().unwrap();
        assert_ne!(first.name, second.name);
        let name = first.name.clone();
        drop(first);
        assert_eq!(directory.instance().unwrap().name, name);
        fs::write(parent.path().join("bundles").join(INSTANCE), "../../etc").unwrap();
        assert_eq!(directory.instance().unwrap().name.len(), name.len());
    }

    #[test]
    fn texts_name_files_of_the_bundle() {
        let parent = tempfile::tempdir().unwrap();
        let directory = BundleDirectory::open(&parent.path().join("bundles")).unwrap();
        let unpacked = directory.unpack(&signed(1)).unwrap();
        let path = unpacked.path().display();
        let text = format!("{path}/a/rules.yaml:1: bad, and {path}/b.yaml");
        assert_eq!(directory.with_bundle_names(&text), "a/rules.yaml:1: bad, and b.yaml");
    }

    #[test]
    fn unpacked_files_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let directory = BundleDirectory::open(&parent.path().join("bundles")).unwrap();
        let unpacked = directory.unpack(&signed(1)).unwrap();
        let file = unpacked.path().join("rules.yaml");
        assert_eq!(fs::read_to_string(&file).unwrap(), "policies: []");
        drop(unpacked);
        assert!(!file.exists());
    }
}
