//! Signed envelopes: a payload with Ed25519 signatures ↔ JSON, in the format of DSSE (Dead Simple Signing Envelope). The signature is verified before the
//! payload is read.

use callgate::json;
use callgate::seal::{PublicKey, SigningKey};
use data_encoding::BASE64;
use serde::{Deserialize, Serialize};

/// The type of the payload: the document of a bundle.
pub const PAYLOAD_TYPE: &str = "application/vnd.callgate.bundle.v1+json";
/// The maximum size of an envelope in bytes.
pub const MAX_ENVELOPE_BYTES: usize = 48 << 20;
/// The maximum number of signatures.
const MAX_SIGNATURES: usize = 16;

#[derive(Serialize, Deserialize)]
struct Envelope {
    payload: String,
    #[serde(rename = "payloadType")]
    payload_type: String,
    signatures: Vec<Signature>,
}

#[derive(Serialize, Deserialize)]
struct Signature {
    /// The public key, as text. Only a hint: what counts is which trusted key verifies the signature.
    #[serde(default)]
    keyid: String,
    sig: String,
}

/// Why an envelope is not trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// It is not an envelope.
    #[error("this is not a signed bundle ({0}); `callgate bundle pack` makes one")]
    NotAnEnvelope(String),
    /// The payload is something else than a bundle.
    #[error("the signed content is not a bundle of Callgate, but `{}`", .0.escape_debug())]
    OtherType(String),
    /// It has no signature.
    #[error("the bundle is not signed; sign it with `callgate bundle pack --key KEY`")]
    Unsigned,
    /// None of the trusted keys signed it.
    #[error("no trusted key signed the bundle; it names {}. Add the publisher's public key to the trusted ones, or sign it with a trusted key", listed(.0))]
    UnknownKey(Vec<String>),
    /// A trusted key is named, but its signature is wrong: the bundle was changed.
    #[error("the signature of the bundle is invalid: its content was changed after it was signed")]
    Invalid,
}

fn listed(keys: &[String]) -> String {
    let shown: Vec<String> = keys.iter().map(|key| format!("`{}`", key.escape_debug())).collect();
    shown.join(", ")
}

/// Signs a payload with every one of the keys.
pub fn sign(payload: &[u8], keys: &[&SigningKey]) -> Vec<u8> {
    let message = signed_bytes(PAYLOAD_TYPE, payload);
    let signature = |key: &&SigningKey| Signature {
        keyid: key.public_key().to_string(),
        sig: BASE64.encode(&key.sign(&message)),
    };
    let envelope = Envelope {
        payload: BASE64.encode(payload),
        payload_type: PAYLOAD_TYPE.to_owned(),
        signatures: keys.iter().map(signature).collect(),
    };
    // Strings only.
    json::to_string(&envelope).unwrap_or_default().into_bytes()
}

/// Returns the payload of an envelope that one of the trusted keys signed.
///
/// # Errors
/// It is not an envelope of a bundle, or none of the keys signed it.
pub fn verify(envelope: &[u8], trusted: &[PublicKey]) -> Result<Vec<u8>, SignatureError> {
    if envelope.len() > MAX_ENVELOPE_BYTES {
        return Err(SignatureError::NotAnEnvelope(format!(
            "it is larger than {} MiB",
            MAX_ENVELOPE_BYTES >> 20
        )));
    }
    let envelope: Envelope =
        json::from_slice(envelope).map_err(|error| SignatureError::NotAnEnvelope(error.to_string()))?;
    if envelope.payload_type != PAYLOAD_TYPE {
        return Err(SignatureError::OtherType(envelope.payload_type.chars().take(100).collect()));
    }
    let Envelope { payload, signatures, .. } = envelope;
    let payload = BASE64.decode(payload.as_bytes());
    let payload =
        payload.map_err(|_| SignatureError::NotAnEnvelope("its payload is not base64".to_owned()))?;
    if signatures.is_empty() {
        return Err(SignatureError::Unsigned);
    }
    let message = signed_bytes(PAYLOAD_TYPE, &payload);
    let mut names_trusted_key = false;
    for signature in signatures.iter().take(MAX_SIGNATURES) {
        let bytes = BASE64.decode(signature.sig.as_bytes()).unwrap_or_default();
        if trusted.iter().any(|key| key.verify(&message, &bytes)) {
            return Ok(payload);
        }
        names_trusted_key |= trusted.iter().any(|key| key.to_string() == signature.keyid);
    }
    if names_trusted_key {
        return Err(SignatureError::Invalid);
    }
    let named = signatures.iter().take(MAX_SIGNATURES).map(|one| one.keyid.chars().take(100).collect());
    Err(SignatureError::UnknownKey(named.collect()))
}

/// What is signed: the pre-authentication encoding of DSSE, which includes the type and all lengths.
fn signed_bytes(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(directory: &tempfile::TempDir, name: &str) -> SigningKey {
        SigningKey::from_file_or_new(&directory.path().join(name)).unwrap()
    }

    #[test]
    fn only_unchanged_payloads_of_trusted_keys_are_returned() {
        let directory = tempfile::tempdir().unwrap();
        let (ours, theirs) = (key(&directory, "ours"), key(&directory, "theirs"));
        let trusted = [ours.public_key()];
        let signed = sign(b"{}", &[&ours]);
        assert_eq!(verify(&signed, &trusted).unwrap(), b"{}");
        assert_eq!(verify(&sign(b"{}", &[&theirs, &ours]), &trusted).unwrap(), b"{}");
        let others = sign(b"{}", &[&theirs]);
        assert!(matches!(verify(&others, &trusted), Err(SignatureError::UnknownKey(_))));
        assert_eq!(verify(&sign(b"{}", &[]), &trusted), Err(SignatureError::Unsigned));
        assert!(matches!(verify(&signed, &[]), Err(SignatureError::UnknownKey(_))));
        // A name is no signature.
        let renamed = String::from_utf8(others).unwrap();
        let renamed = renamed.replace(&theirs.public_key().to_string(), &ours.public_key().to_string());
        assert_eq!(verify(renamed.as_bytes(), &trusted), Err(SignatureError::Invalid));
    }

    #[test]
    fn every_change_of_a_byte_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let ours = key(&directory, "ours");
        let signed = sign(br#"{"a":1}"#, &[&ours]);
        for index in 0..signed.len() {
            let mut changed = signed.clone();
            changed[index] ^= 1;
            // Changes of the key's name, a hint, change nothing else.
            if let Ok(payload) = verify(&changed, &[ours.public_key()]) {
                assert_eq!(payload, br#"{"a":1}"#, "byte {index}");
            }
        }
    }

    /// What is signed for another purpose, and what is no envelope.
    #[test]
    fn other_content_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let ours = key(&directory, "ours");
        let message = signed_bytes("text/plain", b"{}");
        let other = json::json!({
            "payload": BASE64.encode(b"{}"), "payloadType": "text/plain",
            "signatures": [{ "keyid": "", "sig": BASE64.encode(&ours.sign(&message)) }],
        });
        let other_text = other.to_string();
        assert!(matches!(
            verify(other_text.as_bytes(), &[ours.public_key()]),
            Err(SignatureError::OtherType(_))
        ));
        let renamed = other_text.replace("text/plain", PAYLOAD_TYPE);
        assert!(verify(renamed.as_bytes(), &[ours.public_key()]).is_err());
        for text in ["", "[]", "{}", "\u{1f}\u{8b}", r#"{"payload":"!","payloadType":"x","signatures":[]}"#] {
            assert!(verify(text.as_bytes(), &[ours.public_key()]).is_err(), "{text}");
        }
        assert!(verify(&vec![b' '; MAX_ENVELOPE_BYTES + 1], &[ours.public_key()]).is_err());
    }
}
