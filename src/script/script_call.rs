//! The call of a script, as all replays of it see it, with the digest that binds a stored journal to it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::call::{ContextReads, NamedResult, ToolCall};
use crate::json::{Digest, Value, canonical_text, json};

/// The input of all replays of one call: the call itself, and the session as it was when the script first started.
#[derive(Clone, Debug)]
pub struct ScriptCall<'c>(pub(super) Arc<CallSnapshot<'c>>);

#[derive(Debug)]
pub(super) struct CallSnapshot<'c> {
    pub(super) script: Digest,
    pub(super) call: &'c ToolCall,
    /// The members of the call's context that the script reads.
    pub(super) context: Arc<ContextReads>,
    /// The annotations that the tool's server declares, if the script reads them.
    pub(super) annotations: Option<&'c Value>,
    pub(super) constants: ScriptConstants,
    /// Computed on demand: a call that stays in this process needs none.
    pub(super) digest: OnceLock<Digest>,
}

/// What a script reads beside its call, as it was when the script began: it changes later, and a replay must not see that.
#[derive(Clone, Debug, Default)]
pub(super) struct ScriptConstants {
    /// The parts of the session that the script reads, if any.
    pub(super) session: Option<Value>,
    /// The named values that the script reads.
    pub(super) lets: BTreeMap<String, NamedResult>,
}

impl ScriptCall<'_> {
    pub(super) fn script(&self) -> Digest {
        self.0.script
    }

    pub(super) fn constants(&self) -> &ScriptConstants {
        &self.0.constants
    }

    /// The digest of the call, to which a stored journal is bound.
    pub fn digest(&self) -> Digest {
        *self.0.digest.get_or_init(|| {
            let CallSnapshot { call, context, annotations, .. } = &*self.0;
            let context = context.select(&call.context);
            let names = json!([call.tool, call.server, call.id]);
            let values = [&call.input, &context, &call.options, annotations.unwrap_or(&Value::Null)]
                .map(canonical_text)
                .join(",");
            Digest::compute(format!("[{},{values}]", canonical_text(&names)).as_bytes())
        })
    }
}
