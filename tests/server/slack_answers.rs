//! Answers in Slack: a click on a button of a message counts as the answer of the approver whom the operator has named.

use std::time::Duration;

use callgate::Keys;
use callgate::json::{Value, json};
use callgate_server::{NotificationFile, NotificationTasks, Notifier};
use data_encoding::HEXLOWER;
use hmac::{KeyInit, Mac};
use sha2::Sha256;

use super::harness::{KEY, Reply, RunningServer, call};
use crate::gateway_http::harness::{ReceivedRequest, Upstream, response};

const SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";

const RULES: &str = "policies:
  - { id: ask, match: pay, approval: { message: 'Pay {{ input.to }}?', expires: 1h } }
  - { id: board, match: sell, approval: { message: 'Sell?', expires: 1h, approvers: [bob] } }
";

/// A decision server, and Slack with the messages that it has received.
struct Office {
    server: RunningServer,
    slack: Upstream,
    _tasks: NotificationTasks,
}

impl Office {
    async fn open() -> Self {
        let slack = Upstream::new(|_| Some(response(200, "", ""))).await;
        let file = format!(
            "channels:
  - type: slack
    url: '{}'
    arguments: true
    signing_secret_env: SECRET
    approvers: {{ U1: {{ principal: ann, roles: [finance] }}, U2: {{ principal: eve, tenant: other }} }}",
            slack.url
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notifications.yaml");
        std::fs::write(&path, file).unwrap();
        let file = NotificationFile::open(&path, |name| (name == "SECRET").then(|| SECRET.to_owned()));
        let file = file.unwrap_or_else(|error| panic!("{error}"));
        let (notifier, tasks) = Notifier::start(file, Keys::parse(KEY).unwrap(), |line| panic!("{line}"));
        Self { server: RunningServer::with_notifier(RULES, notifier).await, slack, _tasks: tasks }
    }

    /// What Slack has received, once there are so many requests.
    async fn received(&self, count: usize) -> Vec<ReceivedRequest> {
        for _ in 0..1_000 {
            let received = self.slack.requests();
            if received.len() >= count {
                return received;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("Slack got only {:?}", self.slack.requests());
    }

    /// Asks for an approval, and returns the buttons of the message: approve and deny.
    async fn ask(&self, id: &str, tool: &str) -> [Value; 2] {
        let before = self.slack.requests().len();
        let reply = self.server.post("/v1/calls", &call(id, tool, json!({ "to": "bob" }))).await;
        assert_eq!(reply.body["outcome"]["outcome"], "suspended", "{reply:?}");
        let message = self.received(before + 1).await.pop().unwrap().body;
        let blocks = message["blocks"].as_array().unwrap();
        let buttons = blocks.last().unwrap()["elements"].as_array().unwrap();
        assert!(
            blocks
                .iter()
                .any(|block| block["text"]["text"].as_str().is_some_and(|text| text.contains("bob")))
        );
        [buttons[0].clone(), buttons[1].clone()]
    }

    fn click(&self, user: &str, button: &Value) -> Value {
        json!({ "type": "block_actions", "user": { "id": user }, "response_url": self.slack.url,
            "actions": [ { "action_id": button["action_id"], "value": button["value"], "type": "button" } ] })
    }

    /// Sends a click as Slack does, signed with a secret.
    async fn send(&self, click: &Value, secret: &str) -> Reply {
        let payload: String = click.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect();
        let body = format!("payload={payload}");
        let at = jiff::Timestamp::now().as_second();
        let mut mac = hmac::Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(format!("v0:{at}:{body}").as_bytes());
        let signature = HEXLOWER.encode(&mac.finalize().into_bytes());
        let headers = format!(
            "content-type: application/x-www-form-urlencoded\r\nx-slack-request-timestamp: {at}\r\nx-slack-signature: v0={signature}\r\n"
        );
        self.server.send("POST", "/v1/channels/slack", &headers, Some(&body)).await
    }

    /// What is shown to a user after a click.
    async fn shown(&self, user: &str, button: &Value) -> Value {
        let before = self.slack.requests().len();
        let reply = self.send(&self.click(user, button), SECRET).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        self.received(before + 1).await.pop().unwrap().body
    }
}

#[tokio::test]
async fn a_click_answers_as_the_approver_whom_the_user_is() {
    let office = Office::open().await;
    for (id, index, text, status) in
        [("c1", 0, "pay: approved by ann", "execute"), ("c2", 1, "pay: denied by ann", "completed")]
    {
        let buttons = office.ask(id, "pay").await;
        let shown = office.shown("U1", &buttons[index]).await;
        assert_eq!((&shown["replace_original"], &shown["text"]), (&json!(true), &json!(text)));
        assert_eq!(shown["blocks"].as_array().map(Vec::len), Some(1), "no buttons are left: {shown}");
        let next = office.server.post("/v1/calls", &call(id, "pay", json!({ "to": "bob" }))).await;
        assert_eq!(next.body["status"], status, "{next:?}");
    }
    let token = office.server.token.clone();
    let activity = office.server.send_as(&token, "GET", "/v1/activity", None).await;
    let answers = activity.body["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["event"] == "answer_recorded");
    let via: Vec<(&Value, &Value)> = answers.map(|event| (&event["by"], &event["via"])).collect();
    assert_eq!(via, [(&json!("ann"), &json!("slack")), (&json!("ann"), &json!("slack"))]);
}

#[tokio::test]
async fn only_what_slack_signs_counts() {
    let office = Office::open().await;
    let [approve, _] = office.ask("c1", "pay").await;
    let click = office.click("U1", &approve);
    assert_eq!(office.send(&click, "another secret").await.status, 401);
    let unsigned = office.server.send("POST", "/v1/channels/slack", "", Some("payload={}")).await;
    assert_eq!(unsigned.status, 401, "{unsigned:?}");
    // Signed, but no click on a button of ours.
    for other in [json!({}), json!({ "type": "view_submission", "user": { "id": "U1" } })] {
        assert_eq!(office.send(&other, SECRET).await.status, 200);
    }
    assert_eq!(office.server.pending().await.len(), 1);
}

#[tokio::test]
async fn a_click_that_may_not_answer_changes_nothing() {
    let office = Office::open().await;
    let [approve, _] = office.ask("c1", "pay").await;
    let [sell, _] = office.ask("c2", "sell").await;
    let mut changed = approve.clone();
    let value =
        changed["value"].as_str().unwrap().rsplit_once(' ').unwrap().0.to_owned() + " 0000000000000000";
    changed.as_object_mut().unwrap().insert("value", value.into());
    for (user, button, note) in [
        ("U9", &approve, "You are not among the approvers"),
        ("U2", &approve, "no such approval request"),
        ("U1", &changed, "the digest is not that of the request"),
        ("U1", &sell, "ann"),
    ] {
        let shown = office.shown(user, button).await;
        assert_eq!(
            (&shown["replace_original"], &shown["response_type"]),
            (&json!(false), &json!("ephemeral"))
        );
        assert!(shown["text"].as_str().unwrap().contains(note), "{note}: {shown}");
    }
    assert_eq!(office.server.pending().await.len(), 2);
    // The first answer counts.
    office.shown("U1", &approve).await;
    let again = office.shown("U1", &approve).await;
    assert_eq!(again["replace_original"], false, "{again}");
    assert_eq!(office.server.pending().await.len(), 1);
}

#[tokio::test]
async fn results_are_shown_only_at_the_origin_of_the_channel() {
    let office = Office::open().await;
    let elsewhere = Upstream::new(|_| Some(response(200, "", ""))).await;
    let [approve, _] = office.ask("c1", "pay").await;
    let mut click = office.click("U1", &approve);
    click.as_object_mut().unwrap().insert("response_url", elsewhere.url.clone().into());
    assert_eq!(office.send(&click, SECRET).await.status, 200);
    for _ in 0..1_000 {
        if office.server.pending().await.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(office.server.pending().await.is_empty(), "the answer counts all the same");
    assert_eq!(elsewhere.requests().len(), 0);
}

#[tokio::test]
async fn a_call_that_a_message_can_not_show_has_no_buttons() {
    let office = Office::open().await;
    let long = json!({ "to": "bob ".repeat(1_000) });
    office.server.post("/v1/calls", &call("c1", "pay", long)).await;
    let message = office.received(1).await.pop().unwrap().body;
    assert!(!message.to_string().contains("action_id"), "{message}");
}

#[test]
fn a_file_whose_buttons_could_mislead_is_rejected() {
    let opened = |channel: &str| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notifications.yaml");
        std::fs::write(
            &path,
            format!("channels: [ {{ type: slack, url: 'https://hooks.slack.com/x', {channel} }} ]"),
        )
        .unwrap();
        NotificationFile::open(&path, |_| Some(SECRET.to_owned())).map_err(|error| error.to_string())
    };
    let person = "approvers: { U1: { principal: ann } }";
    assert!(opened(&format!("signing_secret_env: S, arguments: true, {person}")).is_ok());
    for (channel, why) in [
        (format!("signing_secret_env: S, {person}"), "add `arguments: true`"),
        ("signing_secret_env: S, arguments: true".to_owned(), "nobody may answer in Slack"),
        (format!("arguments: true, {person}"), "add `signing_secret_env`"),
        ("signing_secret_env: S, arguments: true, approvers: { U1: { roles: [a] } }".to_owned(), "principal"),
    ] {
        let error = opened(&channel).unwrap_err();
        assert!(error.contains(why), "{channel}: {error}");
    }
}
