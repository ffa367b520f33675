//! Line and column of a value in a JSON text: valid text + path of the value → position.

use super::{JsonParser, LoneSurrogates};
use crate::json::parse_error::line_and_column;
use crate::json::{Key, MAX_DEPTH};

/// One step of the path to a value.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::json) enum ValueStep {
    Key(Key),
    Index(usize),
}

/// Line and column of the value at a path, in a valid JSON text. Returns `None` if there is no such value.
pub(in crate::json) fn find_position<'s>(
    text: &str,
    mut path: impl Iterator<Item = &'s ValueStep>,
) -> Option<(usize, usize)> {
    let mut reader = JsonParser { text, offset: 0, surrogates: LoneSurrogates::Replace };
    reader.skip_space();
    path.try_for_each(|step| reader.descend(step))?;
    Some(line_and_column(text, reader.offset))
}

impl JsonParser<'_> {
    /// Moves to a member or item of the value that starts here.
    fn descend(&mut self, step: &ValueStep) -> Option<()> {
        let opens = if matches!(step, ValueStep::Key(_)) { b'{' } else { b'[' };
        if !self.consume(opens) {
            return None;
        }
        for index in 0.. {
            self.skip_space();
            let is_found = match step {
                ValueStep::Index(wanted) => index == *wanted,
                ValueStep::Key(wanted) => {
                    let key = self.string().ok()?;
                    self.skip_space();
                    self.expect(b':', "`:`").ok()?;
                    self.skip_space();
                    key == wanted.as_str()
                }
            };
            if is_found {
                return Some(());
            }
            self.value(MAX_DEPTH).ok()?;
            self.skip_space();
            if !self.consume(b',') {
                return None;
            }
        }
        None
    }
}
