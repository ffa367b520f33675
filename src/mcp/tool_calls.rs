//! Handles `tools/call`: evaluates the call against the policies, forwards it to its server, and converts the outcome to a response.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::approval_channels::{self, ApprovalChannel, ClientReply};
use super::binary_content::DetachedBinary;
use super::call_result;
use super::client_sender::ClientSender;
use super::connection::{ClientConnection, LATE_RESPONSE_WINDOW, Upstream};
use super::continuations::ApprovedContinuation;
use super::jsonrpc::{JsonRpcMessage, RequestId, code};
use super::method;
use super::pending_messages;
use super::pins::PinStatus;
use super::tool_list;
use super::upstream_server::UpstreamError;
use crate::call::{Outcome, OutcomeKind, ToolCall};
use crate::host::{ToolError, ToolExecutor, ToolResponse};
use crate::json::{Map, Value};
use crate::message::RequestPart;
use crate::safe_text::escape_controls;

/// The maximum number of approval requests sent to the client while one call is open.
const MAX_APPROVAL_REQUESTS: usize = 8;

/// Runs a call and returns the response. Returns `None` if the client cancelled it and the server did not answer.
pub(super) async fn call_tool(
    connection: &ClientConnection,
    mut message: JsonRpcMessage,
    id: &RequestId,
    sender: &ClientSender,
    cancelled: watch::Receiver<bool>,
) -> Option<JsonRpcMessage> {
    let returned = approval_channels::take_reply(&mut message);
    let refused =
        |message: &str| Some(JsonRpcMessage::error_response(Some(id), code::INVALID_PARAMS, message, None));
    let Some(name) = message.param("name").and_then(Value::as_str) else {
        return refused("`name` must be a string, the name of a tool");
    };
    if let Some(member) =
        method::find_ambiguous_member(message.params().into_iter().flatten(), &["name", "arguments"])
    {
        return refused(&format!(
            "ambiguous parameter `{}`: some parsers read it as another one",
            escape_controls(member)
        ));
    }
    let Some((upstream, tool)) = connection.upstreams.route(name) else {
        return refused(&format!("unknown tool `{}`", escape_controls(name)));
    };
    tool_list::load_tools(&connection.session, upstream, &message).await;
    // A server with lenient name matching would run a tool that policies did not evaluate.
    if !upstream.tools().has(tool)
        && let Some(meant) = upstream.tools().similar(tool)
    {
        return refused(&format!(
            "unknown tool `{}`; did you mean `{}`?",
            escape_controls(name),
            escape_controls(&meant)
        ));
    }
    if let Some(argument) = upstream.tools().ambiguous_argument(tool, &arguments(&message)) {
        return refused(&format!(
            "ambiguous argument `{}`: some parsers read it as another argument of `{}`",
            escape_controls(&argument),
            escape_controls(name)
        ));
    }
    if let Some(refusal) = quarantine_result(connection, upstream, tool) {
        return Some(JsonRpcMessage::response(id, call_result::adapt_to_protocol(&message, refusal)));
    }
    let mut call = ToolCall::new(connection.requests.new_call_id(), tool, arguments(&message))
        .with_server(upstream.name());
    call.context.clone_from(&connection.context);
    let runner = UpstreamExecutor {
        connection,
        upstream,
        message: &message,
        id,
        tool,
        sender,
        cancelled,
        kept: Mutex::default(),
    };
    let answer = runner.run(call, returned).await;
    // The client cancelled the call, and the server did not answer it.
    if runner.kept().is_given_up {
        return None;
    }
    connection.upstreams.cancel_pending(id).await;
    Some(answer)
}

/// The result of a call whose tool is not reviewed. Returns `None` if the tool is accepted.
fn quarantine_result(connection: &ClientConnection, upstream: &Upstream, tool: &str) -> Option<Value> {
    connection.gateway.pins.as_ref()?;
    let described = upstream.tools().get(tool).unwrap_or_default();
    let why = match connection.gateway.pin_status(upstream.name(), tool, &described) {
        PinStatus::Accepted => return None,
        PinStatus::New => "has not been reviewed",
        PinStatus::Changed => "has changed since it was reviewed",
    };
    let message =
        format!("the tool `{}` {why}: a person must review and accept it first", escape_controls(tool));
    Some(call_result::from_quarantine(&message))
}

/// The arguments as policies see them. Servers treat missing arguments as an empty object.
fn arguments(message: &JsonRpcMessage) -> Value {
    match message.param("arguments") {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(arguments) => arguments.clone(),
    }
}

/// Executes one call on its server.
pub(super) struct UpstreamExecutor<'c> {
    pub(super) connection: &'c ClientConnection,
    upstream: &'c Upstream,
    /// The call as the client sent it.
    pub(super) message: &'c JsonRpcMessage,
    id: &'c RequestId,
    /// The tool's own name.
    tool: &'c str,
    /// The queue for messages that belong to the call.
    pub(super) sender: &'c ClientSender,
    cancelled: watch::Receiver<bool>,
    kept: Mutex<UpstreamResponse>,
}

/// The parts of the server's response that policies don't see.
#[derive(Default)]
struct UpstreamResponse {
    /// The last failure: the message that policies saw, and the original response.
    failure: Option<(String, ToolFailure)>,
    set_aside: DetachedBinary,
    /// The server's last response, for its other members and their order.
    answer: Option<JsonRpcMessage>,
    /// Its result has a form that the protocol does not define; it is forwarded unchanged.
    is_odd: bool,
    /// The client cancelled it, and the server did not answer.
    is_given_up: bool,
}

/// The ways in which a server reports the failure of a tool.
#[derive(Clone)]
enum ToolFailure {
    /// A result with `isError`.
    Result(Value),
    /// A JSON-RPC error.
    Error(Value),
}

impl ToolExecutor for UpstreamExecutor<'_> {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        let mut cancelled = self.cancelled.clone();
        if *cancelled.borrow() {
            self.kept().is_given_up = true;
            return Err(ToolError::new("the client cancelled the call").with_kind("cancelled"));
        }
        let begun = self.upstream.start_request_for_client(self.upstream_request(call), self.id).await;
        let asked = begun.map_err(|UpstreamError(why)| {
            self.kept().is_given_up = *self.cancelled.borrow();
            ToolError::new(why).with_kind("unavailable")
        })?;
        let given_up = async {
            if cancelled.wait_for(|cancelled| *cancelled).await.is_err() {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(LATE_RESPONSE_WINDOW).await;
        };
        let mut answer = tokio::select! {
            answer = asked => match answer {
                Ok(answer) => answer,
                Err(_) => {
                    // A cancelled call needs no response about the lost server.
                    self.kept().is_given_up = *self.cancelled.borrow();
                    let why = "the connection to the server was lost; the tool may have taken effect";
                    return Err(ToolError::new(why).with_kind("unavailable"));
                }
            },
            () = given_up => {
                self.kept().is_given_up = true;
                return Err(ToolError::new("the client cancelled the call").with_kind("cancelled"));
            }
        };
        let error = answer.take_payload("error");
        let mut result = answer.take_payload("result").unwrap_or_default();
        self.kept().answer = Some(answer);
        if let Some(error) = error {
            let message =
                error.get("message").and_then(Value::as_str).unwrap_or("the tool failed").to_owned();
            let kind = error.get("code").map(|code| format!("rpc{code}"));
            self.kept().failure = Some((message.clone(), ToolFailure::Error(error)));
            return Err(ToolError { message, kind });
        }
        if result.get("isError") == Some(&Value::Bool(true)) {
            let message = call_result::text_content(&result);
            self.kept().failure = Some((message.clone(), ToolFailure::Result(result)));
            return Err(ToolError::new(message).with_kind("tool_error"));
        }
        if result.get("inputRequests").is_some_and(approval_channels::imitates_callgate) {
            // Only the gateway may ask in its own name.
            self.upstream.log("it imitates an approval request of Callgate; the request is not forwarded");
            let why = "the server imitates an approval request of Callgate";
            return Err(ToolError::new(why).with_kind("imitation"));
        }
        self.kept().is_odd = !call_result::is_result(&result);
        let interim = call_result::is_interim(&result);
        self.kept().set_aside.detach_from(&mut result);
        Ok(ToolResponse { interim, ..result.into() })
    }
}

impl UpstreamExecutor<'_> {
    /// Runs the call to its response, and asks for approvals on the way.
    ///
    /// Executions are boxed: their futures are large, and would be copied with each future around them.
    async fn run(&self, mut call: ToolCall, returned: ClientReply) -> JsonRpcMessage {
        let session = &self.connection.session;
        let mut was_asked = false;
        let mut outcome = match &returned.question {
            Some(question) => {
                call.id.clone_from(&question.tool_call_id);
                Box::pin(session.resume_call(call.clone(), question, &returned.answers, self)).await
            }
            None => Box::pin(session.execute(call.clone(), self)).await,
        };
        for _ in 0..MAX_APPROVAL_REQUESTS {
            let Some(request) =
                outcome.approval.clone().filter(|_| outcome.outcome == OutcomeKind::Suspended)
            else {
                break;
            };
            let question = RequestPart::from(&request);
            let way = match session.anyone_may_answer(&question) && !returned.is_dismissed {
                true => ApprovalChannel::select(self.message, &self.connection.client),
                false => ApprovalChannel::Unavailable,
            };
            call.id.clone_from(&request.tool_call_id);
            let answer = match way {
                ApprovalChannel::InputRequired => {
                    match self.connection.continuations.take(&call, self.message, &question) {
                        Some(approved) => Some(approved.answer(&question)),
                        None => {
                            return JsonRpcMessage::response(self.id, self.input_required_result(&question));
                        }
                    }
                }
                ApprovalChannel::Elicitation => {
                    was_asked = true;
                    self.elicit(&question).await
                }
                ApprovalChannel::Unavailable => None,
            };
            let Some(answer) = answer else { break };
            outcome = Box::pin(session.resume_call(call.clone(), &question, &[answer], self)).await;
        }
        if let Some(request) = &outcome.approval {
            let gateway = &self.connection.gateway;
            if !outcome.replayed {
                gateway.log_pending(request);
            }
            let client = match was_asked || returned.is_dismissed {
                true => pending_messages::ClientPrompt::Unanswered,
                false => pending_messages::ClientPrompt::NotAsked,
            };
            let askers = session.askers(&RequestPart::from(request)).unwrap_or_default();
            let is_answerable = gateway.approval_state.is_some();
            outcome.error = Some(pending_messages::agent_message(
                &askers,
                client,
                is_answerable,
                &outcome.reason.message,
            ));
        }
        let approved = outcome.approved.clone();
        let answer = self.answer(&call, outcome);
        self.connection.tasks.record(&call, &answer);
        if let Some(approved) =
            approved.filter(|approved| ApprovedContinuation::is_possible(approved, &answer))
            && let Some(question) = session.question(&approved.approval_id).await
        {
            self.connection.continuations.add(ApprovedContinuation::new(call, question, &answer));
        }
        answer
    }

    fn kept(&self) -> MutexGuard<'_, UpstreamResponse> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The call as the server receives it: as the client sent it, with the changes of policies.
    fn upstream_request(&self, call: &ToolCall) -> JsonRpcMessage {
        let mut message = self.message.clone();
        if self.message.param("name").and_then(Value::as_str) != Some(self.tool) {
            message.set_param("name", self.tool.into());
        }
        if arguments(self.message) != call.input {
            message.set_param("arguments", call.input.clone());
        }
        message
    }

    /// Converts an outcome to the response for the client.
    fn answer(&self, call: &ToolCall, outcome: Outcome) -> JsonRpcMessage {
        let (failure, set_aside, said, is_odd) = {
            let mut kept = self.kept();
            let set_aside = std::mem::take(&mut kept.set_aside);
            (kept.failure.take(), set_aside, kept.answer.take(), kept.is_odd)
        };
        let said = said.map(|mut said| {
            said.extension_members().for_each(|member| self.connection.session.redact(call, member));
            said
        });
        let answered = |member: &str, value| match said.clone() {
            Some(said) => said.with_payload(member, value),
            None => JsonRpcMessage::response(self.id, value),
        };
        match outcome.outcome {
            OutcomeKind::Executed | OutcomeKind::Cached | OutcomeKind::Answered => {
                let output = outcome.output.unwrap_or_default();
                let mut result = match said {
                    Some(_) if is_odd => output,
                    Some(_) => call_result::from_output(output),
                    // The output comes from a policy or a cache.
                    None => call_result::adapt_to_protocol(self.message, call_result::from_output(output)),
                };
                set_aside.reattach(&mut result);
                answered("result", result)
            }
            // The server's original error, unless a policy changed it.
            OutcomeKind::Failed => match failure {
                Some((message, failure))
                    if outcome.error.as_deref() == Some(&*self.hidden(call, &message)) =>
                {
                    match failure {
                        ToolFailure::Result(mut result) => {
                            self.connection.session.redact(call, &mut result);
                            answered("result", result)
                        }
                        ToolFailure::Error(mut error) => {
                            self.connection.session.redact(call, &mut error);
                            answered("error", error)
                        }
                    }
                }
                _ => self.refusal(&outcome),
            },
            _ => self.refusal(&outcome),
        }
    }

    fn refusal(&self, outcome: &Outcome) -> JsonRpcMessage {
        JsonRpcMessage::response(
            self.id,
            call_result::adapt_to_protocol(self.message, call_result::from_rejection(outcome)),
        )
    }

    fn hidden(&self, call: &ToolCall, text: &str) -> String {
        let mut value = Value::from(text);
        self.connection.session.redact(call, &mut value);
        value.as_str().unwrap_or_default().to_owned()
    }
}
