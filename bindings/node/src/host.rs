//! The operations of one JavaScript environment (the main thread, or a worker), and the events for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callgate::BoxFuture;
use callgate::json::{self, json};
use napi::bindgen_prelude::Function;
use napi_derive::napi;

use crate::event_queue::EventQueue;
use crate::exchange::{Exchange, OperationResult};
use crate::notifier::Notifier;
use crate::operation::{Operation, OperationThread};

/// The number under which events are notified; operations have others.
pub const EVENTS: u32 = 0;

/// One JavaScript environment.
#[napi]
pub struct Host {
    notifier: Notifier,
    operations: Mutex<Operations>,
    events: Arc<EventQueue>,
}

#[derive(Default)]
struct Operations {
    running: HashMap<u32, Arc<Operation>>,
    last: u32,
}

impl Operations {
    fn next_number(&mut self) -> u32 {
        loop {
            self.last = self.last.wrapping_add(1);
            if self.last != EVENTS && !self.running.contains_key(&self.last) {
                return self.last;
            }
        }
    }
}

impl Host {
    fn operations(&self) -> MutexGuard<'_, Operations> {
        self.operations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts an operation, and advances it as far as it gets.
    pub fn start(
        &self,
        thread: OperationThread,
        work: impl FnOnce(Arc<Exchange>) -> BoxFuture<'static, OperationResult>,
    ) -> napi::Result<String> {
        let number = self.operations().next_number();
        let exchange = Arc::new(Exchange::new(number, self.notifier.clone()));
        let operation = Operation::start(Arc::clone(&exchange), thread, work(exchange))?;
        let (step, has_ended) = operation.step();
        if !has_ended {
            self.operations().running.insert(number, Arc::new(operation));
        }
        Ok(step)
    }

    /// The queue of events of this environment.
    pub fn events(&self) -> &Arc<EventQueue> {
        &self.events
    }

    fn advance(&self, number: u32, operation: &Operation) -> String {
        let (step, has_ended) = operation.step();
        if has_ended {
            self.operations().running.remove(&number);
        }
        step
    }

    fn running(&self, number: u32) -> Option<Arc<Operation>> {
        self.operations().running.get(&number).cloned()
    }
}

#[napi]
impl Host {
    /// `wake` is called with the number of an operation that has to be advanced, or 0 for events.
    #[napi(constructor)]
    pub fn new(wake: Function<'_, u32, ()>) -> napi::Result<Self> {
        let notifier = Notifier::new(&wake)?;
        let events = Arc::new(EventQueue::new(notifier.clone()));
        Ok(Self { notifier, operations: Mutex::default(), events })
    }

    /// Advances an operation. Returns an empty string if it has ended already.
    #[napi]
    pub fn step(&self, number: u32) -> String {
        self.running(number).map_or_else(String::new, |operation| self.advance(number, &operation))
    }

    /// Replies to a request of an operation, and advances it.
    #[napi]
    pub fn reply(&self, number: u32, request: u32, reply: String) -> String {
        let Some(operation) = self.running(number) else { return String::new() };
        // A reply that can't be read, as one with a lone surrogate, is the error of who made it.
        let reply = json::parse(&reply).unwrap_or_else(|error| {
            let error =
                json!({ "message": format!("the result is not JSON: {error}"), "kind": "invalid_result" });
            json!({ "error": error.clone(), "threw": error })
        });
        operation.exchange().begin_advance();
        operation.exchange().reply(request, reply);
        self.advance(number, &operation)
    }

    /// Gives an operation up. Calls that it has started count as started.
    #[napi]
    pub fn abandon(&self, number: u32) {
        let operation = self.operations().running.remove(&number);
        drop(operation);
    }

    /// The events since the last time, each as the number of its engine and its line.
    #[napi]
    pub fn take_events(&self) -> Vec<String> {
        self.events.take()
    }
}
