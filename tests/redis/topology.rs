//! Replicas, Sentinels, clusters, TLS and users.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use callgate::host::{LimitStore as _, RecordKey, RecordStore as _};
use callgate::json::json;
use jiff::Timestamp;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};

use crate::cutting_proxy::CuttingProxy;

use super::server::{RedisServer, free_port, open_url, run};
use super::store::{sliding, take};
use super::trouble::write;

/// A primary and its replica, in step.
fn replicated() -> [RedisServer; 2] {
    let primary = RedisServer::start_with(&["--repl-diskless-sync-delay", "0"]);
    let replica = RedisServer::start_with(&["--repl-diskless-sync-delay", "0"]);
    replica.cli(&["replicaof", "127.0.0.1", &primary.port.to_string()]);
    wait_until(|| replica.cli(&["info", "replication"]).contains("master_link_status:up"));
    [primary, replica]
}

fn wait_until(holds: impl Fn() -> bool) {
    assert!((0..600).any(|_| holds() || {
        std::thread::sleep(Duration::from_millis(50));
        false
    }));
}

#[test]
fn a_failover_to_a_replica_loses_no_confirmed_write() {
    let [mut primary, replica] = replicated();
    let url = format!("redis://127.0.0.1:{},127.0.0.1:{}/0?replicas=1", replica.port, primary.port);
    let store = open_url(&url).unwrap();
    let limit = [take("k", sliding(5, Duration::from_secs(3600)))];
    let mut confirmed = Vec::new();
    for number in 0..50 {
        let name = number.to_string();
        if write(&store, RecordKey { space: "calls", key: &name }, &json!(number), None) == Ok(true) {
            confirmed.push(name);
        }
    }
    for _ in 0..3 {
        assert_eq!(run(store.acquire(Timestamp::now(), &limit)), Ok(Vec::new()));
    }
    primary.stop();
    assert!(run(store.acquire(Timestamp::now(), &limit)).is_err());
    // As long as no server accepts writes, nothing is admitted.
    assert!(open_url(&url).unwrap_err().contains("no server accepts writes"));
    replica.cli(&["replicaof", "no", "one"]);
    // Without a replica of its own the new primary confirms nothing.
    let alone = write(&store, RecordKey { space: "calls", key: "alone" }, &json!(1), None);
    assert!(alone.is_err(), "{alone:?}");
    let store = open_url(&url.replace("replicas=1", "replicas=0")).unwrap();
    assert_eq!(confirmed.len(), 50);
    for name in &confirmed {
        assert!(
            run(store.record(RecordKey { space: "calls", key: name })).unwrap().is_some(),
            "{name} is lost"
        );
    }
    let admitted = (0..5).filter(|_| run(store.acquire(Timestamp::now(), &limit)).unwrap().is_empty());
    assert!(admitted.count() <= 2, "usage was lost");
}

#[test]
fn a_replica_is_not_used_and_an_open_store_follows_the_failover() {
    let [primary, replica] = replicated();
    let only_replica = open_url(&replica.url("shared")).unwrap_err();
    assert!(only_replica.contains("no server accepts writes"), "{only_replica}");
    let store = open_url(&format!("redis://127.0.0.1:{},127.0.0.1:{}", primary.port, replica.port)).unwrap();
    let key = RecordKey { space: "calls", key: "c1" };
    assert_eq!(write(&store, key, &json!(1), None), Ok(true));
    wait_until(|| replica.cli(&["exists", "{callgate:records}:k:5:calls:c1"]) == "1");
    // The roles change while both servers run: the connection to the old primary stays open.
    replica.cli(&["replicaof", "no", "one"]);
    primary.cli(&["replicaof", "127.0.0.1", &replica.port.to_string()]);
    let version = run(store.record(key)).unwrap().map(|record| record.version);
    let written = (0..100).find_map(|_| match write(&store, key, &json!(2), version) {
        Ok(written) => Some(written),
        Err(_) => {
            std::thread::sleep(Duration::from_millis(50));
            None
        }
    });
    assert_eq!(written, Some(true));
    wait_until(|| replica.cli(&["--raw", "hget", "{callgate:records}:k:5:calls:c1", "v"]) == "2");
}

/// Here the primary answers only when the other server has been asked, too.
#[test]
fn all_servers_of_a_url_are_asked_at_once() {
    let primary = RedisServer::start();
    let [first, other] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let ports = [&first, &other].map(|listener| listener.local_addr().unwrap().port());
    let server = primary.port;
    std::thread::spawn(move || {
        drop(other.accept());
        for client in first.incoming().flatten() {
            let server = TcpStream::connect(("127.0.0.1", server)).unwrap();
            for (mut from, mut to) in [
                (client.try_clone().unwrap(), server.try_clone().unwrap()),
                (server.try_clone().unwrap(), client),
            ] {
                std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            }
        }
    });
    let store = open_url(&format!("redis://127.0.0.1:{},127.0.0.1:{}", ports[0], ports[1])).unwrap();
    assert_eq!(write(&store, RecordKey { space: "calls", key: "c1" }, &json!(1), None), Ok(true));
}

#[test]
fn servers_that_fell_silent_are_passed_over() {
    let primary = RedisServer::start();
    let silent = [(); 2].map(|()| CuttingProxy::start(primary.port));
    silent.iter().for_each(|proxy| proxy.silence(true));
    let ports = [silent[0].port, silent[1].port, primary.port].map(|port| format!("127.0.0.1:{port}"));
    let store = open_url(&format!("redis://{}", ports.join(","))).unwrap();
    assert_eq!(write(&store, RecordKey { space: "calls", key: "c1" }, &json!(1), None), Ok(true));
}

/// Also if it answers a little later than the others.
#[test]
fn of_several_servers_that_accept_writes_all_hosts_use_the_first() {
    let servers = [RedisServer::start(), RedisServer::start()];
    let proxy = CuttingProxy::start(servers[0].port);
    proxy.delay(Duration::from_millis(5));
    let url = format!("redis://127.0.0.1:{},127.0.0.1:{}", proxy.port, servers[1].port);
    for number in 0..3 {
        let (store, name) = (open_url(&url).unwrap(), number.to_string());
        assert_eq!(write(&store, RecordKey { space: "calls", key: &name }, &json!(1), None), Ok(true));
    }
    assert_eq!(servers[1].cli(&["dbsize"]), "0");
}

#[test]
fn sentinels_name_the_primary() {
    let [mut primary, replica] = replicated();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("sentinel.conf");
    let monitor = format!(
        "sentinel monitor main 127.0.0.1 {} 1\nsentinel down-after-milliseconds main 500\nsentinel failover-timeout main 2000\n",
        primary.port
    );
    fs::write(&config, monitor).unwrap();
    let sentinel = RedisServer::start_sentinel(&config);
    wait_until(|| sentinel.cli(&["sentinel", "replicas", "main"]).contains(&replica.port.to_string()));
    let store = open_url(&format!("redis://127.0.0.1:{}?sentinel=main", sentinel.port)).unwrap();
    let key = RecordKey { space: "calls", key: "c1" };
    assert_eq!(write(&store, key, &json!(1), None), Ok(true));
    wait_until(|| replica.cli(&["exists", "{callgate:records}:k:5:calls:c1"]) == "1");
    primary.stop();
    let found = (0..600).find_map(|_| {
        std::thread::sleep(Duration::from_millis(50));
        let found = run(store.record(key)).ok()?;
        write(&store, RecordKey { space: "calls", key: "c2" }, &json!(2), None).ok()?;
        found
    });
    assert_eq!(found.unwrap().value, json!(1));
    let unknown = open_url(&format!("redis://127.0.0.1:{}?sentinel=other", sentinel.port)).unwrap_err();
    assert!(unknown.contains("no server accepts writes"), "{unknown}");
}

#[test]
fn the_nodes_of_a_cluster_share_the_parts_of_a_store() {
    // Without a name, nodes use the port 10,000 above their own for each other, which may be taken.
    let buses = [(); 3].map(|()| free_port().to_string());
    let nodes = buses.each_ref().map(|bus| {
        let cluster = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-port", bus];
        RedisServer::start_with(&cluster)
    });
    for (node, slots) in nodes.iter().zip([["0", "5460"], ["5461", "10922"], ["10923", "16383"]]) {
        node.cli(&["cluster", "addslotsrange", slots[0], slots[1]]);
        node.cli(&["cluster", "meet", "127.0.0.1", &nodes[0].port.to_string(), &buses[0]]);
    }
    wait_until(|| {
        nodes.iter().all(|node| {
            let info = node.cli(&["cluster", "info"]);
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
        })
    });
    // Several namespaces, so that each part is at another node at least once.
    for namespace in ["a", "b", "c", "d"] {
        let store = open_url(&nodes[0].url(namespace)).unwrap();
        let limit = [take("k", sliding(1, Duration::from_secs(3600)))];
        assert_eq!(run(store.acquire(Timestamp::now(), &limit)), Ok(Vec::new()));
        assert_eq!(run(store.acquire(Timestamp::now(), &limit)).unwrap().len(), 1);
        let key = RecordKey { space: "calls", key: "c1" };
        assert_eq!(write(&store, key, &json!(namespace), None), Ok(true));
        assert_eq!(run(store.record(key)).unwrap().unwrap().value, json!(namespace));
        assert_eq!(run(store.records("calls", None, 9)).unwrap().records.len(), 1);
    }
    let filled = nodes.iter().filter(|node| node.cli(&["dbsize"]) != "0").count();
    assert!(filled >= 2, "all parts are at one node");
}

#[test]
fn tls_verifies_the_certificate_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let authority = || {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    };
    let (trusted, other) = (authority(), authority());
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.subject_alt_names = vec![SanType::DnsName("localhost".try_into().unwrap())];
    let certificate = params.signed_by(&key, &trusted).unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let files = [
        file("ca.pem", trusted.pem()),
        file("other.pem", other.pem()),
        file("server.pem", certificate.pem()),
        file("server.key", key.serialize_pem()),
    ];
    let [ca, other, certificate, key] = &files;
    let server = RedisServer::start_tls(&[
        ("--tls-cert-file", certificate),
        ("--tls-key-file", key),
        ("--tls-ca-cert-file", ca),
        ("--tls-auth-clients", "no"),
    ]);
    let url = |host: &str, ca: &str| format!("rediss://{host}:{}?cacert={ca}", server.port);
    let store = open_url(&url("localhost", ca)).unwrap();
    let record = RecordKey { space: "calls", key: "c1" };
    assert_eq!(write(&store, record, &json!(1), None), Ok(true));
    for refused in
        [url("localhost", other), url("127.0.0.1", ca), format!("redis://localhost:{}", server.port)]
    {
        assert!(open_url(&refused).is_err(), "{refused}");
    }
    assert!(open_url(&url("localhost", "missing.pem")).unwrap_err().contains("can't be read"));
}

#[test]
fn a_user_needs_only_the_permissions_of_the_guide() {
    let server = RedisServer::start();
    let guide = fs::read_to_string(crate::fixtures::root().join("docs/guides/share-state.md")).unwrap();
    let command = guide.lines().find_map(|line| line.strip_prefix("ACL SETUSER ")).unwrap();
    let command = command.replace(">PASSWORD", ">secret");
    let arguments: Vec<&str> = ["acl", "setuser"].into_iter().chain(command.split(' ')).collect();
    assert_eq!(server.cli(&arguments), "OK");
    let url =
        |namespace: &str| format!("redis://callgate:secret@127.0.0.1:{}?namespace={namespace}", server.port);
    let store = open_url(&url("callgate")).unwrap();
    let record = RecordKey { space: "calls", key: "c1" };
    assert_eq!(write(&store, record, &json!(1), None), Ok(true));
    assert!(run(store.record(record)).unwrap().is_some());
    let slot = [take("slot", callgate::host::Allowance::Slots { max: 1 })];
    assert_eq!(run(store.acquire(Timestamp::now(), &slot)), Ok(Vec::new()));
    store.release("slot");
    assert_eq!(run(store.acquire(Timestamp::now(), &slot)), Ok(Vec::new()));
    assert!(!run(store.has_lost_records(&callgate::host::Account::NOBODY)).unwrap());
    // Other data on the same server is out of reach.
    let error = open_url(&url("shop")).unwrap_err();
    assert!(error.contains("permission"), "{error}");
}
