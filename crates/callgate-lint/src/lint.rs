//! What a lint is: its code, the input that it needs, and its check.

use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use callgate::diagnostic::{Code, Diagnostics};

/// A lint: its code, with name and page, and its check.
#[derive(Debug)]
pub struct Lint {
    /// The code.
    pub code: &'static Code,
    /// The input that it needs.
    pub needs: RequiredInput,
    pub(crate) check: fn(&LintContext<'_>, &mut Diagnostics),
}
