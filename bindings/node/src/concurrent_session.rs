//! `NativeConcurrentSession`: a session whose calls run at the same time.

use callgate::ConcurrentSession;
use callgate::json::{self, Value};
use callgate::message::RequestPart;
use napi_derive::napi;

use crate::approvals::read_response_part;
use crate::engine::{SessionEngine, read_call};
use crate::failure::Failure;
use crate::flat_json::{decision_text, outcome_text};
use crate::host::Host;
use crate::json_text::flagged;
use crate::operation::OperationThread;
use crate::session::with_context;
use crate::tool_executor::JavaScriptTools;

/// A concurrent session.
#[napi]
pub struct NativeConcurrentSession {
    session: ConcurrentSession,
    shared: SessionEngine,
}

impl NativeConcurrentSession {
    /// The class of a session.
    pub fn new(session: ConcurrentSession, shared: SessionEngine) -> Self {
        Self { session, shared }
    }

    /// The session.
    pub fn session(&self) -> ConcurrentSession {
        self.session.clone()
    }

    /// Where its operations run that are not about a call.
    pub fn thread(&self) -> OperationThread {
        self.shared.thread
    }
}

#[napi]
impl NativeConcurrentSession {
    /// Evaluates one call, and runs it if the policies allow it. `nested`: a call that the tool of another call makes.
    #[napi]
    pub fn call(&self, host: &Host, call: String, nested: bool) -> napi::Result<String> {
        let thread = self.shared.thread.or(OperationThread::for_text(&call));
        let call = with_context(read_call(&call)?, &self.shared.context)?;
        let session = self.session.clone();
        host.start(thread, move |exchange| {
            Box::pin(async move {
                let tools = JavaScriptTools::new(exchange);
                let outcome = match nested {
                    true => session.execute_nested(call, &tools).await,
                    false => session.execute(call, &tools).await,
                };
                outcome_text(outcome)
            })
        })
    }

    /// Decides a call in the present state of the session, without executing it.
    #[napi]
    pub fn decide(&self, call: String) -> napi::Result<String> {
        let call = with_context(read_call(&call)?, &self.shared.context)?;
        decision_text(&self.shared.engine, &call, &self.session.state())
    }

    /// Resumes a suspended call with the answers to its request.
    #[napi]
    pub fn resume_call(
        &self,
        host: &Host,
        call: String,
        request: String,
        answers: String,
    ) -> napi::Result<String> {
        let thread = self.shared.thread.or(OperationThread::for_text(&call));
        let call = with_context(read_call(&call)?, &self.shared.context)?;
        let request = read_request(&request)?;
        let answers = json::parse(&answers).map_err(Failure::invalid_argument)?;
        let answers = answers.as_array().map(Vec::as_slice).unwrap_or_default();
        let answers = answers.iter().map(|answer| read_response_part(&request.approval_id, answer));
        let answers = answers.collect::<Result<Vec<_>, Failure>>()?;
        let session = self.session.clone();
        host.start(thread, move |exchange| {
            Box::pin(async move {
                let tools = JavaScriptTools::new(exchange);
                outcome_text(session.resume_call(call, &request, &answers, &tools).await)
            })
        })
    }

    /// The request with this id, as it was given out, or `null`.
    #[napi]
    pub fn find_request(&self, host: &Host, approval_id: String) -> napi::Result<String> {
        let session = self.session.clone();
        host.start(self.shared.thread, move |_| {
            Box::pin(async move {
                let request = session.find_request(&approval_id).await;
                Ok(request.map_or(Value::Null, |request| request.to_json()).to_string())
            })
        })
    }

    /// The labels, facts and counts of the session.
    #[napi]
    pub fn state(&self) -> String {
        flagged(&self.session.state().document().to_string())
    }
}

/// Reads a request: of an outcome, or of a history.
fn read_request(text: &str) -> Result<RequestPart, Failure> {
    let mut request = json::parse(text).map_err(Failure::invalid_argument)?;
    if let Some(members) = request.as_object_mut() {
        members.insert("type", "tool-approval-request".into());
    }
    RequestPart::from_json(&request)
        .ok_or_else(|| Failure::invalid_argument("this is not an approval request"))
}
