//! Results as data (`results:`): a server whose tools return texts, read in the format that the rules declare and checked against the
//! tool's `outputSchema`.

use callgate::json::{Value, json};

use super::harness::{RunningGateway, STATELESS_VERSION, Upstream, json_response, result, stateless_request};

const RULES: &str = "
groups: { exports: ['export_*'] }
results: { get_order: json, '@exports': yaml, get_note: text }
policies:
  - { id: keep-order, match: get_order, fact: { name: total, key: input.order, value: result.total } }
  - { id: hide-card, match: get_order, transform: { output: [ { path: $.result.card, remove: true } ] } }
  - { id: keep-stock, match: '@exports', fact: { name: stock, value: result.stock } }
  - { id: keep-note, match: get_note, fact: { name: note, value: $.result } }
  - { id: within-total, match: { tool: pay, where: 'input.amount > session.facts.total[input.order]' }, deny: { code: over } }
  - { id: in-stock, match: { tool: ship, where: input.count > session.facts.stock }, deny: { code: stock } }
  - { id: plain-notes, match: { tool: file, where: { path: $.session.facts.note, type: object } }, deny: { code: object } }
";

/// A server whose tools return their argument `text`.
async fn upstream() -> Upstream {
    Upstream::new(|got| match got.method() {
        "tools/list" => {
            let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
            let mut order = tool("get_order");
            order["outputSchema"] = json!({ "type": "object", "required": ["total"],
                "properties": { "total": { "type": "number" }, "card": { "type": "string" } } });
            let others = ["export_stock", "get_note", "pay", "ship", "file"].map(tool);
            let tools: Vec<Value> = std::iter::once(order).chain(others).collect();
            Some(json_response(&result(got, json!({ "tools": tools, "resultType": "complete" }))))
        }
        "tools/call" => {
            let text = &got.body["params"]["arguments"]["text"];
            let content = json!([{ "type": "text", "text": text.as_str().unwrap_or("done") }]);
            Some(json_response(&result(got, json!({ "content": content, "resultType": "complete" }))))
        }
        _ => None,
    })
    .await
}

/// The conversation of one agent.
struct Agent<'g> {
    served: &'g RunningGateway,
    name: &'static str,
}

impl Agent<'_> {
    async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.served.call(&[("x-conversation", self.name)], tool, arguments).await.json()
    }

    /// The code with which a call is stopped; null if it runs.
    async fn code(&self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).await["result"]["_meta"]["dev.callgate/outcome"]["code"].clone()
    }
}

async fn gateway(upstream: &Upstream) -> RunningGateway {
    let from = "header:X-Conversation".parse().unwrap();
    let served =
        RunningGateway::with(&upstream.url, RULES, |server| server.with_session_name_source(from)).await;
    // The gateway learns the schemas of the server's tools from its list.
    let headers = [("mcp-protocol-version", STATELESS_VERSION), ("mcp-method", "tools/list")];
    let listed =
        served.post(&headers, &stateless_request(1, "tools/list", json!({})).to_string()).await.json();
    assert!(listed["result"]["tools"].is_array(), "{listed}");
    served
}

#[tokio::test]
async fn text_results_are_read_in_their_declared_format() {
    let upstream = upstream().await;
    let served = gateway(&upstream).await;
    let agent = Agent { served: &served, name: "one" };
    let order = json!({ "order": 7, "text": r#"{"total": 100, "card": "4111"}"# });
    let shown = agent.call("get_order", order).await;
    assert_eq!(shown["result"]["content"][0]["text"], r#"{"total":100}"#, "{shown}");
    assert_eq!(agent.code("pay", json!({ "order": "7", "amount": 100 })).await, json!(null));
    assert_eq!(agent.code("pay", json!({ "order": 7, "amount": 100.01 })).await, "over");
    agent.call("export_stock", json!({ "text": "# stock of today\nstock: 5\n" })).await;
    assert_eq!(agent.code("ship", json!({ "count": 5 })).await, json!(null));
    assert_eq!(agent.code("ship", json!({ "count": 6 })).await, "stock");
    // Declared as text, so it is one, whatever it looks like.
    agent.call("get_note", json!({ "text": r#"{"a": 1}"# })).await;
    assert_eq!(agent.code("file", json!({})).await, json!(null));
}

#[tokio::test]
async fn result_that_is_not_what_is_declared_is_undecided() {
    let upstream = upstream().await;
    let served = gateway(&upstream).await;
    for (name, text) in [
        ("other-type", r#"{"total": "100"}"#),
        ("missing-member", r#"{"card": "4111"}"#),
        ("other-shape", "[100]"),
        ("not-JSON", "The total is 100."),
        ("duplicate-key", r#"{"total": 1, "total": 100}"#),
    ] {
        let agent = Agent { served: &served, name };
        let shown = agent.call("get_order", json!({ "order": 7, "text": text })).await;
        assert!(!shown["result"].to_string().contains("4111"), "{name}: {shown}");
        assert_eq!(agent.code("pay", json!({ "order": 7, "amount": 1 })).await, "undecided", "{name}");
        agent.call("export_stock", json!({ "text": "stock: [5" })).await;
        assert_eq!(agent.code("ship", json!({ "count": 1 })).await, "undecided", "{name}");
    }
}
