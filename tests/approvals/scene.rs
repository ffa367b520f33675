//! A server with its keys, its tool and its clock, and a client that holds the history.

use std::cell::OnceCell;
use std::sync::{Arc, Mutex};

use callgate::approval::{Ledger, Name, Question, seal_answer};
use callgate::call::{ApprovalDecision, ApprovalRequest};
use callgate::host::{Clock, ManualClock, Observer, StateStore};
use callgate::json::{Value, json};
use callgate::lifecycle::ToolHooks;
use callgate::message::{
    Approver, Content, Dialect, History, Message, Part, RequestPart, ResponsePart, ResultPart, Role,
    approval_response,
};
use callgate::seal::Keys;
use callgate::session::Round;
use callgate::state::{MemoryStore, sealed};
use callgate::tools::ToolDescriptor;
use callgate::{Engine, EngineBuilder, Outcome, Session, engine};

use crate::altered_stores::Altered;
pub use crate::altered_stores::Shared;
use crate::workshop::{Tool, noon, rules};

/// Refunds above 100 need a person.
pub const REFUNDS: &str = "policies:
  - id: ask
    match: { tool: refund, where: [ { path: $.input.amount, gt: 100 } ] }
    approval: { message: 'Refund {{ input.amount }}?', expires: 24h }
";

/// A server's key, and the one that comes after it.
pub const KEY: &str = "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a";
pub const NEXT_KEY: &str = "6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b";

/// What observers are told of questions and decisions, in order.
#[derive(Clone, Default)]
pub struct Watcher(Arc<Mutex<Vec<String>>>);

impl Watcher {
    fn note(&self, what: &str, id: &str) {
        self.0.lock().unwrap().push(format!("{what} {id}"));
    }

    pub fn told(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Observer for Watcher {
    fn on_outcome(&self, _: &Outcome) {}

    fn on_request(&self, request: &ApprovalRequest) {
        self.note("request", &request.approval_id);
    }

    fn on_approved(&self, decision: &ApprovalDecision) {
        self.note(&decision.code, &decision.approval_id);
    }

    fn on_denied(&self, decision: &ApprovalDecision) {
        self.note(&decision.code, &decision.approval_id);
    }
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
    pub keys: Option<String>,
    /// Without keys all runs are in one process, which has a key that ends with it.
    pub process: OnceCell<Engine>,
    pub tools: Vec<ToolDescriptor>,
    /// Rules below the engine's own.
    pub layers: Vec<String>,
    /// The host's hooks.
    pub hooks: Vec<ToolHooks>,
    pub watcher: Watcher,
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
            keys: Some(KEY.to_owned()),
            process: OnceCell::new(),
            tools: Vec::new(),
            layers: Vec::new(),
            hooks: Vec::new(),
            watcher: Watcher::default(),
        }
    }

    /// A scene in which the model has asked for one refund.
    pub fn refund(amount: u64) -> Self {
        Self::asked(REFUNDS, json!({ "amount": amount, "note": "late" }))
    }

    /// A scene in which the model has asked for the same, of a server with keys and of one without.
    pub fn each(rules: &str, input: &Value) -> [Self; 2] {
        [Some(KEY.to_owned()), None].map(|keys| {
            let mut scene = Self { keys, ..Self::new(rules) };
            scene.ask(input.clone());
            scene
        })
    }

    /// The model asks for a refund, which is put through.
    pub fn ask(&mut self, input: Value) -> Round {
        self.model_calls(&[("c1", "refund", input)]);
        self.round()
    }

    /// An answer that says yes, to be filled in.
    pub fn yes(&self) -> ResponsePart {
        approval_response(self.request().approval_id, true)
    }

    /// A scene in which the model has asked for one refund, under these rules.
    pub fn asked(rules: &str, input: Value) -> Self {
        let mut scene = Self::new(rules);
        scene.ask(input);
        scene
    }

    /// A scene with a store of its own, and one whose store several processes share.
    pub fn with_both_stores(rules: &str) -> [Self; 2] {
        [Self::new(rules), Self::new(rules).sharing()]
    }

    /// The same with a store that several processes share.
    pub fn sharing(mut self) -> Self {
        self.store = Arc::new(Altered::by(Shared));
        self
    }

    pub fn engine(&self) -> Engine {
        match &self.keys {
            Some(keys) => self.builder().keys(Keys::parse(keys).unwrap()).build(),
            None => {
                let engine = self.process.get_or_init(|| self.builder().build());
                engine.replace(engine::load_text(&self.rules).unwrap());
                engine.clone()
            }
        }
    }

    fn builder(&self) -> EngineBuilder {
        rules(&self.rules)
            .clock(self.clock.clone())
            .store(Arc::clone(&self.store))
            .observer(self.watcher.clone())
            .tools(self.tools.clone())
    }

    /// Each run of the agent is a process of its own, which shares the store and nothing else.
    pub fn session(&self) -> Session {
        let session =
            self.engine().session().named(self.conversation.clone()).with_context(self.context.clone());
        let layers = self.layers.iter().map(|text| engine::load_text(text).unwrap());
        let session = layers.fold(session, Session::with_layer);
        self.hooks.iter().cloned().fold(session, Session::with_middleware)
    }

    pub fn keys(&self) -> Keys {
        self.engine().keys().clone()
    }

    pub fn ledger(&self) -> Ledger<'_> {
        Ledger::new(sealed(Arc::clone(&self.store), Some(&self.keys())), &self.clock)
    }

    /// What a call is called in the ledger.
    pub fn name(&self, occurrence: &str) -> Name {
        Name { conversation: self.conversation.clone(), occurrence: occurrence.to_owned() }
    }

    pub fn advance(&self, seconds: u64) {
        self.clock.advance(std::time::Duration::from_secs(seconds));
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

    /// Why the history is not taken up at all.
    pub fn refused(&mut self) -> String {
        let mut session = self.session();
        self.clock.drive(session.resume(&mut self.history, &self.tool)).unwrap_err().to_string()
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
        self.answer(self.yes());
    }

    pub fn approve_of(&mut self, approval_id: &str) {
        self.answer(approval_response(approval_id, true));
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
        let request = self.requests().into_iter().find(|request| request.approval_id == response.approval_id);
        let question = Question::open(&request.unwrap(), &self.keys()).unwrap();
        seal_answer(&question, response, by, self.clock.now(), &self.keys())
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
