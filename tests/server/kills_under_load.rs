//! A server that is killed and restarted again and again while hosts send calls: nothing is lost, and nothing runs twice.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callgate::json::{Value, json};

use super::process::{self, ServerProcess};

const HOSTS: usize = 8;
const CALLS: usize = 30;
const KILLS: usize = 12;
/// Of the calls of all hosts together.
const LIMIT: usize = 200;

/// Brings a call to its outcome as a host does: sends it until there is one, and executes it when the server says so. Returns the outcome.
pub fn bring_to_outcome(address: SocketAddr, id: &str, executed: &Mutex<Vec<String>>) -> String {
    let call = json!({ "call": { "id": id, "tool": "pay", "input": { "id": id } }, "session": "s" });
    let post = |path: &str, body: &Value| process::send(address, ("POST", path), "", body);
    let mut executions: Vec<String> = Vec::new();
    loop {
        let mut response = post("/v1/calls?wait=5", &call);
        while let Some((200, status)) = &response
            && status["status"] == "execute"
        {
            let execution = status["executions"][0]["id"].as_str().unwrap().to_owned();
            if !executions.contains(&execution) {
                executed.lock().unwrap().push(id.to_owned());
                executions.push(execution.clone());
            }
            response = post(&format!("/v1/executions/{execution}?wait=5"), &json!({ "output": "paid" }));
        }
        match response {
            Some((200, done)) if done["status"] == "completed" => {
                return done["outcome"]["outcome"].as_str().unwrap().to_owned();
            }
            // The server is away, or it does not know the execution any more.
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

#[test]
fn nothing_is_lost_and_nothing_runs_twice() {
    let folder = tempfile::tempdir().unwrap();
    let rules =
        format!("policies: [ {{ id: most, match: pay, rate_limit: {{ limit: {LIMIT}, per: 1h }} }} ]");
    std::fs::write(folder.path().join("rules.yaml"), rules).unwrap();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let start = || ServerProcess::start(folder.path(), &["--listen", &address.to_string()]);
    let mut server = start();
    let (executed, working) = (Mutex::new(Vec::new()), AtomicUsize::new(HOSTS));
    let outcomes: Vec<String> = std::thread::scope(|scope| {
        let hosts: Vec<_> = (0..HOSTS)
            .map(|host| {
                let (executed, working) = (&executed, &working);
                scope.spawn(move || {
                    let ids = (0..CALLS).map(|number| format!("c{host}-{number}"));
                    let outcomes: Vec<String> =
                        ids.map(|id| bring_to_outcome(address, &id, executed)).collect();
                    working.fetch_sub(1, Ordering::SeqCst);
                    outcomes
                })
            })
            .collect();
        for kill in 0..KILLS {
            if working.load(Ordering::SeqCst) == 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(40 + 37 * (kill as u64 % 5)));
            server.kill();
            server = start();
        }
        hosts.into_iter().flat_map(|host| host.join().unwrap()).collect()
    });
    drop(server);
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    let executed = executed.into_inner().unwrap();
    executed.iter().for_each(|id| *times.entry(id).or_default() += 1);
    assert_eq!(times.iter().find(|(_, times)| **times > 1), None, "a call ran twice");
    let count = |name: &str| outcomes.iter().filter(|outcome| *outcome == name).count();
    let (done, unknown, denied) = (count("executed"), count("indeterminate"), count("denied"));
    assert_eq!(done + unknown + denied, HOSTS * CALLS, "{outcomes:?}");
    assert!(done <= executed.len() && executed.len() <= LIMIT, "{done} done, {} ran", executed.len());
    // Claims that the kills left without a report count, so fewer calls than the limit may have run.
    assert!(
        done > LIMIT / 2 && denied >= HOSTS * CALLS - LIMIT,
        "{done} done, {unknown} unknown, {denied} denied"
    );
}
