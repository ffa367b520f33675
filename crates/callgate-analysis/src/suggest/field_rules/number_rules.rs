//! Rules of numbers: a few values, or a range.

use callgate::json::{Number, Value};

use super::evidence::{calls_phrase, enumeration_evidence};
use super::{FieldRules, unlimited};
use crate::suggest::confidential_values::is_secret_name;
use crate::suggest::field_profile::NumberProfile;
use crate::suggest::number_rounding::{Rounding, round};
use crate::suggest::rare_finding::{RareFinding, shown};
use crate::suggest::support::ExtremeValue;
use crate::suggest::value_rule::ValueRule;

/// The most numbers of an enumeration.
const MAX_NUMBERS: usize = 3;
/// A range begins near 0 if its end is this many times its beginning.
const SMALL_PART: f64 = 10.0;

impl FieldRules<'_> {
    pub(super) fn number(&mut self, path: &str, name: &str, numbers: &NumberProfile) -> (ValueRule, String) {
        if is_secret_name(name) {
            return self.secret(path);
        }
        let usual: Vec<&Number> = numbers.values.usual(self.required).map(|(value, _)| value).collect();
        let is_enumerated = usual.len() <= MAX_NUMBERS
            && self.is_enumeration(
                numbers.values.usual(self.required).map(|(_, support)| support),
                &numbers.calls,
            )
            && usual.iter().all(|value| !self.is_confidential(name, &Value::Number((*value).clone())));
        if is_enumerated {
            let evidence =
                enumeration_evidence(numbers.values.usual(self.required), |value| value.to_string());
            let values = usual.into_iter().map(|value| Value::Number(value.clone())).collect();
            self.rare_values(path, name, &numbers.values, |value| Some(Value::Number(value.clone())));
            return (ValueRule::OneOf(values), evidence);
        }
        let bounds = (numbers.smallest.usual(self.required), numbers.largest.usual(self.required));
        let (Some(smallest), Some(largest)) = bounds else { return unlimited() };
        let (usual_least, most) = (round(&smallest.0, Rounding::Down), round(largest, Rounding::Up));
        let least = begin_of_range(&usual_least, &most, numbers.fractions.is_usual(self.required));
        for extreme in numbers.largest.beyond(&most) {
            self.beyond(path, name, &extreme.value, extreme);
        }
        for extreme in numbers.smallest.beyond(&std::cmp::Reverse(least.clone())) {
            self.beyond(path, name, &extreme.value.0, extreme);
        }
        (
            ValueRule::Range { least, most: most.clone() },
            format!("usual from {usual_least} to {most}, in {}", calls_phrase(numbers.calls.calls())),
        )
    }

    /// Reports a number beyond the bounds of a range.
    fn beyond<T>(&mut self, path: &str, name: &str, number: &Number, extreme: &ExtremeValue<T>) {
        let value = Value::Number(number.clone());
        let shown = match self.is_confidential(name, &value) {
            true => "another number".to_owned(),
            false => shown(&value),
        };
        self.finding(RareFinding::beyond(format!("{path}: {shown}"), extreme));
    }
}

/// Where a range begins. One that begins near 0 begins at 0, or at 1 for whole numbers: smaller amounts are no surprise.
fn begin_of_range(usual: &Number, most: &Number, has_fractions: bool) -> Number {
    let is_near = match (usual.as_f64(), most.as_f64()) {
        (Some(usual), Some(most)) => usual > 0.0 && usual * SMALL_PART <= most,
        _ => false,
    };
    match (is_near, has_fractions) {
        (false, _) => usual.clone(),
        (true, true) => Number::from(0),
        (true, false) => Number::from(1).min(usual.clone()),
    }
}
