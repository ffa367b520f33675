//! The layers of policies that decide a call, and references to their policies.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::policy::{CompiledPolicies, Policy};

/// The layers that decide a call, the bundle first.
pub type Layers = SmallVec<[Arc<CompiledPolicies>; 3]>;

/// A reference to a policy of one of the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PolicyRef {
    pub(super) layer: u32,
    pub(super) index: u32,
}

impl PolicyRef {
    /// The policy itself.
    pub(crate) fn find(self, layers: &Layers) -> Option<&Policy> {
        layers.get(self.layer as usize)?.policy(self.index)
    }

    /// The layer that it is in; the bundle is 0.
    pub(crate) fn layer(self) -> u32 {
        self.layer
    }
}

/// A policy with its place in the layers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PolicyHandle<'p> {
    pub(crate) reference: PolicyRef,
    pub(crate) policy: &'p Policy,
}

impl<'p> PolicyHandle<'p> {
    pub(crate) fn find(reference: PolicyRef, layers: &'p Layers) -> Option<Self> {
        Some(Self { reference, policy: reference.find(layers)? })
    }

    /// The layer that it is in; the bundle is 0.
    pub(crate) fn layer(self) -> u32 {
        self.reference.layer
    }
}
