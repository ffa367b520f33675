//! Test scene: a server with its keys, tool and clock, and a client that holds the history.

use std::cell::OnceCell;
use std::sync::{Arc, Mutex};

use callgate::approval::{BoundRequest, Ledger, LedgerKey, seal_answer};
use callgate::call::{ApprovalDecision, ApprovalRequest};
use callgate::host::{Clock, ManualClock, Observer, StateStore};
use callgate::json::{Value, json};
use callgate::lifecycle::ToolHooks;
use callgate::message::{
    Approver, Dialect, History, Message, Part, PartContent, RequestPart, ResponsePart, ResultPart, Role,
    approval_response,
};
use callgate::seal::Keys;
use callgate::session::Round;
use callgate::state::{MemoryStore, seal_store};
use callgate::tools::ToolDescriptor;
use callgate::{Engine, EngineBuilder, Outcome, Session, engine};

use crate::corrupted_stores::Altered;
pub use crate::corrupted_stores::Shared;
use crate::fixtures::{Tool, noon, rules};

/// Refunds above 100 require approval.
pub const REFUNDS: &str = "policies:
  - id: ask
    match: { tool: refund, where: [ { path: $.input.amount, gt: 100 } ] }
    approval: { message: 'Refund {{ input.amount }}?', expires: 24h }
";

/// A server's key, and the one that replaces it.
pub const KEY: &str = "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a";
pub const NEXT_KEY: &str = "6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b";

/// Records the notifications of requests and decisions, in order.
#[derive(Clone, Default)]
pub struct Watcher(Arc<Mutex<Vec<String>>>);

impl Watcher {
    fn record(&self, what: &str, id: &str) {
        self.0.lock().unwrap().push(format!("{what} {id}"));
    }

    pub fn notifications(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Observer for Watcher {
    fn on_outcome(&self, _: &Outcome) {}

    fn on_request(&self, request: &ApprovalRequest) {
        self.record("request", &request.approval_id);
    }

    fn on_approved(&self, decision: &ApprovalDecision) {
        self.record(&decision.code, &decision.approval_id);
    }

    fn on_denied(&self, decision: &ApprovalDecision) {
        self.record(&decision.code, &decision.approval_id);
    }
}

/// A server, and the history of its client.
pub struct Scene {
    pub clock: ManualClock,
    pub tool: Tool,
    pub store: Arc<dyn StateStore>,
    pub rules: String,
    pub history: History,
    pub context: Value,
    pub conversation: String,
    pub keys: Option<String>,
    /// Without keys all runs share one process, which has an ephemeral key.
    pub process: OnceCell<Engine>,
    pub tools: Vec<ToolDescriptor>,
    /// Rules of lower layers.
    pub layers: Vec<String>,
    /// Host hooks.
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

    /// A scene in which the model asked for one refund.
    pub fn refund(amount: u64) -> Self {
        Self::asked(REFUNDS, json!({ "amount": amount, "note": "late" }))
    }

    /// Scenes in which the model asked for one refund: on a server with keys, and on one without.
    pub fn each(rules: &str, input: &Value) -> [Self; 2] {
        [Some(KEY.to_owned()), None].map(|keys| {
            let mut scene = Self { keys, ..Self::new(rules) };
            scene.ask(input.clone());
            scene
        })
    }

    /// The model asks for a refund, which is evaluated.
    pub fn ask(&mut self, input: Value) -> Round {
        self.model_calls(&[("c1", "refund", input)]);
        self.round()
    }

    /// An approval, to be completed.
    pub fn approval(&self) -> ResponsePart {
        approval_response(self.request().approval_id, true)
    }

    /// A scene under these rules in which the model asked for one refund.
    pub fn asked(rules: &str, input: Value) -> Self {
        let mut scene = Self::new(rules);
        scene.ask(input);
        scene
    }

    /// One scene with its own store, and one with a shared store.
    pub fn with_both_stores(rules: &str) -> [Self; 2] {
        [Self::new(rules), Self::new(rules).with_shared_store()]
    }

    /// The same scene with a shared store.
    pub fn with_shared_store(mut self) -> Self {
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

    /// Each run of the agent is a separate process, which shares only the store.
    pub fn session(&self) -> Session {
        let session =
            self.engine().session().with_name(self.conversation.clone()).with_context(self.context.clone());
        let layers = self.layers.iter().map(|text| engine::load_text(text).unwrap());
        let session = layers.fold(session, Session::with_layer);
        self.hooks.iter().cloned().fold(session, Session::with_middleware)
    }

    pub fn keys(&self) -> Keys {
        self.engine().keys().clone()
    }

    pub fn ledger(&self) -> Ledger<'_> {
        Ledger::new(seal_store(Arc::clone(&self.store), Some(&self.keys())), &self.clock)
    }

    /// The name of the call in the ledger.
    pub fn name(&self, occurrence: &str) -> LedgerKey {
        LedgerKey { conversation: self.conversation.clone(), occurrence_id: occurrence.to_owned() }
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

    /// Evaluates and runs the model's calls.
    pub fn round(&mut self) -> Round {
        let mut session = self.session();
        self.clock.block_on(session.run_round(&mut self.history, &self.tool)).unwrap()
    }

    /// Resumes the history in a new process.
    pub fn resume(&mut self) -> Round {
        let mut session = self.session();
        self.clock.block_on(session.resume(&mut self.history, &self.tool)).unwrap()
    }

    /// The reason why the history cannot be resumed.
    pub fn refused(&mut self) -> String {
        let mut session = self.session();
        self.clock.block_on(session.resume(&mut self.history, &self.tool)).unwrap_err().to_string()
    }

    /// The only outcome of resuming the history.
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

    /// Adds a response to the history.
    pub fn answer(&mut self, response: ResponsePart) {
        self.history.append_approval_response(response).unwrap();
    }

    pub fn approve(&mut self) {
        self.answer(self.approval());
    }

    pub fn approve_of(&mut self, approval_id: &str) {
        self.answer(approval_response(approval_id, true));
    }

    pub fn deny(&mut self, reason: Option<&str>) {
        let response = approval_response(self.request().approval_id, false);
        self.answer(ResponsePart { reason: reason.map(str::to_owned), ..response });
    }

    /// The same, from an approver whom the host has verified.
    pub fn answer_as(&mut self, by: Approver, response: ResponsePart) {
        let signed = self.signed(by, response);
        self.answer(signed);
    }

    pub fn signed(&self, by: Approver, response: ResponsePart) -> ResponsePart {
        let request = self.requests().into_iter().find(|request| request.approval_id == response.approval_id);
        let question = BoundRequest::open(&request.unwrap(), &self.keys()).unwrap();
        seal_answer(&question, response, by, self.clock.now(), &self.keys())
    }

    /// The results that the model sees, in order.
    pub fn results(&self) -> Vec<ResultPart> {
        let parts = self.history.messages().iter().flat_map(Message::parts);
        parts
            .filter_map(|part| match part.content() {
                PartContent::Result(result) => Some(result.clone()),
                _ => None,
            })
            .collect()
    }

    /// The history as returned by a client that stores it in a provider's dialect.
    pub fn through(&mut self, dialect: Dialect) {
        let written = self.history.write(dialect);
        self.history = History::read(dialect, &written).unwrap();
    }
}

/// Replaces parts of a history.
pub fn with_parts(history: &History, mut change: impl FnMut(&PartContent) -> Option<Vec<Part>>) -> History {
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

/// A history with its approval requests changed.
pub fn with_request(history: &History, change: impl Fn(&mut RequestPart)) -> History {
    with_parts(history, |content| match content {
        PartContent::Request(request) => {
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
