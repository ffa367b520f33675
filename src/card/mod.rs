//! What a chat product, a web page or a terminal needs to put a question to a person and take the answer: the card, the ids of
//! its buttons, the record that travels with it, the way from a click back to the question, and the timeline of a conversation.
//!
//! Every text of a card is unmarked (see [`crate::text::unmarked`]): arguments, names and reasons can't put markup, mentions, links or
//! invisible characters before a person who decides.

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

pub use crate::call::CardWords;
pub use payload::{MAX_PAYLOAD_BYTES, PAYLOAD_KEY, PAYLOAD_VERSION, Payload, PayloadError};
pub use resolved::{Resolution, Resolved};
pub use route::{RouteError, Routed, route, route_payload};
pub use shown::{
    Extent, MAX_ARGUMENTS, MAX_BUTTON, MAX_CARD, MAX_LABEL, MAX_NAME, MAX_NAMES, MAX_NOTES, MAX_PARTS,
    MAX_TEXT, MAX_TITLE, MAX_VALUE,
};
pub use timeline::{Entry, Status, Subject, timeline};
