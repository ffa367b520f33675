//! Changes of a bundle's settings: two bundles → settings that differ, with what that means.

use callgate::policy::{ArgumentCheck, CompiledPolicies, Unmatched};

use crate::report::Direction;

/// A setting that differs.
#[derive(Debug, PartialEq)]
pub(crate) struct SettingChange {
    pub(crate) key: &'static str,
    pub(crate) was: String,
    pub(crate) is: String,
    /// What is certain without an example call.
    pub(crate) direction: Direction,
}

/// Compares the settings of two bundles.
pub(crate) fn compare_settings(old: &CompiledPolicies, new: &CompiledPolicies) -> Vec<SettingChange> {
    let (before, after) = (old.defaults(), new.defaults());
    let (reload_before, reload_after) = (old.reload_settings(), new.reload_settings());
    let mut found = Vec::new();
    let mut add = |key, was: &str, is: &str, direction| {
        if was != is {
            found.push(SettingChange { key, was: was.to_owned(), is: is.to_owned(), direction });
        }
    };
    let restricts = |more: bool| if more { Direction::Stricter } else { Direction::MayBeLooser };
    add(
        "defaults.unmatched",
        unmatched_name(before.unmatched),
        unmatched_name(after.unmatched),
        restricts(after.unmatched > before.unmatched),
    );
    add(
        "defaults.unmatched_methods",
        unmatched_name(before.unmatched_methods),
        unmatched_name(after.unmatched_methods),
        restricts(after.unmatched_methods > before.unmatched_methods),
    );
    let absent = |matches: bool| if matches { "match" } else { "no_match" };
    add(
        "defaults.absent",
        absent(before.absent_matches),
        absent(after.absent_matches),
        restricts(after.absent_matches),
    );
    add(
        "defaults.arguments",
        check_name(before.argument_check()),
        check_name(after.argument_check()),
        restricts(after.argument_check() > before.argument_check()),
    );
    if before.principals != after.principals {
        let (was, is) = (format!("{:?}", before.principals), format!("{:?}", after.principals));
        add("defaults.principals", &was.to_lowercase(), &is.to_lowercase(), Direction::MayBeLooser);
    }
    if old.results().declarations() != new.results().declarations() {
        add("results", "other declarations", "changed", Direction::MayBeLooser);
    }
    let tests = |required: bool| if required { "require" } else { "ignore" };
    add(
        "reload.tests",
        tests(reload_before.require_tests),
        tests(reload_after.require_tests),
        restricts(reload_after.require_tests),
    );
    let widening = |confirm: bool| if confirm { "confirm" } else { "accept" };
    add(
        "reload.widening",
        widening(reload_before.confirm_widening),
        widening(reload_after.confirm_widening),
        restricts(reload_after.confirm_widening),
    );
    found
}

fn unmatched_name(unmatched: Unmatched) -> &'static str {
    match unmatched {
        Unmatched::Allow => "allow",
        Unmatched::Approval => "approval",
        Unmatched::Deny => "deny",
    }
}

fn check_name(check: ArgumentCheck) -> &'static str {
    match check {
        ArgumentCheck::Unchecked => "unchecked",
        ArgumentCheck::Typed => "typed",
        ArgumentCheck::Valid => "valid",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(old: &str, new: &str) -> Vec<(&'static str, Direction)> {
        let load = |defaults: &str| {
            callgate::load_text(&format!("{{ {defaults}, policies: [] }}"))
                .unwrap_or_else(|error| panic!("{error}"))
        };
        let found = compare_settings(&load(old), &load(new));
        found.into_iter().map(|change| (change.key, change.direction)).collect()
    }

    #[test]
    fn only_a_setting_that_restricts_more_is_stricter() {
        let (deny, allow) = ("defaults: { unmatched: deny }", "defaults: { unmatched: allow }");
        assert_eq!(settings(deny, allow), [("defaults.unmatched", Direction::MayBeLooser)]);
        assert_eq!(settings(allow, deny), [("defaults.unmatched", Direction::Stricter)]);
        assert_eq!(settings(deny, deny), []);
        let (confirm, accept) = ("reload: { widening: confirm }", "reload: { widening: accept }");
        assert_eq!(settings(confirm, accept), [("reload.widening", Direction::MayBeLooser)]);
        assert_eq!(
            settings("defaults: { absent: match }", allow),
            [("defaults.absent", Direction::MayBeLooser)]
        );
    }
}
