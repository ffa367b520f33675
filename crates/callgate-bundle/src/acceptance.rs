//! Acceptance: a downloaded envelope, trusted keys and the newest accepted version → a bundle that may be loaded, or why not.

use callgate::seal::PublicKey;
use serde::{Deserialize, Serialize};

use crate::bundle::{Bundle, BundleError};
use crate::envelope::{SignatureError, verify};

/// Which bundles are accepted.
#[derive(Clone, Debug)]
pub struct TrustPolicy {
    /// The publishers' public keys.
    pub keys: Vec<PublicKey>,
    /// The name that the bundle must have; without it, the name of the first accepted bundle.
    pub name: Option<String>,
}

/// The newest accepted version of a bundle: older ones are refused from then on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewestVersion {
    /// The name of the bundle.
    pub name: String,
    /// Its version.
    pub version: u64,
    /// The digest of its document.
    pub digest: String,
}

/// A bundle with a valid signature.
#[derive(Clone, Debug)]
pub struct SignedBundle {
    /// The bundle.
    pub bundle: Bundle,
    /// The digest of its document.
    pub digest: String,
    /// The envelope that it was in.
    pub envelope: Vec<u8>,
}

/// Why a bundle is refused before its rules are read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RefusalReason {
    /// It has no valid signature of a trusted key.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// The signed document is not a bundle.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// It is another bundle of the same publisher.
    #[error(
        "the bundle is named `{found}`, and not `{expected}`: publish the right one here, or change `--policies-name`"
    )]
    OtherName {
        /// Its name.
        found: String,
        /// The name that it must have.
        expected: String,
    },
    /// It is older than one that was accepted.
    #[error(
        "version {found} of the bundle is older than version {newest}, which was accepted before; publish what it contains with a version above {newest}"
    )]
    Older {
        /// Its version.
        found: u64,
        /// The newest accepted version.
        newest: u64,
    },
    /// Its version was published with other content.
    #[error(
        "version {0} of the bundle was published before with other content; publish each change with a higher version"
    )]
    SameVersion(u64),
}

impl SignedBundle {
    /// Reads an envelope, after one of the trusted keys has verified it.
    ///
    /// # Errors
    /// The signature, the document or the name is not the expected one.
    pub fn open(envelope: Vec<u8>, trust: &TrustPolicy) -> Result<Self, RefusalReason> {
        let document = verify(&envelope, &trust.keys)?;
        let bundle = Bundle::from_document(&document)?;
        if let Some(expected) = &trust.name
            && bundle.name() != expected
        {
            return Err(RefusalReason::OtherName {
                found: bundle.name().to_owned(),
                expected: expected.clone(),
            });
        }
        let digest = bundle.digest();
        Ok(Self { bundle, digest, envelope })
    }

    /// Checks that it is not older than the newest accepted version.
    ///
    /// # Errors
    /// It is older, has another name, or has the same version and other content.
    pub fn check_newer(&self, newest: Option<&NewestVersion>) -> Result<(), RefusalReason> {
        let Some(newest) = newest else { return Ok(()) };
        let (found, version) = (self.bundle.name(), self.bundle.version());
        if found != newest.name {
            return Err(RefusalReason::OtherName { found: found.to_owned(), expected: newest.name.clone() });
        }
        if version < newest.version {
            return Err(RefusalReason::Older { found: version, newest: newest.version });
        }
        if version == newest.version && self.digest != newest.digest {
            return Err(RefusalReason::SameVersion(version));
        }
        Ok(())
    }

    /// Its version, as the newest accepted one.
    pub fn as_newest(&self) -> NewestVersion {
        NewestVersion {
            name: self.bundle.name().to_owned(),
            version: self.bundle.version(),
            digest: self.digest.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use callgate::seal::SigningKey;

    use super::*;
    use crate::envelope::sign;

    struct Publisher(SigningKey);

    impl Publisher {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            Self(SigningKey::from_file_or_new(&directory.path().join("key")).unwrap())
        }

        fn publish(&self, name: &str, version: u64, text: &str) -> Vec<u8> {
            let files = BTreeMap::from([("rules.yaml".to_owned(), text.to_owned())]);
            sign(&Bundle::new(name, version, files).unwrap().document(), &[&self.0])
        }

        fn trust(&self, name: Option<&str>) -> TrustPolicy {
            TrustPolicy { keys: vec![self.0.public_key()], name: name.map(str::to_owned) }
        }
    }

    #[test]
    fn only_newer_versions_of_the_same_bundle_are_accepted() {
        let publisher = Publisher::new();
        let open = |envelope| SignedBundle::open(envelope, &publisher.trust(None)).unwrap();
        let seven = open(publisher.publish("payments", 7, "policies: []"));
        let newest = seven.as_newest();
        let check = |envelope| open(envelope).check_newer(Some(&newest));
        assert!(seven.check_newer(None).is_ok());
        assert!(seven.check_newer(Some(&newest)).is_ok(), "the same one again");
        assert!(check(publisher.publish("payments", 8, "policies: []")).is_ok());
        let older = check(publisher.publish("payments", 6, "policies: []"));
        assert!(matches!(older, Err(RefusalReason::Older { found: 6, newest: 7 })));
        let other = check(publisher.publish("payments", 7, "policies: [] # changed"));
        assert!(matches!(other, Err(RefusalReason::SameVersion(7))));
        let renamed = check(publisher.publish("staging", 9, "policies: []"));
        assert!(matches!(renamed, Err(RefusalReason::OtherName { .. })));
    }

    #[test]
    fn name_and_key_are_the_expected_ones() {
        let publisher = Publisher::new();
        let envelope = publisher.publish("payments", 1, "policies: []");
        assert!(SignedBundle::open(envelope.clone(), &publisher.trust(Some("payments"))).is_ok());
        let other = SignedBundle::open(envelope.clone(), &publisher.trust(Some("retail")));
        assert!(matches!(other, Err(RefusalReason::OtherName { .. })));
        let stranger = SignedBundle::open(envelope, &Publisher::new().trust(None));
        assert!(matches!(stranger, Err(RefusalReason::Signature(SignatureError::UnknownKey(_)))));
    }
}
