//! Evaluation order: turns a [`Bundle`] into a [`Plan`]. No other module orders policies.

use std::cmp::Reverse;
use std::sync::Arc;

use super::compiled_files::CompiledFiles;
use super::{Bundle, Defaults, Mode, Policy, ReloadSettings};
use crate::json::Digest;
use crate::script::Names;
use crate::tool_result::ResultFormats;
use crate::tools::ToolDescriptor;

/// The policies in their evaluation order within a phase, without those that are off.
#[derive(Debug)]
pub struct Plan {
    /// Sorted by descending priority, then by file name, then by position.
    pub policies: Vec<Arc<Policy>>,
    /// The ids of the policies with `mode: off`.
    pub disabled_ids: Vec<String>,
    /// Settings for all policies.
    pub defaults: Defaults,
    /// Conditions for replacing the bundle.
    pub reload: ReloadSettings,
    /// Digest of all rules and of the files that they reference.
    pub revision: Digest,
    /// The names that the bundle defines.
    pub names: Arc<Names>,
    /// How the texts that tools return are read.
    pub results: ResultFormats,
    /// The known tools.
    pub tools: Vec<ToolDescriptor>,
    /// The rules files.
    pub files: CompiledFiles,
}

/// Sorts a bundle's policies and removes those that are off.
pub fn order_policies(bundle: Bundle) -> Plan {
    let Bundle { mut policies, defaults, reload, revision, names, results, tools, files, .. } = bundle;
    let off =
        policies.extract_if(.., |policy| policy.mode == Mode::Off).map(|policy| policy.id.clone()).collect();
    // The sort is stable: files come sorted by name, and policies in the order of their file.
    policies.sort_by_key(|policy| Reverse(policy.priority));
    Plan {
        policies,
        disabled_ids: off,
        defaults,
        reload,
        revision,
        names,
        results,
        tools: tools.descriptors,
        files,
    }
}
