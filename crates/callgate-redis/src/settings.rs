//! Settings: a URL → where the server is, and how to connect to it.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use percent_encoding::percent_decode_str;

/// The namespace without `namespace=` in the URL.
const DEFAULT_NAMESPACE: &str = "callgate";
/// The port without one in the URL.
const DEFAULT_PORT: u16 = 6379;
/// The port of a Sentinel without one in the URL.
const DEFAULT_SENTINEL_PORT: u16 = 26379;

/// Where the server is, and how to connect to it.
#[derive(Clone)]
pub struct RedisSettings {
    /// The servers: the one that accepts writes is used. With `sentinel`, the Sentinels.
    pub(crate) addresses: Vec<ServerAddress>,
    /// The name of the primary that Sentinels know.
    pub(crate) sentinel: Option<String>,
    pub(crate) uses_tls: bool,
    pub(crate) database: i64,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
    /// The first part of the names of all keys: letters, digits, `_` and `-`.
    pub(crate) namespace: String,
    /// How many replicas must have a write of a limit or record before it is reported.
    pub(crate) replicas: u32,
    /// The certificates of the authorities that are trusted; those of the system without it.
    pub(crate) root_certificates: Option<PathBuf>,
}

/// A host and its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerAddress {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// Why a URL is not one of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(String);

// Leaves out the password.
impl std::fmt::Debug for RedisSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisSettings").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl RedisSettings {
    /// Parses a URL: `redis://USER:PASSWORD@HOST:PORT/DATABASE?PARAMETERS`, or `rediss://…` for TLS. Several hosts are separated by commas.
    /// Without a password in the URL, `password` is used.
    ///
    /// | parameter | meaning |
    /// | --- | --- |
    /// | `namespace` | the first part of the names of all keys (`callgate`) |
    /// | `replicas` | how many replicas must have a write before it is reported (0) |
    /// | `sentinel` | the hosts are Sentinels, which know the primary by this name |
    /// | `cacert` | a file with the certificates of the authorities that are trusted |
    /// | `tls=disable` | connect to another machine without TLS |
    ///
    /// ```
    /// use callgate_redis::RedisSettings;
    ///
    /// assert!(RedisSettings::parse("rediss://callgate@cache.example.com", None).is_ok());
    /// assert!(RedisSettings::parse("redis://localhost/0?namespace=a{b}", None).is_err());
    /// ```
    ///
    /// # Errors
    /// The URL is invalid, or names another machine without TLS; the error does not contain the URL, because it may have a password.
    pub fn parse(url: &str, password: Option<&str>) -> Result<Self, SettingsError> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| invalid("it has no scheme"))?;
        let uses_tls = match scheme {
            "redis" | "valkey" => false,
            "rediss" | "valkeys" => true,
            _ => return Err(invalid("its scheme must be `redis` or `rediss`")),
        };
        let (base, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = base.split_once('/').unwrap_or((base, ""));
        let (user, hosts) = match authority.rsplit_once('@') {
            Some((user, hosts)) => (Some(user), hosts),
            None => (None, authority),
        };
        let mut settings = Self {
            addresses: Vec::new(),
            sentinel: None,
            uses_tls,
            database: match path {
                "" => 0,
                number => number_of(number, "the database after the host must be a number")?,
            },
            username: None,
            password: password.map(str::to_owned),
            namespace: DEFAULT_NAMESPACE.to_owned(),
            replicas: 0,
            root_certificates: None,
        };
        settings.read_user(user)?;
        let permits_plain = settings.read_parameters(query)?;
        let port = if settings.sentinel.is_some() { DEFAULT_SENTINEL_PORT } else { DEFAULT_PORT };
        settings.addresses = hosts.split(',').map(|host| address(host, port)).collect::<Result<_, _>>()?;
        if !uses_tls && !permits_plain && !settings.addresses.iter().all(is_this_machine) {
            return Err(SettingsError(
                "other machines are reached over TLS: write `rediss://`, or add `tls=disable` for a private network".to_owned(),
            ));
        }
        if settings.root_certificates.is_some() && !uses_tls {
            return Err(SettingsError("`cacert` has no effect without TLS; write `rediss://`".to_owned()));
        }
        Ok(settings)
    }

    /// `USER:PASSWORD`, `USER` or `:PASSWORD`.
    fn read_user(&mut self, user: Option<&str>) -> Result<(), SettingsError> {
        let Some(user) = user else { return Ok(()) };
        let (name, password) = match user.split_once(':') {
            Some((name, password)) => (name, Some(password)),
            None => (user, None),
        };
        if !name.is_empty() {
            self.username = Some(decoded(name)?);
        }
        if let Some(password) = password {
            self.password = Some(decoded(password)?);
        }
        Ok(())
    }

    /// Returns whether other machines may be reached without TLS.
    fn read_parameters(&mut self, query: &str) -> Result<bool, SettingsError> {
        let mut permits_plain = false;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("namespace", name)) if is_name(name) => self.namespace = name.to_owned(),
                Some(("namespace", _)) => {
                    let why = "`namespace` must be a name of letters, digits, `_` and `-`, with at most 63 characters";
                    return Err(SettingsError(why.to_owned()));
                }
                Some(("replicas", number)) => {
                    self.replicas = number_of(number, "`replicas` must be a number")?;
                }
                Some(("sentinel", name)) => self.sentinel = Some(decoded(name)?),
                Some(("cacert", path)) => self.root_certificates = Some(PathBuf::from(decoded(path)?)),
                Some(("tls", "disable")) => permits_plain = true,
                Some(("tls", _)) => {
                    return Err(SettingsError(
                        "`tls` can only be `disable`; for TLS write `rediss://`".to_owned(),
                    ));
                }
                _ => {
                    let name = pair.split('=').next().unwrap_or_default();
                    return Err(SettingsError(format!(
                        "`{name}` is not a parameter of the URL; the parameters are `namespace`, `replicas`, `sentinel`, `cacert` and `tls`"
                    )));
                }
            }
        }
        Ok(permits_plain)
    }
}

fn invalid(cause: &str) -> SettingsError {
    SettingsError(format!("the URL of the server is invalid: {cause}; write `rediss://USER@HOST`"))
}

fn number_of<T: FromStr>(text: &str, why: &str) -> Result<T, SettingsError> {
    text.parse().map_err(|_| SettingsError(why.to_owned()))
}

fn decoded(text: &str) -> Result<String, SettingsError> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(std::borrow::Cow::into_owned).map_err(|_| invalid("it is not encoded as UTF-8"))
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 63
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// `HOST`, `HOST:PORT`, or `[IPv6]:PORT`.
fn address(text: &str, default_port: u16) -> Result<ServerAddress, SettingsError> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or_else(|| invalid("a `]` is missing"))?;
            (host, port.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    if host.is_empty() {
        return Err(invalid("a host is missing"));
    }
    let port = match port {
        Some(port) => number_of(port, "the port of the server must be a number")?,
        None => default_port,
    };
    Ok(ServerAddress { host: host.to_owned(), port })
}

fn is_this_machine(address: &ServerAddress) -> bool {
    address.host == "localhost" || address.host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> Result<RedisSettings, String> {
        RedisSettings::parse(url, None).map_err(|error| error.to_string())
    }

    #[test]
    fn other_machines_are_reached_over_tls() {
        let tls = |url: &str| parsed(url).map(|settings| settings.uses_tls).ok();
        assert_eq!(tls("rediss://u@cache.example.com"), Some(true));
        assert_eq!(tls("redis://127.0.0.1:7000/2"), Some(false));
        assert_eq!(tls("valkey://[::1]:7000"), Some(false));
        assert_eq!(tls("redis://cache.example.com?tls=disable"), Some(false));
        for url in
            ["redis://cache.example.com", "redis://localhost,cache.example.com", "redis://h?tls=enable"]
        {
            let why = parsed(url).unwrap_err();
            assert!(why.contains("rediss://"), "{why}");
        }
    }

    #[test]
    fn parts_of_a_url_are_read() {
        let settings =
            parsed("rediss://ann:p%40ss@a:7000,[::2],c/3?namespace=team-1&replicas=2&sentinel=main").unwrap();
        let address = |host: &str, port| ServerAddress { host: host.to_owned(), port };
        assert_eq!(settings.addresses, [address("a", 7000), address("::2", 26379), address("c", 26379)]);
        assert_eq!((settings.username.as_deref(), settings.password.as_deref()), (Some("ann"), Some("p@ss")));
        assert_eq!((settings.database, settings.namespace.as_str(), settings.replicas), (3, "team-1", 2));
        assert_eq!(settings.sentinel.as_deref(), Some("main"));
    }

    #[test]
    fn a_password_is_in_no_message() {
        for url in [
            "redis://u:secret@host:port",
            "redis://u:secret@",
            "http://u:secret@h",
            "redis://u:secret@localhost?namespace={x}",
            "redis://u:secret@localhost/?what=1",
            "redis://u:secret@localhost/x",
            "rediss://u:%ff@localhost",
        ] {
            let why = parsed(url).unwrap_err();
            assert!(!why.contains("secret"), "{why}");
        }
        let settings = parsed("redis://u:secret@localhost").unwrap();
        assert!(!format!("{settings:?}").contains("secret"));
    }

    #[test]
    fn a_password_of_the_environment_is_used_if_the_url_has_none() {
        let password = |url: &str| RedisSettings::parse(url, Some("other")).unwrap().password;
        assert_eq!(password("rediss://u@h").as_deref(), Some("other"));
        assert_eq!(password("rediss://:own@h").as_deref(), Some("own"));
    }
}
