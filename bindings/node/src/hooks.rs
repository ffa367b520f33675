//! Hooks in JavaScript: each method that the hook has becomes a request of the operation that runs the call.

use std::time::Duration;

use callgate::json::{Value, json, to_value};
use callgate::lifecycle::{
    BeforeAction, ErrorAction, HookCall, Middleware, Next, RequiredApproval, ToolCallEnd,
};
use callgate::{BoxFuture, ToolError};
use serde::Deserialize;

use crate::exchange::current_exchange;
use crate::tool_executor::{CallMembers, error_json, read_error};

/// Which methods a hook has.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookOptions {
    id: String,
    /// The tools whose calls it sees; all, if absent.
    tools: Option<Vec<String>>,
    before: bool,
    around: bool,
    after: bool,
    on_error: bool,
}

/// A hook in JavaScript.
pub struct JavaScriptHook(HookOptions);

impl JavaScriptHook {
    /// The hook with these methods.
    pub fn new(options: HookOptions) -> Self {
        Self(options)
    }

    fn call_members(&self, call: &HookCall<'_>) -> Value {
        let run = json!({
            "requestId": call.run.request_id.as_str(),
            "conversationId": call.run.conversation_id.as_deref(),
            "iteration": call.run.iteration,
            "context": call.run.context.clone(),
        });
        let descriptor = call.descriptor.and_then(|descriptor| to_value(descriptor).ok());
        json!({ "hook": self.0.id.as_str(), "call": CallMembers::from(call.call), "run": run, "descriptor": descriptor })
    }

    /// JavaScript's reply. Returns `None` if it threw, or no operation runs.
    async fn ask(&self, method: &str, members: Value) -> Option<Value> {
        let exchange = current_exchange()?;
        let reply = exchange.request(method, &members).await?;
        if reply.get("threw").is_some() { None } else { Some(reply) }
    }

    fn failed(&self) -> BeforeAction {
        BeforeAction::Block(format!("the hook `{}` failed", self.0.id))
    }

    async fn wrap(&self, members: Value, mut next: Next<'_>) -> Result<Value, ToolError> {
        let gone =
            || ToolError::new(format!("the hook `{}` can't run", self.0.id)).with_kind("internal_error");
        let exchange = current_exchange().ok_or_else(gone)?;
        let mut reply = exchange.request("around", &members).await.ok_or_else(gone)?;
        loop {
            if let Some(error) = reply.get("threw") {
                return Err(read_error(error));
            }
            let Some(run) = reply.get("next").cloned() else {
                let output = reply.as_object_mut().and_then(|members| members.remove("output"));
                return output.ok_or_else(gone);
            };
            let result = match (run.get("input"), run.get("options")) {
                (None, _) => next.call().await,
                (Some(input), None) => next.call_with_input(input.clone()).await,
                (Some(input), Some(options)) => next.call_with(input.clone(), options.clone()).await,
            };
            let answer = match &result {
                Ok(output) => json!({ "hook": self.0.id.as_str(), "output": output.clone() }),
                Err(error) => json!({ "hook": self.0.id.as_str(), "error": error_json(error) }),
            };
            let around = run.get("around").cloned().unwrap_or_default();
            let mut answer = answer;
            if let Some(members) = answer.as_object_mut() {
                members.insert("around", around);
            }
            reply = exchange.request("aroundResult", &answer).await.ok_or_else(gone)?;
        }
    }
}

impl Middleware for JavaScriptHook {
    fn id(&self) -> &str {
        &self.0.id
    }

    fn applies_to(&self, call: &HookCall<'_>) -> bool {
        self.0.tools.as_ref().is_none_or(|tools| tools.contains(&call.call.tool))
    }

    fn before<'a>(&'a self, call: &'a HookCall<'a>) -> BoxFuture<'a, BeforeAction> {
        Box::pin(async move {
            if !self.0.before {
                return BeforeAction::Continue;
            }
            let reply = self.ask("before", self.call_members(call)).await;
            reply.and_then(read_action).unwrap_or_else(|| self.failed())
        })
    }

    fn has_around(&self) -> bool {
        self.0.around
    }

    fn around<'a>(
        &'a self,
        call: &'a HookCall<'a>,
        mut next: Next<'a>,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            if !self.0.around {
                return next.call().await;
            }
            self.wrap(self.call_members(call), next).await
        })
    }

    fn on_error<'a>(&'a self, call: &'a HookCall<'a>, error: &'a ToolError) -> BoxFuture<'a, ErrorAction> {
        Box::pin(async move {
            if !self.0.on_error {
                return ErrorAction::Keep;
            }
            let mut members = self.call_members(call);
            if let Some(members) = members.as_object_mut() {
                members.insert("error", error_json(error));
            }
            let reply = self.ask("onError", members).await.unwrap_or_default();
            match (reply.get("recover"), reply.get("replace")) {
                (Some(output), _) => ErrorAction::Recover(output.clone()),
                (None, Some(error)) => ErrorAction::Replace(read_error(error)),
                (None, None) => ErrorAction::Keep,
            }
        })
    }

    fn after<'a>(&'a self, end: &'a ToolCallEnd<'a>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if self.0.after {
                let outcome = to_value(end.outcome).unwrap_or_default();
                let duration = u64::try_from(end.duration.as_micros()).unwrap_or(u64::MAX);
                let members =
                    json!({ "hook": self.0.id.as_str(), "outcome": outcome, "durationUs": duration });
                let _ = self.ask("after", members).await;
            }
        })
    }
}

/// Reads what a `before` hook returned. Returns `None` if it is none of the actions: the call is blocked then.
fn read_action(mut reply: Value) -> Option<BeforeAction> {
    let reason = |reply: &Value| reply.get("reason").and_then(Value::as_str).map(str::to_owned);
    let kind = reply.get("action")?.as_str()?.to_owned();
    Some(match kind.as_str() {
        "continue" => BeforeAction::Continue,
        "edit" => BeforeAction::Edit(reply.as_object_mut()?.remove("input")?),
        "annotate" => match reply.as_object_mut()?.remove("metadata")? {
            Value::Object(members) => BeforeAction::Annotate(members),
            _ => return None,
        },
        "skip" => BeforeAction::Skip(reply.as_object_mut()?.remove("output")?),
        "block" => BeforeAction::Block(reason(&reply)?),
        "halt" => BeforeAction::Halt(reason(&reply)?),
        "requireApproval" => BeforeAction::RequireApproval(read_requirement(&reply)?),
        _ => return None,
    })
}

fn read_requirement(reply: &Value) -> Option<RequiredApproval> {
    let mut required = RequiredApproval::new(reply.get("message")?.as_str()?);
    if let Some(approvers) = reply.get("approvers") {
        let names = approvers.as_array()?.iter().map(|name| name.as_str().map(str::to_owned));
        required.approvers = names.collect::<Option<_>>()?;
    }
    if let Some(quorum) = reply.get("quorum") {
        required.quorum = u32::try_from(quorum.as_u64()?).ok()?;
    }
    if let Some(expires) = reply.get("expiresMs") {
        required.expires = Some(Duration::from_millis(expires.as_u64()?));
    }
    Some(required)
}
