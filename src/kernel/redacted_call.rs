//! Redaction of a call: the one place that decides what of it may be shown and recorded. A call as policies see
//! it → the call as it may be shown.
//!
//! The rule: what a `redact` policy of the call changes in its arguments, or one of an earlier call in a fact
//! of the session, is shown only in its redacted form. Texts are searched for it, too, so that neither a
//! message nor an error repeats it; so is what policies, scripts and hooks make of it (`argument_forms`). A policy that covers arguments and results redacts in the result what it
//! changes in the arguments. Conditions, and the tool, read the real values.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::CallScope;
use super::argument_forms::ArgumentRedaction;
pub(super) use super::argument_forms::WITHHELD;
use super::policy_reference::Layers;
use crate::call::{CallView, Masks, Phase, SessionState};
use crate::json::Value;
use crate::middleware::{PolicyKind, Redact};
use crate::policy::{Mode, Policy};
use crate::redaction::Redactor;
use crate::tool_result::{self, ResultFormat, YamlText};

/// Stands for a text that is not what it is declared to be.
const FULLY_REDACTED: &str = "[redacted]";

/// A `redact` policy that applies to a call.
pub(super) struct Redaction<'a> {
    pub(super) input: bool,
    pub(super) output: bool,
    redactor: Cow<'a, Redactor>,
    /// Whether the tool's results are declared as YAML.
    is_yaml: bool,
}

impl<'a> Redaction<'a> {
    /// The redaction of an enforced `redact` policy that applies to this call.
    pub(super) fn of(policy: &'a Policy, view: &CallView<'_>, subject: &CallScope<'_>) -> Option<Self> {
        match &policy.kind {
            PolicyKind::Redact(redact)
                if policy.mode == Mode::Enforce
                    && policy.kind.application(&policy.matcher.eval(view), Phase::Settle).takes_part() =>
            {
                Some(Self::new(redact, subject))
            }
            _ => None,
        }
    }

    pub(super) fn new(redact: &'a Redact, subject: &CallScope<'_>) -> Self {
        let Redact { input, output, .. } = *redact;
        let is_yaml = reads_yaml(subject.layers, &subject.call.tool);
        Self { input, output, redactor: redact.redactor(subject.keys), is_yaml }
    }

    pub(super) fn text(&self, text: &str) -> String {
        self.redactor.redact_text(text).into_owned()
    }

    /// Redacts a value. Returns whether it could be searched.
    pub(super) fn value(&self, value: &mut Value) -> bool {
        self.redactor.redact_value(value).is_ok()
    }

    /// Redacts an output, also inside YAML. Returns the changes, or `None` if it could not be searched.
    pub(super) fn result(&self, output: &mut Value) -> Option<Masks> {
        redact_result(&self.redactor, output, self.is_yaml)
    }

    /// The changes that it makes in a result. One that can't be searched is not shown, and has none.
    pub(super) fn result_changes(&self, result: &Value) -> Masks {
        self.result(&mut result.clone()).unwrap_or_default()
    }

    /// The changes that it makes in all forms of the arguments of a call.
    pub(super) fn argument_changes(&self, layers: &Layers, view: CallView<'_>) -> Masks {
        if !self.input {
            return Masks::new();
        }
        let redact = |value: &mut Value| self.value(value);
        let (session, others) = (view.session, &Masks::new());
        ArgumentRedaction { layers, view, session, others, redact: &redact }.run().1
    }

    /// Redacts the result, error and message of a call in whose arguments it makes these changes. Returns whether the result could be
    /// searched.
    pub(super) fn ending(&self, of_input: &Masks, ending: RedactedParts<'_>) -> bool {
        let RedactedParts { output, error, message, masks } = ending;
        masks.merge(of_input);
        let searched = output.is_none_or(|output| {
            let changes = self.result(output);
            masks.merge(changes.as_ref().unwrap_or(&Masks::new()));
            // Only what is redacted in the arguments: the same value elsewhere in the result may be another
            // thing.
            of_input.value(output);
            changes.is_some()
        });
        let text = |text: &str| masks.text(&self.text(text)).into_owned();
        *message = text(message);
        if let Some(error) = error {
            *error = text(error);
        }
        searched
    }
}

/// Whether the bundle declares the results of a tool as YAML, or as two formats.
pub(crate) fn reads_yaml(layers: &Layers, tool: &str) -> bool {
    let format = layers.first().map(|bundle| bundle.results().format_of(tool));
    format.is_some_and(|format| format.is_ok_and(|format| format == ResultFormat::Yaml) || format.is_err())
}

/// Redacts an output. YAML in which something is redacted becomes JSON, which is YAML, too; a text that is declared to be YAML and is not
/// is redacted as a whole. Returns the changes, or `None` if it could not be searched.
pub(crate) fn redact_result(redactor: &Redactor, output: &mut Value, is_yaml: bool) -> Option<Masks> {
    let mut masks = Masks::new();
    let mut is_searched = true;
    if is_yaml {
        tool_result::rewrite_texts(output, &mut |text| match YamlText::parse(text) {
            YamlText::Data(data) => {
                let mut redacted = data.clone();
                let is_changed = redactor.redact_value(&mut redacted);
                masks.add_changes(&data, &redacted);
                is_searched &= is_changed.is_ok();
                is_changed.unwrap_or(false).then(|| redacted.to_string())
            }
            YamlText::Scalar => None,
            YamlText::Unreadable => Some(FULLY_REDACTED.to_owned()),
        });
    }
    let before = output.clone();
    is_searched &= redactor.redact_value(output).is_ok();
    masks.add_changes(&before, output);
    is_searched.then_some(masks)
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
        policies.filter_map(|by| Redaction::of(by.policy, view, self)).collect()
    }
}

/// A redacted call, with the redactions for texts about it.
pub(super) struct RedactedCall<'a> {
    pub(super) input: Cow<'a, Value>,
    session: &'a SessionState,
    /// The session as it is shown, if something in it is redacted.
    shown_session: Option<Box<SessionState>>,
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
        let shown_session = match view.session.redacted() {
            Cow::Borrowed(_) => None,
            Cow::Owned(session) => Some(Box::new(session)),
        };
        let session = view.session;
        let mut masks = Masks::new();
        let mut input = Cow::Borrowed(view.input);
        if !redactions.is_empty() || !view.session.masks().is_empty() {
            let redact = |value: &mut Value| redactions.iter().all(|redaction| redaction.value(value));
            let (layers, others) = (subject.layers, view.session.masks());
            let shown = shown_session.as_deref().unwrap_or(session);
            let redaction = ArgumentRedaction { layers, view, session: shown, others, redact: &redact };
            let (shown, changes) = redaction.run();
            (input, masks) = (Cow::Owned(shown), changes);
            masks.merge(others);
        }
        RedactedCall { input, session, shown_session, redactions, masks }
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
        let session = self.shown_session.as_deref().unwrap_or(self.session);
        CallView { input: &self.input, session, lets: None, ..view }
    }

    /// Whether texts about the call can be redacted.
    pub(super) fn changes_texts(&self) -> bool {
        !self.redactions.is_empty() || !self.masks.is_empty()
    }

    /// A text about the call, redacted.
    pub(super) fn text(&self, text: &str) -> String {
        let redacted = self.redactions.iter().fold(text.to_owned(), |text, redaction| redaction.text(&text));
        self.masks.text(&redacted).into_owned()
    }

    /// A text that a script or a hook made of the call, redacted: it may have parts of any value.
    pub(super) fn written_text(&self, text: &str) -> String {
        self.masks.written_text(&self.text(text)).into_owned()
    }

    /// The masked values of the call.
    pub(super) fn masks(&self) -> &Masks {
        &self.masks
    }
}
