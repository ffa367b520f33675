//! Rules that a command decides calls by.

use std::path::PathBuf;
use std::sync::Arc;

use super::check;
use super::exit::Exit;
use super::output::{complain, complain_of_rules, complain_of_tests};
use crate::engine::{self, Refusal};
use crate::policy::Chains;
use crate::reload;

/// Rules, or how the command ends where they can't be used, which is told.
pub(super) fn load(policies: &[PathBuf]) -> Result<Arc<Chains>, Exit> {
    reload::load(policies).map_err(|why| {
        match &why {
            Refusal::Errors(built) => {
                complain_of_rules(built);
                return check::exit(&built.diagnostics);
            }
            Refusal::Tests(text) => complain_of_tests(text, &why),
            Refusal::NoTests | Refusal::Failure(_) => complain(why.summary()),
        }
        Exit::Fails
    })
}

/// The same where there need not be any: without paths every call passes.
pub(super) fn of(policies: &[PathBuf]) -> Result<Arc<Chains>, Exit> {
    if !policies.is_empty() {
        return load(policies);
    }
    engine::load_text("policies: []").map_err(|error| {
        complain(error);
        Exit::Trouble
    })
}
