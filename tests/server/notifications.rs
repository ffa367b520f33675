//! Messages about approvals: their formats, signatures, retries, and what they must not do.

use std::sync::Arc;
use std::time::Duration;

use callgate::json::{self, Value, json};
use callgate::{Engine, Keys, ToolCall, load_text};
use callgate_server::{NotificationFile, NotificationTasks, Notifier};
use data_encoding::BASE64;
use hmac::{KeyInit, Mac};
use sha2::Sha256;
use std::sync::Mutex;

use super::harness::KEY;
use crate::fixtures::Tool;
use crate::gateway_http::harness::{Action, ReceivedRequest, Upstream, response};

const RULES: &str = "policies:
  - id: ask
    match: pay
    approval: { message: 'Pay {{ input.to }}?', expires: 1h }
  - { id: cards, match: pay, redact: { detect: [payment_card] } }
";

const SECRET: &str = "a-secret-of-more-than-24-bytes";

/// The lines for the operator.
type Log = Arc<Mutex<Vec<String>>>;

/// Sends messages of an engine as a file says.
fn notifier(file: &str) -> (Notifier, NotificationTasks, Log) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notifications.yaml");
    std::fs::write(&path, file).unwrap();
    let variable = |name: &str| (name == "SECRET").then(|| SECRET.to_owned());
    let file = NotificationFile::open(&path, variable).unwrap_or_else(|error| panic!("{error}"));
    let log = Log::default();
    let lines = Arc::clone(&log);
    let (notifier, tasks) = Notifier::start(file, Keys::parse(KEY).unwrap(), move |line| {
        lines.lock().unwrap().push(line.to_owned())
    });
    (notifier, tasks, log)
}

async fn ask(notifier: Notifier, to: &str) {
    let rules = load_text(RULES).unwrap();
    let engine = Engine::builder(rules).keys(Keys::parse(KEY).unwrap()).observer(notifier).build();
    let call = ToolCall::new("c1", "pay", json!({ "to": to, "card": "4111 1111 1111 1111" }));
    let tool = Tool::counting(&crate::fixtures::noon());
    let outcome = engine.session().with_name("chat 7").execute(call, &tool).await;
    assert!(outcome.approval.is_some(), "{outcome:?}");
}

/// What receivers get for one request with this file, in which `URL` stands for the receiver's.
async fn received(file: &str, to: &str) -> Vec<ReceivedRequest> {
    let receiver = Upstream::new(|_| Some(response(200, "", ""))).await;
    let (notifier, tasks, log) = notifier(&file.replace("URL", &receiver.url));
    ask(notifier, to).await;
    tasks.finish().await;
    assert_eq!(*log.lock().unwrap(), Vec::<String>::new());
    receiver.requests()
}

#[tokio::test]
async fn webhooks_are_signed_and_redacted() {
    let file = "page: https://approvals.test/\nchannels: [ { type: webhook, url: 'URL', secret_env: SECRET, arguments: true } ]";
    let got = received(file, "bob").await;
    assert_eq!(got.len(), 1);
    let [request] = got.as_slice() else { panic!("{got:?}") };
    let header = |name: &str| request.header(name).unwrap_or_else(|| panic!("{name}"));
    let body = request.body.to_string();
    let mut mac = hmac::Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(format!("{}.{}.{body}", header("webhook-id"), header("webhook-timestamp")).as_bytes());
    let expected = format!("v1,{}", BASE64.encode(&mac.finalize().into_bytes()));
    assert_eq!(header("webhook-signature"), expected);
    let data = &request.body["data"];
    assert_eq!((&request.body["type"], &data["tool"]), (&json!("approval_requested"), &json!("pay")));
    assert_eq!((&data["session"], &data["message"]), (&json!("chat 7"), &json!("Pay bob?")));
    assert_eq!(data["input"]["card"], "[payment_card]");
    assert_eq!(data["link"], "https://approvals.test/#search=pay");
    for name in ["approve_link", "deny_link"] {
        assert!(data[name].as_str().unwrap().starts_with("https://approvals.test/answer#cg2."), "{data}");
    }
    assert!(!body.contains("4111"), "{body}");
}

#[tokio::test]
async fn chat_products_get_plain_text_without_arguments() {
    let hostile = "<!channel> <https://evil.test|click> *bold* [x](https://evil.test)\u{202e}";
    for kind in ["slack", "teams", "ntfy"] {
        let file = format!("page: https://approvals.test\nchannels: [ {{ type: {kind}, url: 'URL' }} ]");
        let got = received(&file, hostile).await;
        let body = &got[0].body;
        let text = body.to_string();
        assert!(text.contains("Pay <!channel>") && text.contains("https://approvals.test"), "{kind}: {text}");
        assert!(!text.contains('\u{202e}') && !text.contains("payment_card"), "{kind}: {text}");
        // Nothing that the receiver reads as markup has text of the call.
        assert!(!text.contains("mrkdwn") && !text.contains("TextBlock\",\"text"), "{kind}: {text}");
        if kind == "slack" {
            assert!(!body["text"].as_str().unwrap().contains('<'), "{text}");
        }
        if kind == "ntfy" {
            assert_eq!(body["topic"], "mcp");
            assert_eq!(
                (&body["actions"][0]["action"], &body["actions"][1]["label"]),
                (&json!("view"), &json!("Deny"))
            );
        }
    }
}

#[tokio::test]
async fn templates_set_texts_and_nothing_else() {
    let hostile = "<!channel> \u{202e} {{ tool }}";
    for kind in ["slack", "teams", "ntfy"] {
        let file = format!(
            "page: https://approvals.test\nchannels: [ {{ type: {kind}, url: 'URL', arguments: true, templates: {{ approval_requested: \
             {{ title: 'In {{{{ session }}}}: {{{{ tool }}}}', text: \"{{{{ message }}}}\\nAsk finance.\", footer: 'By {{{{ policies }}}} until {{{{ expires_at }}}}' }} }} }} ]"
        );
        let got = received(&file, hostile).await;
        let text = got[0].body.to_string();
        for part in ["In chat 7: pay", "{{ tool }}?\\nAsk finance.", "By ask until 20", "payment_card"] {
            assert!(text.contains(part), "{kind}, {part}: {text}");
        }
        assert!(
            !text.contains('\u{202e}') && text.contains("https://approvals.test/#search=pay"),
            "{kind}: {text}"
        );
        assert_eq!(text.contains("https://approvals.test/answer#"), kind != "slack", "{kind}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn failures_that_may_pass_are_tried_again_with_the_same_id() {
    let answers = Mutex::new(vec![200, 429, 503]);
    let receiver = Upstream::new(move |_| {
        let status = answers.lock().unwrap().pop().unwrap_or(200);
        Some(response(status, "", ""))
    })
    .await;
    let file = format!("channels: [ {{ type: webhook, url: '{}', secret_env: SECRET }} ]", receiver.url);
    let (notifier, tasks, log) = notifier(&file);
    ask(notifier, "bob").await;
    while receiver.requests().len() < 3 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tasks.finish().await;
    let ids: Vec<String> =
        receiver.requests().iter().map(|request| request.header("webhook-id").unwrap().to_owned()).collect();
    assert!(ids.len() == 3 && ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(*log.lock().unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_refusal_is_reported_without_the_secret_url() {
    let receiver = Upstream::new(|_| Some(response(404, "", ""))).await;
    let (notifier, tasks, log) =
        notifier(&format!("channels: [ {{ type: slack, url: '{}/secret-path' }} ]", receiver.url));
    ask(notifier, "bob").await;
    tasks.finish().await;
    let log = log.lock().unwrap().join("\n");
    assert!(log.contains("slack at 127.0.0.1: status 404") && !log.contains("secret-path"), "{log}");
    assert_eq!(receiver.requests().len(), 1, "a refusal does not pass");
}

#[tokio::test]
async fn a_receiver_that_hangs_delays_no_call() {
    let release = Arc::new(tokio::sync::Notify::new());
    let held = Arc::clone(&release);
    let receiver = Upstream::new(move |_| Some(vec![Action::Hold(Arc::clone(&held))])).await;
    let file = format!(
        "channels: [ {{ type: slack, url: '{0}' }}, {{ type: webhook, url: '{0}', secret_env: SECRET, events: [approval_answered] }} ]",
        receiver.url
    );
    let (notifier, tasks, _) = notifier(&file);
    tokio::time::timeout(Duration::from_secs(30), ask(notifier, "bob"))
        .await
        .expect("the call does not wait");
    drop(tasks);
    release.notify_waiters();
}

#[test]
fn invalid_files_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notifications.yaml");
    for (file, expected) in [
        ("channels: []", "channels"),
        ("channels: [ { type: slack } ]", "`url` or `url_env` is missing"),
        ("channels: [ { type: slack, url: 'http://hooks.example.com/x' } ]", "over TLS only"),
        ("channels: [ { type: webhook, url: 'https://a.test' } ]", "`secret_env` is missing"),
        ("channels: [ { type: webhook, url: 'https://a.test', secret_env: SHORT } ]", "too short"),
        ("channels: [ { type: slack, url_env: NONE } ]", "not set or empty"),
        ("channels: [ { type: pager, url: 'https://a.test' } ]", "type"),
        ("page: approvals\nchannels: [ { type: slack, url: 'https://a.test' } ]", "this is not a URL"),
        (
            "page: 'https://a.test/path'\nchannels: [ { type: slack, url: 'https://a.test' } ]",
            "a scheme, a host and a port only",
        ),
        (
            "page: 'https://a:b@a.test'\nchannels: [ { type: slack, url: 'https://a.test' } ]",
            "a scheme, a host and a port only",
        ),
        ("page: 'http://a.test'\nchannels: [ { type: slack, url: 'https://a.test' } ]", "over TLS"),
        (
            "channels: [ { type: teams, url: 'https://a.test', from: a@a.test } ]",
            "only for channels of the type `email`",
        ),
        ("channels: [ { type: email, url: 'smtp://a.test', from: a@a.test } ]", "whose URL is missing"),
        (
            "page: 'https://a.test'\nchannels: [ { type: email, url: 'smtp://a.test', from: a@a.test } ]",
            "nobody gets the messages",
        ),
        (
            "page: 'https://a.test'\nchannels: [ { type: email, url: 'smtp://a.test', approvers: { a@a.test: { principal: a } } } ]",
            "`from` is missing",
        ),
        (
            "page: 'https://a.test'\nchannels: [ { type: email, url: 'https://a.test', from: a@a.test, approvers: { a@a.test: { principal: a } } } ]",
            "not the URL of a mail server",
        ),
        (
            "page: 'https://a.test'\nchannels: [ { type: email, url: 'smtp://u:SECRET@a.test', from: a@a.test, approvers: { a@a.test: { principal: a } } } ]",
            "a host and a port only",
        ),
        (
            "page: 'https://a.test'\nchannels: [ { type: email, url: 'smtp://a.test', from: a@a.test, user: u, approvers: { a@a.test: { principal: a } } } ]",
            "needed together",
        ),
        (
            "page: 'https://a.test'\nchannels: [ { type: email, url: 'smtp://a.test', from: a@a.test, approvers: { \"a@a.test\\nBcc: b@b.test\": { principal: a } } } ]",
            "not an e-mail address",
        ),
        (
            "page: 'https://a.test'\nchannels: [ { type: email, url: 'smtp://a.test', from: a@a.test, ca_file: none.pem, approvers: { a@a.test: { principal: a } } } ]",
            "can't be read",
        ),
        (
            "channels: [ { type: slack, url: 'https://a.test', templates: { approval_requested: { title: '{{ tol }}' } } } ]",
            "the values of `approval_requested` messages are `tool`, `server`",
        ),
        (
            "channels: [ { type: slack, url: 'https://a.test', templates: { approval_answered: { text: '{{ input.card }}' } } } ]",
            "the values of `approval_answered` messages are `tool`, `session`",
        ),
        (
            "channels: [ { type: slack, url: 'https://a.test', templates: { approval_requested: { footer: '{{ tool' } } } ]",
            "not closed",
        ),
    ] {
        std::fs::write(&path, file).unwrap();
        let variable = |name: &str| (name == "SHORT").then(|| "short".to_owned());
        let error = NotificationFile::open(&path, variable).unwrap_err().to_string();
        assert!(error.contains(expected), "{file}: {error}");
    }
    let schema: Value = json::json!(callgate_server::notification_record().name);
    assert_eq!(schema, "notifications");
}
