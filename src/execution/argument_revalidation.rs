//! Checks the arguments of a call that resumes: those that an approver edited, and those that the tool's schema may no longer accept.

use super::{CallRunner, HookedCall};
use crate::approval::{BoundRequest, apply_edits};
use crate::call::{Reason, ToolCall, reason_code};
use crate::host::ToolExecutor;
use crate::json::Value;
use crate::kernel::HeldResources;
use crate::seal::Purpose;

/// Arguments that an approver edited.
pub(super) enum Edit {
    /// The call is to be decided with these.
    Input(Value),
    /// By now hooks or policies make other arguments of the call than those that were edited.
    Outdated,
}

impl<E: ToolExecutor> CallRunner<'_, E> {
    /// The arguments as an approver edited them. Errors: they can't be used.
    pub(super) fn edit(
        &self,
        base: &HookedCall,
        question: &BoundRequest,
        given: &Value,
    ) -> Result<Edit, Reason> {
        let kernel = &self.context.kernel;
        let decided = base.decide(kernel, self.state, HeldResources::default());
        let real = decided.input();
        let requested_digest = &question.request.input_digest;
        let mut digests = kernel.keys.digests(Purpose::Arguments, real);
        if !digests.any(|digest| digest.to_string() == *requested_digest) {
            return Ok(Edit::Outdated);
        }
        let fail = |message: String| Reason {
            policy: question.request.policies.first().cloned(),
            code: reason_code::SCHEMA_VIOLATION.to_owned(),
            message: format!("the arguments that a person edited are invalid: {message}"),
        };
        let allowed = question.editable_paths();
        let allowed: Vec<_> = allowed.iter().map(Vec::as_slice).collect();
        let input = apply_edits(real, &question.request.input, given, &allowed)
            .map_err(|error| fail(error.to_string()))?;
        let call = base.call.with_input(input);
        kernel.fits_edits(&call, &question.requirements).map_err(fail)?;
        Ok(Edit::Input(call.input))
    }

    /// Why an approved call does not fit its tool's schema any more.
    pub(super) fn unfit(&self, call: &ToolCall, input: &Value) -> Option<Reason> {
        let tools = self.context.kernel.tools;
        let fail =
            |code: &str, message: String| Some(Reason { policy: None, code: code.to_owned(), message });
        if tools.is_empty() {
            return None;
        }
        let Some(tool) = tools.get(call) else {
            let message = format!("the tool `{}` no longer exists", call.tool);
            return fail(reason_code::SCHEMA_UNAVAILABLE, message);
        };
        let Some(Ok(schema)) = &tool.schema else { return None };
        match schema.check(input) {
            Ok(()) => None,
            Err(violations) => fail(
                reason_code::SCHEMA_VIOLATION,
                format!(
                    "the arguments no longer match the tool's schema: {}",
                    crate::argument_schema::summarize(&violations)
                ),
            ),
        }
    }
}
