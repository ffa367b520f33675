//! `tools/call`: the call that policies judge, its way to the server, and the answer.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::answer;
use super::asking::{self, GoingOn, Returned, Way};
use super::binary::SetAside;
use super::frame::{Frame, Id, code};
use super::link::{LATE_ANSWERS, Link};
use super::listing;
use super::method;
use super::outlet::Outlet;
use super::pending;
use super::pins::Standing;
use super::server::Gone;
use crate::call::{Outcome, OutcomeKind, ToolCall};
use crate::host::{ToolAnswer, ToolError, ToolExecutor};
use crate::json::{Map, Value};
use crate::message::RequestPart;
use crate::text::inert;

/// Questions about one call that are put to its client while it is open.
const QUESTIONS: usize = 8;

/// Puts a call through the policies; gives the answer to it, unless nobody wants one any more.
pub(super) async fn call(
    link: &Link,
    mut frame: Frame,
    id: &Id,
    outlet: &Outlet,
    cancelled: watch::Receiver<bool>,
) -> Option<Frame> {
    let returned = asking::returned(&mut frame);
    let refused = |message: &str| Some(Frame::error(Some(id), code::INVALID_PARAMS, message, None));
    let Some(name) = frame.param("name").and_then(Value::as_str) else {
        return refused("`name` is to be the name of a tool");
    };
    if let Some(member) = method::misread(frame.params().into_iter().flatten(), &["name", "arguments"]) {
        return refused(&format!("some take the parameter `{}` for another one", inert(member)));
    }
    let Some((index, tool)) = link.server_of(name) else {
        return refused(&format!("there is no tool `{}`", inert(name)));
    };
    let Some(server) = link.server(index) else { return refused("there is no such server") };
    listing::know(link, index, &frame).await;
    // A server that is lenient with names would run a tool that policies have not seen called.
    if !server.tools.has(tool)
        && let Some(meant) = server.tools.like(tool)
    {
        return refused(&format!("there is no tool `{}`; there is `{}`", inert(name), inert(&meant)));
    }
    if let Some(argument) = server.tools.misread_argument(tool, &arguments(&frame)) {
        return refused(&format!(
            "some take the argument `{}` for another one of `{}`",
            inert(&argument),
            inert(name)
        ));
    }
    if let Some(refusal) = quarantined(link, index, tool) {
        return Some(Frame::result(id, answer::in_protocol_of(&frame, refusal)));
    }
    let mut call = ToolCall::new(link.call_id(), tool, arguments(&frame)).on_server(&server.spec.name);
    call.context.clone_from(&link.context);
    let runner = Runner { link, index, frame: &frame, id, tool, outlet, cancelled, kept: Mutex::default() };
    let answer = runner.run(call, returned).await;
    // Nobody waits for what the server did not answer any more.
    if runner.kept().is_given_up {
        return None;
    }
    link.give_up(id).await;
    Some(answer)
}

/// What is said of a call of a tool that someone has to review first.
fn quarantined(link: &Link, index: usize, tool: &str) -> Option<Value> {
    link.gateway.pins.as_ref()?;
    let server = link.server(index)?;
    let described = server.tools.get(tool).unwrap_or_default();
    let why = match link.gateway.standing(&server.spec.name, tool, &described) {
        Standing::Accepted => return None,
        Standing::New => "was not reviewed",
        Standing::Changed => "is not as it was reviewed",
    };
    let message = format!("the tool `{}` {why}: a person has to review and accept it first", inert(tool));
    Some(answer::of_quarantine(&message))
}

/// What policies see as the arguments. Servers take none for an empty object.
fn arguments(frame: &Frame) -> Value {
    match frame.param("arguments") {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(arguments) => arguments.clone(),
    }
}

/// Runs one call on its server.
pub(super) struct Runner<'c> {
    pub(super) link: &'c Link,
    index: usize,
    /// The call as the client sent it.
    pub(super) frame: &'c Frame,
    id: &'c Id,
    /// The tool's own name.
    tool: &'c str,
    /// Where what belongs to the call goes.
    pub(super) outlet: &'c Outlet,
    cancelled: watch::Receiver<bool>,
    kept: Mutex<Kept>,
}

/// What is kept of the server's answers beside what policies see.
#[derive(Default)]
struct Kept {
    /// The last failure: what policies were told, and the answer itself.
    failure: Option<(String, Failure)>,
    set_aside: SetAside,
    /// The server's last message, for what it holds beside result and error, and its order.
    answer: Option<Frame>,
    /// Its result is of a form of its own, which is the server's matter.
    is_odd: bool,
    /// The client did not want it any more, and the server did not answer.
    is_given_up: bool,
}

/// How a server says that a tool failed.
#[derive(Clone)]
enum Failure {
    /// A result with `isError`.
    Result(Value),
    /// A JSON-RPC error.
    Error(Value),
}

impl ToolExecutor for Runner<'_> {
    async fn execute(&self, call: &ToolCall) -> Result<ToolAnswer, ToolError> {
        let mut cancelled = self.cancelled.clone();
        if *cancelled.borrow() {
            self.kept().is_given_up = true;
            return Err(ToolError::new("the client does not want it any more").of_kind("cancelled"));
        }
        let begun = self.link.begin_for_client(self.index, self.forwarded(call), self.id).await;
        let asked = begun.map_err(|Gone(why)| {
            self.kept().is_given_up = *self.cancelled.borrow();
            ToolError::new(why).of_kind("unavailable")
        })?;
        let given_up = async {
            if cancelled.wait_for(|cancelled| *cancelled).await.is_err() {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(LATE_ANSWERS).await;
        };
        let mut answer = tokio::select! {
            answer = asked => match answer {
                Ok(answer) => answer,
                Err(_) => {
                    // Who does not want an answer any more is not told of the server's end.
                    self.kept().is_given_up = *self.cancelled.borrow();
                    let why = "the server is gone; the tool may have taken effect";
                    return Err(ToolError::new(why).of_kind("unavailable"));
                }
            },
            () = given_up => {
                self.kept().is_given_up = true;
                return Err(ToolError::new("the client does not want it any more").of_kind("cancelled"));
            }
        };
        let error = answer.take_outcome("error");
        let mut result = answer.take_outcome("result").unwrap_or_default();
        self.kept().answer = Some(answer);
        if let Some(error) = error {
            let message =
                error.get("message").and_then(Value::as_str).unwrap_or("the tool failed").to_owned();
            let kind = error.get("code").map(|code| format!("rpc{code}"));
            self.kept().failure = Some((message.clone(), Failure::Error(error)));
            return Err(ToolError { message, kind });
        }
        if result.get("isError") == Some(&Value::Bool(true)) {
            let message = answer::text_of(&result);
            self.kept().failure = Some((message.clone(), Failure::Result(result)));
            return Err(ToolError::new(message).of_kind("tool_error"));
        }
        if result.get("inputRequests").is_some_and(asking::imitates) {
            // Nobody but the gateway asks in its name.
            self.link.log_of(self.index, "it asks as if it were Callgate; the client is not asked");
            let why = "the server asks a person as if it were Callgate";
            return Err(ToolError::new(why).of_kind("imitation"));
        }
        self.kept().is_odd = !answer::is_result(&result);
        let interim = answer::is_interim(&result);
        self.kept().set_aside.take_from(&mut result);
        Ok(ToolAnswer { interim, ..result.into() })
    }
}

impl Runner<'_> {
    /// Brings the call to its answer, and people to theirs.
    ///
    /// What executes is put on the heap where it begins: it is large, and would be copied with each future around it.
    async fn run(&self, mut call: ToolCall, returned: Returned) -> Frame {
        let session = &self.link.session;
        let mut was_asked = false;
        let mut outcome = match &returned.question {
            Some(question) => {
                call.id.clone_from(&question.tool_call_id);
                Box::pin(session.take_up(call.clone(), question, &returned.answers, self)).await
            }
            None => Box::pin(session.execute(call.clone(), self)).await,
        };
        for _ in 0..QUESTIONS {
            let Some(request) =
                outcome.approval.clone().filter(|_| outcome.outcome == OutcomeKind::Suspended)
            else {
                break;
            };
            let question = RequestPart::from(&request);
            let way = match session.anyone_may_answer(&question) && !returned.is_dismissed {
                true => Way::of(self.frame, &self.link.client),
                false => Way::None,
            };
            call.id.clone_from(&request.tool_call_id);
            let answer = match way {
                Way::Result => match self.link.goes_on(&call, self.frame, &question) {
                    Some(going_on) => Some(going_on.answer(&question)),
                    None => return Frame::result(self.id, self.asking_result(&question)),
                },
                Way::Meanwhile => {
                    was_asked = true;
                    self.ask_meanwhile(&question).await
                }
                Way::None => None,
            };
            let Some(answer) = answer else { break };
            outcome = Box::pin(session.take_up(call.clone(), &question, &[answer], self)).await;
        }
        if let Some(request) = &outcome.approval {
            let gateway = &self.link.gateway;
            if !outcome.replayed {
                gateway.log_pending(request);
            }
            let client = match was_asked || returned.is_dismissed {
                true => pending::Client::Silent,
                false => pending::Client::NotAsked,
            };
            let askers = session.askers(&RequestPart::from(request)).unwrap_or_default();
            let is_answerable = gateway.answered_in.is_some();
            outcome.error = Some(pending::for_agent(&askers, client, is_answerable, &outcome.reason.message));
        }
        let approved = outcome.approved.clone();
        let answer = self.answer(&call, outcome);
        self.link.tasks.note(&call, &answer);
        if let Some(approved) = approved.filter(|approved| GoingOn::is_possible(approved, &answer))
            && let Some(question) = session.question(&approved.approval_id).await
        {
            self.link.may_go_on(GoingOn::new(call, question, &answer));
        }
        answer
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The call as the server gets it: as the client sent it, but for what policies changed.
    fn forwarded(&self, call: &ToolCall) -> Frame {
        let mut frame = self.frame.clone();
        if self.frame.param("name").and_then(Value::as_str) != Some(self.tool) {
            frame.set_param("name", self.tool.into());
        }
        if arguments(self.frame) != call.input {
            frame.set_param("arguments", call.input.clone());
        }
        frame
    }

    /// The answer to the client.
    fn answer(&self, call: &ToolCall, outcome: Outcome) -> Frame {
        let (failure, set_aside, said, is_odd) = {
            let mut kept = self.kept();
            let set_aside = std::mem::take(&mut kept.set_aside);
            (kept.failure.take(), set_aside, kept.answer.take(), kept.is_odd)
        };
        let said = said.map(|mut said| {
            said.other_members().for_each(|member| self.link.session.hide(call, member));
            said
        });
        let answered = |member: &str, value| match said.clone() {
            Some(said) => said.with_outcome(member, value),
            None => Frame::result(self.id, value),
        };
        match outcome.outcome {
            OutcomeKind::Executed | OutcomeKind::Cached | OutcomeKind::Answered => {
                let output = outcome.output.unwrap_or_default();
                let mut result = match said {
                    Some(_) if is_odd => output,
                    Some(_) => answer::of_output(output),
                    // A policy or a cache gave it.
                    None => answer::in_protocol_of(self.frame, answer::of_output(output)),
                };
                set_aside.put_back(&mut result);
                answered("result", result)
            }
            // The server's own words, where nothing was made of them.
            OutcomeKind::Failed => match failure {
                Some((message, failure))
                    if outcome.error.as_deref() == Some(&*self.hidden(call, &message)) =>
                {
                    match failure {
                        Failure::Result(mut result) => {
                            self.link.session.hide(call, &mut result);
                            answered("result", result)
                        }
                        Failure::Error(mut error) => {
                            self.link.session.hide(call, &mut error);
                            answered("error", error)
                        }
                    }
                }
                _ => self.refusal(&outcome),
            },
            _ => self.refusal(&outcome),
        }
    }

    fn refusal(&self, outcome: &Outcome) -> Frame {
        Frame::result(self.id, answer::in_protocol_of(self.frame, answer::of_refusal(outcome)))
    }

    fn hidden(&self, call: &ToolCall, text: &str) -> String {
        let mut value = Value::from(text);
        self.link.session.hide(call, &mut value);
        value.as_str().unwrap_or_default().to_owned()
    }
}
