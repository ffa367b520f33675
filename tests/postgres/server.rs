//! A PostgreSQL server of its own for a test: on a free port, stopped at the end.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use callgate::host::StateStore;
use callgate::state::Capacity;
use callgate_postgres::{PostgresSettings, PostgresStore};

use super::small_disk::{NOBODY, SmallDisk};
use crate::packages;
use crate::redis::server::free_port;

pub struct PostgresServer {
    folder: tempfile::TempDir,
    bin: PathBuf,
    pub port: u16,
    settings: Vec<String>,
    child: Option<Child>,
    disk: Option<SmallDisk>,
    schemas: AtomicU32,
}

impl PostgresServer {
    pub fn start() -> Self {
        Self::start_with(&["fsync=off"])
    }

    /// Starts a server with these settings.
    pub fn start_with(settings: &[&str]) -> Self {
        Self::new(settings).initialized()
    }

    /// Starts a server on a disk of this size.
    pub fn start_on_small_disk(mebibytes: u32) -> Self {
        let mut server = Self::new(&["fsync=off", "max_wal_size=4MB", "min_wal_size=2MB"]);
        let disk = server.folder.path().join("disk");
        fs::create_dir(&disk).unwrap();
        server.disk = Some(SmallDisk::mount(&disk, mebibytes));
        server.initialized()
    }

    fn initialized(self) -> Self {
        let mut server = self;
        let mut init = server.command("initdb");
        init.args(["--username=callgate", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]);
        if server.disk.is_some() {
            init.arg("--wal-segsize=1");
        }
        let (printed, done) = packages::run(&mut init, "");
        assert!(done, "{printed}");
        server.restart();
        server
    }

    /// Starts a standby of this server, which follows it until it is promoted.
    pub fn start_standby(&self, settings: &[&str]) -> Self {
        let mut standby = Self::new(settings);
        let mut copy = standby.command("pg_basebackup");
        let primary = format!("host=127.0.0.1 port={} user=callgate application_name=standby", self.port);
        copy.args(["-d", &primary, "-R", "-c", "fast", "-X", "stream"]);
        let (printed, done) = packages::run(&mut copy, "");
        assert!(done, "{printed}");
        standby.restart();
        standby
    }

    fn new(settings: &[&str]) -> Self {
        let (folder, bin) = (tempfile::tempdir().unwrap(), installed());
        if rustix::process::getuid().is_root() {
            chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        Self { folder, bin, port: free_port(), settings, child: None, disk: None, schemas: AtomicU32::new(0) }
    }

    fn command(&self, program: &str) -> Command {
        let (folder, program) = (self.folder.path(), self.bin.join(program));
        let (mut command, data) = match &self.disk {
            Some(disk) => (disk.command(&program), folder.join("disk/data")),
            None => (Command::new(program), folder.join("data")),
        };
        command.arg("-D").arg(data).current_dir(folder);
        if rustix::process::getuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// Starts the server, after [`stop`](Self::stop).
    pub fn restart(&mut self) {
        let mut command = self.command("postgres");
        command.args(["-p", &self.port.to_string(), "-k", ""]);
        let own = ["listen_addresses=127.0.0.1", "max_connections=400", "log_min_messages=panic"];
        for setting in own.into_iter().chain(self.settings.iter().map(String::as_str)) {
            command.args(["-c", setting]);
        }
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() || !self.accepts() {
            assert!(Instant::now() < deadline, "PostgreSQL does not start");
            std::thread::sleep(Duration::from_millis(20));
            // After a kill it does not start as long as processes of the killed one end.
            if child.try_wait().unwrap().is_some() {
                child = command.spawn().unwrap();
            }
        }
        self.child = Some(child);
    }

    fn accepts(&self) -> bool {
        packages::run(
            Command::new(self.bin.join("pg_isready")).args(["-h", "127.0.0.1", "-p", &self.port.to_string()]),
            "",
        )
        .1
    }

    /// Stops the server at once, as a crash does.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// The disk of a server that was started on a small one.
    pub fn disk(&self) -> &SmallDisk {
        self.disk.as_ref().unwrap()
    }

    /// Starts the server again if it has stopped by itself.
    pub fn restart_if_stopped(&mut self) {
        if self.child.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some()) {
            self.restart();
        }
    }

    /// The id of the server's process.
    pub fn process_id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// The URL of a schema.
    pub fn url(&self, schema: &str) -> String {
        format!("postgres://callgate@127.0.0.1:{}/postgres?schema={schema}", self.port)
    }

    /// A name that no schema has.
    pub fn new_schema(&self) -> String {
        format!("test_{}", self.schemas.fetch_add(1, Ordering::Relaxed))
    }

    pub fn open(&self, schema: &str) -> Result<PostgresStore, String> {
        let settings = PostgresSettings::parse(&self.url(schema), None).unwrap();
        PostgresStore::open(settings).map_err(|error| error.to_string())
    }

    /// An empty store that follows the times of its callers.
    pub fn new_store(&self) -> Arc<dyn StateStore> {
        self.new_store_with(PostgresStore::CAPACITY)
    }

    pub fn new_store_with(&self, capacity: Capacity) -> Arc<dyn StateStore> {
        let settings = PostgresSettings::parse(&self.url(&self.new_schema()), None).unwrap();
        Arc::new(PostgresStore::open_for_simulation(settings, capacity).unwrap())
    }

    /// Runs a statement, as an operator or an attacker does.
    pub fn sql(&self, statement: &str) -> String {
        let (printed, done) = packages::run(&mut self.psql(statement), "");
        assert!(done, "{printed}");
        printed.trim().to_owned()
    }

    pub fn psql(&self, statement: &str) -> Command {
        let mut psql = Command::new(self.bin.join("psql"));
        let port = self.port.to_string();
        psql.args(["-h", "127.0.0.1", "-p", &port, "-U", "callgate", "-Atqc", statement, "postgres"]);
        psql
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A primary, and a standby that has every write before it is confirmed.
pub fn replicated() -> (PostgresServer, PostgresServer) {
    let primary = PostgresServer::start_with(&["fsync=off", "synchronous_standby_names=standby"]);
    let standby = primary.start_standby(&["fsync=off"]);
    let is_confirming = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
    let deadline = Instant::now() + Duration::from_secs(60);
    while primary.sql(is_confirming) != "1" {
        assert!(Instant::now() < deadline, "the standby does not follow");
        std::thread::sleep(Duration::from_millis(20));
    }
    (primary, standby)
}

/// The programs of PostgreSQL: those of the system, or else those of Debian's packages, unpacked below `target/packages`.
fn installed() -> PathBuf {
    if let Some(bin) = programs(Path::new("/usr/lib/postgresql")) {
        return bin;
    }
    let home = packages::debian(&["postgresql-15", "postgresql-client-15", "libpq5"]);
    programs(&home.join("usr/lib/postgresql")).expect("the package has the programs")
}

fn programs(versions: &Path) -> Option<PathBuf> {
    let found = fs::read_dir(versions).ok()?.flatten().map(|version| version.path().join("bin"));
    found.filter(|bin| bin.join("postgres").exists()).max()
}
