//! Compilation of single policies: a loaded bundle → one bundle for each of its policies, to evaluate what a policy does by itself.

use regex::RegexSet;

use super::compiled_files::{CompiledFiles, Reused};
use super::{Bundle, CompiledPolicies, Defaults, LoadedBundle, Plan, Policy, Unmatched};
use crate::diagnostic::Diagnostics;
use crate::regex_compiler;
use crate::script::Names;

/// Compiles each policy that `keep` accepts, in any mode but `off`, to a bundle that has this policy only. The names and settings are
/// those of the whole bundle, except `defaults.unmatched` and `unmatched_methods`, which `unmatched` sets. Returns nothing if the bundle has errors.
#[doc(hidden)]
pub fn build_isolated(
    loaded: &LoadedBundle,
    keep: impl Fn(&Policy) -> bool,
    unmatched: impl Fn(&Policy) -> Unmatched,
) -> Vec<CompiledPolicies> {
    let (mut sources, mut diagnostics) = (loaded.sources.clone(), Diagnostics::default());
    let bundle = regex_compiler::with_budget(|| {
        super::compile(&loaded.files, &Reused::default(), &Names::default(), &mut sources, &mut diagnostics)
    });
    if diagnostics.has_errors() {
        return Vec::new();
    }
    let Bundle { policies, defaults, reload, names, results, revision, tools, .. } = bundle;
    let kept = policies.into_iter().filter(|policy| policy.mode != super::Mode::Off && keep(policy));
    kept.map(|policy| {
        CompiledPolicies::compile(
            Plan {
                defaults: Defaults {
                    unmatched: unmatched(&policy),
                    unmatched_methods: unmatched(&policy),
                    ..defaults
                },
                policies: vec![policy],
                disabled_ids: Vec::new(),
                reload,
                revision,
                names: names.clone(),
                results: results.clone(),
                tools: tools.descriptors.clone(),
                files: CompiledFiles::default(),
            },
            &RegexSet::empty(),
        )
    })
    .collect()
}
