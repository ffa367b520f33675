//! From rules files to what decides calls, in four steps: read ([`source`]), [`lower`], [`plan`],
//! [`compile`](Chains::compile).

mod agreed;
mod chain;
mod defaults;
mod lower;
mod plan;
mod reload;
mod remembered;
mod widening;

pub use chain::{Candidates, Chain, Chains};
pub use defaults::{ArgumentCheck, Defaults, Unmatched};
pub use lower::{Bundle, check_version, lower, rules_record};
pub use plan::{Plan, plan};
pub use reload::ReloadSettings;
pub use widening::{Widening, widenings};

use std::path::PathBuf;

use crate::call::ContextReads;
use crate::diagnostic::{Diagnostics, SourceMap, Span};
use crate::json::{Digest, Value};
use crate::matcher::Matcher;
use crate::middleware::Kind;
use crate::path::ArgumentNames;
use crate::regexes;
use crate::source::{self, Loaded, LoadedFile};

/// Whether a policy acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It acts.
    Enforce,
    /// It records what it would have done, and changes nothing.
    Shadow,
    /// It is checked at load and then left out.
    Off,
}

/// One policy, read and compiled.
#[derive(Debug)]
pub struct Policy {
    /// Unique in its bundle.
    pub id: String,
    /// What it is for; agents are told so where the policy has no message of its own.
    pub description: Option<String>,
    /// Whether it acts.
    pub mode: Mode,
    /// Higher comes first within a phase.
    pub priority: i64,
    /// Which calls it concerns.
    pub matcher: Matcher,
    /// What it does.
    pub kind: Kind,
    /// Whether it acts on the run around its calls.
    pub concerns_run: bool,
    /// The members of the context that it reads.
    pub context_reads: ContextReads,
    /// Whether its condition reads what the session has seen.
    pub condition_reads_session: bool,
    /// Whether what it does reads that: its templates, keys, values and scripts.
    pub action_reads_session: bool,
    /// The arguments that it reads.
    pub arguments: ArgumentNames,
    /// The arguments that its templates name.
    pub named_arguments: ArgumentNames,
    /// Where it stands.
    pub span: Span,
    /// What is written in it, its description aside.
    pub(crate) written: Value,
    /// Digest of all that it does, its description aside.
    pub behaviour: Digest,
}

impl Policy {
    /// Whether what it reads of the context can change what a call does, or what is shown of it: an approval is bound to that. A
    /// shadow and an `audit` only record.
    pub fn binds_context(&self) -> bool {
        self.mode == Mode::Enforce && !self.kind.is_of_run() && !matches!(self.kind, Kind::Audit(_))
    }
}

/// What a load yields: the compiled chains if nothing is wrong, and in any case all that was found.
#[derive(Debug)]
pub struct Built {
    /// The chains; `None` if there is an error.
    pub chains: Option<Chains>,
    /// Everything that was found, in the order of files and places.
    pub diagnostics: Diagnostics,
    /// The files, so that diagnostics can be shown.
    pub sources: SourceMap,
    /// What the rules files say, in their order, with the place of every word.
    pub files: Vec<LoadedFile>,
    /// The files beside the rules that policies draw on, also those that can't be read.
    pub drawn_files: Vec<PathBuf>,
}

/// Loads and compiles the bundle of all rules files below these paths.
pub fn build(paths: &[PathBuf]) -> Built {
    build_loaded(source::load(paths))
}

/// Compiles a bundle out of texts with their names.
pub fn build_texts<N: Into<String>, T: Into<String>>(texts: impl IntoIterator<Item = (N, T)>) -> Built {
    build_loaded(source::load_texts(texts))
}

/// Compiles a bundle out of texts, in the place of the files of another one: they may name the same files.
pub(crate) fn build_changed<N: Into<String>, T: Into<String>>(
    texts: impl IntoIterator<Item = (N, T)>,
    sources: &SourceMap,
) -> Built {
    build_loaded(source::load_texts_below(texts, sources.roots().clone()))
}

fn build_loaded(loaded: Loaded) -> Built {
    let Loaded { mut sources, files, mut diagnostics, .. } = loaded;
    let mut bundle = regexes::within_budget(|| lower(&files, &mut sources, &mut diagnostics));
    diagnostics.sort();
    let drawn_files = std::mem::take(&mut bundle.drawn_files);
    let chains = (!diagnostics.has_errors()).then(|| Chains::compile(plan(bundle)));
    Built { chains, diagnostics, sources, files, drawn_files }
}
