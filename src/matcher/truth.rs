//! Three-valued logic (Kleene): a test is true, false, or undecided.

/// Result of a test for a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Truth {
    /// The test is true.
    Yes,
    /// The test is false.
    No,
    /// The tested value is absent, and the policy applies in this case.
    Absent,
    /// The test is undecided, for this reason.
    Undecided(String),
}

impl Truth {
    /// Whether the result is neither true nor false, so that the policy's polarity decides.
    pub fn is_undetermined(&self) -> bool {
        matches!(self, Self::Absent | Self::Undecided(_))
    }

    /// Logical AND. `No` wins over an open operand, because the result is false whatever that operand is.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (open @ Self::Undecided(_), _) | (_, open @ Self::Undecided(_)) => open,
            (Self::Absent, _) | (_, Self::Absent) => Self::Absent,
            (Self::Yes, Self::Yes) => Self::Yes,
        }
    }

    /// Logical OR.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        !((!self).and(!other))
    }

    /// Logical AND of all items; stops at the first `No`.
    pub fn all(truths: impl IntoIterator<Item = Self>) -> Self {
        let mut whole = Self::Yes;
        for truth in truths {
            whole = whole.and(truth);
            if whole == Self::No {
                break;
            }
        }
        whole
    }

    /// Logical OR of all items; stops at the first `Yes`.
    pub fn any(truths: impl IntoIterator<Item = Self>) -> Self {
        let mut whole = Self::No;
        for truth in truths {
            whole = whole.or(truth);
            if whole == Self::Yes {
                break;
            }
        }
        whole
    }
}

impl From<bool> for Truth {
    fn from(value: bool) -> Self {
        if value { Self::Yes } else { Self::No }
    }
}

impl std::ops::Not for Truth {
    type Output = Self;

    /// Logical NOT. An open operand stays open.
    fn not(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No => Self::Yes,
            open => open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undecided_operand_matters_unless_the_other_one_decides() {
        let open = || Truth::Undecided("x".into());
        assert_eq!(open().and(Truth::No), Truth::No);
        assert_eq!(open().and(Truth::Yes), open());
        assert_eq!(open().or(Truth::Yes), Truth::Yes);
        assert_eq!(open().or(Truth::No), open());
        assert_eq!(!open(), open());
        assert_eq!(Truth::Absent.and(open()), open());
        assert_eq!(Truth::all([Truth::Yes, open(), Truth::No]), Truth::No);
        assert_eq!(Truth::any([Truth::No, open(), Truth::Yes]), Truth::Yes);
        assert_eq!(Truth::all([]), Truth::Yes);
        assert_eq!(Truth::any([]), Truth::No);
    }
}
