//! The phrases of a comparison that its formats share. Names in them are not escaped yet.

use crate::evaluator::DecisionSummary;
use crate::report::{
    BundleComparison, CallDirection, Change, ChangeSubject, Direction, PolicyState, Witness, WitnessBasis,
};

/// A piece of a phrase: text of ours, or a name that comes from the rules.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Phrase {
    Text(String),
    Name(String),
}

impl Phrase {
    fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }
}

/// Joins phrases; `name` escapes and quotes a name.
pub(super) fn join(phrases: &[Phrase], name: impl Fn(&str) -> String) -> String {
    phrases
        .iter()
        .map(|phrase| match phrase {
            Phrase::Text(text) => text.clone(),
            Phrase::Name(text) => name(text),
        })
        .collect()
}

/// The decision on a call: `denied by NAME`.
pub(super) fn decision(summary: &DecisionSummary) -> Vec<Phrase> {
    let effect = match summary.effect {
        "run" => return vec![Phrase::text("runs")],
        "answer" => "answered",
        "suspend" => return requires_approval(summary),
        "invalid" => "rejected",
        "halt" => "halted",
        _ => "denied",
    };
    match &summary.policy {
        Some(policy) => vec![Phrase::text(format!("{effect} by ")), Phrase::Name(policy.clone())],
        None => vec![Phrase::text(format!("{effect} [{}]", summary.code))],
    }
}

fn requires_approval(summary: &DecisionSummary) -> Vec<Phrase> {
    match &summary.policy {
        Some(policy) => vec![Phrase::Name(policy.clone()), Phrase::text(" requires approval")],
        None => vec![Phrase::text(format!("requires approval [{}]", summary.code))],
    }
}

/// What a witness shows beside the decisions. Returns `None` if the decisions differ, which says it all.
pub(super) fn basis(witness: &Witness) -> Option<&'static str> {
    Some(match (witness.basis, witness.direction) {
        (WitnessBasis::Decision, CallDirection::Different) => "the tool gets other arguments",
        (WitnessBasis::Decision, _) => return None,
        (WitnessBasis::PolicyAlone, CallDirection::Looser) => {
            "this policy alone is less strict with the call"
        }
        (WitnessBasis::PolicyAlone, CallDirection::Stricter) => "this policy alone is stricter with the call",
        (WitnessBasis::PolicyAlone, CallDirection::Different) => {
            "this policy alone changes the call differently"
        }
        (WitnessBasis::Application, CallDirection::Looser) => "this policy no longer applies to the call",
        (WitnessBasis::Application, CallDirection::Stricter) => "this policy now applies to the call",
        (WitnessBasis::Application, CallDirection::Different) => {
            "this policy applies to the call in one version only"
        }
    })
}

/// A message of ours that quotes names in backticks.
pub(super) fn message(text: &str) -> Vec<Phrase> {
    let pieces = text.split('`').enumerate();
    pieces
        .map(|(index, piece)| match index % 2 {
            0 => Phrase::text(piece),
            _ => Phrase::Name(piece.to_owned()),
        })
        .collect()
}

/// What was changed: `changed: match`, `removed`, `mode: enforce → shadow`.
pub(super) fn change(subject: &ChangeSubject) -> Vec<Phrase> {
    let ChangeSubject::Policy { was, is, changed, .. } = subject else { return Vec::new() };
    match (was, is) {
        (PolicyState::Missing, PolicyState::Enforced) => return vec![Phrase::text("added")],
        (PolicyState::Missing, PolicyState::Shadow) => {
            return vec![Phrase::text("added with `mode: shadow`")];
        }
        (PolicyState::Missing, _) => return vec![Phrase::text("added with `mode: off`")],
        (PolicyState::Enforced, PolicyState::Missing) => return vec![Phrase::text("removed")],
        (_, PolicyState::Missing) => return vec![Phrase::text("removed; it did not take effect")],
        _ => {}
    }
    let mut phrases = Vec::new();
    if was != is {
        phrases.push(Phrase::text(format!("`mode` was `{}` and is `{}`", mode(*was), mode(*is))));
    }
    let parts: Vec<&String> = changed.iter().filter(|part| *part != "mode").collect();
    if !parts.is_empty() {
        phrases.push(Phrase::text(if phrases.is_empty() { "changed: " } else { "; changed: " }));
        for (index, part) in parts.into_iter().enumerate() {
            if index > 0 {
                phrases.push(Phrase::text(", "));
            }
            phrases.push(Phrase::Name(part.clone()));
        }
    } else if phrases.is_empty() {
        phrases.push(Phrase::text("evaluated in another order"));
    }
    phrases
}

fn mode(state: PolicyState) -> &'static str {
    match state {
        PolicyState::Enforced => "enforce",
        PolicyState::Shadow => "shadow",
        PolicyState::Off | PolicyState::Missing => "off",
    }
}

/// What is known beside the examples: that none was found, or that no other direction was found.
pub(super) fn certainty(change: &Change) -> Option<String> {
    let tried = calls(change.tried);
    match change.direction {
        Direction::MayBeLooser if has_witness(change, CallDirection::Stricter) => {
            Some(format!("no example of a call that it allows more, among {tried} tried"))
        }
        Direction::MayBeLooser if has_witness(change, CallDirection::Different) => None,
        Direction::MayBeLooser if acts_after_decision(&change.subject) => {
            Some("example calls cannot show it: this kind of policy acts after the decision".to_owned())
        }
        Direction::MayBeLooser if change.tried > 0 => Some(format!("no example found among {tried} tried")),
        Direction::Looser if !change.proven && change.tried > 0 => {
            Some(format!("it may also be stricter; no example found among {tried} tried"))
        }
        _ => None,
    }
}

/// Whether a policy acts on the execution or the result of a call, or on the run.
fn acts_after_decision(subject: &ChangeSubject) -> bool {
    const DECIDING: [&str; 8] =
        ["deny", "require", "allow", "halt", "validate", "approval", "respond", "transform"];
    matches!(subject, ChangeSubject::Policy { kind, .. } if !DECIDING.contains(kind))
}

fn has_witness(change: &Change, direction: CallDirection) -> bool {
    change.witnesses.iter().any(|witness| witness.direction == direction)
}

fn calls(count: usize) -> String {
    if count == 1 { "1 call".to_owned() } else { format!("{count} calls") }
}

/// The summary: `3 changes: 1 looser, 2 stricter; 12 policies unchanged`.
pub(super) fn summary(compared: &BundleComparison) -> String {
    let policies = |count: usize| {
        if count == 1 { "1 policy unchanged".to_owned() } else { format!("{count} policies unchanged") }
    };
    let unchanged = policies(compared.unchanged);
    if compared.changes.is_empty() {
        return format!("no change: {unchanged}");
    }
    let counts = Direction::ALL.into_iter().filter_map(|direction| match compared.count(direction) {
        0 => None,
        count => Some(format!("{count} {}", direction.phrase())),
    });
    let counts: Vec<String> = counts.collect();
    let changes = match compared.changes.len() {
        1 => "1 change".to_owned(),
        count => format!("{count} changes"),
    };
    format!("{changes}: {}; {unchanged}", counts.join(", "))
}
