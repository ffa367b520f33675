//! Outcomes as a history has them: what the model is told of each call.

use crate::call::{Outcome, OutcomeKind};
use crate::message::{Output, Part, Place, Settled, Settlement, denied_output};

/// The result of a call for its model. A call that waits has none.
pub(super) fn settlement(place: Place, outcome: &Outcome) -> Option<Settlement> {
    let said = || outcome.error.clone().unwrap_or_else(|| outcome.reason.message.clone());
    let output = || Output::of(outcome.output.clone().unwrap_or_default());
    let (output, settled) = match outcome.outcome {
        OutcomeKind::Suspended => return None,
        OutcomeKind::Executed | OutcomeKind::Cached | OutcomeKind::Answered | OutcomeKind::Recovered => {
            (output(), Settled::Output)
        }
        OutcomeKind::Denied | OutcomeKind::Halted => {
            (denied_output(Some(&outcome.reason.message)), Settled::Denied)
        }
        OutcomeKind::Invalid | OutcomeKind::Aborted | OutcomeKind::Failed | OutcomeKind::Indeterminate => {
            (Output::Text(said()), Settled::Error)
        }
    };
    let output = match &outcome.approved {
        Some(approved) if approved.edited => with_note(&outcome.input.to_string(), output),
        _ => output,
    };
    Some(Settlement { place, output, settled })
}

/// The model is told what really ran.
fn with_note(ran_with: &str, output: Output) -> Output {
    let note = format!("The person who approved this call changed its arguments. It ran with {ran_with}");
    let mut parts = vec![Part::text(note)];
    match output {
        Output::Parts(rest) => parts.extend(rest),
        plain => parts.push(Part::text(plain.text())),
    }
    Output::Parts(parts)
}
