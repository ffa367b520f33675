//! What the client says: its requests, what it tells, and its answers.

use std::sync::{Arc, Weak};
use std::task::Poll;

use tokio::sync::watch;

use super::{Asked, Asking, Awaiting, LATE_ANSWERS, Link, Then, locked};
use crate::json::{Value, json};
use crate::mcp::frame::{Frame, Id, Kind, code};
use crate::mcp::outlet::Outlet;
use crate::mcp::server::Gone;
use crate::mcp::{calls, many, method, tasks};

impl Link {
    /// Takes a message of the client. What answers it, and what belongs to it, goes to `outlet`.
    pub(in crate::mcp) async fn from_client(self: &Arc<Self>, frame: Frame, outlet: &Outlet) {
        match frame.kind().clone() {
            Kind::Request(id) => self.request(frame, id, outlet).await,
            Kind::Notification => self.notification(frame).await,
            Kind::Response(id) => self.answered_by_client(frame, &id).await,
            Kind::Complaint => self.gateway.log("the client could not read a message"),
        }
    }

    pub(super) async fn request(self: &Arc<Self>, frame: Frame, id: Id, outlet: &Outlet) {
        let asked = Asked {
            outlet: outlet.clone(),
            progress: frame.meta("progressToken").and_then(Id::of),
            hears_of_tools: frame.method() == method::LISTEN
                && frame.param_at(&["notifications", "toolsListChanged"]) == Some(&Value::Bool(true)),
            sent: Vec::new(),
            cancel: watch::Sender::new(false),
        };
        let cancelled = asked.cancel.subscribe();
        let is_taken = {
            let mut all = locked(&self.asked);
            match all.entry(id.clone()) {
                std::collections::hash_map::Entry::Occupied(_) => true,
                std::collections::hash_map::Entry::Vacant(free) => {
                    free.insert(asked);
                    false
                }
            }
        };
        if is_taken {
            // Its answer could not be told from the other one's.
            let message = "a request with this id is not answered yet";
            return outlet.send(Frame::error(Some(&id), code::INVALID_REQUEST, message, None)).await;
        }
        match frame.method() {
            method::TOOLS_CALL => {
                let (link, outlet) = (Arc::clone(self), outlet.clone());
                let mut call = Box::pin(async move {
                    match calls::call(&link, frame, &id, &outlet, cancelled).await {
                        Some(answer) => link.finish(&id, &outlet, answer).await,
                        None => drop(locked(&link.asked).remove(&id)),
                    }
                });
                // As far as it comes without waiting it comes here, so that calls reach the server in the order in which they came.
                let is_over =
                    std::future::poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_ready()));
                if !is_over.await {
                    tokio::spawn(call);
                }
            }
            method if method::may_be_read_as_tools_call(method) => {
                let message = "there is no such method; tools are called by `tools/call`";
                let answer = Frame::error(Some(&id), code::METHOD_NOT_FOUND, message, None);
                self.finish(&id, outlet, answer).await;
            }
            method => {
                if let Some(message) = tasks::misread(&frame) {
                    let answer = Frame::error(Some(&id), code::INVALID_REQUEST, &message, None);
                    return self.finish(&id, outlet, answer).await;
                }
                if method == method::INITIALIZE {
                    self.client.greet(&frame);
                }
                let task = tasks::subject(&frame);
                if self.servers.len() > 1 {
                    let (link, outlet) = (Arc::clone(self), outlet.clone());
                    tokio::spawn(async move {
                        let mut answer = many::answer(&link, frame, &id).await;
                        if let Some(task) = task {
                            answer = tasks::hidden(&link, &task, answer);
                        }
                        link.finish(&id, &outlet, answer).await;
                    });
                    return;
                }
                let then = match task {
                    Some(task) => Then::OfTask(task),
                    None if method == method::TOOLS_LIST => Then::ShowTools,
                    None if matches!(method, method::INITIALIZE | method::DISCOVER) => Then::Greet,
                    None => Then::Nothing,
                };
                self.relay(0, frame, id, outlet, then).await;
            }
        }
    }

    /// Answers a request of the client.
    pub(super) async fn finish(&self, id: &Id, outlet: &Outlet, answer: Frame) {
        locked(&self.asked).remove(id);
        outlet.send(answer.with_id(id)).await;
    }

    /// Tells the client that its request came to nothing, unless it does not want it any more.
    pub(super) async fn fail(&self, id: &Id, outlet: &Outlet, why: &str) {
        let asked = locked(&self.asked).remove(id);
        if asked.is_none_or(|asked| !*asked.cancel.borrow()) {
            outlet.send(Frame::error(Some(id), code::INTERNAL_ERROR, why, None)).await;
        }
    }

    /// Passes a request on to a server.
    pub(super) async fn relay(&self, index: usize, frame: Frame, id: Id, outlet: &Outlet, then: Then) {
        let waits = Awaiting::Client { id: id.clone(), outlet: outlet.clone(), then };
        if let Err(Gone(why)) = self.send_request(index, frame, &id, waits).await {
            self.fail(&id, outlet, &why).await;
        }
    }

    /// Tells a server that a request of the client is not wanted any more.
    pub(in crate::mcp) async fn cancel_at_server(&self, id: &Id, reason: Option<&Value>) {
        let sent = locked(&self.asked).get(id).map(|asked| asked.sent.clone()).unwrap_or_default();
        for (index, sent_as) in sent {
            let mut params = json!({ "requestId": sent_as.to_json() });
            if let (Some(reason), Some(params)) = (reason, params.as_object_mut()) {
                params.insert("reason".to_owned(), reason.clone());
            }
            let _ = self.send(index, Frame::notification(method::CANCELLED, params)).await;
        }
    }

    /// Tells servers that what they have not answered of a request is not wanted any more: it took too long.
    pub(in crate::mcp) async fn give_up(&self, id: &Id) {
        let sent = locked(&self.asked).get(id).map(|asked| asked.sent.clone()).unwrap_or_default();
        for (index, sent_as) in sent {
            let Some(server) = self.servers.get(index) else { continue };
            if locked(&server.awaiting).remove(&sent_as).is_some() {
                let params = json!({ "requestId": sent_as.to_json(), "reason": "it took too long" });
                let _ = self.send(index, Frame::notification(method::CANCELLED, params)).await;
            }
        }
    }

    pub(super) async fn notification(&self, frame: Frame) {
        if frame.method() == method::CANCELLED {
            let Some(id) = frame.param("requestId").and_then(Id::of) else { return };
            if let Some(asked) = locked(&self.asked).get(&id) {
                asked.cancel.send_replace(true);
            }
            self.cancel_at_server(&id, frame.param("reason")).await;
            tokio::spawn(forget_cancelled(Weak::clone(&self.me), id));
            return;
        }
        if method::may_be_read_as_tools_call(frame.method()) {
            return self.gateway.log("a tool call without id is not passed on");
        }
        for index in 0..self.servers.len() {
            let _ = self.send(index, frame.clone()).await;
        }
    }

    pub(super) async fn answered_by_client(&self, frame: Frame, id: &Id) {
        let waits = locked(&self.asking).remove(id);
        match waits {
            None => self.gateway.log("the client answered what nobody asked"),
            Some(Asking::Gateway(tell)) => drop(tell.send(frame)),
            Some(Asking::Server(index, own)) => {
                let _ = self.send(index, frame.with_id(&own)).await;
            }
        }
    }
}

/// A request that the client does not want any more needs no answer; one that comes all the same is passed on for a while.
async fn forget_cancelled(link: Weak<Link>, id: Id) {
    tokio::time::sleep(LATE_ANSWERS).await;
    let Some(link) = link.upgrade() else { return };
    let Some(asked) = locked(&link.asked).remove(&id) else { return };
    for (index, sent_as) in asked.sent {
        if let Some(server) = link.servers.get(index) {
            locked(&server.awaiting).remove(&sent_as);
        }
    }
}
