//! Redacts what others than settle show of a call: its arguments, context and reason, and outcomes that hooks have changed.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::redacted_call::{RedactedCall, RedactedParts, WITHHELD};
use super::{Decision, Kernel, UNDECIDABLE};
use crate::call::{CallView, Masks, Outcome, OutcomeKind, Reason, ResultView, SessionState, ToolCall};
use crate::json::Value;

impl Kernel<'_> {
    /// The final arguments of a call, redacted.
    pub(crate) fn redacted_input(&self, decision: &Decision<'_>, session: &SessionState) -> Value {
        let subject = self.subject(&decision.call);
        let view = CallView { input: &decision.input, ..subject.view(session) };
        RedactedCall::new(&subject, view).input.into_owned()
    }

    /// The context of a call, without what is redacted in its arguments.
    pub(crate) fn redact_context<'a>(
        &self,
        call: &ToolCall,
        context: &'a Value,
        session: &SessionState,
    ) -> Cow<'a, Value> {
        let subject = self.subject(call);
        let redacted = RedactedCall::new(&subject, subject.view(session));
        if redacted.masks().is_empty() {
            return Cow::Borrowed(context);
        }
        let mut context = context.clone();
        redacted.masks().value(&mut context);
        Cow::Owned(context)
    }

    /// The reason of a decision, with its message redacted; withheld if redaction panics.
    pub(crate) fn redacted_reason(&self, decision: &Decision<'_>, session: &SessionState) -> Reason {
        let mut reason = decision.reason();
        if decision.has_fixed_reason() {
            return reason;
        }
        let message = catch_unwind(AssertUnwindSafe(|| {
            let subject = self.subject(&decision.call);
            let view = CallView { input: &decision.input, ..subject.view(session) };
            let message = RedactedCall::new(&subject, view).text(&reason.message);
            // A message of a script or a hook may contain anything.
            let redactions = subject.redactions(&view);
            redactions.iter().fold(message, |message, redaction| redaction.text(&message))
        }));
        reason.message = message.unwrap_or_else(|_| UNDECIDABLE.to_owned());
        reason
    }

    /// Whether a policy redacts results of a call.
    pub(crate) fn redacts_results(&self, call: &ToolCall) -> bool {
        self.subject(call).result_redacting_policies().next().is_some()
    }

    /// Redacts an outcome that hooks have changed, by all policies. What can't be searched is withheld.
    pub(crate) fn redact_outcome(&self, call: &ToolCall, outcome: &mut Outcome, session: &SessionState) {
        let subject = self.subject(call);
        let result = subject.read_result(outcome.output.as_ref());
        let view = CallView {
            output: outcome.output.as_ref(),
            result: result
                .as_ref()
                .zip(outcome.output.as_ref())
                .map_or(ResultView::Absent, |(result, output)| result.view(output)),
            error: outcome.error.as_deref(),
            ..subject.view(session)
        };
        let redactions = subject.redactions(&view).into_iter().filter(|redaction| redaction.output);
        let redactions: Vec<_> =
            redactions.map(|redaction| (redaction.argument_changes(self.layers, view), redaction)).collect();
        let mut masks = Masks::new();
        for (of_input, redaction) in redactions {
            let ending = RedactedParts {
                output: outcome.output.as_mut(),
                error: outcome.error.as_mut(),
                message: &mut outcome.reason.message,
                masks: &mut masks,
            };
            if !redaction.ending(&of_input, ending) {
                outcome.output = Some(WITHHELD.into());
            }
        }
    }

    /// Redacts a value, such as the result of a call, by all policies.
    pub(crate) fn redact_value(&self, call: &ToolCall, value: &mut Value, session: &SessionState) {
        let reason = Self::failure_reason();
        let of = (call.id.as_str(), call.tool.as_str());
        let mut outcome = Outcome::new(of, OutcomeKind::Executed, Value::Null, reason, String::new());
        outcome.output = Some(value.take());
        self.redact_outcome(call, &mut outcome, session);
        *value = outcome.output.unwrap_or_default();
    }
}
