//! A server with its keys, its tool and its clock, and a client that holds the history.

use std::sync::Arc;

use callgate::approval::{Question, seal_answer};
use callgate::call::ApprovalRequest;
use callgate::host::{ManualClock, StateStore};
use callgate::message::{
    Approver, Content, Dialect, History, Message, Part, RequestPart, ResponsePart, ResultPart, Role,
    approval_response,
};
use callgate::seal::Keys;
use callgate::session::Round;
use callgate::state::MemoryStore;
use callgate::{Engine, EngineBuilder, Outcome, Session};
use serde_json::{Value, json};

use crate::workshop::{Tool, noon, rules};

/// Refunds above 100 need a person.
pub const REFUNDS: &str = "policies:
  - id: ask
    match: { tool: refund, where: [ { path: $.input.amount, gt: 100 } ] }
    approval: { message: 'Refund {{ input.amount }}?', expires: 24h }
";

pub fn keys() -> Keys {
    Keys::parse(&"5a".repeat(32)).unwrap()
}

/// A server, and the history that its client holds.
pub struct Scene {
    pub clock: ManualClock,
    pub tool: Tool,
    pub store: Arc<dyn StateStore>,
    pub rules: String,
    pub history: History,
    pub context: Value,
    pub conversation: String,
    /// Each run of the agent is a process of its own, which shares the store and nothing else.
    pub build: fn(EngineBuilder) -> EngineBuilder,
}

impl Scene {
    pub fn new(rules: &str) -> Self {
        let clock = noon();
        Self {
            tool: Tool::counting(&clock),
            clock,
            store: Arc::new(MemoryStore::default()),
            rules: rules.to_owned(),
            history: History::default(),
            context: json!({ "principal": "ana", "tenant": "acme" }),
            conversation: "talk".to_owned(),
            build: |engine| engine,
        }
    }

    /// A scene in which the model has asked for one refund.
    pub fn refund(amount: u64) -> Self {
        let mut scene = Self::new(REFUNDS);
        scene.model_calls(&[("c1", "refund", json!({ "amount": amount, "note": "late" }))]);
        scene.round();
        scene
    }

    pub fn engine(&self) -> Engine {
        let engine = rules(&self.rules).clock(self.clock.clone()).store(Arc::clone(&self.store)).keys(keys());
        (self.build)(engine).build()
    }

    pub fn session(&self) -> Session {
        self.engine().session().named(self.conversation.clone()).with_context(self.context.clone())
    }

    pub fn model_calls(&mut self, calls: &[(&str, &str, Value)]) {
        let parts = calls.iter().map(|(id, tool, input)| Part::call(*id, *tool, input.clone())).collect();
        self.history.push(Message::new(Role::Assistant, parts));
    }

    pub fn user_says(&mut self, text: &str) {
        self.history.push(Message::new(Role::User, vec![Part::text(text)]));
    }

    /// The model's calls are put through.
    pub fn round(&mut self) -> Round {
        let mut session = self.session();
        self.clock.drive(session.round(&mut self.history, &self.tool)).unwrap()
    }

    /// The history comes back, and is taken up by a new process.
    pub fn resume(&mut self) -> Round {
        let mut session = self.session();
        self.clock.drive(session.resume(&mut self.history, &self.tool)).unwrap()
    }

    /// The one outcome of taking the history up.
    pub fn outcome(&mut self) -> Outcome {
        let mut outcomes = self.resume().outcomes;
        assert_eq!(outcomes.len(), 1, "{outcomes:#?}");
        outcomes.remove(0)
    }

    pub fn requests(&self) -> Vec<RequestPart> {
        self.history.find_approval_requests().into_iter().cloned().collect()
    }

    pub fn request(&self) -> RequestPart {
        let mut requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:#?}");
        requests.remove(0)
    }

    /// A person's answer comes in.
    pub fn answer(&mut self, response: ResponsePart) {
        self.history.append_approval_response(response).unwrap();
    }

    pub fn approve(&mut self) {
        self.answer(approval_response(self.request().approval_id, true));
    }

    pub fn deny(&mut self, reason: Option<&str>) {
        let response = approval_response(self.request().approval_id, false);
        self.answer(ResponsePart { reason: reason.map(str::to_owned), ..response });
    }

    /// The same, of someone whom the host has verified.
    pub fn answer_as(&mut self, by: Approver, response: ResponsePart) {
        let signed = self.signed(by, response);
        self.answer(signed);
    }

    pub fn signed(&self, by: Approver, response: ResponsePart) -> ResponsePart {
        use callgate::host::Clock;
        let request = self.requests().into_iter().find(|request| request.approval_id == response.approval_id);
        let question = Question::open(&request.unwrap(), Some(&keys())).unwrap();
        seal_answer(&question, response, by, self.clock.now(), Some(&keys()))
    }

    /// The results that the model sees, in order.
    pub fn results(&self) -> Vec<ResultPart> {
        let parts = self.history.messages().iter().flat_map(Message::parts);
        parts
            .filter_map(|part| match part.content() {
                Content::Result(result) => Some(result.clone()),
                _ => None,
            })
            .collect()
    }

    /// The history as it comes back from a client that keeps it in a provider's dialect.
    pub fn through(&mut self, dialect: Dialect) {
        let written = self.history.write(dialect);
        self.history = History::read(dialect, &written).unwrap();
    }
}

/// Exchanges the parts of a history.
pub fn with_parts(history: &History, mut change: impl FnMut(&Content) -> Option<Vec<Part>>) -> History {
    let mut changed = Vec::new();
    for message in history.messages() {
        let mut parts = Vec::new();
        for part in message.parts() {
            match change(part.content()) {
                Some(instead) => parts.extend(instead),
                None => parts.push(part.clone()),
            }
        }
        if !parts.is_empty() {
            changed.push(Message::new(message.role().clone(), parts));
        }
    }
    History::new(changed)
}

/// A history with its questions changed.
pub fn with_request(history: &History, change: impl Fn(&mut RequestPart)) -> History {
    with_parts(history, |content| match content {
        Content::Request(request) => {
            let mut request = request.clone();
            change(&mut request);
            Some(vec![request.into()])
        }
        _ => None,
    })
}

pub fn pending(round: &Round) -> Vec<ApprovalRequest> {
    round.pending().cloned().collect()
}
