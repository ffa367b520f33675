//! Links that answer: the buttons of a message open a page, on which an approver who has signed in answers exactly the call of the message.

use callgate::Keys;
use callgate::json::{self, Value, json};
use callgate::seal::Purpose;

use super::approvals_page::run_script;
use super::harness::{KEY, token};
use super::link_office::{LinkOffice, PAGE, assert_refused, link_token};
use crate::gateway_http::harness::{Upstream, response};

const RULES: &str = "policies:
  - { id: ask, match: pay, approval: { message: 'Pay {{ input.to }}?', expires: 1h } }
  - { id: board, match: sell, approval: { message: 'Sell?', expires: 1h, approvers: [bob] } }
  - { id: two, match: send, approval: { message: 'Send?', quorum: 2, approvers: ['role:finance', bob] } }
  - { id: link, match: wire, approval: { message: 'Wire?', answer_by_link: allow } }
";

/// A server whose messages go to Teams.
struct Teams {
    office: LinkOffice,
    receiver: Upstream,
}

/// The links of a message.
struct Links {
    approve: String,
    deny: String,
}

impl Teams {
    async fn open() -> Self {
        let receiver = Upstream::new(|_| Some(response(200, "", ""))).await;
        let file = format!(
            "page: https://approvals.test\nchannels: [ {{ type: teams, url: '{}/secret-path' }} ]",
            receiver.url
        );
        Self { office: LinkOffice::open(RULES, &file, |_| None).await, receiver }
    }

    /// Asks for an approval, and returns the links of the message.
    async fn ask(&self, id: &str, tool: &str, to: &str) -> Links {
        let before = self.receiver.requests().len();
        let reply = self.office.call(id, tool, json!({ "to": to })).await;
        assert_eq!(reply.body["outcome"]["outcome"], "suspended", "{reply:?}");
        self.office.events("notification_sent", before + 1).await;
        let message = self.receiver.requests().pop().unwrap().body;
        let actions = message["attachments"][0]["content"]["actions"].as_array().unwrap().clone();
        let titles: Vec<&Value> = actions.iter().map(|action| &action["title"]).collect();
        assert_eq!(titles, ["Approve", "Deny", "Open the approvals page"]);
        let link = |index: usize| link_token(actions[index]["url"].as_str().unwrap());
        Links { approve: link(0), deny: link(1) }
    }
}

#[tokio::test]
async fn a_link_answers_for_an_approver_who_signs_in() {
    let teams = Teams::open().await;
    let office = &teams.office;
    let ann = office.sign_in("ann").await;
    for (id, approves, status) in [("c1", true, "execute"), ("c2", false, "completed")] {
        let links = teams.ask(id, "pay", "bob").await;
        let link = if approves { &links.approve } else { &links.deny };
        let shown = office.show(link, Some(&ann)).await;
        assert_eq!((shown.status, &shown.body["principal"]), (200, &json!("ann")), "{shown:?}");
        assert_eq!(shown.body["request"]["input"], json!({ "to": "bob" }));
        assert_eq!((&shown.body["signed_in"], &shown.body["has_answered"]), (&json!(true), &json!(false)));
        assert_eq!(office.pending().await, 1, "opening a link answers nothing");
        let answered = office.answer(link, Some(&ann)).await;
        assert_eq!(answered.status, 200, "{answered:?}");
        let next = office.call(id, "pay", json!({ "to": "bob" })).await;
        assert_eq!(next.body["status"], status, "{next:?}");
    }
    let recorded = office.events("answer_recorded", 2).await;
    let what: Vec<_> =
        recorded.iter().map(|event| [&event["decision"], &event["approver"], &event["via"]]).collect();
    assert_eq!(
        what,
        [[&json!("approve"), &json!("ann"), &json!("link")], [&json!("deny"), &json!("ann"), &json!("link")]]
    );
}

#[tokio::test]
async fn a_link_alone_shows_and_answers_nothing() {
    let teams = Teams::open().await;
    let office = &teams.office;
    // Also if the policy allows the links of e-mails: nobody knows who reads a channel of Teams.
    for (id, tool) in [("c1", "pay"), ("c2", "wire")] {
        let links = teams.ask(id, tool, "bob").await;
        for reply in [office.show(&links.approve, None).await, office.answer(&links.deny, None).await] {
            assert_refused(&reply, 401, "sign_in_required");
            assert!(!reply.body.to_string().contains("bob"), "{reply:?}");
        }
    }
    // A token that does not give access to approvals signs nobody in.
    let links = teams.ask("c3", "pay", "bob").await;
    let body = json!({ "link": links.approve });
    let host = office.server.send_as(&token("host"), "POST", "/v1/answer-links", Some(&body)).await;
    assert_refused(&host, 403, "not_from_page");
    assert_eq!(office.pending().await, 3);
}

#[tokio::test]
async fn getting_a_link_changes_nothing_and_reveals_nothing() {
    let teams = Teams::open().await;
    let office = &teams.office;
    let links = teams.ask("c1", "pay", "bob").await;
    let ann = office.sign_in("ann").await;
    let cookie = format!("cookie: {ann}\r\n");
    // What previews and scanners of links do, with and without a person's cookie. Browsers do not send the fragment.
    for headers in ["", &cookie] {
        for method in ["GET", "HEAD"] {
            let page = office.server.send(method, "/answer", headers, None).await;
            assert!(page.status == 200 || method == "HEAD", "{page:?}");
        }
        let page = office.server.send("GET", "/answer", headers, None).await;
        assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
        assert!(page.header("content-security-policy").unwrap().contains("form-action 'none'"));
        assert!(page.header("set-cookie").is_none());
        assert!(!page.body.as_str().unwrap().contains("bob"));
        // Nor does a token in the URL.
        for path in
            [format!("/answer?{}", links.approve), format!("/v1/answer-links/answers?link={}", links.approve)]
        {
            let reply = office.server.send("GET", &path, headers, None).await;
            assert!(
                !reply.head.contains(&links.approve) && !reply.body.to_string().contains("bob"),
                "{reply:?}"
            );
        }
    }
    // A page of another origin has the person's cookie, but not the header of the page.
    let body = json!({ "link": links.approve }).to_string();
    let content = "content-type: application/json\r\n";
    for headers in [
        format!("{content}{cookie}"),
        format!("{content}x-callgate-page: 1\r\norigin: http://localhost:3000\r\n{cookie}"),
    ] {
        let reply = office.server.send("POST", "/v1/answer-links/answers", &headers, Some(&body)).await;
        assert_refused(&reply, 403, "not_from_page");
    }
    assert_eq!(office.pending().await, 1);
}

#[tokio::test]
async fn forged_links_are_refused() {
    let teams = Teams::open().await;
    let office = &teams.office;
    let (links, ann) = (teams.ask("c1", "pay", "bob").await, office.sign_in("ann").await);
    let (approve, deny) = (links.approve.as_str(), links.deny.as_str());
    let half = approve.len() / 2;
    let mixed = format!("{}{}", approve.get(..half).unwrap(), deny.get(half..).unwrap());
    let pending = office.server.send_as(&token("ann"), "GET", "/v1/approvals", None).await;
    let key = pending.body["approvals"][0]["key"].as_str().unwrap().to_owned();
    for forged in ["", "x", approve.trim_start_matches('c'), &mixed, &key, &"a".repeat(20_000)] {
        assert_refused(&office.answer(forged, Some(&ann)).await, 403, "invalid_link");
        assert_refused(&office.show(forged, None).await, 403, "invalid_link");
    }
    let long = office.answer(&"a".repeat(40_000), None).await;
    assert_refused(&long, 413, "too_large");
    assert_eq!(office.pending().await, 1);
}

#[tokio::test]
async fn a_link_follows_the_rules_of_its_request() {
    let teams = Teams::open().await;
    let office = &teams.office;
    let (ann, bob, eve) =
        (office.sign_in("ann").await, office.sign_in("bob").await, office.sign_in("eve").await);
    let sell = teams.ask("c1", "sell", "x").await;
    assert_refused(&office.answer(&sell.approve, Some(&ann)).await, 409, "not_an_approver");
    // Those of another tenant do not learn that there is a request.
    assert_refused(&office.show(&sell.approve, Some(&eve)).await, 404, "not_found");
    assert_eq!(office.answer(&sell.approve, Some(&bob)).await.status, 200);
    // A second use shows who has answered, and changes nothing.
    let again = office.show(&sell.deny, Some(&ann)).await;
    assert_eq!(again.body["request"]["answers"][0]["by"], "bob", "{again:?}");
    let again = office.answer(&sell.deny, Some(&bob)).await;
    assert_refused(&again, 409, "already_answered");
    assert!(again.body["detail"].as_str().unwrap().contains("approved by bob"), "{again:?}");
    // Of a quorum, each approver answers once, whatever link they use.
    let send = teams.ask("c2", "send", "x").await;
    assert_eq!(office.answer(&send.approve, Some(&ann)).await.status, 200);
    assert_eq!(office.show(&send.approve, Some(&ann)).await.body["has_answered"], true);
    for link in [&send.approve, &send.deny] {
        assert_refused(&office.answer(link, Some(&ann)).await, 409, "already_answered");
    }
    let done = office.answer(&send.approve, Some(&bob)).await;
    assert_eq!(done.body["decision"], "approved", "{done:?}");
}

/// A link with another value in one of its members: version, request, digest of the sealed request, digest of the call, choice, end,
/// recipient. Only the server has the keys for this.
fn altered(link: &str, member: usize, value: Value) -> String {
    let keys = Keys::parse(KEY).unwrap();
    let content = keys.decrypt(Purpose::Link, &Value::Null, link).unwrap();
    let mut members = json::parse_bytes(&content).unwrap().as_array().unwrap().clone();
    members[member] = value;
    keys.encrypt(Purpose::Link, &Value::Null, Value::Array(members).to_string().as_bytes()).unwrap()
}

#[tokio::test]
async fn a_link_is_only_for_the_call_of_its_message() {
    let teams = Teams::open().await;
    let office = &teams.office;
    let ann = office.sign_in("ann").await;
    let first = teams.ask("c1", "pay", "bob").await;
    let second = teams.ask("c1", "pay", "mallory").await;
    for (member, value, status, code) in [
        (1, json!("other/approval_c1"), 404, "not_found"),
        (2, json!("another request"), 409, "changed"),
        (3, json!("0000000000000000"), 409, "changed"),
        (5, json!("2026-01-01T00:00:00Z"), 410, "link_expired"),
        (6, json!(["bob@example.com", "bob"]), 403, "other_recipient"),
        (4, json!("cancel"), 403, "invalid_link"),
        (0, json!(2), 403, "invalid_link"),
    ] {
        let link = altered(&first.approve, member, value);
        assert_refused(&office.show(&link, Some(&ann)).await, status, code);
        assert_refused(&office.answer(&link, Some(&ann)).await, status, code);
    }
    assert_eq!(office.pending().await, 2);
    // Of two calls with the same id, each link answers its own.
    assert_eq!(office.show(&second.approve, Some(&ann)).await.body["request"]["input"]["to"], "mallory");
    assert_eq!(office.answer(&first.approve, Some(&ann)).await.status, 200);
    let next = office.call("c1", "pay", json!({ "to": "mallory" })).await;
    assert_eq!(next.body["outcome"]["outcome"], "suspended", "{next:?}");
    assert_eq!(office.pending().await, 1);
}

#[tokio::test]
async fn logs_and_hosts_names_do_not_reach_links() {
    let teams = Teams::open().await;
    let office = &teams.office;
    let links = teams.ask("c1", "pay", "bob").await;
    let ann = office.sign_in("ann").await;
    office.answer(&links.approve, Some(&ann)).await;
    // `Teams::ask` asserts that links lead to the configured page, whatever hosts callers name.
    let evil = office
        .server
        .send("POST", "/v1/answer-links", &format!("host: evil.test\r\n{}", PAGE), Some("{}"))
        .await;
    assert_eq!(evil.status, 403, "{evil:?}");
    let text = office.log_text();
    for secret in [links.approve.as_str(), links.deny.as_str(), "secret-path", "127.0.0.1"] {
        assert!(!text.contains(secret), "{text}");
    }
    let sent = office.events("notification_sent", 1).await;
    let members = ["channel", "about", "tool", "id"].map(|name| sent[0][name].as_str().unwrap());
    assert_eq!(members, ["teams", "approval_requested", "pay", "c1"]);
    assert_eq!((&sent[0]["channel_number"], &sent[0]["attempts"]), (&json!(1), &json!(1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn approvers_follow_links_in_a_browser() {
    let teams = Teams::open().await;
    let office = &teams.office;
    let hostile = "<img src=x onerror=\"window.injected=true\"><b>bold</b> \u{202e}tner";
    let links = teams.ask("c1", "pay", hostile).await;
    let address = format!("http://{}", office.server.address);
    let found = run_script("answer.mjs", vec![address.clone(), links.approve, token("ann")]).await;
    for member in ["errors", "violations", "leaks"] {
        assert_eq!(found[member], json!([]), "{found}");
    }
    assert_eq!(found["address"], format!("{address}/answer"), "the token does not stay in the address");
    assert_eq!((&found["buttons"], &found["injected"]), (&json!(["Approve"]), &json!(false)));
    let text = found["text"].as_str().unwrap();
    assert!(
        text.contains("<b>bold</b>") && text.contains("\\u{202e}") && !text.contains('\u{202e}'),
        "{text}"
    );
    assert!(found["after"].as_str().unwrap().contains("ann approved: fine"), "{found}");
    assert_eq!(office.call("c1", "pay", json!({ "to": hostile })).await.body["status"], "execute");
}
