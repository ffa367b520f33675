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
    let start = || RedisServer::start_with(&["--repl-diskless-sync-delay", "0"]);
    let mut servers = [start(), start()];
    let follow = |servers: &[RedisServer; 2], replica: usize| {
        let port = servers[1 - replica].port.to_string();
        servers[replica].cli(&["replicaof", "127.0.0.1", &port]);
        wait_until(|| servers[replica].cli(&["info", "replication"]).contains("master_link_status:up"));
    };
    follow(&servers, 1);
    let url = format!("redis://127.0.0.1:{},127.0.0.1:{}/0?replicas=1", servers[0].port, servers[1].port);
    let size =
        Size::of(Size { calls: 150, kills: 2, faults: 1 }, Size { calls: 2_000, kills: 100, faults: 10 });
    let mut primary = 0;
    run("redis, failover", &url, size, |_| {
        servers[primary].stop();
        servers[1 - primary].cli(&["replicaof", "no", "one"]);
        // The old primary comes back as the replica of the new one.
        servers[primary].restart();
        follow(&servers, primary);
        primary = 1 - primary;
    });
}
