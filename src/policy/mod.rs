//! Policies: rules files → [`CompiledPolicies`] in four steps: read the files ([`source`]), compile them to a [`Bundle`] (`compiler`), sort the
//! policies (`plan`), and index them ([`CompiledPolicies::compile`]).

mod bundle_settings;
mod definitions;
mod policy_index;
mod gate_index;
mod defaults;
mod compiled_files;
mod compiler;
mod isolation;
mod plan;
mod policy_ids;
mod rebuild;
mod reload_settings;
mod rules_shape;
mod scalar_conditions;
mod tool_policies;
mod tool_policy_cache;
mod widening;

use compiled_files::Reused;
pub use compiled_files::{CompiledFile, CompiledFiles};
pub use compiler::{Bundle, check_version, compile};
pub use defaults::{ArgumentCheck, Defaults, Unmatched};
pub use gate_index::{CandidatePolicies, effect_of};
pub use isolation::build_isolated;
pub use plan::{Plan, order_policies};
pub use policy_index::CompiledPolicies;
pub use rebuild::rebuild;
pub use reload_settings::ReloadSettings;
pub use rules_shape::rules_record;
pub use scalar_conditions::{ScalarConditions, ScalarEvaluator};
pub use tool_policies::ToolPolicies;
pub use widening::{Widening, find_widenings};

use std::path::PathBuf;
use std::sync::Arc;

use crate::call::ContextReads;
use crate::diagnostic::{Diagnostics, SourceMap, Span};
use crate::json::{self, Digest, Value};
use crate::matcher::Matcher;
use crate::middleware::PolicyKind;
use crate::path::ArgumentNames;
use crate::regex_compiler;
use crate::script::{DefinitionName, Names};
use crate::source::{self, LoadedFile, LoadedSources};

/// The mode of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The policy takes effect.
    Enforce,
    /// Shadow mode: the policy records what it would have done, and changes nothing.
    Shadow,
    /// The policy is validated on load and then ignored.
    Off,
}

impl Mode {
    /// The name in rules files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Shadow => "shadow",
            Self::Off => "off",
        }
    }
}

/// A compiled policy.
#[derive(Debug)]
pub struct Policy {
    /// The id, unique in the bundle.
    pub id: String,
    /// The purpose of the policy. Agents see it if the policy has no message of its own.
    pub description: Option<String>,
    /// Whether the policy takes effect.
    pub mode: Mode,
    /// Policies with a higher priority are evaluated first within a phase.
    pub priority: i64,
    /// The calls that the policy applies to.
    #[doc(hidden)]
    pub matcher: Matcher,
    /// What the policy does.
    #[doc(hidden)]
    pub kind: PolicyKind,
    /// Whether the policy applies to the run instead of to single calls.
    #[doc(hidden)]
    pub applies_to_run: bool,
    /// The context members that the policy reads.
    #[doc(hidden)]
    pub context_reads: ContextReads,
    /// Whether its condition reads session state.
    #[doc(hidden)]
    pub condition_reads_session: bool,
    /// Whether its templates, keys, values or scripts read session state.
    #[doc(hidden)]
    pub action_reads_session: bool,
    /// Whether the policy reads `$.result`.
    #[doc(hidden)]
    pub reads_result: bool,
    /// The arguments that the policy reads.
    #[doc(hidden)]
    pub argument_reads: Arc<ArgumentNames>,
    /// The arguments that its templates name.
    #[doc(hidden)]
    pub template_arguments: Arc<ArgumentNames>,
    /// The definitions of the bundle that the policy names, with the digests of their content.
    #[doc(hidden)]
    pub definitions: Vec<(DefinitionName, Digest)>,
    /// The location of the policy in the rules.
    pub span: Span,
    /// The canonical text of the policy as JSON, without its description.
    source_text: Box<str>,
    /// Digest of everything that determines what the policy does; the description is not part of it.
    #[doc(hidden)]
    pub behaviour_digest: Digest,
}

impl Policy {
    /// The policy as it is written, without its description. `None` would be invalid JSON, which no policy has.
    fn source(&self) -> Option<Value> {
        json::parse(&self.source_text).ok()
    }

    /// Whether the context members that the policy reads can change what a call does or shows, so that approvals must be bound to
    /// them. Policies in shadow mode and `audit` policies only record.
    pub fn binds_context(&self) -> bool {
        self.mode == Mode::Enforce
            && !self.kind.applies_to_run()
            && !matches!(self.kind, PolicyKind::Audit(_))
    }
}

/// Result of a load: the compiled chains if there are no errors, and all diagnostics.
#[derive(Debug)]
#[non_exhaustive]
pub struct LoadedBundle {
    /// The compiled policies; `None` if there is an error.
    pub policies: Option<CompiledPolicies>,
    /// All diagnostics, in the order of files and then of positions.
    pub diagnostics: Diagnostics,
    /// The source files, for rendering diagnostics.
    pub sources: SourceMap,
    /// The parsed rules files, in order, with the span of every node.
    #[doc(hidden)]
    pub files: Vec<LoadedFile>,
    /// The files that policies reference, such as schemas and scripts, including those that could not be read.
    pub referenced_files: Vec<PathBuf>,
    /// The names that the bundle defines.
    #[doc(hidden)]
    pub names: Arc<Names>,
}

/// Loads and compiles the bundle of all rules files under these paths.
pub fn build(paths: &[PathBuf]) -> LoadedBundle {
    build_loaded(source::load(paths))
}

/// Compiles a bundle from in-memory files: pairs of a name and its text.
pub fn build_texts<N: Into<String>, T: Into<String>>(
    texts: impl IntoIterator<Item = (N, T)>,
) -> LoadedBundle {
    build_loaded(source::load_texts(texts))
}

/// Compiles a bundle from in-memory replacements of another bundle's files. Policies can reference the same files as that bundle.
#[doc(hidden)]
pub fn build_replacements<N: Into<String>, T: Into<String>>(
    texts: impl IntoIterator<Item = (N, T)>,
    sources: &SourceMap,
) -> LoadedBundle {
    build_loaded(source::load_texts_below(texts, sources.roots().clone()))
}

/// Compiles a layer from in-memory files. It can use the names of the bundle that it is for.
pub fn build_layer<N: Into<String>, T: Into<String>>(
    texts: impl IntoIterator<Item = (N, T)>,
    bundle: &CompiledPolicies,
) -> LoadedBundle {
    let mut loaded = source::load_texts(texts);
    definitions::reject_results_in_layer(&loaded.files, &mut loaded.diagnostics);
    definitions::reject_tools_in_layer(&loaded.files, &mut loaded.diagnostics);
    build_with(loaded, Reused::default(), bundle.names())
}

fn build_loaded(loaded: LoadedSources) -> LoadedBundle {
    build_with(loaded, Reused::default(), &Names::default())
}

fn build_with(loaded: LoadedSources, reused: Reused, inherited: &Names) -> LoadedBundle {
    let LoadedSources { mut sources, mut files, mut diagnostics, .. } = loaded;
    definitions::exclude_data_files(&mut files, rules_record(), &sources, &mut diagnostics);
    let mut bundle =
        regex_compiler::with_budget(|| compile(&files, &reused, inherited, &mut sources, &mut diagnostics));
    diagnostics.sort();
    let referenced_files = std::mem::take(&mut bundle.referenced_files);
    let names = Arc::clone(&bundle.names);
    let policies = (!diagnostics.has_errors())
        .then(|| CompiledPolicies::compile(order_policies(bundle), &reused.patterns));
    LoadedBundle { policies, diagnostics, sources, files, referenced_files, names }
}
