//! Folding of strings for lenient comparison: without letter case, and without the differences between characters that look alike.

use smallvec::{SmallVec, smallvec};

use crate::unicode::{fold_case, skeleton};

/// Which differences between strings do not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextFolding {
    /// Letter case: full case folding of Unicode.
    pub ignore_case: bool,
    /// Characters that look alike (skeletons of UTS 39) and invisible characters.
    pub fold_confusables: bool,
}

/// The forms of a string in which it is compared with the same forms of another one.
pub type FoldedForms = SmallVec<[String; 2]>;

impl TextFolding {
    /// Whether strings are compared as they are.
    pub fn is_exact(self) -> bool {
        self == Self::default()
    }

    /// Returns the forms of a string. Two strings are alike if one of their forms is, at the same position of the list.
    ///
    /// ```
    /// use callgate::tokens::TextFolding;
    /// let folding = TextFolding { ignore_case: true, fold_confusables: true };
    /// assert_eq!(folding.fold("PАYPAL")[0], folding.fold("paypal")[0]);
    /// assert_eq!(folding.fold("paypaI")[1], folding.fold("paypal")[1]);
    /// ```
    pub fn fold(self, text: &str) -> FoldedForms {
        match (self.ignore_case, self.fold_confusables) {
            (false, false) => smallvec![text.to_owned()],
            (true, false) => smallvec![fold_case(text).into_owned()],
            (false, true) => smallvec![skeleton(text)],
            // A capital `I` is an `i` without case, and looks like an `l` with it.
            (true, true) => {
                smallvec![skeleton(&fold_case(text)), fold_case(&skeleton(text)).into_owned()]
            }
        }
    }
}
