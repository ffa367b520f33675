//! The list of servers in a configuration file that changes while the gateway runs.

use std::collections::BTreeSet;

use callgate::json::{Value, json};

use super::harness::{Folder, Session};
use super::{is_error, result_text};

const RULES: &str =
    "policies:\n  - { id: no-echo, match: { tool: echo, server: mail }, deny: { message: \"Not here.\" } }";

fn write_config(session: &Folder, servers: &[String], more: &str) {
    session.write(
        "gateway.yaml",
        &format!("callgate: 1\npolicies: rules.yaml\n{more}servers:\n{}", servers.concat()),
    );
}

fn start(servers: &[String], folder: Folder) -> Session {
    folder.write("rules.yaml", RULES);
    write_config(&folder, servers, "");
    let config = folder.path("gateway.yaml").display().to_string();
    Session::start_configured(folder, &["--config", &config])
}

/// The prefixes of the tools in the client's list.
fn prefixes(session: &mut Session) -> BTreeSet<String> {
    let list = session.request("tools/list", json!({}));
    let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
    let prefix = |tool: &Value| tool["name"].as_str().unwrap().split_once("__").unwrap().0.to_owned();
    tools.iter().map(prefix).collect()
}

fn notifications(session: &Session) -> usize {
    let changed = |message: &&Value| message["method"] == "notifications/tools/list_changed";
    session.received.iter().filter(changed).count()
}

/// Changes the file, and waits until the gateway has done what it prints.
fn change(session: &mut Session, servers: &[String], printed: &str) {
    let before = notifications(session);
    write_config(&session.folder, servers, "");
    session.wait_for_log(printed);
    session.request("ping", json!({}));
    while notifications(session) == before {
        session.request("ping", json!({}));
    }
}

#[test]
fn a_connected_client_gets_added_servers_and_loses_removed_ones() {
    let (folder, mail, notes) = (Folder::new(), Folder::new(), Folder::new());
    let files = folder.configured("files", "");
    let (mail_server, notes_server) = (mail.configured("mail", ""), notes.configured("notes", ""));
    let mut session = start(&[files.clone(), notes_server.clone()], folder);
    assert_eq!(prefixes(&mut session), BTreeSet::from(["files".to_owned(), "notes".to_owned()]));

    change(&mut session, &[files.clone(), notes_server, mail_server.clone()], "servers reloaded: added mail");
    assert_eq!(prefixes(&mut session).len(), 3);
    assert_eq!(result_text(&session.call("mail__say", json!({ "lines": FINE }))), "fine");
    assert_eq!(mail.wait_for_received("initialize", 1).len(), 1, "the client's handshake, once");
    // Policies for the new server apply.
    let denied = session.call("mail__echo", json!({}));
    assert!(is_error(&denied) && result_text(&denied).contains("Not here."), "{denied}");
    assert_eq!(mail.call_count("echo"), 0);

    // A call in progress at a removed server completes.
    let slow = session.start_call("notes__slow", json!({ "seconds": 3 }));
    notes.wait_for_received("tools/call", 1);
    change(&mut session, &[files, mail_server], "servers reloaded: removed notes");
    assert_eq!(prefixes(&mut session), BTreeSet::from(["files".to_owned(), "mail".to_owned()]));
    let refused = session.call("notes__echo", json!({}));
    assert!(refused["error"].is_object() || is_error(&refused), "{refused}");
    assert_eq!(result_text(&session.response(&slow)), "at last");
    notes.assert_server_ended();
    assert_eq!(
        session.folder.wait_for_received("initialize", 1).len(),
        1,
        "the server that stays is not restarted"
    );
    assert_eq!(notes.call_count("echo"), 0);
    session.finish();
    mail.assert_server_ended();
}

const FINE: &str =
    "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"fine\"}]}}\n";

#[test]
fn a_changed_server_is_replaced_and_a_restart_is_not_needed_for_a_lost_one() {
    let (folder, other) = (Folder::new(), Folder::new());
    let (files, first) = (folder.configured("files", ""), other.configured("mail", ""));
    let mut session = start(&[files.clone(), first], folder);
    session.call("mail__die", json!({}));
    let renamed = other.configured("mail", ", prefix: post__");
    change(&mut session, &[files, renamed], "servers reloaded: changed mail");
    assert_eq!(prefixes(&mut session), BTreeSet::from(["files".to_owned(), "post".to_owned()]));
    assert_eq!(result_text(&session.call("post__say", json!({ "lines": FINE }))), "fine");
    session.finish();
    other.assert_server_ended();
}

#[test]
fn a_file_with_errors_or_other_changes_is_rejected_as_a_whole() {
    let (folder, other) = (Folder::new(), Folder::new());
    let (files, mail) = (folder.configured("files", ""), other.configured("mail", ""));
    let mut session = start(std::slice::from_ref(&files), folder);
    for (servers, more, printed) in [
        (vec![files.clone(), mail.clone()], "nonsense: 1\n", "fix the file"),
        (
            vec![files.clone(), mail.clone()],
            "context: { principal: root }\n",
            "`context` of the configuration changes with a restart only",
        ),
        (
            vec![
                files.clone(),
                "  - { name: web, url: 'https://x.test/mcp', auth: { pass_through: { audience: x } } }\n"
                    .to_owned(),
            ],
            "",
            "the server `web` needs the tokens of callers",
        ),
        (
            vec![folder_with_rules(&session.folder)],
            "",
            "`policies` of the server `files` change with a restart only",
        ),
        (vec![files, other.configured("mail", ", policies: missing.yaml")], "", "fix the rules"),
    ] {
        write_config(&session.folder, &servers, more);
        session.wait_for_log(printed);
        let list = session.request("tools/list", json!({}));
        let names = list["result"]["tools"].as_array().unwrap();
        assert!(names.iter().all(|tool| !tool["name"].as_str().unwrap().contains("__")), "{list}");
    }
    assert!(!session.log_text().contains("servers reloaded"), "{}", session.log_text());
    assert!(other.log().is_empty(), "no server of a rejected file is started");
    session.finish();
}

fn folder_with_rules(folder: &Folder) -> String {
    folder.configured("files", ", policies: rules.yaml")
}
