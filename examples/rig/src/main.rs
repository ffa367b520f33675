//! A Rig agent under the rules in `rules.yaml`: two requests of one conversation, with a human approval in between.

mod adapter;
mod shop;

use std::error::Error;
use std::path::Path;

use adapter::{Agent, Ended, Talk};
use callgate::Keys;
use callgate::json::json;
use callgate::message::approval_response;
use callgate::{Engine, load};
use rig_agent::run::RunSpec;
use rig_core::completion::CompletionRequest;
use rig_core::message::{Message, UserContent};
use rig_core::test_utils::MockCompletionModel;

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(requests())
}

async fn requests() -> Result<(), Box<dyn Error>> {
    let rules = load(&[Path::new(env!("CARGO_MANIFEST_DIR")).join("rules.yaml")])?;
    // Approval requests that leave the process are sealed. A real server reads its key from a secret store.
    let engine = Engine::builder(rules).keys(Keys::parse(&"5a".repeat(32))?).build();
    let model = shop::model();
    let agent = Agent {
        spec: RunSpec {
            preamble: Some("You help customers of a shop.".to_owned()),
            temperature: Some(0.9),
            max_turns: Some(10),
            ..RunSpec::new()
        },
        model: model.clone().into(),
        tools: shop::tools(),
    };
    let session = || {
        let context = json!({ "principal": "ana", "tenant": "Acme" });
        agent.guarded(engine.session().with_name("talk-1").with_context(context))
    };

    println!("first request: refund A1, please");
    let mut talk = Talk::new(&agent, "refund A1, please");
    let ended = agent.run(&mut session(), &mut talk).await;
    println!("{ended:?}");
    let stored = talk.to_json()?.to_string();

    println!("\nthe approver's request: pending approvals");
    let mut talk = Talk::of_json(&callgate::json::from_str(&stored)?)?;
    let questions: Vec<(String, Option<String>)> = talk
        .calls
        .find_approval_requests()
        .into_iter()
        .map(|request| (request.approval_id.clone(), request.message.clone()))
        .collect();
    for (id, question) in questions {
        println!("  {id}: {} approved", question.unwrap_or_default());
        talk.calls.append_approval_response(approval_response(id, true))?;
    }
    let stored = talk.to_json()?.to_string();

    println!("\nsecond request, perhaps in another process");
    let mut talk = Talk::of_json(&callgate::json::from_str(&stored)?)?;
    let ended = agent.run(&mut session(), &mut talk).await;
    println!("{ended:?}");
    assert!(matches!(ended, Ended::Answered(_)));

    show_what_the_model_saw(&model);
    Ok(())
}

fn show_what_the_model_saw(model: &MockCompletionModel) {
    println!("\nwhat the model saw");
    for (turn, request) in (1..).zip(model.requests()) {
        let CompletionRequest { tools, temperature, chat_history, .. } = &request;
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        println!("  turn {turn}: tools {names:?}, temperature {}", temperature.unwrap_or_default());
        if turn == 1 {
            println!("    system prompt: {:?}", request.system_instructions().unwrap_or_default());
        }
        let Some(Message::User { content }) = chat_history.last() else { continue };
        for item in content {
            if let UserContent::ToolResult(result) = item {
                let error = if result.is_error { " (an error)" } else { "" };
                let texts = result.content.iter().filter_map(|part| match part.as_json() {
                    Some(value) => Some(value.to_string()),
                    None => part.as_text().map(str::to_owned),
                });
                println!("    {} {}{error}: {}", result.call, result.name, texts.collect::<String>());
            }
        }
    }
}
