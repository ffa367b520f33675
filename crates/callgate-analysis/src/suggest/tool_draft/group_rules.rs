//! The rules of some of a tool's calls, such as those of one principal, and whether two of them differ.

use crate::suggest::field_profile::FieldProfile;
use crate::suggest::field_rules::FieldRules;
use crate::suggest::value_rule::{FieldRule, MemberRule, ValueRule};

/// Ranges of two principals differ if a bound of one is this many times that of the other.
const DIFFERENT_BOUNDS: f64 = 2.0;

/// The rule of some of a tool's calls. Arguments that these calls do not have are forbidden in them.
pub(super) fn group_rule(
    arguments: &FieldRule,
    group: &FieldProfile,
    rules: &mut FieldRules<'_>,
) -> Option<FieldRule> {
    let mut rule = rules.arguments(group)?;
    forbid_further_members(&mut rule, arguments);
    Some(rule)
}

fn forbid_further_members(rule: &mut FieldRule, all: &FieldRule) {
    match (&mut rule.rule, &all.rule) {
        (ValueRule::Members(members), ValueRule::Members(all)) => {
            for (name, member) in all {
                match members.get_mut(name) {
                    Some(known) => forbid_further_members(&mut known.field, &member.field),
                    None => drop(members.insert(name.clone(), absent_member())),
                }
            }
        }
        (ValueRule::Items { item, .. }, ValueRule::Items { item: all, .. }) => {
            forbid_further_members(item, all);
        }
        _ => {}
    }
}

fn absent_member() -> MemberRule {
    let field = FieldRule {
        types: Vec::new(),
        is_nullable: false,
        rule: ValueRule::Absent,
        evidence: "rare in these calls".to_owned(),
    };
    MemberRule { is_required: false, field }
}

/// Whether two rules permit clearly different values.
pub(super) fn differs(one: &ValueRule, other: &ValueRule) -> bool {
    match (one, other) {
        (ValueRule::Range { least, most }, ValueRule::Range { least: other_least, most: other_most }) => {
            let far = |one: Option<f64>, other: Option<f64>| match (one, other) {
                (Some(one), Some(other)) => {
                    let (small, large) = (one.abs().min(other.abs()), one.abs().max(other.abs()));
                    (one < 0.0) != (other < 0.0) || large > small * DIFFERENT_BOUNDS
                }
                _ => true,
            };
            far(most.as_f64(), other_most.as_f64()) || far(least.as_f64(), other_least.as_f64())
        }
        (ValueRule::Members(one), ValueRule::Members(other)) => one.iter().any(|(name, member)| {
            other.get(name).is_some_and(|other| differs(&member.field.rule, &other.field.rule))
        }),
        (ValueRule::Items { item: one, .. }, ValueRule::Items { item: other, .. }) => {
            differs(&one.rule, &other.rule)
        }
        (ValueRule::OneOf(_), ValueRule::OneOf(_))
        | (ValueRule::Hosts { .. }, ValueRule::Hosts { .. })
        | (ValueRule::Domains(_), ValueRule::Domains(_))
        | (ValueRule::Directories { .. }, ValueRule::Directories { .. }) => one != other,
        (ValueRule::Absent, other) | (other, ValueRule::Absent) => *other != ValueRule::Absent,
        _ => false,
    }
}
