//! What a policy does if its condition cannot be evaluated: one row for each kind. A condition without an answer never makes an outcome more
//! permissive.

use super::PolicyKind;
use crate::call::Phase;
use crate::matcher::Truth;
use crate::rules_schema::Polarity;

/// What a policy does if its condition is undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUndecided {
    /// It applies, which is the stricter choice.
    Apply,
    /// It does not apply, which is the stricter choice.
    Skip,
    /// Neither choice is known to be the stricter: the call is refused.
    Refuse,
    /// Neither choice is known to be the stricter: the result is withheld.
    Withhold,
    /// What it would set becomes unknown: conditions that read it are undecided.
    MarkUnknown,
}

/// Whether a policy applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Application<'t> {
    /// It does not apply.
    No,
    /// It applies.
    Yes,
    /// Its condition is undecided, for this reason.
    Undecided(OnUndecided, &'t str),
}

impl Application<'_> {
    /// Whether the policy takes part, if only because its condition is undecided.
    pub fn takes_part(&self) -> bool {
        *self != Self::No
    }

    /// Whether the condition is undecided.
    pub fn is_undecided(&self) -> bool {
        matches!(self, Self::Undecided(..))
    }
}

/// The table.
fn on_undecided(kind: &str, phase: Phase) -> OnUndecided {
    match (kind, phase) {
        ("allow" | "respond" | "recover" | "cache" | "retry", _) => OnUndecided::Skip,
        ("transform", Phase::Settle) => OnUndecided::Withhold,
        ("transform" | "around", _) => OnUndecided::Refuse,
        ("label" | "fact", _) => OnUndecided::MarkUnknown,
        _ => OnUndecided::Apply,
    }
}

impl PolicyKind {
    /// What a policy of this kind does in a phase if its condition is undecided.
    pub fn on_undecided(&self, phase: Phase) -> OnUndecided {
        on_undecided(self.definition().name, phase)
    }

    /// Whether a policy of this kind applies in a phase if its condition has this truth. If a value is absent, only policies that restrict
    /// apply, and those that record.
    pub fn application<'t>(&self, truth: &'t Truth, phase: Phase) -> Application<'t> {
        match truth {
            Truth::No => Application::No,
            Truth::Yes => Application::Yes,
            Truth::Absent => match self {
                Self::Audit(_) => Application::Yes,
                _ if self.definition().polarity == Polarity::Restricting => Application::Yes,
                _ => Application::No,
            },
            Truth::Undecided(why) => match self.on_undecided(phase) {
                OnUndecided::Skip => Application::No,
                on_undecided => Application::Undecided(on_undecided, why),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::middleware::KINDS;

    /// A policy that restricts applies when undecided, one that permits does not: the kinds between them have rows of their own.
    #[test]
    fn every_row_agrees_with_the_polarity_of_its_kind() {
        for entry in KINDS {
            let row = match entry.name {
                "around" | "transform" => OnUndecided::Refuse,
                "label" | "fact" => OnUndecided::MarkUnknown,
                "audit" => OnUndecided::Apply,
                name => match entry.polarity {
                    Polarity::Restricting => OnUndecided::Apply,
                    Polarity::Permitting => OnUndecided::Skip,
                    Polarity::Forming => panic!("`{name}` has no row"),
                },
            };
            assert_eq!(on_undecided(entry.name, Phase::Gate), row, "{}", entry.name);
        }
        assert_eq!(on_undecided("transform", Phase::Settle), OnUndecided::Withhold);
    }
}
