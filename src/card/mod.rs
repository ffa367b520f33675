//! Approval cards: everything that a chat product, web page or terminal needs to ask a human for approval and receive the answer.
//! The card, its action ids, its payload, the routing of a click to its request, and the timeline of a conversation.
//!
//! All text on a card is escaped (see [`crate::text::unmarked`]): arguments, names and reasons cannot show markup, mentions, links or
//! invisible characters to the approver.

mod action;
mod arguments;
mod digest;
mod mixed;
mod model;
mod payload;
mod pending;
mod render;
mod resolved;
mod route;
mod shown;
mod timeline;

pub use action::{ActionError, ActionId, Choice, MAX_ACTION_BYTES};
pub use digest::call_digest;
pub use model::{Action, CARD_VERSION, Card, CardStatus, Field, FieldKind, Style};

pub use crate::call::CardLabels;
pub use payload::{MAX_PAYLOAD_BYTES, PAYLOAD_KEY, PAYLOAD_VERSION, Payload, PayloadError};
pub use resolved::{Resolution, Resolved};
pub use route::{RouteError, Routed, route, route_action_with_payload};
pub use shown::{
    CardExtent, MAX_ARGUMENTS, MAX_BUTTON, MAX_CARD, MAX_LABEL, MAX_NAME, MAX_NAMES, MAX_NOTES, MAX_PARTS,
    MAX_TEXT, MAX_TITLE, MAX_VALUE,
};
pub use timeline::{Entry, Status, Subject, timeline};
