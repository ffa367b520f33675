//! What a script gets for a call of what it wraps, and where that comes from.

use std::sync::Arc;

use super::nested_call;
use crate::host::ToolError;
use crate::json::Value;
use crate::kernel::{CallResponse, Decision, Source};
use crate::script::Answer;

/// Where an answer in the journal comes from, so that a script which passes it on unchanged changes nothing of the outcome.
pub(super) enum Origin {
    Result {
        source: Source,
        dry: bool,
    },
    Error {
        error: ToolError,
        source: Source,
    },
    Refused(Box<Decision<'static>>),
    /// Not a call of what is wrapped.
    Aside,
}

impl Origin {
    pub(super) fn is_executed(&self) -> bool {
        matches!(self, Self::Result { source: Source::Tool, .. })
    }

    pub(super) fn is_aside(&self) -> bool {
        matches!(self, Self::Aside)
    }
}

pub(super) fn is_dry(origins: &[Origin]) -> bool {
    origins.iter().any(|origin| matches!(origin, Origin::Result { source: Source::Tool, dry: true }))
}

pub(super) fn too_late() -> (Answer, Origin) {
    let ToolError { message, kind } = nested_call::too_late();
    (Answer::Error { message, kind }, Origin::Aside)
}

/// The script's answer of a call of what it wraps. An answer of people or hooks has no source that a script could pass on.
pub(super) fn answer(response: CallResponse) -> (Answer, Origin) {
    let CallResponse { result, source, dry } = response;
    match result {
        Ok(output) => {
            let origin = match source {
                Source::Others(_) => Origin::Aside,
                source => Origin::Result { source, dry },
            };
            (Answer::Value(Arc::new(output)), origin)
        }
        Err(error) => {
            let answer = Answer::Error { message: error.message.clone(), kind: error.kind.clone() };
            (answer, Origin::Error { error, source })
        }
    }
}

/// An answer that has nothing to do with what is wrapped.
pub(super) fn aside(value: Value) -> (Answer, Origin) {
    (Answer::Value(Arc::new(value)), Origin::Aside)
}
