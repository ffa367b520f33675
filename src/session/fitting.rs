//! Whether arguments fit when a call is taken up: those that a person changed, and those that a tool took when it was asked about.

use super::desk::Desk;
use crate::approval::{Question, edited};
use crate::call::{Reason, ToolCall, reason_code};
use crate::host::ToolExecutor;
use crate::json::{self, Value};

impl<E: ToolExecutor> Desk<'_, E> {
    /// The arguments as a person changed them. Errors: they can't be taken.
    pub(super) fn edit(&self, call: &ToolCall, question: &Question, given: &Value) -> Result<Value, Reason> {
        let kernel = self.kernel();
        let decided = kernel.decide(call, self.state);
        let real = decided.input();
        let fail = |message: String| Reason {
            policy: question.request.policies.first().cloned(),
            code: reason_code::SCHEMA_VIOLATION.to_owned(),
            message: format!("the arguments that a person gave it can't be used: {message}"),
        };
        if json::digest(real).to_string() != question.request.input_digest {
            return Err(fail("what was asked about is made in other forms by now".to_owned()));
        }
        let allowed = question.editable();
        let allowed: Vec<_> = allowed.iter().map(Vec::as_slice).collect();
        let input = edited(real, &question.request.input, given, &allowed)
            .map_err(|error| fail(error.to_string()))?;
        let call = call.with_input(input);
        kernel.fits_edits(&call, &question.askers).map_err(fail)?;
        let formed = kernel.decide(&call, self.state);
        if *formed.input() != call.input {
            return Err(fail("a policy gives them another form than the person has seen".to_owned()));
        }
        Ok(call.input)
    }

    /// Why an approved call does not fit its tool any more.
    pub(super) fn unfit(&self, call: &ToolCall) -> Option<Reason> {
        let tools = self.execute.kernel.tools;
        let fail =
            |code: &str, message: String| Some(Reason { policy: None, code: code.to_owned(), message });
        if tools.is_empty() {
            return None;
        }
        let Some(tool) = tools.get(call) else {
            let message = format!("there is no tool `{}` any more", call.tool);
            return fail(reason_code::SCHEMA_UNAVAILABLE, message);
        };
        let Some(Ok(schema)) = &tool.schema else { return None };
        let input = self.execute.kernel.decide(call, self.state);
        match schema.check(input.input()) {
            Ok(()) => None,
            Err(violations) => fail(
                reason_code::SCHEMA_VIOLATION,
                format!("the tool takes other arguments by now: {}", crate::schema::summary(&violations)),
            ),
        }
    }
}
