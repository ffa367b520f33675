//! Redaction of a call's arguments in every form that they had: as the model sent them, as hooks, scripts and approvers changed them, and as
//! policies transformed each of those. Arguments → the arguments as they may be shown, and masks of what may not be shown elsewhere.
//!
//! Transforms are applied twice: to the arguments, and to the arguments as they may be shown. What differs then, redaction aside, was
//! computed from a redacted value and is redacted, whatever it looks like. What a hook, a script or an approver wrote is searched for parts
//! of redacted values.

use std::borrow::Cow;

use super::policy_reference::Layers;
use crate::call::{CallView, Masks, Phase, SessionState};
use crate::json::{Map, Value};
use crate::middleware::{Application, PolicyKind, Transform, apply_steps};
use crate::policy::{Mode, Policy};

/// Stands for a value that could not be redacted and so is not shown.
pub(super) const WITHHELD: &str = "[withheld]";
/// Replaces what was computed from a redacted value.
const COMPUTED: &str = "[redacted]";

/// How the arguments of a call are redacted.
pub(crate) struct ArgumentRedaction<'a> {
    /// The layers with the policies that transform arguments.
    pub(crate) layers: &'a Layers,
    /// The call. Its arguments are the ones to show.
    pub(crate) view: CallView<'a>,
    /// The session as it may be shown.
    pub(crate) session: &'a SessionState,
    /// What is redacted in facts.
    pub(crate) others: &'a Masks,
    /// Redacts a value. Returns whether it could be searched.
    pub(crate) redact: &'a dyn Fn(&mut Value) -> bool,
}

/// Arguments, and what of them may be shown.
struct ArgumentForm<'a> {
    real: Cow<'a, Value>,
    shown: Value,
}

/// Where the values of a form come from.
#[derive(Clone, Copy)]
enum Origin<'v> {
    /// The same steps compute this from what may be shown; nothing if they don't. The second one is its redacted form.
    Computed(Option<(&'v Value, &'v Value)>),
    /// Code or a person wrote them.
    Written,
}

impl ArgumentRedaction<'_> {
    /// The arguments as they may be shown, and the masks of what is redacted in any form of them.
    pub(crate) fn run(&self) -> (Value, Masks) {
        let call = self.view.call;
        let transforms: Vec<&Policy> = self.transforms().collect();
        let mut masks = Masks::new();
        let mut found = None;
        let mut last: Option<ArgumentForm<'_>> = None;
        for form in call.former_arguments.iter().chain([&call.input]) {
            let shown = match &last {
                Some(before) => self.written(before, form, &masks),
                None => self.redacted(form, &masks),
            };
            masks.add_changes(form, &shown);
            let mut current = ArgumentForm { real: Cow::Borrowed(form), shown };
            if form == self.view.input {
                found = Some(current.shown.clone());
            }
            if !transforms.is_empty() && form.is_object() {
                current = self.transformed(&transforms, current, &mut masks);
                if *current.real == *self.view.input {
                    found = Some(current.shown.clone());
                }
            }
            last = Some(current);
        }
        let mut shown = match (found, &last) {
            (Some(shown), _) => shown,
            (None, Some(before)) => self.written(before, self.view.input, &masks),
            (None, None) => self.redacted(self.view.input, &masks),
        };
        masks.add_changes(self.view.input, &shown);
        // Later forms may have shown what is to be redacted in earlier ones.
        masks.value(&mut shown);
        (shown, masks)
    }

    /// The policies that transform arguments, in order.
    fn transforms(&self) -> impl Iterator<Item = &Policy> {
        let call = self.view.call;
        let server = call.server.as_deref().unwrap_or_default();
        self.layers.iter().flat_map(move |layer| {
            let chain = layer.tool_policies(server, &call.tool);
            let policies: Vec<_> =
                chain.normalise.iter().filter_map(|index| layer.policy(*index)).filter(transforms).collect();
            policies
        })
    }

    fn redacted(&self, value: &Value, masks: &Masks) -> Value {
        let mut redacted = value.clone();
        if !(self.redact)(&mut redacted) {
            return WITHHELD.into();
        }
        masks.value(&mut redacted);
        self.others.value(&mut redacted);
        redacted
    }

    /// Applies the transforms, as long as they apply.
    fn transformed<'a>(
        &self,
        policies: &[&Policy],
        mut form: ArgumentForm<'a>,
        masks: &mut Masks,
    ) -> ArgumentForm<'a> {
        for policy in policies {
            let PolicyKind::Transform(transform) = &policy.kind else { continue };
            let view = CallView { input: &form.real, lets: None, ..self.view };
            let truth = policy.matcher.eval(&view);
            if !matches!(policy.kind.application(&truth, Phase::Normalise), Application::Yes) {
                continue;
            }
            let real = applied(transform, view);
            let computed = applied(
                transform,
                CallView { input: &form.shown, session: self.session, lets: None, ..self.view },
            );
            let redacted = self.redacted(&real, masks);
            let computed_redacted = self.redacted(&computed, masks);
            let origin = Origin::Computed(Some((&computed, &computed_redacted)));
            let shown = merge(Some((&*form.real, &form.shown)), (&real, redacted), origin);
            masks.add_changes(&real, &shown);
            form = ArgumentForm { real: Cow::Owned(real), shown };
        }
        form
    }

    /// What may be shown of arguments that were made of others.
    fn written(&self, before: &ArgumentForm<'_>, form: &Value, masks: &Masks) -> Value {
        let mut redacted = self.redacted(form, masks);
        masks.written_value(&mut redacted);
        self.others.written_value(&mut redacted);
        merge(Some((&*before.real, &before.shown)), (form, redacted), Origin::Written)
    }
}

fn transforms(policy: &&Policy) -> bool {
    policy.mode == Mode::Enforce
        && matches!(&policy.kind, PolicyKind::Transform(transform) if !transform.input.is_empty())
}

/// The arguments after the steps, or after those before one that fails.
fn applied(transform: &Transform, view: CallView<'_>) -> Value {
    let mut changed = view.input.clone();
    let _ = apply_steps(&transform.input, &view, &view, &mut changed);
    changed
}

/// What may be shown of a value with this redacted form. `before`: arguments at the same position, and what is shown of them.
fn merge(before: Option<(&Value, &Value)>, (real, redacted): (&Value, Value), origin: Origin<'_>) -> Value {
    if let Some((same, shown)) = before
        && same == real
    {
        return shown.clone();
    }
    match (real, redacted) {
        (Value::Object(members), Value::Object(redacted)) if members.len() == redacted.len() => {
            let before = before.and_then(|(real, shown)| Some((real.as_object()?, shown.as_object()?)));
            // Keys may be redacted, positions are not.
            let before = |key: &str| {
                let (real, shown) = before?;
                let position = real.position(key)?;
                Some((real.get_index(position)?.1, shown.get_index(position)?.1))
            };
            let merged = members.iter().zip(redacted).map(|((key, real), (redacted_key, redacted))| {
                (redacted_key, merge(before(key), (real, redacted), origin.member(key)))
            });
            Value::Object(merged.collect::<Map>())
        }
        (Value::Array(items), Value::Array(redacted)) if items.len() == redacted.len() => {
            let merged = items.iter().zip(redacted).enumerate().map(|(index, (real, redacted))| {
                let before = before.and_then(|(real, shown)| Some((real.get(index)?, shown.get(index)?)));
                merge(before, (real, redacted), origin.item(index, items.len()))
            });
            merged.collect()
        }
        (Value::String(_) | Value::Number(_), redacted) => match origin {
            Origin::Written => redacted,
            Origin::Computed(Some((computed, hidden))) if *computed == redacted || *hidden == redacted => {
                redacted
            }
            Origin::Computed(_) => COMPUTED.into(),
        },
        (_, redacted) => redacted,
    }
}

impl Origin<'_> {
    /// The origin of a member.
    fn member(self, key: &str) -> Self {
        self.part(|value| value.as_object()?.get(key))
    }

    /// The origin of an element of an array of this length.
    fn item(self, index: usize, length: usize) -> Self {
        self.part(|value| value.as_array().filter(|items| items.len() == length)?.get(index))
    }

    fn part(self, find: impl Fn(&Value) -> Option<&Value>) -> Self {
        match self {
            Self::Computed(values) => {
                Self::Computed(values.and_then(|(computed, hidden)| Some((find(computed)?, find(hidden)?))))
            }
            Self::Written => Self::Written,
        }
    }
}
