//! Rig tools of a shop, and a scripted model.

use std::convert::Infallible;

use rig_agent::tool::{Tool, ToolContext, ToolSet};
use rig_core::message::{AssistantContent, ToolCall, ToolFunction, ToolName};
use rig_core::test_utils::{MockCompletionModel, MockTurn};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Order {
    order: String,
}

struct FindOrder;

impl Tool for FindOrder {
    const NAME: &'static str = "find_order";
    type Args = Order;
    type Output = Value;
    type Error = Infallible;

    fn description(&self) -> String {
        "Finds an order by its number.".to_owned()
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object", "properties": { "order": { "type": "string" } }, "required": ["order"] })
    }

    async fn call(&self, _: &mut ToolContext, Order { order }: Order) -> Result<Value, Infallible> {
        println!("  [find_order runs: {order}]");
        Ok(json!({ "order": order, "total": 250, "customer": "ana@example.com" }))
    }
}

#[derive(Deserialize)]
struct Amount {
    order: String,
    amount: u64,
}

struct Refund;

impl Tool for Refund {
    const NAME: &'static str = "refund";
    type Args = Amount;
    type Output = Value;
    type Error = Infallible;

    fn description(&self) -> String {
        "Pays money back.".to_owned()
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": { "order": { "type": "string" }, "amount": { "type": "integer" } },
            "required": ["order", "amount"],
        })
    }

    async fn call(&self, _: &mut ToolContext, Amount { order, amount }: Amount) -> Result<Value, Infallible> {
        println!("  [refund runs: {amount} for {order}]");
        Ok(json!({ "refunded": amount }))
    }
}

struct DeleteOrder;

impl Tool for DeleteOrder {
    const NAME: &'static str = "delete_order";
    type Args = Order;
    type Output = Value;
    type Error = Infallible;

    fn description(&self) -> String {
        "Deletes an order.".to_owned()
    }

    fn parameters(&self) -> Value {
        FindOrder.parameters()
    }

    async fn call(&self, _: &mut ToolContext, Order { order }: Order) -> Result<Value, Infallible> {
        println!("  [delete_order runs: {order}]");
        Ok(json!({ "deleted": order }))
    }
}

/// All tools of the shop; the rules decide which of them the model sees.
pub fn tools() -> ToolSet {
    let mut tools = ToolSet::default();
    tools.add_tool(FindOrder);
    tools.add_tool(Refund);
    tools.add_tool(DeleteOrder);
    tools
}

/// A model that looks up an order, requests too large a refund, calls a hidden tool and one that requires approval, then answers.
pub fn model() -> MockCompletionModel {
    MockCompletionModel::from_turns([
        calls([("c1", "find_order", json!({ "order": "A1" }))]),
        calls([("c2", "refund", json!({ "order": "A1", "amount": 5000 }))]),
        calls([
            ("c3", "delete_order", json!({ "order": "A1" })),
            ("c4", "refund", json!({ "order": "A1", "amount": 250 })),
        ]),
        MockTurn::text("250 are on their way. Questions? Write to help@example.com."),
    ])
}

fn calls<const N: usize>(calls: [(&str, &str, Value); N]) -> MockTurn {
    let call = |(id, name, arguments): (&str, &str, Value)| {
        let name = ToolName::new(name).expect("the names above are not empty");
        AssistantContent::ToolCall(ToolCall::from_wire(id, ToolFunction::new(name, arguments)))
    };
    MockTurn::from_contents(calls.map(call))
}
