//! The rules that an instance starts with: those of the last bundle that took effect here, or else of the one that is published.

use std::path::Path;
use std::sync::Arc;

use callgate::policy::CompiledPolicies;
use callgate::reload::RejectionReason;

use crate::acceptance::{RefusalReason, SignedBundle, TrustPolicy};
use crate::bundle_directory::{BundleDirectory, DirectoryError};
use crate::source::{BundleSource, Fetched, SourceError};

/// What an instance follows.
#[derive(Debug)]
pub struct PublishedBundle {
    /// Where it is published.
    pub source: BundleSource,
    /// Which bundles are accepted.
    pub trust: TrustPolicy,
    /// Where the last one is kept.
    pub directory: BundleDirectory,
}

/// The rules that an instance starts with, and the bundle that they come from.
#[derive(Debug)]
pub struct FirstBundle {
    /// The rules.
    pub rules: Arc<CompiledPolicies>,
    pub(crate) bundle: SignedBundle,
    /// Whether it was fetched just now, and is not stored yet.
    pub(crate) is_fetched: bool,
}

/// Why an instance can't start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FirstBundleError {
    /// The bundle can't be fetched.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The bundle is refused.
    #[error("the published bundle is refused: {0}")]
    Refused(#[from] RefusalReason),
    /// The directory can't be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The rules can't be used.
    #[error("the rules of the published bundle can't be used")]
    Rules(RejectionReason),
}

impl FirstBundle {
    /// The name of the bundle, and its version.
    pub fn name_and_version(&self) -> (&str, u64) {
        (self.bundle.bundle.name(), self.bundle.bundle.version())
    }

    /// Whether it is the last one that took effect here, and the publisher was not asked.
    pub fn is_stored(&self) -> bool {
        !self.is_fetched
    }
}

impl PublishedBundle {
    /// Loads the rules to start with. `load` reads the rules of a directory; `warn` gets the reason why a stored bundle is not used.
    ///
    /// # Errors
    /// No usable bundle is stored, and none is published.
    pub async fn load_first(
        &self,
        load: impl Fn(&Path) -> Result<Arc<CompiledPolicies>, RejectionReason>,
        warn: impl Fn(&str),
    ) -> Result<FirstBundle, FirstBundleError> {
        if let Some(envelope) = self.directory.active()? {
            match self.open(envelope, &load) {
                Ok((bundle, rules)) => return Ok(FirstBundle { rules, bundle, is_fetched: false }),
                Err(FirstBundleError::Rules(reason)) => {
                    warn(&format!("the stored bundle can't be used any more: {}", reason.summary()));
                }
                Err(error) => warn(&format!("the stored bundle can't be used any more: {error}")),
            }
        }
        let Fetched::Envelope(envelope, _) = self.source.fetch(None).await? else {
            return Err(SourceError("the publisher returned no bundle".to_owned()).into());
        };
        // Before its rules are read.
        SignedBundle::open(envelope.clone(), &self.trust)?.check_newer(self.directory.newest()?.as_ref())?;
        let (bundle, rules) = self.open(envelope, &load)?;
        Ok(FirstBundle { rules, bundle, is_fetched: true })
    }

    fn open(
        &self,
        envelope: Vec<u8>,
        load: &impl Fn(&Path) -> Result<Arc<CompiledPolicies>, RejectionReason>,
    ) -> Result<(SignedBundle, Arc<CompiledPolicies>), FirstBundleError> {
        let bundle = SignedBundle::open(envelope, &self.trust)?;
        let unpacked = self.directory.unpack(&bundle)?;
        let rules = load(unpacked.path()).map_err(FirstBundleError::Rules)?;
        Ok((bundle, rules))
    }
}
