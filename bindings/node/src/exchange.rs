//! The messages between an operation and JavaScript: requests with their replies, cancelled requests, and the result.

use std::cell::RefCell;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake};

use callgate::json::{self, Value, json};
use serde::Serialize;
use tokio::sync::oneshot;

use crate::failure::Failure;
use crate::json_text::append_flagged;
use crate::notifier::Notifier;

/// The result of an operation: JSON text.
pub type OperationResult = Result<String, Failure>;

/// The exchange of one operation.
pub struct Exchange {
    number: u32,
    notifier: Notifier,
    state: Mutex<ExchangeState>,
}

#[derive(Default)]
struct ExchangeState {
    /// For JavaScript, oldest first: JSON arrays of the number, kind and members of a request; of its number only, if it is cancelled.
    messages: Vec<String>,
    waiting: HashMap<u32, oneshot::Sender<Value>>,
    last_request: u32,
    result: Option<OperationResult>,
    /// JavaScript's thread advances the operation now, and reads the messages afterwards.
    is_advancing: bool,
    is_woken: bool,
    is_notified: bool,
}

thread_local! {
    /// The exchange of the operation that this thread advances now.
    static CURRENT: RefCell<Option<Arc<Exchange>>> = const { RefCell::new(None) };
}

/// The exchange of the operation that this thread advances. Returns `None` outside of operations.
pub fn current_exchange() -> Option<Arc<Exchange>> {
    CURRENT.with(|current| current.try_borrow().ok()?.clone())
}

/// Advances an operation, whose exchange [`current_exchange`] returns meanwhile.
pub fn with_exchange<T>(exchange: &Arc<Exchange>, advance: impl FnOnce() -> T) -> T {
    let replace = |new| {
        CURRENT.with(|current| {
            current.try_borrow_mut().ok().and_then(|mut slot| std::mem::replace(&mut *slot, new))
        })
    };
    let outer = replace(Some(Arc::clone(exchange)));
    let result = advance();
    replace(outer);
    result
}

impl Exchange {
    /// The exchange of the operation with this number.
    pub fn new(number: u32, notifier: Notifier) -> Self {
        Self { number, notifier, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, ExchangeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks JavaScript for something of this kind, with these members.
    pub fn request(self: &Arc<Self>, kind: &str, members: &impl Serialize) -> PendingReply {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state();
        state.last_request = state.last_request.wrapping_add(1);
        let number = state.last_request;
        // JavaScript reports a request without members that it can read as failed.
        let message = json::to_string(&(number, kind, members));
        let message = message.unwrap_or_else(|_| json!([number, kind]).to_string());
        state.waiting.insert(number, sender);
        state.messages.push(message);
        self.notify(state);
        PendingReply { exchange: Arc::clone(self), number, receiver, is_answered: false }
    }

    /// Passes on JavaScript's reply to a request. A reply to a cancelled request is ignored.
    pub fn reply(&self, number: u32, reply: Value) {
        let waiting = self.state().waiting.remove(&number);
        if let Some(waiting) = waiting {
            let _ = waiting.send(reply);
        }
    }

    /// Records the result, which JavaScript reads with the next step.
    pub fn finish(&self, result: OperationResult) {
        let mut state = self.state();
        state.result = Some(result);
        self.notify(state);
    }

    /// JavaScript's thread advances the operation from now on.
    pub fn begin_advance(&self) {
        let mut state = self.state();
        (state.is_advancing, state.is_woken) = (true, false);
    }

    /// Whether the operation was woken while it advanced; if not, it no longer advances.
    pub fn advances_again(&self) -> bool {
        let mut state = self.state();
        let again = std::mem::take(&mut state.is_woken);
        state.is_advancing = again;
        again
    }

    /// What happened since the last step, for JavaScript: `d` and the result, `e` and the failure, or `m` with the number of the operation and the messages. The second
    /// value says whether the operation has ended.
    pub fn take_step(&self) -> (String, bool) {
        let mut state = self.state();
        (state.is_notified, state.is_advancing) = (false, false);
        match state.result.take() {
            Some(Ok(text)) => {
                let mut step = String::with_capacity(text.len().saturating_add(2));
                step.push('d');
                append_flagged(&mut step, &text);
                (step, true)
            }
            Some(Err(failure)) => (format!("e={}", failure.into_text()), true),
            None => {
                let messages = std::mem::take(&mut state.messages).join(",");
                let mut step = "m".to_owned();
                append_flagged(&mut step, &format!("[{},[{messages}]]", self.number));
                (step, false)
            }
        }
    }

    fn notify(&self, mut state: MutexGuard<'_, ExchangeState>) {
        if state.is_advancing {
            state.is_woken = true;
            return;
        }
        if !std::mem::replace(&mut state.is_notified, true) {
            drop(state);
            self.notifier.notify(self.number);
        }
    }
}

/// Wakes the operation.
impl Wake for Exchange {
    fn wake(self: Arc<Self>) {
        self.notify(self.state());
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.notify(self.state());
    }
}

/// Resolves to JavaScript's reply. Dropped before, it cancels the request.
pub struct PendingReply {
    exchange: Arc<Exchange>,
    number: u32,
    receiver: oneshot::Receiver<Value>,
    is_answered: bool,
}

impl Future for PendingReply {
    /// `None` if JavaScript's side is gone.
    type Output = Option<Value>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Value>> {
        let reply = Pin::new(&mut self.receiver).poll(context);
        self.is_answered = reply.is_ready();
        reply.map(Result::ok)
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        if !self.is_answered {
            // The end of a sender wakes the operation, which locks the state.
            let waiting = self.exchange.state().waiting.remove(&self.number);
            drop(waiting);
            let mut state = self.exchange.state();
            state.messages.push(json!([self.number]).to_string());
            self.exchange.notify(state);
        }
    }
}
