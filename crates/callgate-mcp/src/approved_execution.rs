//! Executes a call, and asks for the approvals that it needs on the way: call → [`Execution`].

use super::approval_channels::{self, ApprovalChannel, ClientReply};
use super::client_sender::ClientSender;
use super::connection::ClientConnection;
use super::continuations::ApprovedContinuation;
use super::jsonrpc::JsonRpcMessage;
use super::pending_messages::{self, ClientPrompt};
use super::task_source::TaskSource;
use callgate::call::{ApprovalRecord, Outcome, OutcomeKind, ToolCall};
use callgate::host::ToolExecutor;
use callgate::json::Value;
use callgate::message::{RequestPart, ResponsePart};
use callgate::session::ConcurrentSession;

/// The maximum number of approval requests sent to the client while one call is open.
const MAX_APPROVAL_REQUESTS: usize = 8;

/// The result of an execution.
pub(super) enum Execution {
    /// The outcome.
    Completed(Box<Outcome>),
    /// A result that requests an approval. The client sends the call again with the answer.
    InputRequired(Value),
}

/// How a call was requested.
pub(super) struct ExecutionRequest<'r> {
    /// The message that requests it.
    pub(super) message: &'r JsonRpcMessage,
    /// The answer to an earlier approval request.
    pub(super) reply: &'r ClientReply,
    /// The queue for messages that belong to it.
    pub(super) sender: &'r ClientSender,
    pub(super) origin: CallOrigin,
}

/// Who requests a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallOrigin {
    /// The client.
    Client,
    /// A server, usually during a call of the client that waits for it.
    Server,
}

/// Executes a call. Afterwards it has the id under which it was requested.
///
/// Executions are boxed: their futures are large, and would be copied with each future around them.
pub(super) async fn execute(
    connection: &ClientConnection,
    executor: &impl ToolExecutor,
    call: &mut ToolCall,
    request: &ExecutionRequest<'_>,
) -> Execution {
    let ExecutionRequest { message, reply, sender, origin } = request;
    let told = message.task().cloned().or_else(|| connection.gateway.task.as_ref().map(TaskSource::read));
    let session = &connection.session.with_task(told.unwrap_or_default());
    let mut was_prompted = false;
    let mut outcome = match &reply.request {
        Some(asked) => {
            call.id.clone_from(&asked.tool_call_id);
            origin.resume(session, call, (asked, &reply.answers), executor).await
        }
        None => match origin {
            CallOrigin::Client => Box::pin(session.execute(call.clone(), executor)).await,
            CallOrigin::Server => Box::pin(session.execute_nested(call.clone(), executor)).await,
        },
    };
    for _ in 0..MAX_APPROVAL_REQUESTS {
        let Some(pending) = outcome.approval.clone().filter(|_| outcome.outcome == OutcomeKind::Suspended)
        else {
            break;
        };
        let asked = RequestPart::from(&*pending);
        let channel = match session.allows_anonymous_answers(&asked) && !reply.is_dismissed {
            true => ApprovalChannel::select(message, &connection.client),
            false => ApprovalChannel::Unavailable,
        };
        call.id.clone_from(&pending.tool_call_id);
        let answer = match channel {
            ApprovalChannel::InputRequired => match connection.continuations.take(call, message, &asked) {
                Some(approved) => Some(approved.answer(&asked)),
                None => {
                    return Execution::InputRequired(approval_channels::input_required_result(
                        message, &asked,
                    ));
                }
            },
            ApprovalChannel::Elicitation => {
                was_prompted = true;
                approval_channels::elicit(&connection.requests, sender, &asked).await
            }
            ApprovalChannel::Unavailable => None,
        };
        let Some(answer) = answer else { break };
        connection.gateway.name_span(call);
        outcome = origin.resume(session, call, (&asked, &[answer]), executor).await;
    }
    if let Some(pending) = outcome.approval.as_deref() {
        let gateway = &connection.gateway;
        if !outcome.replayed {
            gateway.log_pending(pending);
        }
        let prompt = match was_prompted || reply.is_dismissed {
            true => ClientPrompt::Unanswered,
            false => ClientPrompt::NotAsked,
        };
        let askers = session.approval_requirements(&RequestPart::from(pending)).unwrap_or_default();
        let is_answerable = gateway.approval_state.is_some();
        let message =
            pending_messages::agent_message(&askers, prompt, is_answerable, &outcome.reason.message);
        outcome.error = Some(message);
    }
    Execution::Completed(Box::new(outcome))
}

/// Remembers an approved call whose response requests input, so that its continuation needs no other approval.
pub(super) async fn remember_approved(
    connection: &ClientConnection,
    call: ToolCall,
    approved: Option<ApprovalRecord>,
    response: &JsonRpcMessage,
) {
    if let Some(approved) = approved.filter(|approved| ApprovedContinuation::is_possible(approved, response))
        && let Some(request) = connection.session.find_request(&approved.approval_id).await
    {
        connection.continuations.add(ApprovedContinuation::new(call, request, response));
    }
}

impl CallOrigin {
    /// Resumes a pending call with the answers to its approval request.
    async fn resume(
        self,
        session: &ConcurrentSession,
        call: &ToolCall,
        (asked, answers): (&RequestPart, &[ResponsePart]),
        executor: &impl ToolExecutor,
    ) -> Outcome {
        match self {
            Self::Client => Box::pin(session.resume_call(call.clone(), asked, answers, executor)).await,
            Self::Server => Box::pin(session.resume_nested(call.clone(), asked, answers, executor)).await,
        }
    }
}
