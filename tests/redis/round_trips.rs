//! What a call costs: the requests that a host sends to the server, counted by a proxy.

use std::time::Duration;

use callgate::json::json;

use super::cutting_proxy::CuttingProxy;
use super::hosts::Host;
use super::server::RedisServer;

#[test]
fn each_call_costs_the_stated_number_of_round_trips() {
    let server = RedisServer::start();
    let proxy = CuttingProxy::start(server.port);
    let host = Host::start(&proxy.url("shared"));
    let count = |work: &dyn Fn()| {
        // The maintenance of the store sends some, too: the least of several attempts counts.
        let attempts = (0..4).map(|_| {
            std::thread::sleep(Duration::from_millis(200));
            let before = proxy.requests();
            work();
            proxy.requests() - before
        });
        attempts.min().unwrap()
    };
    let number = std::cell::Cell::new(0);
    let call = |tool: &str| {
        number.set(number.get() + 1);
        host.call(&format!("n{}", number.get()), tool)
    };
    call("free");
    let plain = count(&|| assert_eq!(call("free")["status"], "execute"));
    let limited = count(&|| assert_eq!(call("counted")["status"], "execute"));
    println!("plain {plain}, limited {limited}");
    assert_eq!(limited, plain + 1, "a limit costs one");
    let pending = count(&|| assert_eq!(call("pay")["outcome"]["outcome"], "suspended"));
    let denied = count(&|| assert_eq!(call("never")["outcome"]["outcome"], "denied"));
    println!("pending {pending}, denied {denied}");
    let _ = json!(null);
}
