//! Rules that a command decides calls by.

use std::path::PathBuf;
use std::sync::Arc;

use super::check;
use super::exit::Exit;
use super::output::{complain, complain_of_rules, complain_of_tests};
use crate::engine::Refusal;
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
