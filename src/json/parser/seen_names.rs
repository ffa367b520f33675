//! Names of the members of an object that were read: a quick way to see that one is new.

/// A bit for each name that was read, chosen by its length and its ends.
#[derive(Default)]
pub(super) struct SeenNames(u64);

impl SeenNames {
    /// Adds a name. Returns whether it may have been added before; otherwise it certainly was not.
    #[inline]
    pub(super) fn may_repeat(&mut self, name: &str) -> bool {
        let bytes = name.as_bytes();
        let ends = [bytes.first(), bytes.last()].map(|byte| byte.map_or(0, |byte| u64::from(*byte)));
        let shape = ends.into_iter().fold(bytes.len() as u64, |shape, end| shape << 8 | end);
        // Multiplying spreads every bit of the shape over the upper ones, of which six choose the bit.
        let bit = 1 << (shape.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58);
        let is_seen = self.0 & bit != 0;
        self.0 |= bit;
        is_seen
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::SeenNames;

    proptest! {
        #[test]
        fn whatever_repeats_is_noticed(names in proptest::collection::vec("[ab\u{e4}]{0,3}", 0..20)) {
            let mut seen = SeenNames::default();
            for (position, name) in names.iter().enumerate() {
                let may_repeat = seen.may_repeat(name);
                prop_assert!(may_repeat || !names.iter().take(position).any(|earlier| earlier == name));
            }
        }
    }

    #[test]
    fn most_different_names_are_new() {
        let mut seen = SeenNames::default();
        let names = ["amount", "currency", "region", "customer", "subject", "retries", "channel"];
        assert!(names.iter().filter(|name| seen.may_repeat(name)).count() <= 1);
    }
}
