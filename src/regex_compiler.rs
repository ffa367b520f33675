//! Compiles regular expressions of rules, within a size budget for each bundle.
//!
//! A few bytes such as `\w{400}` compile to megabytes, whether in a name pattern, a condition, a JSONPath, a script or a schema. All of
//! them are compiled here. While a bundle is read, each is charged to one budget, even if it is too large to compile: this bounds the
//! time and the memory that a hostile bundle can take.

use std::cell::RefCell;
use std::collections::HashMap;

use regex::{Error, Regex, RegexBuilder};

/// Maximum compiled size of one regular expression, in bytes.
pub(crate) const SIZE_LIMIT: usize = 1 << 20;
/// Size classes for the budget: the exact compiled size is unknown, so each regular expression is charged the smallest class that
/// fits it.
const SIZE_CLASSES: [usize; 4] = [4 << 10, 32 << 10, 256 << 10, SIZE_LIMIT];
/// Maximum compiled size of all regular expressions of a bundle, in bytes.
const BUNDLE_LIMIT: usize = 64 << 20;

/// What the regular expressions of one bundle share.
struct BundleExpressions {
    /// Bytes left of the budget.
    left: usize,
    /// The compiled expressions with the sizes that they are charged, by pattern: bundles repeat them.
    compiled: HashMap<String, (Regex, usize)>,
}

thread_local! {
    /// The expressions of the bundle that is read on this thread; `None` if there is none.
    static BUNDLE: RefCell<Option<BundleExpressions>> = const { RefCell::new(None) };
}

/// Runs a function that reads a bundle. All regular expressions compiled in it share one budget; equal ones are compiled once,
/// and charged each time, because each use has memory of its own for matching, and a schema compiles its patterns again.
pub(crate) fn with_budget<T>(read: impl FnOnce() -> T) -> T {
    /// Restores the previous value, also if reading panics.
    struct Restored(Option<BundleExpressions>);
    impl Drop for Restored {
        fn drop(&mut self) {
            BUNDLE.set(self.0.take());
        }
    }
    let bundle = BundleExpressions { left: BUNDLE_LIMIT, compiled: HashMap::new() };
    let _restored = Restored(BUNDLE.replace(Some(bundle)));
    read()
}

/// Whether the budget is exhausted: a regular expression was rejected because of those before it, and not because of its own size.
pub(crate) fn is_budget_exhausted() -> bool {
    BUNDLE.with_borrow(|bundle| bundle.as_ref().is_some_and(|bundle| bundle.left < SIZE_LIMIT))
}

/// What the regular expressions that were compiled so far take of the budget of the bundle that is read.
pub(crate) fn used_of_budget() -> usize {
    BUNDLE.with_borrow(|bundle| bundle.as_ref().map_or(0, |bundle| BUNDLE_LIMIT - bundle.left))
}

/// Whether regular expressions that take this much of the budget can be part of one bundle.
pub(crate) fn is_within_budget(bytes: usize) -> bool {
    bytes <= BUNDLE_LIMIT
}

/// Compiles a regular expression, in the syntax of the `regex` crate.
///
/// # Errors
/// If the syntax is invalid, or the compiled size exceeds [`SIZE_LIMIT`] or the rest of the bundle's budget.
pub(crate) fn compile(pattern: &str) -> Result<Regex, Error> {
    BUNDLE.with_borrow_mut(|bundle| match bundle {
        None => compile_within(pattern, SIZE_LIMIT).0,
        Some(bundle) => {
            if let Some((compiled, charged)) = bundle.compiled.get(pattern)
                && let Some(left) = bundle.left.checked_sub(*charged)
            {
                bundle.left = left;
                return Ok(compiled.clone());
            }
            let (built, charged) = compile_within(pattern, bundle.left);
            bundle.left = bundle.left.saturating_sub(charged);
            if let Ok(built) = &built {
                bundle.compiled.insert(pattern.to_owned(), (built.clone(), charged));
            }
            built
        }
    })
}

/// Compiles a regular expression of at most this size. Returns the size class that it is charged, too.
fn compile_within(pattern: &str, left: usize) -> (Result<Regex, Error>, usize) {
    let mut built = Err(Error::CompiledTooBig(left));
    let mut tried = 0;
    for size in SIZE_CLASSES.into_iter().filter(|size| *size <= left) {
        built = RegexBuilder::new(pattern).size_limit(size).build();
        tried = size;
        if !matches!(built, Err(Error::CompiledTooBig(_))) {
            break;
        }
    }
    (built, tried)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_the_budget_for_compiled_and_for_rejected_expressions() {
        for pattern in [r"\w{100}", "(?:[a-z]{100}){80}"] {
            with_budget(|| {
                let mut tries = 0;
                while !is_budget_exhausted() {
                    let _ = compile(pattern);
                    tries += 1;
                }
                assert!((60..300).contains(&tries), "{pattern}: {tries}");
                assert!((0..5).any(|_| compile("(?:[a-z]{100}){80}").is_err()), "{pattern}");
            });
            assert!(compile("(?:[a-z]{100}){80}").is_ok());
        }
    }
}
