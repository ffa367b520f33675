//! Callgate, and the index that is written by hand.

use callgate::{Effect, Engine, SessionState, ToolCall};

use crate::PolicyEngine;
use crate::workload::{FoldedIndex, rules, rules_text};

pub struct Index {
    index: FoldedIndex,
    calls: Vec<ToolCall>,
}

impl Index {
    pub fn new(size: usize, calls: &[ToolCall]) -> Self {
        Self { index: FoldedIndex::new(size), calls: calls.to_vec() }
    }
}

impl PolicyEngine for Index {
    fn decide(&mut self, call: usize) -> Effect {
        self.index.decide(&self.calls[call])
    }
}

/// Callgate, with the trace of every policy that takes part or with the effect alone.
pub struct Callgate<const TRACE: bool> {
    engine: Engine,
    session: SessionState,
    calls: Vec<ToolCall>,
}

impl<const TRACE: bool> Callgate<TRACE> {
    pub fn new(size: usize, calls: &[ToolCall]) -> Self {
        let engine = Engine::from_text(&rules_text(&rules(size))).expect("valid rules");
        Self { engine, session: SessionState::default(), calls: calls.to_vec() }
    }
}

impl<const TRACE: bool> PolicyEngine for Callgate<TRACE> {
    fn decide(&mut self, call: usize) -> Effect {
        let call = &self.calls[call];
        if TRACE {
            self.engine.decide(call, &self.session).effect()
        } else {
            self.engine.effect(call, &self.session)
        }
    }
}
