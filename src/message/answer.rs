//! What a host adds to a history: a person's answer, and the results of calls.

use std::collections::BTreeMap;

use super::ai_sdk::DENIED;
use super::approval::{RequestPart, ResponsePart};
use super::history::{History, Message, Role};
use super::occurrence::{Matched, Place, match_up};
use super::openai_responses::is_hosted;
use super::part::{Content, Output, Part, ResultPart, Settled};

/// Why something can't be added to a history.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// No open call was asked about under this id.
    #[error(
        "no call waits for the approval `{approval_id}`: it was never asked for, or its call has a result"
    )]
    NotWaiting {
        /// The id.
        approval_id: String,
    },
    /// Several open calls were asked about under this id.
    #[error("several calls wait for the approval `{approval_id}`; ask for each under an id of its own")]
    Ambiguous {
        /// The id.
        approval_id: String,
    },
    /// There is no call at this place.
    #[error("part {} of message {} is no tool call", .place.part, .place.message)]
    NoCall {
        /// The place.
        place: Place,
    },
    /// The call has a result, or is given two.
    #[error("the call in part {} of message {} has a result already", .place.part, .place.message)]
    Settled {
        /// The call's place.
        place: Place,
    },
}

/// How a call ended, to be put into a history.
#[derive(Clone, Debug, PartialEq)]
pub struct Settlement {
    /// Where the call stands.
    pub place: Place,
    /// What the model is given.
    pub output: Output,
    /// How it ended.
    pub settled: Settled,
}

/// An answer to the request of this id, which can then be filled in.
///
/// ```
/// use callgate::message::{ResponsePart, approval_response};
/// let response = ResponsePart { reason: Some("too much".into()), ..approval_response("approval_c1", false) };
/// assert!(!response.approved);
/// ```
pub fn approval_response(approval_id: impl Into<String>, approved: bool) -> ResponsePart {
    ResponsePart { approval_id: approval_id.into(), approved, ..ResponsePart::default() }
}

/// The message that brings an answer.
pub fn approval_response_message(response: ResponsePart) -> Message {
    Message::new(Role::Tool, vec![response.into()])
}

/// What a model is told of a call that a person or a policy refused; with [`Settled::Denied`], every dialect writes it in the
/// shape that its provider expects.
pub fn denied_output(reason: Option<&str>) -> Output {
    Output::Text(reason.filter(|reason| !reason.is_empty()).unwrap_or(DENIED).to_owned())
}

impl History {
    /// The questions whose calls have no result yet, answered or not, in order; and those of OpenAI's hosted MCP calls that
    /// have no answer.
    pub fn find_approval_requests(&self) -> Vec<&RequestPart> {
        let matched = match_up(&self.messages);
        let open = matched.iter().filter(|call| call.result.is_none()).filter_map(|call| call.request);
        let mut places: Vec<Place> = open.collect();
        places.extend(
            self.hosted_requests()
                .filter(|(_, request)| self.hosted_answer(request).is_none())
                .map(|(place, _)| place),
        );
        places.sort();
        places.into_iter().filter_map(|place| self.request_at(place)).collect()
    }

    /// The first answer to the last question of this id. An answer that could belong to several calls, or that came after
    /// the call's result, is none.
    pub fn find_approval_decision(&self, approval_id: &str) -> Option<&ResponsePart> {
        let asked = |call: &&Matched| {
            let request = call.request.and_then(|place| self.request_at(place));
            request.is_some_and(|request| request.approval_id == approval_id)
        };
        let matched = match_up(&self.messages);
        let place = match matched.iter().rev().find(asked) {
            Some(call) => *call.responses.first()?,
            None => {
                let mut hosted = self.hosted_requests().map(|(_, request)| request);
                return self.hosted_answer(hosted.find(|request| request.approval_id == approval_id)?);
            }
        };
        match self.part(place)?.content() {
            Content::Response(response) => Some(response),
            _ => None,
        }
    }

    /// Adds a person's answer at the end. Errors where no open call waits for it, or several do.
    pub fn append_approval_response(&mut self, response: ResponsePart) -> Result<(), AnswerError> {
        let requests = self.find_approval_requests();
        let waiting = requests.iter().filter(|request| request.approval_id == response.approval_id).count();
        let approval_id = response.approval_id.clone();
        match waiting {
            0 => Err(AnswerError::NotWaiting { approval_id }),
            1 => {
                self.push(approval_response_message(response));
                Ok(())
            }
            _ => Err(AnswerError::Ambiguous { approval_id }),
        }
    }

    /// Adds the results of calls: after the round they stand in, or after the answer that they waited for, so that each is
    /// its own call's also where ids repeat. Errors, with nothing added, where there is no such call or it has a result.
    pub fn append_results(&mut self, settlements: Vec<Settlement>) -> Result<(), AnswerError> {
        let matched = match_up(&self.messages);
        let by_place: BTreeMap<Place, &Matched> = matched.iter().map(|call| (call.place, call)).collect();
        let mut added: BTreeMap<usize, BTreeMap<Place, Part>> = BTreeMap::new();
        for Settlement { place, output, settled } in settlements {
            let call = *by_place.get(&place).ok_or(AnswerError::NoCall { place })?;
            let Some(Content::Call(named)) = self.part(place).map(Part::content) else {
                return Err(AnswerError::NoCall { place });
            };
            let (call_id, name) = (named.id.clone(), named.name.clone());
            let at = self.place_of_result(call, &matched);
            let part = Part::result(ResultPart { call_id, name, output, settled });
            let doubled = added.entry(at).or_default().insert(place, part).is_some();
            if doubled || call.result.is_some() {
                return Err(AnswerError::Settled { place });
            }
        }
        // From the end, so that the earlier indices stay.
        for (at, results) in added.into_iter().rev() {
            self.messages.insert(at, Message::new(Role::Tool, results.into_values().collect()));
        }
        Ok(())
    }

    /// The index of the message that a call's result becomes.
    fn place_of_result(&self, call: &Matched, all: &[Matched]) -> usize {
        let rest = self.messages.iter().enumerate().skip(call.place.message);
        let model = rest.skip_while(|(_, message)| message.role == Role::Assistant);
        let after_round =
            model.skip_while(|(_, message)| message.role == Role::Tool).map(|(index, _)| index).next();
        let after_round = after_round.unwrap_or(self.messages.len());
        let Some(answer) = call.responses.last() else { return after_round };
        let after_answer = after_round.max(answer.message.saturating_add(1));
        // A later call of the same id would take the result for its own.
        let id = |call: &Matched| match self.part(call.place).map(Part::content) {
            Some(Content::Call(call)) => Some(call.id.as_str()),
            _ => None,
        };
        let taken = all.iter().any(|later| {
            later.place > call.place && later.place.message < after_answer && id(later) == id(call)
        });
        if taken { after_round } else { after_answer }
    }

    fn request_at(&self, place: Place) -> Option<&RequestPart> {
        match self.part(place)?.content() {
            Content::Request(request) => Some(request),
            _ => None,
        }
    }

    /// The provider's own requests, behind which no call stands.
    fn hosted_requests(&self) -> impl Iterator<Item = (Place, &RequestPart)> {
        let parts = |(message, of): (usize, &'_ Message)| {
            of.parts.iter().enumerate().map(move |(part, _)| Place { message, part }).collect::<Vec<_>>()
        };
        let places = self.messages.iter().enumerate().flat_map(parts);
        places
            .filter(|place| self.part(*place).is_some_and(is_hosted))
            .filter_map(|place| Some((place, self.request_at(place)?)))
    }

    fn hosted_answer(&self, request: &RequestPart) -> Option<&ResponsePart> {
        self.messages.iter().flat_map(Message::parts).find_map(|part| match part.content() {
            Content::Response(response) if response.approval_id == request.approval_id => Some(response),
            _ => None,
        })
    }
}
