//! Callers by their TLS client certificates.

use super::Caller;
use crate::tls::ClientCertificate;

/// What identifies a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CertificateName {
    /// The SHA-256 digest of the certificate, in lower-case hexadecimal.
    Digest(String),
    /// A DNS name of it, in lower case.
    Dns(String),
    /// A URI of it.
    Uri(String),
}

/// The caller of a certificate.
pub(super) struct CertificateEntry {
    pub(super) name: CertificateName,
    pub(super) caller: Caller,
}

impl CertificateName {
    fn is_of(&self, certificate: &ClientCertificate) -> bool {
        match self {
            Self::Digest(digest) => *digest == certificate.digest,
            // A wildcard in a certificate is a name of servers, not of one client.
            Self::Dns(name) => certificate.dns_names.contains(name),
            Self::Uri(uri) => certificate.uris.contains(uri),
        }
    }
}

/// The caller of a certificate. `None` if none is configured, or several are: then nobody can say which is meant.
pub(super) fn find_caller<'c>(
    entries: &'c [CertificateEntry],
    certificate: &ClientCertificate,
) -> Option<&'c Caller> {
    let mut found = entries.iter().filter(|entry| entry.name.is_of(certificate));
    match (found.next(), found.next()) {
        (Some(entry), None) => Some(&entry.caller),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use callgate::json::{Map, json};

    #[test]
    fn finds_the_only_caller_of_a_certificate() {
        let entry = |name, principal: &str| CertificateEntry {
            name,
            caller: Caller::new("certificate", Map::from_iter([("principal".to_owned(), json!(principal))])),
        };
        let entries = [
            entry(CertificateName::Dns("agent.internal".into()), "agent"),
            entry(CertificateName::Uri("spiffe://example.com/backend".into()), "backend"),
            entry(CertificateName::Digest("ab".into()), "pinned"),
        ];
        let certificate = |digest: &str, dns: &[&str], uris: &[&str]| ClientCertificate {
            digest: digest.to_owned(),
            dns_names: dns.iter().map(ToString::to_string).collect(),
            uris: uris.iter().map(ToString::to_string).collect(),
        };
        let find = |digest: &str, dns: &[&str], uris: &[&str]| {
            let found = find_caller(&entries, &certificate(digest, dns, uris))?;
            found.context["principal"].as_str().map(str::to_owned)
        };
        assert_eq!(find("cd", &["agent.internal"], &[]).as_deref(), Some("agent"));
        assert_eq!(find("cd", &[], &["spiffe://example.com/backend"]).as_deref(), Some("backend"));
        assert_eq!(find("ab", &[], &[]).as_deref(), Some("pinned"));
        for (dns, uri) in [("*.internal", "x:y"), ("agent.internal.evil", "spiffe://example.com/Backend")] {
            assert_eq!(find("cd", &[dns], &[uri]), None, "{dns} {uri}");
        }
        let both = find("cd", &["agent.internal"], &["spiffe://example.com/backend"]);
        assert_eq!(both, None, "two callers have this certificate");
    }
}
