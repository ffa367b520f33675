//! The arguments that a call had before a policy, a script, a hook or an approver changed them: what was computed from a redacted value is
//! recognized by them.

use std::sync::Arc;

use crate::json::Value;

/// Earlier arguments of a call, the first ones first. They are no part of what the call is: two calls that differ in them only are equal.
#[derive(Clone, Debug, Default)]
pub struct FormerArguments(Vec<Arc<Value>>);

impl PartialEq for FormerArguments {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl FormerArguments {
    /// These arguments, followed by the present ones.
    pub(super) fn followed_by(&self, present: &Value) -> Self {
        Self(self.0.iter().cloned().chain([Arc::new(present.clone())]).collect())
    }

    /// The earlier arguments, the first ones first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Value> {
        self.0.iter().map(|form| &**form)
    }
}
