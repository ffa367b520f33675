//! Events of engines on their way to JavaScript.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callgate::{EngineEvent, Observer};
use callgate_log::EventFormat;

use crate::host::EVENTS;
use crate::json_text::flagged;
use crate::notifier::Notifier;

/// How many events wait for JavaScript. Beyond that the oldest are lost, and their number is reported.
const CAPACITY: usize = 65_536;

/// The events that JavaScript has not read yet.
pub struct EventQueue {
    notifier: Notifier,
    state: Mutex<QueueState>,
}

#[derive(Default)]
struct QueueState {
    lines: VecDeque<String>,
    lost: u64,
    last_engine: u32,
}

impl EventQueue {
    /// A queue without events.
    pub fn new(notifier: Notifier) -> Self {
        Self { notifier, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number for the events of one engine.
    pub fn next_engine(&self) -> u32 {
        let mut state = self.state();
        state.last_engine = state.last_engine.wrapping_add(1);
        state.last_engine
    }

    fn push(&self, line: String) {
        let mut state = self.state();
        let was_empty = state.lines.is_empty();
        if state.lines.len() >= CAPACITY {
            state.lines.pop_front();
            state.lost = state.lost.saturating_add(1);
        }
        state.lines.push_back(line);
        drop(state);
        if was_empty {
            self.notifier.notify(EVENTS);
        }
    }

    /// All events, each as the number of its engine, a space, and its line. `0` has the number of lost events.
    pub fn take(&self) -> Vec<String> {
        let mut state = self.state();
        let lost = std::mem::take(&mut state.lost);
        let mut lines: Vec<String> = state.lines.drain(..).collect();
        if lost > 0 {
            lines.push(format!("0 ={lost}"));
        }
        lines
    }
}

/// Puts the events of one engine into the queue.
pub struct EventForwarder {
    queue: Arc<EventQueue>,
    engine: u32,
    format: EventFormat,
}

impl EventForwarder {
    /// Forwards the events of the engine with this number.
    pub fn new(queue: Arc<EventQueue>, engine: u32, format: EventFormat) -> Self {
        Self { queue, engine, format }
    }
}

impl Observer for EventForwarder {
    fn on_event(&self, event: &EngineEvent<'_>) {
        if self.format.records(event) {
            self.queue.push(format!("{} {}", self.engine, flagged(&self.format.line(event))));
        }
    }
}
