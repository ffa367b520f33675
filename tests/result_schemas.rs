//! `outputSchema`: facts and labels of results that do not fit it.

use callgate::json::{Value, json};
use callgate::{Engine, ToolDescriptor};

use crate::fixtures::{Tool, call, kind_and_code, noon, run};

const RULES: &str = "
policies:
  - { id: keep, match: look, fact: { name: owner, value: result.owner } }
  - { id: mark, match: { tool: look, where: { path: $.result.owner, eq: eve } }, label: { add: [untrusted] } }
  - { id: own, match: { tool: pay, where: { path: $.session.facts.owner, ne: ana } }, deny: { code: other } }
  - { id: trusted, match: { tool: send, where: { path: '$.session.labels[*]', eq: untrusted } }, deny: { code: untrusted } }
";

/// The codes of a payment and of a message after a look-up with this result.
fn codes_after(output: Value, schema: Option<Value>) -> [String; 2] {
    let clock = noon();
    let tool: ToolDescriptor =
        callgate::json::from_value(json!({ "name": "look", "outputSchema": schema })).unwrap();
    let rules = callgate::load_text(RULES).unwrap();
    let engine = Engine::builder(rules).clock(clock.clone()).tools([tool]).build();
    let executor = Tool::scripted(&clock, [(std::time::Duration::ZERO, Ok(output))]);
    let calls = ["look", "pay", "send"].map(|name| call(name, json!({})));
    let outcomes = run(&clock, &mut engine.session(), &executor, &calls);
    [1, 2].map(|index: usize| kind_and_code(&outcomes[index]).1.to_owned())
}

#[test]
fn result_that_does_not_fit_its_schema_is_undecided() {
    let schema = json!({ "type": "object", "required": ["owner"], "properties": { "owner": { "enum": ["ana", "eve"] } } });
    let content = |owner: &str| json!({ "structuredContent": { "owner": owner } });
    let codes = |output: Value| codes_after(output, Some(schema.clone()));
    assert_eq!(codes(content("ana")), ["unmatched", "unmatched"]);
    assert_eq!(codes(content("eve")), ["other", "untrusted"]);
    for output in
        [content("Eve"), json!({ "structuredContent": {} }), json!("nothing found"), json!({ "owner": 7 })]
    {
        assert_eq!(codes(output.clone()), ["undecided", "undecided"], "{output}");
    }
    // Without a schema, the result is read as it is.
    assert_eq!(codes_after(content("Eve"), None), ["other", "unmatched"]);
    // No result fits an invalid schema.
    assert_eq!(codes_after(content("ana"), Some(json!({ "type": 7 }))), ["undecided", "undecided"]);
}
