//! Three-valued truth: a test holds, does not hold, or can't be decided.

/// What a test says of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    Yes,
    /// It does not hold.
    No,
    /// What it reads is absent, and absence is to count as the policy's acting.
    Absent,
    /// It can't be decided; the text says why.
    Undecided(String),
}

impl Truth {
    /// Whether something in it is open, so that the policy's polarity decides.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Absent | Self::Undecided(_))
    }

    /// Both hold. `No` wins over what is open: whatever the open part is, the whole does not hold.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (open @ Self::Undecided(_), _) | (_, open @ Self::Undecided(_)) => open,
            (Self::Absent, _) | (_, Self::Absent) => Self::Absent,
            (Self::Yes, Self::Yes) => Self::Yes,
        }
    }

    /// One of them holds.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        !((!self).and(!other))
    }

    /// All hold; stops at the first that does not.
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

    /// One holds; stops at the first that does.
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

    /// What is open stays open.
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
    fn what_is_open_is_decided_only_by_what_makes_it_irrelevant() {
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
