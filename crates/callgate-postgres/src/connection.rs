//! Connections: a URL → settings → a connection to the host that accepts writes, with TLS.

use std::path::PathBuf;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Connect;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, poll_fn, select_ok};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::{DbError, Severity, SqlState};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The schema without `schema=` in the URL.
const DEFAULT_SCHEMA: &str = "callgate";
/// The most connections of a process, beside the one that listens, without `connections=` in the URL.
const DEFAULT_CONNECTIONS: usize = 8;
/// Shorter than the timeout of a store operation, so that its caller receives the reason.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long sent data may be unacknowledged until the connection counts as lost: a host that is gone closes none.
const LINK_TIMEOUT: Duration = Duration::from_secs(6);
/// How long a connection is idle until the host is asked whether it is still there, and how often it is asked.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);
const KEEPALIVE_RETRIES: u32 = 3;
/// How long a statement, and waiting for a lock, may take, in milliseconds.
const STATEMENT_TIMEOUT_MS: u32 = 4_000;
/// How long a transaction may be idle, in milliseconds: a host that stopped in the middle must not block the others. A host that works gives
/// up before.
const IDLE_TIMEOUT_MS: u32 = 5_000;

/// Where the database is, and how to connect to it.
#[derive(Clone)]
pub struct PostgresSettings {
    /// How to connect to each of the hosts. There is at least one.
    hosts: Vec<Config>,
    /// The schema of the tables: letters, digits and `_`.
    pub(crate) schema: String,
    /// The certificates of the authorities that are trusted; those of the system without it.
    root_certificates: Option<PathBuf>,
    uses_tls: bool,
    /// The most connections, beside the one that listens.
    pub(crate) connections: usize,
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
        let mut hosts = urls_of_hosts(&url)
            .iter()
            .map(|url| Config::from_str(url).map_err(invalid))
            .collect::<Result<Vec<_>, _>>()?;
        let is_local = hosts.iter().flat_map(Config::get_hosts).all(is_this_machine);
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
        for config in &mut hosts {
            if let (None, Some(password)) = (config.get_password(), password) {
                config.password(password);
            }
            config
                .options(settings.as_str())
                .application_name("callgate")
                .connect_timeout(CONNECT_TIMEOUT)
                .ssl_mode(if uses_tls { SslMode::Require } else { SslMode::Disable })
                .target_session_attrs(tokio_postgres::config::TargetSessionAttrs::ReadWrite);
        }
        hosts.iter_mut().for_each(notice_lost_link);
        Ok(Self { hosts, schema, root_certificates, uses_tls, connections })
    }

    /// The configuration of the first host.
    pub(crate) fn config(&self) -> Config {
        self.hosts.first().cloned().unwrap_or_default()
    }

    /// What makes the connections of a pool.
    pub(crate) fn connector(&self) -> Result<Connector, String> {
        let tls = if self.uses_tls { Some(self.tls()?) } else { None };
        Ok(Connector { hosts: self.hosts.clone(), tls })
    }

    /// A connection of its own, whose notifications `on_payload` gets until it ends, and `None` when it begins to hear them.
    pub(crate) async fn listen(
        &self,
        statement: &str,
        on_payload: impl Fn(Option<&str>) + Send + Sync + 'static,
    ) -> Result<(), String> {
        match self.uses_tls {
            true => follow(connect_in_time(&self.hosts, self.tls()?).await?, statement, on_payload).await,
            false => follow(connect_in_time(&self.hosts, NoTls).await?, statement, on_payload).await,
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

/// Makes the connections of a pool.
pub(crate) struct Connector {
    hosts: Vec<Config>,
    tls: Option<MakeRustlsConnect>,
}

impl Connect for Connector {
    fn connect(&self, _: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), tokio_postgres::Error>> {
        match &self.tls {
            Some(tls) => connect_driven(&self.hosts, tls.clone()).boxed(),
            None => connect_driven(&self.hosts, NoTls).boxed(),
        }
    }
}

/// Connects to the host that accepts writes. All are tried at once, because one that is gone may not even refuse.
async fn connect<T>(
    hosts: &[Config],
    tls: T,
) -> Result<(Client, Connection<Socket, T::Stream>), tokio_postgres::Error>
where
    T: MakeTlsConnect<Socket> + Clone + Send,
    T::Stream: Send,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let attempts = hosts.iter().map(|host| host.connect(tls.clone()).boxed());
    let (connected, _) = select_ok(attempts).await?;
    Ok(connected)
}

/// Connects, and drives the connection with a task.
async fn connect_driven<T>(
    hosts: &[Config],
    tls: T,
) -> Result<(Client, JoinHandle<()>), tokio_postgres::Error>
where
    T: MakeTlsConnect<Socket> + Clone + Send,
    T::Stream: Send + 'static,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let (client, connection) = connect(hosts, tls).await?;
    Ok((client, tokio::spawn(drive(connection))))
}

async fn connect_in_time<T>(
    hosts: &[Config],
    tls: T,
) -> Result<(Client, Connection<Socket, T::Stream>), String>
where
    T: MakeTlsConnect<Socket> + Clone + Send,
    T::Stream: Send,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    match tokio::time::timeout(CONNECT_TIMEOUT, connect(hosts, tls)).await {
        Ok(connected) => connected.map_err(|error| error.to_string()),
        Err(_) => Err("the database did not answer in time".to_owned()),
    }
}

/// Drives a connection until it ends.
///
/// If a standby does not confirm a commit in time, the server only warns, and reports success. Whoever waits for such a commit gets an
/// error instead, because the connection ends first.
async fn drive<S: AsyncRead + AsyncWrite + Unpin>(mut connection: Connection<Socket, S>) {
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if matches!(&message, AsyncMessage::Notice(notice) if is_unconfirmed_commit(notice)) {
            return;
        }
    }
}

/// Whether a notice says that a commit is not replicated. It has no code of its own, and its text depends on the server's language.
fn is_unconfirmed_commit(notice: &DbError) -> bool {
    notice.parsed_severity() == Some(Severity::Warning) && *notice.code() == SqlState::WARNING
}

/// Sends a statement, and reads messages until the connection ends.
async fn follow<S>(
    (client, mut connection): (Client, Connection<Socket, S>),
    statement: &str,
    on_payload: impl Fn(Option<&str>) + Send + Sync,
) -> Result<(), String>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let reading = async {
        loop {
            match poll_fn(|context| connection.poll_message(context)).await {
                Some(Ok(AsyncMessage::Notification(heard))) => on_payload(Some(heard.payload())),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.to_string()),
                None => return Err("the connection has ended".to_owned()),
            }
        }
    };
    let sending = async {
        client.batch_execute(statement).await.map_err(|error| error.to_string())?;
        on_payload(None);
        std::future::pending::<Result<(), String>>().await
    };
    tokio::select! { ended = reading => ended, failed = sending => failed }
}

/// Lets the system notice that a link is lost, where the URL does not say how.
fn notice_lost_link(config: &mut Config) {
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(LINK_TIMEOUT);
    }
    if config.get_keepalives_idle() == Config::new().get_keepalives_idle() {
        config.keepalives_idle(KEEPALIVE_IDLE);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(KEEPALIVE_INTERVAL);
    }
    if config.get_keepalives_retries().is_none() {
        config.keepalives_retries(KEEPALIVE_RETRIES);
    }
}

/// The URL of each host of a URL, whose hosts are separated by commas.
fn urls_of_hosts(url: &str) -> Vec<String> {
    let Some((scheme, rest)) = url.split_once("://") else { return vec![url.to_owned()] };
    let (user, rest) = match rest.split_once('@') {
        Some((user, rest)) => (format!("{user}@"), rest),
        None => (String::new(), rest),
    };
    let (hosts, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    hosts.split(',').map(|host| format!("{scheme}://{user}{host}{rest}")).collect()
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
    fn each_host_of_a_url_is_tried_by_itself() {
        let settings =
            PostgresSettings::parse("postgres://u:p%2C1@127.0.0.1:7000,[::1],localhost/x?schema=s", None)
                .unwrap();
        let found: Vec<_> = settings
            .hosts
            .iter()
            .map(|host| {
                assert_eq!((host.get_user(), host.get_dbname()), (Some("u"), Some("x")));
                assert_eq!(host.get_password(), Some(&b"p,1"[..]));
                (host.get_hosts().to_vec(), host.get_ports().to_vec())
            })
            .collect();
        let host = |name: &str, port| (vec![Host::Tcp(name.to_owned())], vec![port]);
        assert_eq!(found, [host("127.0.0.1", 7000), host("::1", 5432), host("localhost", 5432)]);
    }

    #[test]
    fn a_lost_link_is_noticed_unless_the_url_says_how() {
        let link = |url: &str| {
            let config = PostgresSettings::parse(url, None).unwrap().config();
            (config.get_tcp_user_timeout().copied(), config.get_keepalives_idle())
        };
        let seconds = Duration::from_secs;
        assert_eq!(link("postgres://u@localhost/x"), (Some(LINK_TIMEOUT), KEEPALIVE_IDLE));
        let own = "postgres://u@localhost/x?tcp_user_timeout=20&keepalives_idle=60";
        assert_eq!(link(own), (Some(seconds(20)), seconds(60)));
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
            settings.config().get_password().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        assert_eq!(password("postgres://u@h/x").as_deref(), Some("other"));
        assert_eq!(password("postgres://u:own@h/x").as_deref(), Some("own"));
    }
}
