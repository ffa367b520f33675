//! Compiles the regular expressions that rules name, of which a bundle may hold only so many large ones.
//!
//! A few bytes such as `\w{400}` compile to megabytes, whether they stand in a name pattern, a condition, a JSONPath, a script or a
//! schema. All of them are compiled here, and while a bundle is read they are charged to one budget, also if they are too large to
//! compile: what is left of it bounds the time and the memory that a hostile bundle can take.

use std::cell::Cell;

use regex::{Error, Regex, RegexBuilder};

/// The largest compiled form of one regular expression, in bytes.
pub(crate) const SIZE_LIMIT: usize = 1 << 20;
/// The sizes that compiled forms are charged by: what one really takes is not known, so it is charged with the smallest of these
/// that is enough.
const SIZES: [usize; 4] = [4 << 10, 32 << 10, 256 << 10, SIZE_LIMIT];
/// What the regular expressions of a bundle may take together.
const BUNDLE_LIMIT: usize = 64 << 20;

thread_local! {
    /// What is left for the bundle that is read on this thread; `None` where none is.
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Reads a bundle, all of whose regular expressions share one budget.
pub(crate) fn within_budget<T>(read: impl FnOnce() -> T) -> T {
    /// Puts back what was there, also if reading panics.
    struct Restored(Option<usize>);
    impl Drop for Restored {
        fn drop(&mut self) {
            LEFT.set(self.0);
        }
    }
    let _restored = Restored(LEFT.replace(Some(BUNDLE_LIMIT)));
    read()
}

/// Whether a regular expression of a bundle was refused because of those before it, and not because it is too large itself.
pub(crate) fn is_exhausted() -> bool {
    LEFT.get().is_some_and(|left| left < SIZE_LIMIT)
}

/// Compiles a regular expression, in the syntax of the `regex` crate.
///
/// # Errors
/// It is none, or its compiled form takes more than [`SIZE_LIMIT`], or more than is left for the bundle.
pub(crate) fn compile(pattern: &str) -> Result<Regex, Error> {
    let left = LEFT.get().unwrap_or(SIZE_LIMIT);
    let mut built = Err(Error::CompiledTooBig(left));
    let mut tried = 0;
    for size in SIZES.into_iter().filter(|size| *size <= left) {
        built = RegexBuilder::new(pattern).size_limit(size).build();
        tried = size;
        if !matches!(built, Err(Error::CompiledTooBig(_))) {
            break;
        }
    }
    LEFT.set(LEFT.get().map(|left| left.saturating_sub(tried)));
    built
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_pays_for_what_compiles_and_for_what_does_not() {
        for pattern in [r"\w{100}", "(?:[a-z]{100}){80}"] {
            within_budget(|| {
                let mut tries = 0;
                while !is_exhausted() {
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
