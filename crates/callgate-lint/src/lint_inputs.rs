//! Inputs of the linter besides the bundle.

use callgate::tools::ToolDescriptor;
use callgate_policy_tests::LoadedSuite;

/// Optional inputs of the linter.
#[derive(Clone, Copy, Debug, Default)]
pub struct LintInputs<'b> {
    /// The tools, if they are known.
    pub tools: Option<&'b [ToolDescriptor]>,
    /// The policy tests of the bundle, if there are any.
    pub tests: Option<&'b LoadedSuite>,
}

/// The input that a lint needs in addition to the bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredInput {
    /// No other input.
    Nothing,
    /// The known tools.
    Tools,
    /// The policy tests.
    Tests,
}
