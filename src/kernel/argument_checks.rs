//! Checks the names and types of the final arguments of a call, before gate evaluates policies over them.

use super::CallScope;
use crate::argument_schema;
use crate::call::{Reason, reason_code};
use crate::json::Value;
use crate::path::ArgumentNames;
use crate::policy::ArgumentCheck;

impl CallScope<'_> {
    /// Why policies can't be evaluated over these arguments: a name that a server could mistake for one that
    /// policies read, or a value of another type than the tool's schema declares.
    pub(super) fn check_arguments(&self, input: &Value) -> Option<Reason> {
        let check = self.argument_check();
        let reads = || self.chains.iter().map(|chain| &chain.argument_reads);
        if check != ArgumentCheck::Valid && reads().all(ArgumentNames::is_empty) {
            return None;
        }
        let invalid =
            |code: &str, message: String| Some(Reason { policy: None, code: code.to_owned(), message });
        let declared = self.tool.and_then(|tool| tool.schema.as_ref());
        let declares = |place: &[_], name: &str| {
            declared.is_some_and(|schema| schema.as_ref().is_ok_and(|schema| schema.declares(place, name)))
        };
        if let Some(misread) = ArgumentNames::find_misread(reads(), input, &declares) {
            return invalid(reason_code::AMBIGUOUS_ARGUMENT, misread.to_string());
        }
        let schema = match (check, declared) {
            (ArgumentCheck::Unchecked, _) => None,
            (ArgumentCheck::Typed, _) => self.tool.and_then(|tool| tool.types.as_ref()),
            (ArgumentCheck::Valid, None) => None,
            (ArgumentCheck::Valid, Some(Ok(schema))) => Some(schema),
            (ArgumentCheck::Valid, Some(Err(error))) => {
                let message = format!("the tool's own schema can't be used: {error}");
                return invalid(reason_code::SCHEMA_UNAVAILABLE, message);
            }
        };
        let violations = schema?.check(input).err()?;
        invalid(reason_code::SCHEMA_VIOLATION, argument_schema::summarize(&violations))
    }

    /// The argument check of the layers: the strictest of them, and types if the bundle does not set one.
    fn argument_check(&self) -> ArgumentCheck {
        let mut said = self.layers.iter().map(|layer| layer.defaults().arguments);
        let of_bundle = said.next().flatten().unwrap_or(ArgumentCheck::Typed);
        said.flatten().fold(of_bundle, ArgumentCheck::max)
    }
}
