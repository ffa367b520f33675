//! Your own agent loop with Callgate: a scripted model, two tools, rules that require human approval of large refunds, and a client that
//! stores the history while the approval is pending.

use std::collections::VecDeque;

use callgate::Keys;
use callgate::json::{Value, json};
use callgate::lifecycle::{Chunk, ModelConfig, RunEnd, Usage};
use callgate::message::{History, Message, Part, Role, approval_response};
use callgate::{Engine, Session, ToolCall, ToolError, ToolExecutor, ToolResponse, load_text};

const RULES: &str = "
policies:
  - id: large-refunds-need-a-person
    match: { tool: refund, where: [ { path: $.input.amount, gt: 100 } ] }
    approval: { message: 'Refund {{ input.amount }} for order {{ input.order }}?' }
  - id: never-delete
    match: delete_order
    deny: { message: orders are kept for ten years }
  - id: house-style
    model: { on: init, system_prompts: { append: 'You serve {{ context.tenant }}.' }, temperature: { max: 0.7 } }
  - id: no-addresses
    stream: { redact: [email] }
  - id: few-turns
    budget: { iterations: 10, tokens: 5000 }
";

/// The tools of a shop.
struct Shop;

impl ToolExecutor for Shop {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        match call.tool.as_str() {
            "find_order" => Ok(json!({ "order": "A1", "total": 250 }).into()),
            "refund" => Ok(json!({ "refunded": call.input.get("amount") }).into()),
            other => Err(ToolError::new(format!("unknown tool {other}"))),
        }
    }
}

/// One turn of the scripted model.
enum Turn {
    Calls(&'static str, &'static str, Value),
    Says(&'static [&'static str]),
}

/// A scripted model.
struct Model(VecDeque<Turn>);

/// How a run of the loop stopped.
#[derive(Debug, PartialEq)]
enum Stopped {
    /// With an answer for the user.
    Answered(String),
    /// With a pending approval.
    Waits,
    /// By a policy or an error.
    Ended(String),
}

async fn agent(session: &mut Session, model: &mut Model, history: &mut History) -> Stopped {
    let config = ModelConfig { messages: history.clone(), temperature: Some(1.0), ..ModelConfig::default() };
    let ended = match run(session, model, history, config).await {
        Ok(Stopped::Waits) => {
            // The request ends here; the next request resumes the run.
            let reason = Some("approval".to_owned());
            session.end(&RunEnd::Finished { reason, content: String::new() }).await.finish().await;
            return Stopped::Waits;
        }
        Ok(stopped) => return stopped,
        Err(ended) => ended,
    };
    let reason = match &ended {
        RunEnd::Finished { content, .. } => content.clone(),
        RunEnd::Aborted { reason } => reason.clone(),
        RunEnd::Failed { error } => error.clone(),
    };
    session.end(&ended).await.finish().await;
    Stopped::Ended(reason)
}

async fn run(
    session: &mut Session,
    model: &mut Model,
    history: &mut History,
    config: ModelConfig,
) -> Result<Stopped, RunEnd> {
    let failed = |error: &dyn std::fmt::Display| RunEnd::Failed { error: error.to_string() };
    let base = session.begin(config)?;
    // Calls whose approvals were answered in the meantime are resumed before the model is called.
    if session.resume(history, &Shop).await.map_err(|error| failed(&error))?.is_suspended() {
        return Ok(Stopped::Waits);
    }
    loop {
        // Call a real model with the configuration that `before_model` returns.
        session.before_model(ModelConfig { messages: history.clone(), ..base.clone() }).await?;
        let Some(turn) = model.0.pop_front() else {
            return Err(failed(&"the script of the model has ended"));
        };
        let mut text = String::new();
        let deltas = if let Turn::Says(deltas) = &turn { deltas } else { &[][..] };
        let usage = Some(Usage { prompt_tokens: 100, completion_tokens: 20, ..Usage::default() });
        let chunks = deltas.iter().map(|delta| Chunk::text("answer", *delta));
        for chunk in chunks.chain([Chunk::Finished { reason: None, usage }]) {
            for passed in session.chunk(chunk)? {
                if let Chunk::Text { delta, .. } = passed {
                    text.push_str(&delta);
                }
            }
        }
        match turn {
            Turn::Calls(id, tool, input) => {
                history.push(Message::new(Role::Assistant, vec![Part::call(id, tool, input)]));
                let round = session.run_round(history, &Shop).await.map_err(|error| failed(&error))?;
                if round.is_suspended() {
                    return Ok(Stopped::Waits);
                }
            }
            Turn::Says(_) => {
                history.push(Message::new(Role::Assistant, vec![Part::text(text.clone())]));
                session.completed(history);
                let ending = RunEnd::Finished { reason: Some("stop".to_owned()), content: text.clone() };
                session.end(&ending).await.finish().await;
                return Ok(Stopped::Answered(text));
            }
        }
    }
}

/// Runs the loop twice: until the approval is pending, and again after the approval.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let keys = Keys::parse(&"5a".repeat(32))?;
    let engine = Engine::builder(load_text(RULES)?).keys(keys).build();
    let session =
        || engine.session().with_name("talk-1").with_context(json!({ "principal": "ana", "tenant": "acme" }));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;

    let mut history = History::new(vec![Message::new(Role::User, vec![Part::text("refund A1, please")])]);
    let mut model = Model(VecDeque::from([
        Turn::Calls("c1", "find_order", json!({ "order": "A1" })),
        Turn::Calls("c2", "delete_order", json!({ "order": "A1" })),
        Turn::Calls("c3", "refund", json!({ "order": "A1", "amount": 250 })),
        Turn::Says(&["It is refunded. Write to help@exam", "ple.com with questions."]),
    ]));
    let stopped = runtime.block_on(agent(&mut session(), &mut model, &mut history));
    assert_eq!(stopped, Stopped::Waits);
    let questions: Vec<(String, Option<String>)> = history
        .find_approval_requests()
        .into_iter()
        .map(|request| (request.approval_id.clone(), request.message.clone()))
        .collect();
    for (id, question) in questions {
        println!("{id}: {}", question.unwrap_or_default());
        history.append_approval_response(approval_response(id, true))?;
    }

    // A later request, perhaps in another process: the history contains all state.
    let stopped = runtime.block_on(agent(&mut session(), &mut model, &mut history));
    assert_eq!(stopped, Stopped::Answered("It is refunded. Write to [email] with questions.".to_owned()));
    println!("{stopped:?}");
    Ok(())
}
