//! Names of elements in conditions of `every`, `any_of` and `none`: `item`, or the name after `as`.

use std::collections::BTreeSet;

use super::ArgumentNames;
use crate::call::{ElementRef, Root};

/// The most quantifiers that nest.
pub const MAX_ELEMENT_NESTING: usize = 8;

/// The name of a quantifier's elements.
#[derive(Clone, Debug, Default)]
pub struct ElementName {
    /// The name.
    pub name: String,
    /// Whether the elements come from the arguments.
    pub is_argument: bool,
    /// The arguments that they come from.
    pub arguments: ArgumentNames,
}

/// Names of elements, the outermost quantifier first.
#[derive(Clone, Debug, Default)]
pub struct ElementNames(Vec<ElementName>);

impl ElementNames {
    /// No names, outside quantifiers.
    pub const NONE: Self = Self(Vec::new());

    /// Adds the name of an inner quantifier.
    pub fn push(&mut self, name: ElementName) {
        self.0.push(name);
    }

    /// The number of quantifiers.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no quantifier.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The name of the innermost elements.
    pub fn innermost(&self) -> Option<&str> {
        self.0.last().map(|element| element.name.as_str())
    }

    /// The names, the innermost one first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().rev().map(|element| element.name.as_str())
    }

    /// The root that a name stands for. Of equal names the innermost one counts.
    pub fn root(&self, name: &str) -> Option<Root> {
        let (distance, element) =
            self.0.iter().rev().enumerate().find(|(_, element)| element.name == name)?;
        let distance = u8::try_from(distance).ok()?;
        Some(Root::Element(ElementRef { distance, is_argument: element.is_argument }))
    }

    /// The arguments that are read by reading these members of elements.
    pub fn arguments_read(
        &self,
        roots: impl IntoIterator<Item = Root>,
        members: &BTreeSet<String>,
    ) -> ArgumentNames {
        let mut names = ArgumentNames::default();
        for root in roots {
            let Root::Element(element) = root else { continue };
            if let Some(element) = self.0.iter().rev().nth(usize::from(element.distance)) {
                let mut read = element.arguments.clone();
                read.add_below(members);
                names.merge(&read);
            }
        }
        names
    }
}
