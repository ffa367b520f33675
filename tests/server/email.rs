//! Messages by e-mail, sent to a real mail server with STARTTLS and authentication; their links answer for one person, once.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use callgate::json::{self, Value, json};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use tempfile::TempDir;

use super::harness::token;
use super::link_office::{LinkOffice, assert_refused, link_token};
use crate::fixtures::root;
use crate::packages;

const PASSWORD: &str = "mail-password";

const RULES: &str = "policies:
  - { id: ask, match: pay, approval: { message: 'Pay {{ input.to }}?', expires: 1h, approvers: [ann, bob], answer_by_link: allow } }
  - { id: board, match: sell, approval: { message: 'Sell?', expires: 1h, approvers: [ann] } }
  - { id: first, match: both, approval: { approvers: [ann], answer_by_link: allow } }
  - { id: second, match: both, approval: { approvers: [ann] } }
  - { id: two, match: send, approval: { approvers: [ann, bob], quorum: 2, answer_by_link: allow } }
";

const APPROVERS: &str = "{ ann@example.com: { principal: ann }, bob@example.com: { principal: bob }, \
    eve@example.com: { principal: eve, tenant: other } }";

/// A mail server with the messages that it has received.
struct MailServer {
    process: Child,
    port: u16,
    received: Arc<Mutex<Vec<Value>>>,
    folder: TempDir,
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl MailServer {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![SanType::DnsName("localhost".try_into().unwrap())];
        let certificate = params.signed_by(&key, &authority).unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("ca.pem", &authority.pem());
        write("server.pem", &certificate.pem());
        write("server.key", &key.serialize_pem());
        let scripts = root().join("tests/server/smtp");
        let home = packages::python("smtp", &scripts.join("requirements.txt"));
        let mut process = Command::new(home.join("bin/python"))
            .arg(scripts.join("server.py"))
            .args(["server.pem", "server.key"].map(|name| folder.path().join(name)))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = lines.next().expect("the mail server starts").unwrap().parse().unwrap();
        let received = Arc::<Mutex<Vec<Value>>>::default();
        let messages = Arc::clone(&received);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                messages.lock().unwrap().push(json::parse(&line).unwrap());
            }
        });
        Self { process, port, received, folder }
    }

    /// A notification file with a channel of this server. `more`: further keys of the channel.
    fn file(&self, approvers: &str, more: &str) -> String {
        let (port, ca) = (self.port, self.folder.path().join("ca.pem"));
        format!(
            "page: https://approvals.test\nchannels:\n  - {{ type: email, url: 'smtp://localhost:{port}', from: 'callgate@example.com', \
             user: callgate, password_env: MAIL_PASSWORD, ca_file: '{}', approvers: {approvers}, {more} }}",
            ca.display()
        )
    }

    /// The message to an address, once it has arrived.
    async fn message(&self, to: &str, count: usize) -> Email {
        for _ in 0..2_000 {
            let received = self.received.lock().unwrap().clone();
            let to_them: Vec<&Value> =
                received.iter().filter(|message| message["to"] == json!([to])).collect();
            if to_them.len() >= count {
                return Email(to_them[count - 1].clone());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{to} got no message {count}: {:?}", self.received.lock().unwrap());
    }

    fn recipients(&self) -> Vec<String> {
        let received = self.received.lock().unwrap();
        let mut all: Vec<String> =
            received.iter().map(|message| message["to"][0].as_str().unwrap().to_owned()).collect();
        all.sort();
        all
    }
}

/// A received message.
struct Email(Value);

impl Email {
    fn headers(&self, name: &str) -> Vec<&str> {
        let all = self.0["headers"].as_array().unwrap().iter();
        all.filter(|header| header[0] == name).map(|header| header[1].as_str().unwrap()).collect()
    }

    fn part(&self, kind: &str) -> &str {
        let parts = self.0["parts"].as_array().unwrap();
        parts.iter().find(|part| part[0] == kind).unwrap()[1].as_str().unwrap()
    }

    /// The tokens of the links: approve and deny.
    fn links(&self) -> [String; 2] {
        let text = self.part("text/plain");
        let link = |label: &str| {
            let mut lines = text.lines().skip_while(|line| *line != label);
            link_token(lines.nth(1).unwrap_or_else(|| panic!("{text}")))
        };
        let links = [link("Approve:"), link("Deny:")];
        let html = self.part("text/html");
        assert!(
            links.iter().all(|link| html.contains(&format!("\"https://approvals.test/answer#{link}\""))),
            "{html}"
        );
        links
    }
}

fn password(name: &str) -> Option<String> {
    (name == "MAIL_PASSWORD").then(|| PASSWORD.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approver_answers_once_by_the_link_of_an_e_mail() {
    let mail = MailServer::start();
    let office = LinkOffice::open(RULES, &mail.file(APPROVERS, "arguments: true"), password).await;
    office.call("c1", "pay", json!({ "to": "carol" })).await;
    let message = mail.message("ann@example.com", 1).await;
    assert_eq!((&message.0["tls"], &message.0["user"]), (&json!(true), &json!("callgate")));
    assert_eq!((&message.0["defects"], &message.0["from"]), (&json!([]), &json!("callgate@example.com")));
    assert_eq!(message.headers("auto-submitted"), ["auto-generated"]);
    assert_eq!(message.headers("subject"), ["Approve pay? (session s1)"]);
    assert!(message.part("text/plain").contains("| Pay carol?"), "{:?}", message.0);
    let [approve, deny] = message.links();
    // Whoever has the link is its recipient.
    let shown = office.show(&approve, None).await;
    assert_eq!((shown.status, &shown.body["principal"]), (200, &json!("ann")), "{shown:?}");
    assert_eq!(shown.body["signed_in"], false);
    assert_eq!(office.pending().await, 1, "opening a link answers nothing");
    // Another person who is signed in does not answer in ann's name, nor in their own.
    let bob = office.sign_in("bob").await;
    assert_refused(&office.show(&approve, Some(&bob)).await, 403, "other_recipient");
    assert_refused(&office.answer(&approve, Some(&bob)).await, 403, "other_recipient");
    let answered = office.answer(&approve, None).await;
    assert_eq!(answered.body["decision"], "approved", "{answered:?}");
    for link in [&approve, &deny] {
        let again = office.answer(link, None).await;
        assert_refused(&again, 409, "already_answered");
        assert!(again.body["detail"].as_str().unwrap().contains("approved by ann"), "{again:?}");
        assert_eq!(office.show(link, None).await.body["request"]["answers"][0]["by"], "ann");
    }
    assert_eq!(office.call("c1", "pay", json!({ "to": "carol" })).await.body["status"], "execute");
    let recorded = office.events("answer_recorded", 1).await;
    assert_eq!((&recorded[0]["approver"], &recorded[0]["via"]), (&json!("ann"), &json!("email")));
    let sent = office.events("notification_sent", 2).await;
    let mut to: Vec<&str> = sent.iter().map(|event| event["recipient"].as_str().unwrap()).collect();
    to.sort_unstable();
    assert_eq!(to, ["ann", "bob"], "each approver gets a message; those of other tenants get none");
    let text = office.log_text();
    for secret in [PASSWORD, &approve, "example.com", "localhost"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    assert_eq!(*office.warnings.lock().unwrap(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_alone_answers_only_if_every_policy_allows_it() {
    let mail = MailServer::start();
    let office = LinkOffice::open(RULES, &mail.file(APPROVERS, ""), password).await;
    let ann = office.sign_in("ann").await;
    for (count, tool) in [(1, "sell"), (2, "both")] {
        office.call(tool, tool, json!({})).await;
        let [approve, deny] = mail.message("ann@example.com", count).await.links();
        for link in [&approve, &deny] {
            assert_refused(&office.show(link, None).await, 401, "sign_in_required");
            assert_refused(&office.answer(link, None).await, 401, "sign_in_required");
        }
        assert_eq!(office.answer(&approve, Some(&ann)).await.status, 200);
    }
    assert_eq!(
        mail.recipients(),
        ["ann@example.com", "ann@example.com"],
        "only those who may answer get messages"
    );
    // A quorum needs the links of several people.
    office.call("c3", "send", json!({})).await;
    let [first, _] = mail.message("ann@example.com", 3).await.links();
    let [second, _] = mail.message("bob@example.com", 1).await.links();
    assert_eq!(office.answer(&first, None).await.body["stage"], "waiting");
    assert_refused(&office.answer(&first, None).await, 409, "already_answered");
    assert_eq!(office.answer(&second, None).await.body["decision"], "approved");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn approvers_of_a_tenant_get_the_messages_of_that_tenant() {
    let mail = MailServer::start();
    let approvers =
        "{ ann@example.com: { principal: ann }, eve@example.com: { principal: eve, tenant: other } }";
    let rules = "policies: [ { id: ask, match: pay, approval: { answer_by_link: allow } }, { id: hide, match: pay, redact: { patterns: [ other ] } } ]";
    let office = LinkOffice::open(rules, &mail.file(approvers, ""), password).await;
    office.call("c1", "pay", json!({ "to": "carol" })).await;
    let body = json!({ "call": { "id": "c2", "tool": "pay", "input": { "to": "other" } }, "session": "s2",
        "context": { "principal": "agent", "tenant": "other" } });
    office.server.send_as(&token("host"), "POST", "/v1/calls", Some(&body)).await;
    let [approve, _] = mail.message("eve@example.com", 1).await.links();
    mail.message("ann@example.com", 2).await;
    assert_eq!(mail.recipients(), ["ann@example.com", "ann@example.com", "eve@example.com"]);
    let recorded = office.answer(&approve, None).await;
    assert_eq!(recorded.body["answers"][0]["by"], "eve", "{recorded:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_of_calls_are_neither_headers_nor_markup_nor_links() {
    let mail = MailServer::start();
    let templates = "arguments: true, templates: { approval_requested: { title: 'Please {{ tool }}: {{ message }}', \
        text: '<b>{{ message }}</b>', footer: 'See https://wiki.example.com/approvals' } }";
    let office = LinkOffice::open(RULES, &mail.file(APPROVERS, templates), password).await;
    let hostile = "x\r\nBcc: mallory@evil.test\r\n\r\n<script>alert(1)</script> https://evil.test/answer \u{202e}p\u{430}y ".to_owned()
        + &"long ".repeat(5_000);
    office.call("c1", "pay", json!({ "to": hostile, "\r\nBcc: b": "<img src=x>" })).await;
    let message = mail.message("ann@example.com", 1).await;
    assert_eq!(message.0["defects"], json!([]));
    assert_eq!(message.headers("bcc"), Vec::<&str>::new());
    mail.message("bob@example.com", 1).await;
    assert_eq!(mail.recipients().len(), 2);
    let (plain, html) = (message.part("text/plain"), message.part("text/html"));
    let subject = message.headers("subject")[0];
    for text in [plain, html, subject] {
        assert!(
            !text.contains("https://evil.test") && !text.contains("<script") && !text.contains('\u{202e}'),
            "{text}"
        );
        assert!(text.chars().count() < 16_000, "{}", text.len());
    }
    assert!(subject.starts_with("Please pay: Pay x"), "{subject}");
    assert!(!html.contains("<img") && html.contains("&lt;b&gt;Pay x"), "{html}");
    assert!(plain.contains("https://wiki.example.com/approvals"), "{plain}");
    // The links come before everything that the call says.
    assert!(plain.find("https://approvals.test/answer#") < plain.find("| "), "{plain}");
    message.links();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_are_reported_without_addresses_and_passwords() {
    let mail = MailServer::start();
    let approvers = "{ gone@example.com: { principal: ann }, busy@example.com: { principal: bob } }";
    let office = LinkOffice::open(RULES, &mail.file(approvers, ""), password).await;
    office.call("c1", "pay", json!({ "to": "carol" })).await;
    let failed = office.events("notification_failed", 1).await;
    assert_eq!((&failed[0]["recipient"], &failed[0]["attempts"]), (&json!("ann"), &json!(1)));
    assert_eq!(failed[0]["message"], "the mail server refused it with the code 550");
    // Another attempt is made after a failure that may pass.
    let sent = office.events("notification_sent", 1).await;
    assert_eq!((&sent[0]["recipient"], &sent[0]["attempts"]), (&json!("bob"), &json!(2)));
    let wrong = |_: &str| Some("another-password".to_owned());
    let refused = LinkOffice::open(RULES, &mail.file(APPROVERS, ""), wrong).await;
    refused.call("c1", "pay", json!({ "to": "carol" })).await;
    refused.events("notification_failed", 2).await;
    for office in [&office, &refused] {
        let text = format!("{}\n{:?}", office.log_text(), office.warnings.lock().unwrap());
        for secret in ["another-password", PASSWORD, "@example.com"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
    let warnings = refused.warnings.lock().unwrap().join("\n");
    assert!(
        warnings.contains("email at localhost: the mail server refused it with the code 535"),
        "{warnings}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_server_must_prove_its_name() {
    let mail = MailServer::start();
    // Another authority.
    let other =
        CertifiedIssuer::self_signed(CertificateParams::default(), KeyPair::generate().unwrap()).unwrap();
    let path = mail.folder.path().join("other.pem");
    std::fs::write(&path, other.pem()).unwrap();
    let file = mail.file(APPROVERS, "").replace("/ca.pem", "/other.pem");
    let office = LinkOffice::open(RULES, &file, password).await;
    office.call("c1", "sell", json!({})).await;
    let failed = office.events("notification_failed", 1).await;
    let message = failed[0]["message"].as_str().unwrap();
    assert!(message.starts_with("the certificate of the mail server is not trusted"), "{message}");
    assert_eq!(mail.recipients(), Vec::<String>::new());
}
