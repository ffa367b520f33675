//! Redis: callers that are killed, a server that is killed, a link that is slow, cut or silent, a server without
//! memory, and a failover.

use std::time::Duration;

use super::load::{Size, run, wait_until};
use crate::cutting_proxy::CuttingProxy;
use crate::redis::server::{RedisServer, redis_url};

const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

#[test]
fn callers_are_killed() {
    let server = RedisServer::start();
    let size =
        Size::of(Size { calls: 150, kills: 9, faults: 0 }, Size { calls: 9_000, kills: 1_200, faults: 0 });
    run("redis, callers killed", &server.url("shared"), size, |_| {});
}

#[test]
fn its_server_is_killed() {
    let mut server = RedisServer::start_with(&DURABLE);
    let url = server.url("shared");
    let size =
        Size::of(Size { calls: 150, kills: 2, faults: 2 }, Size { calls: 2_000, kills: 100, faults: 20 });
    run("redis, server killed", &url, size, |_| {
        server.stop();
        server.restart();
    });
}

#[test]
fn its_link_is_slow_and_cut() {
    let server = RedisServer::start();
    let proxy = CuttingProxy::start(server.port);
    let size =
        Size::of(Size { calls: 150, kills: 2, faults: 2 }, Size { calls: 2_000, kills: 100, faults: 20 });
    proxy.cut_every(400);
    run("redis, link slow and cut", &redis_url(&proxy), size, |number| {
        proxy.delay(Duration::from_millis(if number % 2 == 0 { 3 } else { 0 }));
        proxy.cut_replies(true);
        std::thread::sleep(Duration::from_millis(200));
        proxy.cut_replies(false);
    });
}

#[test]
fn its_link_falls_silent() {
    let server = RedisServer::start();
    let proxy = CuttingProxy::start(server.port);
    let size =
        Size::of(Size { calls: 150, kills: 2, faults: 1 }, Size { calls: 2_000, kills: 100, faults: 10 });
    run("redis, link silent", &redis_url(&proxy), size, |_| {
        proxy.silence(true);
        std::thread::sleep(Duration::from_millis(200));
        proxy.silence(false);
    });
}

#[test]
fn its_server_has_no_memory_left() {
    let server = RedisServer::start_with(&["--maxmemory-policy", "noeviction"]);
    let size =
        Size::of(Size { calls: 150, kills: 2, faults: 2 }, Size { calls: 2_000, kills: 100, faults: 20 });
    run("redis, no memory", &server.url("shared"), size, |_| {
        server.cli(&["config", "set", "maxmemory", "1mb"]);
        std::thread::sleep(Duration::from_millis(200));
        server.cli(&["config", "set", "maxmemory", "0"]);
    });
}

#[test]
fn a_replica_takes_over() {
    let mut servers = [(); 2].map(|()| start_replicable());
    follow(&servers[1], &servers[0]);
    let url = format!("redis://127.0.0.1:{},127.0.0.1:{}/0?replicas=1", servers[0].port, servers[1].port);
    let size =
        Size::of(Size { calls: 150, kills: 2, faults: 1 }, Size { calls: 2_000, kills: 100, faults: 10 });
    let mut primary = 0;
    run("redis, failover", &url, size, |_| {
        servers[primary].stop();
        servers[1 - primary].cli(&["replicaof", "no", "one"]);
        // The old primary comes back as the replica of the new one.
        servers[primary].restart();
        follow(&servers[primary], &servers[1 - primary]);
        primary = 1 - primary;
    });
}

/// The machine of the primary is gone: it refuses nothing, and closes no connection.
#[test]
fn a_replica_takes_over_from_a_silent_primary() {
    let [mut primary, mut successor, mut replica] = [(); 3].map(|()| start_replicable());
    follow(&successor, &primary);
    follow(&replica, &primary);
    let proxy = CuttingProxy::start(primary.port);
    let ports = [proxy.port, successor.port, replica.port].map(|port| format!("127.0.0.1:{port}"));
    let url = format!("redis://{}/0?replicas=1", ports.join(","));
    let size =
        Size::of(Size { calls: 150, kills: 2, faults: 1 }, Size { calls: 2_000, kills: 100, faults: 1 });
    run("redis, failover from a silent primary", &url, size, |_| {
        proxy.silence(true);
        primary.stop();
        // Each confirmed write is at one of them; the one that has received more has all.
        if replicated_bytes(&replica) > replicated_bytes(&successor) {
            std::mem::swap(&mut replica, &mut successor);
        }
        successor.cli(&["replicaof", "no", "one"]);
        follow(&replica, &successor);
    });
}

fn start_replicable() -> RedisServer {
    RedisServer::start_with(&["--repl-diskless-sync-delay", "0"])
}

/// Makes a server the replica of another one, in step with it.
fn follow(replica: &RedisServer, primary: &RedisServer) {
    replica.cli(&["replicaof", "127.0.0.1", &primary.port.to_string()]);
    wait_until(|| replica.cli(&["info", "replication"]).contains("master_link_status:up"));
}

/// How much a replica has received.
fn replicated_bytes(replica: &RedisServer) -> u64 {
    let information = replica.cli(&["info", "replication"]);
    let offset = information.lines().find_map(|line| line.strip_prefix("slave_repl_offset:"));
    offset.and_then(|offset| offset.trim().parse().ok()).unwrap()
}
