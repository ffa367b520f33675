//! Approval cards: everything that a chat product, web page or terminal needs to ask a human for approval and receive the answer.
//! The card, its action ids, its payload, the routing of a click to its request, and the timeline of a conversation.
//!
//! All text on a card is escaped (see [`crate::safe_text`]): arguments, names and reasons cannot show markup, mentions, links or
//! invisible characters to the approver.

mod action_id;
mod argument_fields;
mod call_digest;
mod confusables;
mod model;
mod payload;
mod pending_card;
mod render;
mod resolved_card;
mod action_routing;
mod truncation;
mod timeline;

pub use action_id::{ActionError, ActionId, Choice, MAX_ACTION_BYTES};
pub use call_digest::call_digest;
pub use model::{ButtonStyle, CARD_VERSION, Card, CardAction, CardField, CardStatus, FieldKind};

pub use crate::call::CardLabels;
pub use action_routing::{RouteError, RoutedAction, route_action, route_action_with_payload};
pub use payload::{MAX_PAYLOAD_BYTES, PAYLOAD_KEY, PAYLOAD_VERSION, Payload, PayloadError};
pub use resolved_card::{Resolution, ResolutionKind};
pub use timeline::{TimelineEntry, TimelineStatus, TimelineSubject, timeline};
pub use truncation::{
    CardExtent, MAX_ARGUMENTS, MAX_BUTTON, MAX_CARD, MAX_LABEL, MAX_NAME, MAX_NAMES, MAX_NOTES, MAX_PARTS,
    MAX_TEXT, MAX_TITLE, MAX_VALUE,
};
