//! The interoperability scenario of the AuthZEN working group: a to-do application with five users and their roles.

use callgate::json::{Value, json};

use super::harness::RunningServer;

/// What the scenario says: everyone reads; administrators and editors create; who has the role `evil_genius` updates anything, an
/// administrator deletes anything; editors update and delete what they own.
const RULES: &str = "callgate: 1
defaults: { unmatched: deny }
data:
  users:
    rick: { email: rick@the-citadel.com, roles: [admin, evil_genius] }
    morty: { email: morty@the-citadel.com, roles: [editor] }
    summer: { email: summer@the-smiths.com, roles: [editor] }
    beth: { email: beth@the-smiths.com, roles: [viewer] }
    jerry: { email: jerry@the-smiths.com, roles: [viewer] }
let:
  user: data.users[context.principal]
  owns: user.email == input.resource.properties.ownerID
policies:
  - { id: read, match: { tool: [can_read_user, can_read_todos], where: [ { expr: user.roles.len() > 0 } ] }, allow: {} }
  - id: create
    match: { tool: can_create_todo, where: [ { expr: '\"admin\" in user.roles || \"editor\" in user.roles' } ] }
    allow: {}
  - id: update
    match: { tool: can_update_todo, where: [ { expr: '\"evil_genius\" in user.roles || (\"editor\" in user.roles && owns)' } ] }
    allow: {}
  - id: delete
    match: { tool: can_delete_todo, where: [ { expr: '\"admin\" in user.roles || (\"editor\" in user.roles && owns)' } ] }
    allow: {}
";

const USERS: [(&str, &str); 5] = [
    ("rick", "rick@the-citadel.com"),
    ("morty", "morty@the-citadel.com"),
    ("summer", "summer@the-smiths.com"),
    ("beth", "beth@the-smiths.com"),
    ("jerry", "jerry@the-smiths.com"),
];

fn todo(owner: &str) -> Value {
    json!({ "type": "todo", "id": "7240d0db-8ff0-41ec-98b2-34a096273b9f", "properties": { "ownerID": owner } })
}

/// The cases of a user: action, resource, and the published decision.
fn cases(user: &str, email: &str) -> Vec<(&'static str, Value, bool)> {
    let (is_rick, is_editor) = (user == "rick", matches!(user, "morty" | "summer"));
    let (ricks, own) = (todo("rick@the-citadel.com"), todo(email));
    let any = json!({ "type": "todo", "id": "todo-1" });
    vec![
        ("can_read_user", json!({ "type": "user", "id": "beth@the-smiths.com" }), true),
        ("can_read_user", json!({ "type": "user", "id": email }), true),
        ("can_read_todos", any.clone(), true),
        ("can_create_todo", any, is_rick || is_editor),
        ("can_update_todo", if is_rick { todo("morty@the-citadel.com") } else { ricks.clone() }, is_rick),
        ("can_update_todo", own.clone(), is_rick || is_editor),
        ("can_delete_todo", if is_rick { todo("morty@the-citadel.com") } else { ricks }, is_rick),
        ("can_delete_todo", own, is_rick || is_editor),
    ]
}

#[tokio::test]
async fn every_case_of_the_scenario_is_decided_as_published() {
    let server = RunningServer::new(RULES).await;
    let mut checked = 0;
    for (user, email) in USERS {
        let subject = json!({ "type": "user", "id": user });
        let cases = cases(user, email);
        for (action, resource, expected) in &cases {
            let body = json!({ "subject": subject, "action": { "name": action }, "resource": resource });
            let reply = server.post("/access/v1/evaluation", &body).await;
            assert_eq!((reply.status, &reply.body["decision"]), (200, &json!(expected)), "{body}: {reply:?}");
            checked += 1;
        }
        // The same cases in one request.
        let evaluations: Vec<Value> = cases
            .iter()
            .map(|(action, resource, _)| json!({ "action": { "name": action }, "resource": resource }))
            .collect();
        let body = json!({ "subject": subject, "evaluations": evaluations });
        let reply = server.post("/access/v1/evaluations", &body).await;
        let decided: Vec<Value> =
            reply.body["evaluations"].as_array().unwrap().iter().map(|one| one["decision"].clone()).collect();
        let expected: Vec<Value> = cases.iter().map(|(_, _, expected)| json!(expected)).collect();
        assert_eq!(decided, expected, "{user}");
    }
    assert_eq!(checked, 40);
    let stranger = json!({ "subject": { "type": "user", "id": "unity" }, "action": { "name": "can_read_todos" },
        "resource": { "type": "todo", "id": "todo-1" } });
    let reply = server.post("/access/v1/evaluation", &stranger).await;
    assert_eq!(reply.body["decision"], false, "{reply:?}");
}
