//! Reads what identifies the holder of a token or a certificate.

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use ring::digest;

use super::IdentityReader;
use crate::identity::certificates::CertificateName;
use callgate::source::YamlNode;

impl IdentityReader<'_> {
    /// Reads the digest of a token.
    pub(super) fn digest(&mut self, node: &YamlNode) -> Option<Vec<u8>> {
        match self.exactly_one(node, &["sha256", "env"])? {
            ("sha256", digest_node) => self.sha256(digest_node, "`printf %s TOKEN | sha256sum` prints them"),
            (_, name) => {
                let token = self.env_variable(name)?;
                Some(digest::digest(&digest::SHA256, token.trim().as_bytes()).as_ref().to_vec())
            }
        }
    }

    /// Reads a SHA-256 digest; `source` says how a person gets it.
    fn sha256(&mut self, node: &YamlNode, source: &str) -> Option<Vec<u8>> {
        let digest = HEXLOWER_PERMISSIVE.decode(node.as_str()?.as_bytes()).ok();
        let digest = digest.filter(|digest| digest.len() == digest::SHA256_OUTPUT_LEN);
        if digest.is_none() {
            let help = format!("write 64 hexadecimal digits, as {source}");
            self.report_invalid(node, "this is not a SHA-256 digest", &help);
        }
        digest
    }

    /// Reads what identifies a client certificate.
    pub(super) fn certificate_name(&mut self, node: &YamlNode) -> Option<CertificateName> {
        let (kind, named) = self.exactly_one(node, &["sha256", "dns", "uri"])?;
        let text = named.as_str()?;
        Some(match kind {
            "sha256" => {
                let source = "`openssl x509 -noout -fingerprint -sha256` prints them, without colons";
                CertificateName::Digest(HEXLOWER.encode(&self.sha256(named, source)?))
            }
            "dns" if text.is_empty() || text.contains('*') => {
                let message = "this is not the DNS name of one client";
                self.report_invalid(named, message, "write a DNS name that the certificate has, without `*`");
                return None;
            }
            "dns" => CertificateName::Dns(text.to_lowercase()),
            _ => CertificateName::Uri(text.to_owned()),
        })
    }
}
