//! The policies for one tool, by phase.

use super::gate_index::GateIndex;
use crate::call::ContextReads;
use crate::path::{ArgumentNames, NameFilter};

/// The policies for one tool, by phase, in evaluation order.
#[derive(Debug)]
pub struct ToolPolicies {
    /// The policies of the normalise phase.
    pub normalise: Box<[u32]>,
    /// The policies of the gate phase.
    pub gate: GateIndex,
    /// The policies that wrap the execution, outermost first.
    pub execute: Box<[u32]>,
    /// The facts that are stored when the tool starts.
    pub start: Box<[u32]>,
    /// The policies of the settle phase.
    pub settle: Box<[u32]>,
    /// The caches that a call of the tool invalidates.
    pub invalidates: Box<[u32]>,
    /// The context members read by the policies that an approval is bound to.
    pub context_reads: ContextReads,
    /// The arguments that enforced policies read.
    pub argument_reads: ArgumentNames,
    /// A quick check for arguments whose names could be taken for `argument_reads`.
    pub name_filter: NameFilter,
    /// Whether the effect of a decision depends on no arguments but members that `name_filter` is concerned with.
    pub is_effect_of_members: bool,
    /// The arguments that templates of enforced policies name.
    pub template_arguments: ArgumentNames,
}
