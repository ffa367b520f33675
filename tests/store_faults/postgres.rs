//! PostgreSQL: callers that are killed, a server that is killed or read-only, a link that is slow and cut, and a failover.

use std::time::Duration;

use super::load::{Size, run, wait_until};
use crate::cutting_proxy::CuttingProxy;
use crate::postgres::server::PostgresServer;

#[test]
#[ignore = "takes minutes: run it with --ignored"]
fn callers_are_killed() {
    let server = PostgresServer::start();
    let size =
        Size::of(Size { calls: 120, kills: 9, faults: 0 }, Size { calls: 5_000, kills: 800, faults: 0 });
    run("postgres, callers killed", &server.url("shared"), size, |_| {});
}

#[test]
#[ignore = "takes minutes: run it with --ignored"]
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
#[ignore = "takes minutes: run it with --ignored"]
fn its_link_is_slow_and_cut() {
    let server = PostgresServer::start();
    let proxy = CuttingProxy::start(server.port);
    let size =
        Size::of(Size { calls: 120, kills: 2, faults: 2 }, Size { calls: 1_500, kills: 60, faults: 20 });
    proxy.cut_every(600);
    let url = format!("postgres://callgate@127.0.0.1:{}/postgres?schema=shared", proxy.port);
    run("postgres, link slow and cut", &url, size, |number| {
        proxy.delay(Duration::from_millis(if number % 2 == 0 { 2 } else { 0 }));
        proxy.cut_replies(true);
        std::thread::sleep(Duration::from_millis(200));
        proxy.cut_replies(false);
    });
}

#[test]
#[ignore = "takes minutes: run it with --ignored"]
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
#[ignore = "takes minutes: run it with --ignored"]
fn a_standby_takes_over() {
    const SYNCHRONOUS: &str = "synchronous_standby_names=standby";
    let mut primary = PostgresServer::start_with(&["fsync=off", SYNCHRONOUS]);
    let standby = primary.start_standby(&["fsync=off"]);
    wait_until(|| primary.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1");
    let url = format!(
        "postgres://callgate@127.0.0.1:{},127.0.0.1:{}/postgres?schema=shared",
        primary.port, standby.port
    );
    let size =
        Size::of(Size { calls: 120, kills: 2, faults: 1 }, Size { calls: 1_500, kills: 60, faults: 1 });
    run("postgres, failover", &url, size, |_| {
        primary.stop();
        assert_eq!(standby.sql("SELECT pg_promote()"), "t");
    });
}
