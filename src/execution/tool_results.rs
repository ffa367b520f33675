//! Formats outcomes as tool results for the model.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::call::{Outcome, OutcomeKind};
use crate::message::{Part, ResultOutput, ResultPart, ResultStatus, denied_output};

type Shape = dyn Fn(&Outcome) -> Option<ResultOutput> + Send + Sync;

/// Formats outcomes for the model, with the host's own formatting if there is one.
#[derive(Clone, Default)]
pub(crate) struct ToolResultFormatter(Option<Arc<Shape>>);

impl ToolResultFormatter {
    pub(crate) fn new(shape: impl Fn(&Outcome) -> Option<ResultOutput> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(shape)))
    }

    /// The tool result of an outcome. `None` if the call is suspended. If the host's own formatting panics, the plain result is used.
    pub(crate) fn result(&self, outcome: &Outcome) -> Option<ResultPart> {
        let (plain, status) = plain(outcome)?;
        let shape = |shape: &Arc<Shape>| catch_unwind(AssertUnwindSafe(|| shape(outcome))).ok().flatten();
        let shaped = self.0.as_ref().filter(|_| status == ResultStatus::Output).and_then(shape);
        let output = match (&outcome.approved, shaped.unwrap_or(plain)) {
            (Some(approved), output) if approved.edited => with_note(&outcome.input.to_string(), output),
            (_, output) => output,
        };
        Some(ResultPart { call_id: outcome.id.clone(), name: outcome.tool.clone(), output, status })
    }
}

fn plain(outcome: &Outcome) -> Option<(ResultOutput, ResultStatus)> {
    let error_text = || outcome.error.clone().unwrap_or_else(|| outcome.reason.message.clone());
    let output = || ResultOutput::from_value(outcome.output.clone().unwrap_or_default());
    Some(match outcome.outcome {
        OutcomeKind::Suspended => return None,
        OutcomeKind::Executed | OutcomeKind::Cached | OutcomeKind::Answered | OutcomeKind::Recovered => {
            (output(), ResultStatus::Output)
        }
        OutcomeKind::Denied | OutcomeKind::Halted => {
            (denied_output(Some(&outcome.reason.message)), ResultStatus::Denied)
        }
        OutcomeKind::Invalid | OutcomeKind::Aborted | OutcomeKind::Failed | OutcomeKind::Indeterminate => {
            (ResultOutput::Text(error_text()), ResultStatus::Error)
        }
    })
}

/// Adds a note with the arguments that really ran.
fn with_note(ran_with: &str, output: ResultOutput) -> ResultOutput {
    let note = format!("The person who approved this call changed its arguments. It ran with {ran_with}");
    let mut parts = vec![Part::text(note)];
    match output {
        ResultOutput::Parts(rest) => parts.extend(rest),
        plain => parts.push(Part::text(plain.text())),
    }
    ResultOutput::Parts(parts)
}
