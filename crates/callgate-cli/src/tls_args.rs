//! The TLS options of `callgate serve` and `callgate proxy --listen`.

use std::path::PathBuf;

use callgate_http::{Tls, TlsFiles};

use super::exit::CommandError;

/// TLS options. The files are reloaded when they change.
#[derive(clap::Args)]
pub(super) struct TlsArgs {
    /// Serve HTTPS with this certificate (PEM), followed by those of the authorities between it and a root
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Require client certificates of these authorities (PEM); `certificates` in the identity file says whose they are
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_client_ca: Option<PathBuf>,
}

impl TlsArgs {
    /// The TLS that the options ask for.
    ///
    /// # Errors
    /// A file is invalid.
    pub(super) fn open(&self) -> Result<Option<Tls>, CommandError> {
        let Some((certificate, key)) = self.tls_cert.clone().zip(self.tls_key.clone()) else {
            return Ok(None);
        };
        let files = TlsFiles { certificate, key, client_ca: self.tls_client_ca.clone() };
        Tls::open(files).map(Some).map_err(CommandError::Message)
    }

    /// The scheme of the server's URLs.
    pub(super) fn scheme(&self) -> &'static str {
        if self.tls_cert.is_some() { "https" } else { "http" }
    }
}
