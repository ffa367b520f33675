//! PostgreSQL: callers that are killed, a server that is killed or read-only, a link that is slow, cut or silent, and failovers.

use std::time::Duration;

use super::load::{Size, run};
use crate::cutting_proxy::CuttingProxy;
use crate::postgres::server::{PostgresServer, replicated};

#[test]
fn callers_are_killed() {
    let server = PostgresServer::start();
    let size =
        Size::of(Size { calls: 120, kills: 9, faults: 0 }, Size { calls: 5_000, kills: 800, faults: 0 });
    run("postgres, callers killed", &server.url("shared"), size, |_| {});
}

#[test]
fn its_server_is_killed() {
    let mut server = PostgresServer::start_with(&[]);
    let url = server.url("shared");
    let size =
        Size::of(Size { calls: 120, kills: 2, faults: 1 }, Size { calls: 1_500, kills: 60, faults: 10 });
    run("postgres, server killed", &url, size, |_| {
        server.stop();
        server.restart();
    });
}

#[test]
fn its_link_is_slow_and_cut() {
    let server = PostgresServer::start();
    let proxy = CuttingProxy::start(server.port);
    let size =
        Size::of(Size { calls: 120, kills: 2, faults: 2 }, Size { calls: 1_500, kills: 60, faults: 20 });
    proxy.cut_every(600);
    run("postgres, link slow and cut", &url(&[proxy.port]), size, |number| {
        proxy.delay(Duration::from_millis(if number % 2 == 0 { 2 } else { 0 }));
        proxy.cut_replies(true);
        std::thread::sleep(Duration::from_millis(200));
        proxy.cut_replies(false);
    });
}

#[test]
fn its_link_falls_silent() {
    let server = PostgresServer::start();
    let proxy = CuttingProxy::start(server.port);
    let size =
        Size::of(Size { calls: 120, kills: 2, faults: 1 }, Size { calls: 1_500, kills: 60, faults: 5 });
    run("postgres, link silent", &url(&[proxy.port]), size, |_| {
        proxy.silence(true);
        std::thread::sleep(Duration::from_millis(200));
        proxy.silence(false);
    });
}

#[test]
fn its_server_is_read_only() {
    let server = PostgresServer::start();
    let size =
        Size::of(Size { calls: 120, kills: 2, faults: 1 }, Size { calls: 1_500, kills: 60, faults: 10 });
    let set = |value: &str| {
        server.sql(&format!("ALTER SYSTEM SET default_transaction_read_only = {value}"));
        server.sql("SELECT pg_reload_conf()");
    };
    run("postgres, read-only", &server.url("shared"), size, |_| {
        set("on");
        std::thread::sleep(Duration::from_millis(300));
        set("off");
    });
}

/// With synchronous replication no confirmed write is lost.
#[test]
fn a_standby_takes_over() {
    let (mut primary, standby) = replicated();
    let url = url(&[primary.port, standby.port]);
    let size =
        Size::of(Size { calls: 120, kills: 2, faults: 1 }, Size { calls: 1_500, kills: 60, faults: 1 });
    run("postgres, failover", &url, size, |_| {
        primary.stop();
        promote(&standby);
    });
}

/// The machine of the primary is gone: it refuses nothing, and closes no connection.
#[test]
fn a_standby_takes_over_from_a_silent_primary() {
    let (mut primary, standby) = replicated();
    let proxy = CuttingProxy::start(primary.port);
    let url = url(&[proxy.port, standby.port]);
    let size =
        Size::of(Size { calls: 120, kills: 2, faults: 1 }, Size { calls: 1_500, kills: 60, faults: 1 });
    run("postgres, failover from a silent primary", &url, size, |_| {
        proxy.silence(true);
        primary.stop();
        promote(&standby);
    });
}

fn promote(standby: &PostgresServer) {
    assert_eq!(standby.sql("SELECT pg_promote()"), "t");
}

/// The URL of the servers on these ports.
fn url(ports: &[u16]) -> String {
    let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    format!("postgres://callgate@{}/postgres?schema=shared", hosts.join(","))
}
