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

/// A value at one position, and what is shown of it.
#[derive(Clone, Copy)]
struct ShownValue<'v> {
    real: &'v Value,
    shown: &'v Value,
}

/// A value that the steps of a transform compute from what may be shown, and its redacted form.
#[derive(Clone, Copy)]
struct ComputedValue<'v> {
    value: &'v Value,
    redacted: &'v Value,
}

/// Where the values of a form come from.
#[derive(Clone, Copy)]
enum Origin<'v> {
    /// The same steps compute this from what may be shown, or nothing at this position.
    Computed(Option<ComputedValue<'v>>),
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
            let origin =
                Origin::Computed(Some(ComputedValue { value: &computed, redacted: &computed_redacted }));
            let shown = merge(Some(form.value()), &real, redacted, origin);
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
        merge(Some(before.value()), form, redacted, Origin::Written)
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

impl ArgumentForm<'_> {
    fn value(&self) -> ShownValue<'_> {
        ShownValue { real: &self.real, shown: &self.shown }
    }
}

impl<'v> ShownValue<'v> {
    /// A member. Keys may be redacted, positions are not.
    fn member(self, key: &str) -> Option<Self> {
        let (real, shown) = (self.real.as_object()?, self.shown.as_object()?);
        let position = real.position(key)?;
        Some(Self { real: real.get_index(position)?.1, shown: shown.get_index(position)?.1 })
    }

    fn item(self, index: usize) -> Option<Self> {
        Some(Self { real: self.real.get(index)?, shown: self.shown.get(index)? })
    }
}

/// What may be shown of a value with this redacted form. `before`: what was at the same position.
fn merge(before: Option<ShownValue<'_>>, real: &Value, redacted: Value, origin: Origin<'_>) -> Value {
    if let Some(before) = before
        && before.real == real
    {
        return before.shown.clone();
    }
    match (real, redacted) {
        (Value::Object(members), Value::Object(redacted)) if members.len() == redacted.len() => {
            let merged = members.iter().zip(redacted).map(|((key, real), (redacted_key, redacted))| {
                let before = before.and_then(|before| before.member(key));
                (redacted_key, merge(before, real, redacted, origin.member(key)))
            });
            Value::Object(merged.collect::<Map>())
        }
        (Value::Array(items), Value::Array(redacted)) if items.len() == redacted.len() => {
            let merged = items.iter().zip(redacted).enumerate().map(|(index, (real, redacted))| {
                let before = before.and_then(|before| before.item(index));
                merge(before, real, redacted, origin.item(index, items.len()))
            });
            merged.collect()
        }
        (Value::String(_) | Value::Number(_), redacted) => match origin {
            Origin::Written => redacted,
            Origin::Computed(Some(computed))
                if *computed.value == redacted || *computed.redacted == redacted =>
            {
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
            Self::Computed(values) => Self::Computed(values.and_then(|ComputedValue { value, redacted }| {
                Some(ComputedValue { value: find(value)?, redacted: find(redacted)? })
            })),
            Self::Written => Self::Written,
        }
    }
}
