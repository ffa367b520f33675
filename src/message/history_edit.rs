//! Additions to a history: approval requests, answers, results and session state.

use std::collections::BTreeMap;

use super::ai_sdk::DENIED;
use super::approval_parts::{RequestPart, ResponsePart, StatePart};
use super::call_matching::{MatchedCall, match_calls};
use super::history::{History, Message, PartPosition, Role};
use super::openai_responses::{hosted_response, is_hosted};
use super::part::{CallPart, Part, PartContent, ResultOutput, ResultPart, ResultStatus};

/// Why a request, an answer or a result can't be added to a history.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryEditError {
    /// No open call has a request with this id.
    #[error(
        "no open approval request `{approval_id}`: it was never requested, or its call already has a result"
    )]
    NotPending {
        /// The id of the request.
        approval_id: String,
    },
    /// Several open calls have a request with this id.
    #[error("several calls have the approval request `{approval_id}`; give each request its own id")]
    Ambiguous {
        /// The id of the request.
        approval_id: String,
    },
    /// There is no call at this position.
    #[error("part {} of message {} is not a tool call", .place.part, .place.message)]
    NotACall {
        /// The position.
        place: PartPosition,
    },
    /// The call already has a result, or two were added at once.
    #[error("the call in part {} of message {} already has a result", .place.part, .place.message)]
    AlreadyHasResult {
        /// The position of the call.
        place: PartPosition,
    },
    /// Results of calls with the same id are matched by order, so an earlier call still needs its result.
    #[error("the call in part {} of message {} shares its id with a call that has no result; add the result of that call first, or both at once", .place.part, .place.message)]
    SharedId {
        /// The position of the call.
        place: PartPosition,
    },
}

/// The result of a call, to be added to a history.
#[derive(Clone, Debug, PartialEq)]
pub struct CallResult {
    /// The position of the call.
    pub position: PartPosition,
    /// The output that the model receives.
    pub output: ResultOutput,
    /// How the call ended.
    pub status: ResultStatus,
}

/// An answer to the request with this id. The other members can be set afterwards.
///
/// ```
/// use callgate::message::{ResponsePart, approval_response};
/// let response = ResponsePart { reason: Some("too much".into()), ..approval_response("approval_c1", false) };
/// assert!(!response.approved);
/// ```
pub fn approval_response(approval_id: impl Into<String>, approved: bool) -> ResponsePart {
    ResponsePart { approval_id: approval_id.into(), approved, ..ResponsePart::default() }
}

/// The message that contains an answer.
pub fn approval_response_message(response: ResponsePart) -> Message {
    Message::new(Role::Tool, vec![response.into()])
}

/// The output that tells a model that a person or a policy denied the call. With [`ResultStatus::Denied`], every dialect writes
/// it in the form that its provider expects.
pub fn denied_output(reason: Option<&str>) -> ResultOutput {
    ResultOutput::Text(reason.filter(|reason| !reason.is_empty()).unwrap_or(DENIED).to_owned())
}

impl History {
    /// The requests of calls without a result, answered or not, in order, and the unanswered requests of OpenAI's hosted
    /// MCP calls.
    pub fn find_approval_requests(&self) -> Vec<&RequestPart> {
        let matched = match_calls(&self.messages);
        let open = matched.iter().filter(|call| call.result.is_none()).filter_map(|call| call.request);
        let mut positions: Vec<PartPosition> = open.collect();
        positions.extend(
            self.hosted_requests()
                .filter(|(_, request)| self.hosted_answer(request).is_none())
                .map(|(position, _)| position),
        );
        positions.sort();
        positions.into_iter().filter_map(|position| self.request_at(position)).collect()
    }

    /// The first answer to the latest request with this id. Answers that could belong to several calls, and answers after
    /// the call's result, are ignored.
    pub fn find_approval_decision(&self, approval_id: &str) -> Option<&ResponsePart> {
        let has_approval_id = |call: &&MatchedCall| {
            let request = call.request.and_then(|position| self.request_at(position));
            request.is_some_and(|request| request.approval_id == approval_id)
        };
        let matched = match_calls(&self.messages);
        let position = match matched.iter().rev().find(has_approval_id) {
            Some(call) => *call.responses.first()?,
            None => {
                let mut hosted = self.hosted_requests().map(|(_, request)| request);
                return self.hosted_answer(hosted.find(|request| request.approval_id == approval_id)?);
            }
        };
        match self.part(position)?.content() {
            PartContent::Response(response) => Some(response),
            _ => None,
        }
    }

    /// Appends an answer.
    ///
    /// # Errors
    /// If no open call has a request with its id, or several do.
    pub fn append_approval_response(&mut self, response: ResponsePart) -> Result<(), HistoryEditError> {
        let requests = self.find_approval_requests();
        let waiting = requests.iter().filter(|request| request.approval_id == response.approval_id).count();
        let approval_id = response.approval_id.clone();
        match waiting {
            0 => return Err(HistoryEditError::NotPending { approval_id }),
            1 => {}
            _ => return Err(HistoryEditError::Ambiguous { approval_id }),
        }
        let hosted = self.hosted_requests().any(|(_, request)| request.approval_id == approval_id);
        self.push(match hosted {
            true => Message::new(Role::Tool, vec![hosted_response(response)]),
            false => approval_response_message(response),
        });
        Ok(())
    }

    /// Adds the results of calls: after their round, or after the answer to their request, so that each result matches its
    /// own call even if ids repeat.
    ///
    /// # Errors
    /// If there is no such call, it already has a result, or the result would match an earlier call with the same id in its
    /// round: add results of such calls in order. Then nothing is added.
    pub fn append_results(&mut self, settlements: Vec<CallResult>) -> Result<(), HistoryEditError> {
        let matched = match_calls(&self.messages);
        let by_position: BTreeMap<PartPosition, &MatchedCall> =
            matched.iter().map(|call| (call.position, call)).collect();
        let mut results: BTreeMap<PartPosition, (&MatchedCall, ResultPart)> = BTreeMap::new();
        for CallResult { position, output, status } in settlements {
            let call = by_position.get(&position).ok_or(HistoryEditError::NotACall { place: position })?;
            let named = self.call_at(position).ok_or(HistoryEditError::NotACall { place: position })?;
            let result = ResultPart { call_id: named.id.clone(), name: named.name.clone(), output, status };
            let is_duplicate = results.insert(position, (call, result)).is_some();
            if is_duplicate || call.result.is_some() {
                return Err(HistoryEditError::AlreadyHasResult { place: position });
            }
        }
        let with_results = self
            .with_results(&matched, &results, true)
            .or_else(|| self.with_results(&matched, &results, false));
        match (with_results, results.keys().next()) {
            (Some(messages), _) => self.messages = messages,
            (None, Some(position)) => return Err(HistoryEditError::SharedId { place: *position }),
            (None, None) => {}
        }
        Ok(())
    }

    /// The messages with these results. Returns `None` unless each result then matches its call, and no other call's result
    /// changes.
    fn with_results(
        &self,
        matched: &[MatchedCall],
        results: &BTreeMap<PartPosition, (&MatchedCall, ResultPart)>,
        after_answers: bool,
    ) -> Option<Vec<Message>> {
        // Calls with the same id in one round are matched by order only, so their results stay together.
        let key =
            |call: &MatchedCall| self.call_at(call.position).map(|named| (call.round, named.id.as_str()));
        let mut after: BTreeMap<(usize, &str), usize> = BTreeMap::new();
        for (call, _) in results.values() {
            let mut index = self.end_of_round(call.position.message);
            if after_answers && let Some(answer) = call.responses.last() {
                index = index.max(answer.message.saturating_add(1));
            }
            let latest = after.entry(key(call)?).or_default();
            *latest = index.max(*latest);
        }
        for call in matched {
            if let (Some(result), Some(latest)) = (call.result, key(call).and_then(|key| after.get_mut(&key)))
            {
                *latest = (*latest).max(result.message.saturating_add(1));
            }
        }
        let mut added: BTreeMap<usize, Vec<Part>> = BTreeMap::new();
        for (call, result) in results.values() {
            added.entry(*after.get(&key(call)?)?).or_default().push(Part::result(result.clone()));
        }
        let mut messages = self.messages.clone();
        // From the end, so that earlier indices stay valid.
        for (index, parts) in added.into_iter().rev() {
            messages.insert(index, Message::new(Role::Tool, parts));
        }
        let new = History::new(messages);
        let before = matched.iter().map(|call| match results.get(&call.position) {
            Some((_, result)) => (Some(result), None),
            None => (call.result.and_then(|position| self.result_at(position)), self.pending_request(call)),
        });
        let now = match_calls(&new.messages);
        let same = before.eq(now.iter().map(|call| {
            (call.result.and_then(|position| new.result_at(position)), new.pending_request(call))
        }));
        same.then_some(new.messages)
    }

    /// The index after the round of this message and its results.
    fn end_of_round(&self, message: usize) -> usize {
        let rest = self.messages.iter().enumerate().skip(message);
        let after_calls = rest.skip_while(|(_, message)| message.role == Role::Assistant);
        let mut after_results = after_calls.skip_while(|(_, message)| message.role == Role::Tool);
        after_results.next().map_or(self.messages.len(), |(index, _)| index)
    }

    fn call_at(&self, position: PartPosition) -> Option<&CallPart> {
        match self.part(position)?.content() {
            PartContent::Call(call) => Some(call),
            _ => None,
        }
    }

    fn result_at(&self, position: PartPosition) -> Option<&ResultPart> {
        match self.part(position)?.content() {
            PartContent::Result(result) => Some(result),
            _ => None,
        }
    }

    /// The request of a call without a result.
    fn pending_request(&self, call: &MatchedCall) -> Option<&RequestPart> {
        call.request.filter(|_| call.result.is_none()).and_then(|position| self.request_at(position))
    }

    fn request_at(&self, position: PartPosition) -> Option<&RequestPart> {
        match self.part(position)?.content() {
            PartContent::Request(request) => Some(request),
            _ => None,
        }
    }

    /// The requests of the provider's hosted calls, which are not calls of this history.
    fn hosted_requests(&self) -> impl Iterator<Item = (PartPosition, &RequestPart)> {
        let parts = |(message, of): (usize, &'_ Message)| {
            of.parts
                .iter()
                .enumerate()
                .map(move |(part, _)| PartPosition { message, part })
                .collect::<Vec<_>>()
        };
        let positions = self.messages.iter().enumerate().flat_map(parts);
        positions
            .filter(|position| self.part(*position).is_some_and(is_hosted))
            .filter_map(|position| Some((position, self.request_at(position)?)))
    }

    fn hosted_answer(&self, request: &RequestPart) -> Option<&ResponsePart> {
        self.messages.iter().flat_map(Message::parts).find_map(|part| match part.content() {
            PartContent::Response(response) if response.approval_id == request.approval_id => Some(response),
            _ => None,
        })
    }
}

impl History {
    /// Adds a request for approval of a call: to the model's message with the call, or at the end if the call already has a
    /// request, so that earlier answers do not apply to it.
    ///
    /// # Errors
    /// If there is no call at this position.
    pub fn add_approval_request(
        &mut self,
        position: PartPosition,
        request: RequestPart,
    ) -> Result<(), HistoryEditError> {
        let call = match_calls(&self.messages).into_iter().find(|matched| matched.position == position);
        let has_request = call.ok_or(HistoryEditError::NotACall { place: position })?.request.is_some();
        match self.messages.get_mut(position.message) {
            Some(message) if !has_request => message.push(request.into()),
            _ => self.push(Message::new(Role::Assistant, vec![request.into()])),
        }
        Ok(())
    }

    /// Stores the session's sealed state, and removes the earlier one.
    pub fn set_state(&mut self, state: StatePart) {
        self.messages.retain_mut(|message| {
            let before = message.parts.len();
            message.parts.retain(|part| !matches!(part.content(), PartContent::State(_)));
            // A message without other parts is removed.
            before == message.parts.len() || !message.parts.is_empty()
        });
        self.push(Message::new(Role::Tool, vec![state.into()]));
    }
}
