//! The raw operation of a server for each operation of a store: the smallest one that does the same for a single key.

use ::redis::aio::MultiplexedConnection;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls, Statement};

use super::Operation;
use super::postgres_server::PostgresServer;

/// A connection runs on a runtime of its own, as those of a store do.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

pub struct RawRedis {
    connection: MultiplexedConnection,
    _runtime: Runtime,
}

impl RawRedis {
    pub fn connect(port: u16) -> Self {
        let runtime = runtime();
        let client = ::redis::Client::open(format!("redis://127.0.0.1:{port}/1")).expect("a URL");
        let connection = runtime.block_on(async {
            let mut connection = client.get_multiplexed_async_connection().await.expect("a connection");
            let set = ::redis::cmd("SET").arg("read").arg("x".repeat(500)).to_owned();
            set.query_async::<()>(&mut connection).await.expect("it is set");
            connection
        });
        Self { connection, _runtime: runtime }
    }

    pub async fn run(&self, operation: Operation, number: u64) {
        let mut connection = self.connection.clone();
        let command = match operation {
            Operation::HotLimit | Operation::ShardedLimit => ::redis::cmd("INCR").arg("hot").to_owned(),
            Operation::CallersLimit => ::redis::cmd("INCR").arg(number % 1_000).to_owned(),
            Operation::Claim | Operation::HotClaim => {
                let value = "x".repeat(430);
                ::redis::cmd("SET").arg(format!("claim {number}")).arg(value).arg("NX").to_owned()
            }
            _ => ::redis::cmd("GET").arg("read").to_owned(),
        };
        command.query_async::<()>(&mut connection).await.expect("an answer");
    }
}

/// The connections of a store.
const CONNECTIONS: usize = 8;

pub struct RawPostgres {
    clients: Vec<(Client, [Statement; 3])>,
    _runtime: Runtime,
}

impl RawPostgres {
    pub fn connect(port: u16) -> Self {
        let runtime = runtime();
        let clients = runtime.block_on(async {
            let mut clients = Vec::new();
            for number in 0..CONNECTIONS {
                let url = format!("postgres://callgate@127.0.0.1:{port}/postgres");
                let (client, connection) = tokio_postgres::connect(&url, NoTls).await.expect("a connection");
                tokio::spawn(connection);
                if number == 0 {
                    let create = "CREATE TABLE raw (key bigint PRIMARY KEY, value text NOT NULL); INSERT INTO raw VALUES (-1, repeat('x', 500));
                        CREATE TABLE counts (key bigint PRIMARY KEY, count bigint NOT NULL)";
                    client.batch_execute(create).await.expect("tables");
                }
                let count = "INSERT INTO counts VALUES ($1, 1) ON CONFLICT (key) DO UPDATE SET count = counts.count + 1";
                let insert = "INSERT INTO raw VALUES ($1, repeat('x', 430)) ON CONFLICT DO NOTHING";
                let prepare = async |text| client.prepare(text).await.expect("a statement");
                let statements = [
                    prepare(count).await,
                    prepare(insert).await,
                    prepare("SELECT value FROM raw WHERE key = $1").await,
                ];
                clients.push((client, statements));
            }
            clients
        });
        Self { clients, _runtime: runtime }
    }

    pub async fn run(&self, operation: Operation, number: u64) {
        let (client, [count, insert, select]) = &self.clients[number as usize % CONNECTIONS];
        let (statement, key) = match operation {
            Operation::HotLimit | Operation::ShardedLimit => (count, -1),
            Operation::CallersLimit => (count, number as i64 % 1_000),
            Operation::Claim | Operation::HotClaim => (insert, number as i64),
            _ => (select, -1),
        };
        client.query(statement, &[&key]).await.expect("an answer");
    }
}

/// Fills the records of a schema: of 100 tenants with 10,000 callers, half of them expire in ten hours or later.
pub fn fill_records(server: &PostgresServer, schema: &str, count: u64) {
    const AT_ONCE: u64 = 500_000;
    for first in (0..count).step_by(AT_ONCE as usize) {
        let last = (first + AT_ONCE).min(count) - 1;
        server.sql(&format!(
            "INSERT INTO {schema}.records SELECT 'calls', convert_to('call ' || n, 'UTF8'), to_json(repeat('x', 398))::text, nextval('{schema}.versions'),
                CASE WHEN n % 2 = 0 THEN (extract(epoch FROM now()) * 1000000)::bigint + 36000000000 + n END,
                decode(md5('tenant' || n % 100), 'hex'), decode(md5('caller' || n % 10000), 'hex'), 1
             FROM generate_series({first}, {last}) AS n"
        ));
    }
    server.sql(&format!(
        "INSERT INTO {schema}.usage (pool, holder, shard, held)
            SELECT 2, '', 1, count(*) FROM {schema}.records
            UNION ALL SELECT 2, tenant, 1, count(*) FROM {schema}.records GROUP BY tenant
            UNION ALL SELECT 2, caller, 0, count(*) FROM {schema}.records GROUP BY caller"
    ));
    server.sql(&format!("ANALYZE {schema}.records"));
}

/// The sizes of the records' table and of its indexes.
pub fn sizes(server: &PostgresServer, schema: &str) -> String {
    server.sql(&format!(
        "SELECT 'table ' || pg_size_pretty(pg_table_size('{schema}.records')) || ', indexes ' || pg_size_pretty(pg_indexes_size('{schema}.records'))"
    ))
}
