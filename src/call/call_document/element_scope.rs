//! The elements that `every`, `any_of` and `none` evaluate their condition for: which one is current, innermost first.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use super::NodeRef;

/// A reference to the element of a quantifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ElementRef {
    /// How many quantifiers are between the reference and the one whose element it names. 0: the innermost one.
    pub distance: u8,
    /// Whether the elements come from the arguments, which the agent controls.
    pub is_argument: bool,
}

/// What `inside` reads of a word of a shell command, and what other tests can decide of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordForms {
    /// The absolute paths that it can be, from the command's directory. `None` if they are not known.
    pub paths: Option<Vec<String>>,
    /// Whether it is a pattern of file names, which only `inside` can be decided for.
    pub is_pattern: bool,
}

/// The current element of a quantifier, and those of the quantifiers around it.
#[derive(Clone, Copy, Debug)]
pub struct ElementScope<'a> {
    /// The element.
    pub element: NodeRef<'a>,
    /// What is computed once for all elements.
    pub memo: &'a ElementMemo,
    /// What tests read of it, if it is a word of a shell command.
    pub word: Option<&'a WordForms>,
    /// The scope around it.
    pub outer: Option<&'a ElementScope<'a>>,
}

impl<'a> ElementScope<'a> {
    /// The element that a reference names.
    pub fn find(&self, reference: ElementRef) -> Option<NodeRef<'a>> {
        let scopes = std::iter::successors(Some(*self), |scope| scope.outer.copied());
        scopes.map(|scope| scope.element).nth(usize::from(reference.distance))
    }

    /// What tests read of the element that a reference names, if it is a word of a shell command.
    pub fn word_forms(&self, reference: ElementRef) -> Option<&'a WordForms> {
        let scopes = std::iter::successors(Some(*self), |scope| scope.outer.copied());
        scopes.map(|scope| scope.word).nth(usize::from(reference.distance)).flatten()
    }

    /// The memo for what depends on no element nearer than `nearest`: its result is valid for as long as that one is current. Without
    /// `nearest`, it depends on no element. Returns `None` if it depends on the innermost one.
    pub fn memo_for(&self, nearest: Option<u8>) -> Option<&'a ElementMemo> {
        let scopes = std::iter::successors(Some(*self), |scope| scope.outer.copied());
        match nearest {
            None => scopes.last().map(|scope| scope.memo),
            Some(distance) => scopes.map(|scope| scope.memo).nth(usize::from(distance.checked_sub(1)?)),
        }
    }
}

/// Results that are the same for all elements of one evaluation of a quantifier.
#[derive(Debug, Default)]
pub struct ElementMemo {
    entries: Mutex<Vec<(usize, Arc<dyn Any + Send + Sync>)>>,
}

impl ElementMemo {
    /// The result for `key`, which identifies a part of the rules. `compute` runs the first time.
    pub fn get_or_compute<T: Any + Send + Sync>(&self, key: usize, compute: impl FnOnce() -> T) -> Arc<T> {
        let known = |entries: &[(usize, Arc<dyn Any + Send + Sync>)]| {
            let mut results = entries.iter().filter(|(known, _)| *known == key);
            results.find_map(|(_, result)| Arc::clone(result).downcast::<T>().ok())
        };
        if let Some(result) = known(&self.entries.lock().unwrap_or_else(PoisonError::into_inner)) {
            return result;
        }
        // The lock is not held meanwhile: a computation may use the memo itself.
        let result = Arc::new(compute());
        let entry: Arc<dyn Any + Send + Sync> = Arc::<T>::clone(&result);
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).push((key, entry));
        result
    }
}
