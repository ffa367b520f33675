//! Decides one event: the agent's event + rules + state → a verdict.
//!
//! Before a tool runs, its calls are handed over: decided, counted and claimed in this process, settled by the process of the event after it.

use std::path::Path;
use std::sync::Arc;

use super::agent_environment::AgentEnvironment;
use super::records::HookRecords;
use callgate::call::{Outcome, OutcomeKind, ToolCall};
use callgate::engine::Engine;
use callgate::host::{StateStore, ToolError, ToolResponse};
use callgate::json::{self, Map, Value, json};
use callgate::message::{RequestPart, ResponsePart, approval_response};
use callgate::session::{ConcurrentSession, HandOver};
use callgate::state::Account;
use callgate_hooks::{Agent, Answer, EventKind, HookEvent, ToolResult, ToolUse, Verdict};

/// How the reason begins if policies refuse a call, rather than a failure.
pub(crate) const REFUSALS: [&str; 3] = ["Denied", "Not run: pending approval", "Answered without running"];

/// Shown in place of a result that could not be searched for what policies redact.
const WITHHELD: &str = "[withheld: Callgate could not check this result]";

/// An event to decide.
pub(super) struct HookRequest {
    pub(super) agent: Agent,
    pub(super) event: HookEvent,
    pub(super) environment: AgentEnvironment,
}

impl HookRequest {
    pub(super) fn new(agent: Agent, mut event: HookEvent, environment: AgentEnvironment) -> Self {
        event.can_ask &= environment.is_attended;
        Self { agent, event, environment }
    }
}

/// The answer to an event that can't be decided.
pub(super) fn failure(agent: Agent, event: &HookEvent, reason: &str) -> Answer {
    let verdict = match &event.kind {
        // The tool has run; what it returned may be secret.
        EventKind::AfterTool(tool, ToolResult::Output(output))
            if agent.can_replace_result(&tool.native_tool) =>
        {
            Verdict::ReplaceResult(with_strings(output, WITHHELD))
        }
        _ => Verdict::Deny(reason.to_owned()),
    };
    agent.answer(event, &verdict)
}

/// Decides an event. `store`: that of the engine; `given`: the context that the operator gives.
pub(super) async fn verdict(
    engine: &Engine,
    store: Arc<dyn StateStore>,
    request: &HookRequest,
    given: Map,
) -> Result<Verdict, String> {
    let HookRequest { agent, event, .. } = request;
    let context = call_context(request, given);
    let name = format!("{}/{}", agent.name(), event.session);
    let records = HookRecords { store, session: name.clone(), account: Account::from_context(&context) };
    let session = engine.session().with_name(name).with_context(context.clone());
    let session = session.concurrent_for(requester(*agent, &context), |_| None);
    Hook { event, session, records, context }.verdict().await
}

/// The context of calls: what the operator gives, and what the agent says of itself.
fn call_context(request: &HookRequest, given: Map) -> Value {
    let HookRequest { event, environment, .. } = request;
    let mut context = given;
    let mut set = |name: &str, value: Option<&str>| match value {
        Some(value) => drop(context.insert(name.to_owned(), value.into())),
        None => drop(context.remove(name)),
    };
    let tool_cwd = match &event.kind {
        EventKind::BeforeTool(tool) | EventKind::AfterTool(tool, _) => tool.cwd.as_deref(),
        _ => None,
    };
    let cwd = match (event.cwd.as_deref(), tool_cwd) {
        (Some(cwd), Some(inner)) => Path::new(cwd).join(inner).to_str().map(str::to_owned),
        (cwd, inner) => inner.or(cwd).map(str::to_owned),
    };
    set("agent", Some(request.agent.name()));
    set("cwd", cwd.as_deref());
    set("workspace", environment.project.as_deref().or(event.workspace.as_deref()));
    set("permission_mode", event.permission_mode.as_deref());
    Value::Object(context)
}

/// Whose approvals a call can use: the principal's, or those given for this agent in this project.
fn requester(agent: Agent, context: &Value) -> String {
    let identity = match context.get("principal").filter(|principal| !principal.is_null()) {
        Some(principal) => json!(["principal", context.get("issuer"), context.get("tenant"), principal]),
        None => json!(["hook", agent.name(), context.get("workspace")]),
    };
    let digest: String = json::digest(&identity).to_string().chars().take(32).collect();
    format!("{}-{digest}", agent.name())
}

/// One event with its session.
struct Hook<'h> {
    event: &'h HookEvent,
    session: ConcurrentSession,
    records: HookRecords,
    context: Value,
}

impl Hook<'_> {
    async fn verdict(mut self) -> Result<Verdict, String> {
        match &self.event.kind {
            EventKind::SessionStart | EventKind::SessionEnd => Ok(Verdict::Proceed),
            EventKind::Prompt(text) => {
                self.records.add_prompt(text).await?;
                Ok(Verdict::Proceed)
            }
            EventKind::BeforeTool(tool) => {
                self.session = self.session.with_task(self.records.task().await?);
                self.before_tool(tool).await
            }
            EventKind::AfterTool(tool, result) => {
                self.session = self.session.with_task(self.records.task().await?);
                self.after_tool(tool, result).await
            }
        }
    }

    /// Hands the calls of a tool over. The first that may not run denies the tool.
    async fn before_tool(&self, tool: &ToolUse) -> Result<Verdict, String> {
        let (mut questions, mut finals) = (Vec::new(), Vec::new());
        for (index, call) in tool.calls.iter().enumerate() {
            match self.start(self.call(tool, index, call.input.clone())).await? {
                CallStart::Run(input) => finals.push(input),
                CallStart::Ask(input, question) => {
                    finals.push(input);
                    questions.push(question);
                }
                CallStart::Deny(reason) => return Ok(Verdict::Deny(reason)),
            }
        }
        let requested: Vec<Value> = tool.calls.iter().map(|call| call.input.clone()).collect();
        let is_changed = requested != finals;
        let changed = match finals.as_slice() {
            [input] if is_changed => tool.native_input(input),
            _ => None,
        };
        if is_changed && changed.is_none() {
            return Ok(Verdict::Deny("a policy changes this input, which the agent can't do".to_owned()));
        }
        if is_changed {
            self.records.add_started(&self.started_id(tool, &finals), requested).await?;
        }
        Ok(match (questions.is_empty(), changed) {
            (true, None) => Verdict::Proceed,
            (true, Some(input)) => Verdict::Rewrite(input),
            (false, input) => Verdict::Ask { reason: questions.join("\n"), input },
        })
    }

    /// Hands one call over. If the agent can ask its user, the call starts as one that the user approved: it runs only if the user does.
    async fn start(&self, mut call: ToolCall) -> Result<CallStart, String> {
        let started = self.session.hand_over(call.clone(), None).await.map_err(|error| error.to_string())?;
        let outcome = match started {
            HandOver::Run(call) => return Ok(CallStart::Run(call.input)),
            HandOver::Ended(outcome) => *outcome,
        };
        let Some(pending) = outcome.approval.clone().filter(|_| outcome.outcome == OutcomeKind::Suspended)
        else {
            return Ok(CallStart::Deny(refusal(&outcome)));
        };
        let request = RequestPart::from(&*pending);
        if !self.event.can_ask || !self.session.allows_anonymous_answers(&request) {
            return Ok(CallStart::Deny(pending_message(&outcome)));
        }
        call.id.clone_from(&pending.tool_call_id);
        let answer = ResponsePart {
            reason: Some("the agent asks its user before the tool runs".to_owned()),
            approval_token: request.approval_token.clone(),
            ..approval_response(&request.approval_id, true)
        };
        let resumed = self.session.hand_over(call, Some((&request, &[answer]))).await;
        Ok(match resumed.map_err(|error| error.to_string())? {
            HandOver::Run(call) => CallStart::Ask(call.input, outcome.reason.message),
            HandOver::Ended(outcome) => CallStart::Deny(refusal(&outcome)),
        })
    }

    /// Settles the calls of a tool with its result.
    async fn after_tool(&self, tool: &ToolUse, result: &ToolResult) -> Result<Verdict, String> {
        let finals: Vec<Value> = tool.calls.iter().map(|call| call.input.clone()).collect();
        let requested = self.records.started(&self.started_id(tool, &finals)).await?;
        let mut present = match result {
            ToolResult::Output(output) => Ok(output.clone()),
            ToolResult::Error(message) => Err(message.clone()),
        };
        let original = present.clone();
        for (index, input) in finals.into_iter().enumerate() {
            let call = self.call(tool, index, requested.get(index).unwrap_or(&input).clone());
            let reported = match &present {
                Ok(output) => Ok(ToolResponse::from(output.clone())),
                Err(message) => Err(ToolError::new(message.as_str())),
            };
            let outcome = self.session.complete_handed_over(call, input, reported).await;
            let outcome = outcome.map_err(|error| error.to_string())?;
            present = match outcome.output {
                Some(output) => Ok(output),
                None => Err(outcome.error.unwrap_or(outcome.reason.message)),
            };
        }
        Ok(match (original, present) {
            (original, present) if original == present => Verdict::Proceed,
            (Ok(original), Ok(present)) if has_shape(&original, &present) => Verdict::ReplaceResult(present),
            (Ok(original), Ok(present)) => {
                Verdict::ReplaceResult(with_strings(&original, &present.to_string()))
            }
            (Ok(original), Err(message)) => Verdict::ReplaceResult(with_strings(&original, &message)),
            // No agent lets a hook replace an error.
            (Err(_), _) => Verdict::Proceed,
        })
    }

    fn call(&self, tool: &ToolUse, index: usize, input: Value) -> ToolCall {
        let id = match (&tool.id, index) {
            (Some(id), 0) => id.clone(),
            (Some(id), index) => format!("{id}.{index}"),
            (None, _) => String::new(),
        };
        let name = tool.calls.get(index).map_or("", |call| call.tool.as_str());
        ToolCall::new(id, name, input).with_context(self.context.clone())
    }

    /// By what the event after a tool finds the one before it: the agent's id of the call, or the tool and its final inputs.
    fn started_id(&self, tool: &ToolUse, finals: &[Value]) -> String {
        let id = match &tool.id {
            Some(id) => json!(["id", id]),
            None => json!(["input", tool.native_tool, finals]),
        };
        json::digest(&id).to_string()
    }
}

/// How a call starts.
enum CallStart {
    /// It may run with this input.
    Run(Value),
    /// It may run with this input if the user answers this question with yes.
    Ask(Value, String),
    /// It must not run.
    Deny(String),
}

/// The reason of a call that ended before its tool, for the agent.
fn refusal(outcome: &Outcome) -> String {
    let message = outcome.error.as_ref().unwrap_or(&outcome.reason.message);
    match (&outcome.output, &outcome.reason.policy) {
        (Some(output), _) => format!("Answered without running the tool: {output}"),
        (None, Some(policy)) => format!("Denied by `{policy}`: {message}"),
        (None, None) => format!("Denied: {message}"),
    }
}

/// The message of a pending call. It names no command, file or id: an agent with a shell would use them to approve its own call.
fn pending_message(outcome: &Outcome) -> String {
    format!(
        "Not run: pending approval. {}\nAsk the user to approve it in Callgate. Once it is approved, make the same call with the same \
         arguments again; until then it stays pending.",
        outcome.reason.message
    )
}

/// Whether two values have the same structure, so that an agent accepts one in place of the other.
fn has_shape(original: &Value, value: &Value) -> bool {
    match (original, value) {
        (Value::Object(original), Value::Object(value)) => {
            original.len() == value.len()
                && original
                    .iter()
                    .all(|(name, item)| value.get(name).is_some_and(|other| has_shape(item, other)))
        }
        (Value::Array(original), Value::Array(value)) => {
            original.len() == value.len()
                && original.iter().zip(value).all(|(item, other)| has_shape(item, other))
        }
        (Value::String(_), Value::String(_)) => true,
        (original, value) => original == value,
    }
}

/// A result with this text in place of every string, or the text if it has none.
fn with_strings(result: &Value, text: &str) -> Value {
    match result {
        Value::Object(members) => {
            let members = members.iter().map(|(name, item)| (name.clone(), replaced(item, text)));
            Value::Object(members.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| replaced(item, text)).collect()),
        _ => text.into(),
    }
}

/// A part of a result with this text in place of every string. Recursion is limited by the depth that the reader of JSON accepts.
fn replaced(part: &Value, text: &str) -> Value {
    match part {
        Value::Object(_) | Value::Array(_) | Value::String(_) => with_strings(part, text),
        other => other.clone(),
    }
}
