//! `allow`: lifts `defaults.unmatched`, and never anything stricter.

use super::{Kind, KindEntry};
use crate::authoring::{Polarity, Record, Shape};

pub(super) static KIND: KindEntry = KindEntry {
    name: "allow",
    doc: "Lets matching calls through where `defaults.unmatched` would not. It never lifts a deny.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Permitting,
    after_tool: |_| false,
    needs_matcher: false,
    of_run: false,
    read: |_, _| Some(Kind::Allow(Allow)),
};

static RECORD: Record = Record { name: "allow", doc: "It takes no keys.", fields: &[] };

/// An `allow` policy's own part: there is nothing to say.
#[derive(Debug)]
pub struct Allow;
