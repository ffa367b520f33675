//! Connections: a URL → settings → a pool of connections with TLS.

use std::path::PathBuf;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The schema without `schema=` in the URL.
const DEFAULT_SCHEMA: &str = "callgate";
/// The most connections of a process, beside the one that listens, without `connections=` in the URL.
const DEFAULT_CONNECTIONS: usize = 8;
/// Shorter than the timeout of a store operation, so that its caller receives the reason.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a statement, and waiting for a lock, may take, in milliseconds.
const STATEMENT_TIMEOUT_MS: u32 = 4_000;
/// How long a transaction may be idle, in milliseconds: a host that stopped in the middle must not block the others.
const IDLE_TIMEOUT_MS: u32 = 10_000;

/// Where the database is, and how to connect to it.
#[derive(Clone)]
pub struct PostgresSettings {
    config: Config,
    /// The schema of the tables: letters, digits and `_`.
    pub(crate) schema: String,
    /// The certificates of the authorities that are trusted; those of the system without it.
    root_certificates: Option<PathBuf>,
    uses_tls: bool,
    /// The most connections, beside the one that listens.
    connections: usize,
}

/// Why a URL is not one of a database.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(String);

// Leaves out the password.
impl std::fmt::Debug for PostgresSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresSettings").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl PostgresSettings {
    /// Parses a URL: `postgres://USER:PASSWORD@HOST:PORT/DATABASE?PARAMETERS`. Beside the parameters of PostgreSQL's own clients it takes
    /// `schema` (default `callgate`), `connections` (default 8) and `sslrootcert`. Without a password in the URL, `password` is used.
    ///
    /// Connections to other machines use TLS and verify the server's certificate, unless the URL has `sslmode=disable`.
    ///
    /// ```
    /// use callgate_postgres::PostgresSettings;
    ///
    /// assert!(PostgresSettings::parse("postgres://callgate@db.example.com/callgate", None).is_ok());
    /// assert!(PostgresSettings::parse("postgres://localhost/x?schema=robert'); --", None).is_err());
    /// ```
    ///
    /// # Errors
    /// The URL is invalid; the error does not contain it, because it may have a password.
    pub fn parse(url: &str, password: Option<&str>) -> Result<Self, SettingsError> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut schema, mut root_certificates, mut mode) = (DEFAULT_SCHEMA.to_owned(), None, None);
        let (mut others, mut connections) = (Vec::new(), DEFAULT_CONNECTIONS);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("schema", name)) => schema = name.to_owned(),
                Some(("connections", number)) => {
                    let number = number.parse().ok().filter(|number| (1..=100).contains(number));
                    let why = "`connections` must be a number from 1 to 100";
                    connections = number.ok_or_else(|| SettingsError(why.to_owned()))?;
                }
                Some(("sslrootcert", path)) => root_certificates = Some(PathBuf::from(path)),
                Some(("sslmode", "verify-full" | "verify-ca" | "require")) => mode = Some(SslMode::Require),
                Some(("sslmode", "disable")) => mode = Some(SslMode::Disable),
                Some(("sslmode", _)) => {
                    let why = "`sslmode` must be `verify-full` or `disable`: other modes let an attacker remove TLS";
                    return Err(SettingsError(why.to_owned()));
                }
                _ => others.push(pair),
            }
        }
        let is_name = |name: &str| {
            !name.is_empty()
                && name.len() <= 63
                && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        };
        if !is_name(&schema) {
            let why =
                "`schema` must be a name of lower-case letters, digits and `_`, with at most 63 characters";
            return Err(SettingsError(why.to_owned()));
        }
        let url = if others.is_empty() { base.to_owned() } else { format!("{base}?{}", others.join("&")) };
        let invalid = |error: tokio_postgres::Error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            SettingsError(format!(
                "the URL of the database is invalid: {cause}; write `postgres://USER@HOST/DATABASE`"
            ))
        };
        let mut config = Config::from_str(&url).map_err(invalid)?;
        if config.get_password().is_none()
            && let Some(password) = password
        {
            config.password(password);
        }
        let is_local = config.get_hosts().iter().all(is_this_machine);
        let uses_tls = match mode {
            Some(SslMode::Disable) => false,
            Some(_) => true,
            None => !is_local,
        };
        if root_certificates.is_some() && !uses_tls {
            let why = "`sslrootcert` has no effect without TLS; add `sslmode=verify-full`";
            return Err(SettingsError(why.to_owned()));
        }
        let settings = format!(
            "-c search_path={schema} -c statement_timeout={STATEMENT_TIMEOUT_MS} -c lock_timeout={STATEMENT_TIMEOUT_MS} \
             -c idle_in_transaction_session_timeout={IDLE_TIMEOUT_MS}"
        );
        config
            .options(settings)
            .application_name("callgate")
            .connect_timeout(CONNECT_TIMEOUT)
            .ssl_mode(if uses_tls { SslMode::Require } else { SslMode::Disable })
            .target_session_attrs(tokio_postgres::config::TargetSessionAttrs::ReadWrite);
        Ok(Self { config, schema, root_certificates, uses_tls, connections })
    }

    /// A pool of connections.
    pub(crate) fn pool(&self) -> Result<Pool, String> {
        // A connection that was lost is noticed by the operation that uses it, and replaced for the next one.
        let manager_config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = match self.uses_tls {
            true => Manager::from_config(self.config.clone(), self.tls()?, manager_config),
            false => Manager::from_config(self.config.clone(), NoTls, manager_config),
        };
        Pool::builder(manager)
            .max_size(self.connections)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(CONNECT_TIMEOUT))
            .create_timeout(Some(CONNECT_TIMEOUT))
            .build()
            .map_err(|error| error.to_string())
    }

    /// A connection of its own, whose messages `on_message` gets until it ends.
    pub(crate) async fn listen(
        &self,
        statement: &str,
        on_message: impl Fn() + Send + Sync + 'static,
    ) -> Result<(), String> {
        match self.uses_tls {
            true => {
                let connected = self.config.connect(self.tls()?).await.map_err(|error| error.to_string())?;
                follow(connected, statement, on_message).await
            }
            false => {
                let connected = self.config.connect(NoTls).await.map_err(|error| error.to_string())?;
                follow(connected, statement, on_message).await
            }
        }
    }

    fn tls(&self) -> Result<MakeRustlsConnect, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| format!("TLS can't be set up: {error}"))?;
        let config = match &self.root_certificates {
            None => {
                builder.with_platform_verifier().map_err(|error| format!("TLS can't be set up: {error}"))?
            }
            Some(path) => {
                let unreadable =
                    |why: String| format!("the certificates in `{}` can't be read: {why}", path.display());
                let mut roots = RootCertStore::empty();
                let certificates =
                    CertificateDer::pem_file_iter(path).map_err(|error| unreadable(error.to_string()))?;
                for certificate in certificates {
                    let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
                    roots.add(certificate).map_err(|error| unreadable(error.to_string()))?;
                }
                if roots.is_empty() {
                    return Err(unreadable("it has none".to_owned()));
                }
                builder.with_root_certificates(roots)
            }
        };
        Ok(MakeRustlsConnect::new(config.with_no_client_auth()))
    }
}

/// Sends a statement, and reads messages until the connection ends.
async fn follow<S>(
    (client, mut connection): (tokio_postgres::Client, tokio_postgres::Connection<tokio_postgres::Socket, S>),
    statement: &str,
    on_message: impl Fn() + Send + Sync,
) -> Result<(), String>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let reading = async {
        loop {
            match std::future::poll_fn(|context| connection.poll_message(context)).await {
                Some(Ok(_)) => on_message(),
                Some(Err(error)) => return Err(error.to_string()),
                None => return Err("the connection has ended".to_owned()),
            }
        }
    };
    let sending = async {
        client.batch_execute(statement).await.map_err(|error| error.to_string())?;
        on_message();
        std::future::pending::<Result<(), String>>().await
    };
    tokio::select! { ended = reading => ended, failed = sending => failed }
}

fn is_this_machine(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> Result<PostgresSettings, String> {
        PostgresSettings::parse(url, None).map_err(|error| error.to_string())
    }

    #[test]
    fn other_machines_are_reached_over_tls() {
        let tls = |url: &str| parsed(url).map(|settings| settings.uses_tls);
        assert_eq!(tls("postgres://u@db.example.com/x"), Ok(true));
        assert_eq!(tls("postgres://u@db.example.com/x?sslmode=verify-full"), Ok(true));
        assert_eq!(tls("postgres://u@db.example.com/x?sslmode=disable"), Ok(false));
        assert_eq!(tls("postgres://u@127.0.0.1/x"), Ok(false));
        assert_eq!(tls("postgres://u@localhost,db.example.com/x"), Ok(true));
        for mode in ["prefer", "allow", "PREFER", ""] {
            let why = tls(&format!("postgres://u@db.example.com/x?sslmode={mode}")).unwrap_err();
            assert!(why.contains("remove TLS"), "{why}");
        }
    }

    #[test]
    fn the_number_of_connections_is_bounded() {
        let connections = |url: &str| parsed(url).map(|settings| settings.connections);
        assert_eq!(connections("postgres://u@h/x"), Ok(DEFAULT_CONNECTIONS));
        assert_eq!(connections("postgres://u@h/x?connections=2"), Ok(2));
        for number in ["0", "101", "-1", "many", ""] {
            let why = connections(&format!("postgres://u@h/x?connections={number}")).unwrap_err();
            assert!(why.contains("from 1 to 100"), "{why}");
        }
    }

    #[test]
    fn a_password_is_in_no_message() {
        for url in [
            "postgres://u:secret@host:port/x",
            "postgres://u:secret@h/x?schema=A",
            "postgres://u:secret@h/x?what=1",
        ] {
            let why = parsed(url).unwrap_err();
            assert!(!why.contains("secret"), "{why}");
        }
        let settings = PostgresSettings::parse("postgres://u:secret@h/x", None).unwrap();
        assert!(!format!("{settings:?}").contains("secret"));
    }

    #[test]
    fn a_password_of_the_environment_is_used_if_the_url_has_none() {
        let password = |url: &str| {
            let settings = PostgresSettings::parse(url, Some("other")).unwrap();
            settings.config.get_password().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        assert_eq!(password("postgres://u@h/x").as_deref(), Some("other"));
        assert_eq!(password("postgres://u:own@h/x").as_deref(), Some("own"));
    }
}
