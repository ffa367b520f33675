//! Redaction of a call: the one place that decides what of it may be shown and recorded. A call as policies see
//! it → the call as it may be shown.
//!
//! The rule: what a `redact` policy of the call changes in its arguments, or one of an earlier call in a fact
//! of the session, is shown only in its redacted form. Texts are searched for it, too, so that neither a
//! message nor an error repeats it. A policy that covers arguments and results redacts in the result what it
//! changes in the arguments. Conditions, and the tool, read the real values.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::CallScope;
use crate::call::{CallView, Masks, Phase, SessionState};
use crate::json::Value;
use crate::middleware::{PolicyKind, Redact};
use crate::policy::{Mode, Policy};
use crate::redaction::Redactor;
use crate::seal::Keys;

/// Stands for a value that could not be redacted and so is not shown.
pub(super) const WITHHELD: &str = "[withheld]";

/// A `redact` policy that applies to a call.
pub(super) struct Redaction<'a> {
    pub(super) input: bool,
    pub(super) output: bool,
    redactor: Cow<'a, Redactor>,
}

impl<'a> Redaction<'a> {
    /// The redaction of an enforced `redact` policy that applies to this call.
    fn of(policy: &'a Policy, view: &CallView<'_>, keys: &Keys) -> Option<Self> {
        match &policy.kind {
            PolicyKind::Redact(redact)
                if policy.mode == Mode::Enforce
                    && policy.kind.application(&policy.matcher.eval(view), Phase::Settle).takes_part() =>
            {
                Some(Self::new(redact, keys))
            }
            _ => None,
        }
    }

    pub(super) fn new(redact: &'a Redact, keys: &Keys) -> Self {
        let Redact { input, output, .. } = *redact;
        Self { input, output, redactor: redact.redactor(keys) }
    }

    pub(super) fn text(&self, text: &str) -> String {
        self.redactor.redact_text(text).into_owned()
    }

    /// Redacts a value. Returns whether it could be searched.
    pub(super) fn value(&self, value: &mut Value) -> bool {
        self.redactor.redact_value(value).is_ok()
    }

    /// The changes that it makes in a value. A value that can't be searched is not shown, and has none.
    pub(super) fn changes(&self, value: &Value) -> Masks {
        let (mut masks, mut redacted) = (Masks::new(), value.clone());
        if self.value(&mut redacted) {
            masks.add_changes(value, &redacted);
        }
        masks
    }

    /// Redacts the result, error and message of a call with these arguments. Returns whether the result could
    /// be searched.
    pub(super) fn ending(&self, input: &Value, ending: RedactedParts<'_>) -> bool {
        let of_input = if self.input { self.changes(input) } else { Masks::new() };
        let RedactedParts { output, error, message, masks } = ending;
        masks.merge(&of_input);
        let searched = output.is_none_or(|output| {
            let before = output.clone();
            let searched = self.value(output);
            if searched {
                masks.add_changes(&before, output);
            }
            // Only what is redacted in the arguments: the same value elsewhere in the result may be another
            // thing.
            of_input.value(output);
            searched
        });
        let text = |text: &str| masks.text(&self.text(text)).into_owned();
        *message = text(message);
        if let Some(error) = error {
            *error = text(error);
        }
        searched
    }
}

/// The parts of an outcome that are redacted.
pub(super) struct RedactedParts<'e> {
    pub(super) output: Option<&'e mut Value>,
    pub(super) error: Option<&'e mut String>,
    pub(super) message: &'e mut String,
    /// The changes of redaction so far; those made now are added.
    pub(super) masks: &'e mut Masks,
}

impl<'a> CallScope<'a> {
    /// The redactions of the call: of every enforced `redact` policy that applies.
    pub(super) fn redactions<'r>(&self, view: &CallView<'_>) -> SmallVec<[Redaction<'r>; 2]>
    where
        'a: 'r,
    {
        let policies = self.policies(|chain| &chain.settle);
        policies.filter_map(|by| Redaction::of(by.policy, view, self.keys)).collect()
    }
}

/// A redacted call, with the redactions for texts about it.
pub(super) struct RedactedCall<'a> {
    pub(super) input: Cow<'a, Value>,
    session: Cow<'a, SessionState>,
    redactions: SmallVec<[Redaction<'a>; 2]>,
    masks: Masks,
}

impl<'a> RedactedCall<'a> {
    /// The call of `view`, redacted by every policy that applies.
    pub(super) fn new<'v>(subject: &CallScope<'a>, view: CallView<'v>) -> RedactedCall<'v>
    where
        'a: 'v,
    {
        let mut redactions = subject.redactions(&view);
        redactions.retain(|redaction| redaction.input);
        let mut redacted = RedactedCall {
            input: Cow::Borrowed(view.input),
            session: view.session.redacted(),
            redactions,
            masks: Masks::new(),
        };
        if !redacted.redactions.is_empty() {
            let input = redacted.value(view.input.clone());
            redacted.masks.add_changes(view.input, &input);
            redacted.input = Cow::Owned(input);
        }
        redacted.masks.merge(view.session.masks());
        if !redacted.masks.is_empty() {
            redacted.masks.value(redacted.input.to_mut());
        }
        redacted
    }

    /// A value of the arguments, redacted.
    pub(super) fn value(&self, mut value: Value) -> Value {
        match self.redactions.iter().all(|redaction| redaction.value(&mut value)) {
            true => {
                self.masks.value(&mut value);
                value
            }
            false => Value::from(WITHHELD),
        }
    }

    /// The same view with redacted arguments and session.
    pub(super) fn view<'v>(&'v self, view: CallView<'v>) -> CallView<'v> {
        // The memo has values of the real call.
        CallView { input: &self.input, session: &self.session, lets: None, ..view }
    }

    /// A text about the call, redacted.
    pub(super) fn text(&self, text: &str) -> String {
        let redacted = self.redactions.iter().fold(text.to_owned(), |text, redaction| redaction.text(&text));
        self.masks.text(&redacted).into_owned()
    }

    /// The masked values of the call.
    pub(super) fn masks(&self) -> &Masks {
        &self.masks
    }
}
