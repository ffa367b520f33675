//! What may be shown and recorded of a call's arguments: redacted before anything else is done with them.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::Subject;
use crate::call::CallView;
use crate::json::Value;
use crate::matcher::Truth;
use crate::middleware::{Kind, Redact};
use crate::policy::{Mode, Policy};

/// Stands for a value that could not be redacted and so is not shown.
pub(super) const WITHHELD: &str = "[withheld]";

/// A call's arguments as they may be shown, with what hides things in texts about them.
pub(super) struct Shown<'a> {
    pub(super) input: Cow<'a, Value>,
    redactions: SmallVec<[&'a Redact; 2]>,
}

impl<'a> Shown<'a> {
    /// The arguments of `view`, redacted by every policy that says so.
    pub(super) fn of<'v>(subject: &Subject<'a>, view: CallView<'v>) -> Shown<'v>
    where
        'a: 'v,
    {
        let redactions: SmallVec<[&Redact; 2]> = subject
            .policies(|chain| &chain.settle)
            .filter_map(|(_, policy)| redaction(policy, &view).filter(|redact| redact.input))
            .collect();
        let mut shown = Shown { input: Cow::Borrowed(view.input), redactions };
        if !shown.redactions.is_empty() {
            shown.input = Cow::Owned(shown.value(view.input.clone()));
        }
        shown
    }

    /// A value of the arguments, as it may be shown.
    pub(super) fn value(&self, mut value: Value) -> Value {
        match self.redactions.iter().any(|redact| redact.redactor.redact_value(&mut value).is_err()) {
            true => Value::from(WITHHELD),
            false => value,
        }
    }

    /// The same view with the arguments as they may be shown.
    pub(super) fn view<'v>(&'v self, view: CallView<'v>) -> CallView<'v> {
        CallView { input: &self.input, ..view }
    }

    /// A text about the call, as it may be shown.
    pub(super) fn text(&self, text: &str) -> String {
        self.redactions
            .iter()
            .fold(text.to_owned(), |text, redact| redact.redactor.redact_text(&text).into_owned())
    }
}

/// The redaction of an enforced `redact` policy that concerns this call; when in doubt it does.
pub(super) fn redaction<'p>(policy: &'p Policy, view: &CallView<'_>) -> Option<&'p Redact> {
    match &policy.kind {
        Kind::Redact(redact) if policy.mode == Mode::Enforce && policy.matcher.eval(view) != Truth::No => {
            Some(redact)
        }
        _ => None,
    }
}
