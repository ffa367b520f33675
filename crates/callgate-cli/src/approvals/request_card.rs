//! The card of an approval request, and the arguments that an approver may edit.

use callgate::approval::{BoundRequest, InboxItem, RequestStatus};
use callgate::card::{Card, CardExtent, Resolution, ResolutionKind};
use callgate::message::{RequestPart, ResponsePart};
use callgate::path::PathStep;

/// The paths of the arguments that an approver may edit.
pub(super) fn editable_paths(item: &InboxItem) -> Vec<String> {
    let paths = item.bound_request.iter().flat_map(BoundRequest::editable_paths);
    let written =
        |steps: Vec<PathStep>| steps.iter().fold("$.input".to_owned(), |text, step| format!("{text}{step}"));
    paths.map(written).collect()
}

/// The card of an approval request: with the question while it is pending, with the resolution afterwards.
pub(super) fn request_card(item: &InboxItem, extent: CardExtent) -> Card {
    let request = RequestPart::from(&item.request);
    let resolution = match &item.status {
        RequestStatus::Pending { .. } | RequestStatus::Invalid(_) => None,
        RequestStatus::Expired { at } => {
            let at = Some(at.to_string());
            Some(Resolution { kind: ResolutionKind::Expired, by: Vec::new(), at, reason: None })
        }
        RequestStatus::Answered(_) | RequestStatus::Running { .. } | RequestStatus::Completed { .. } => {
            deciding_answer(item).map(|answer| Resolution {
                by: deciders(item, answer),
                at: answer.answered_at.clone(),
                ..Resolution::from(answer)
            })
        }
    };
    match resolution {
        Some(resolution) => Card::resolved_with_extent(&request, &resolution, extent),
        None => Card::pending_with_extent(&request, extent),
    }
}

fn counting_answers(item: &InboxItem) -> impl Iterator<Item = &ResponsePart> {
    let counts = |index: &usize| !item.ignored.iter().any(|ignored| ignored.index == *index);
    item.answers.iter().enumerate().filter(move |(index, _)| counts(index)).map(|(_, answer)| answer)
}

/// The principals whose answers decided; for an approval, all approvers.
fn deciders(item: &InboxItem, deciding: &ResponsePart) -> Vec<String> {
    let approves = |answer: &ResponsePart| answer.approved && !answer.cancel;
    let together = |answer: &&ResponsePart| *answer == deciding || approves(answer) && approves(deciding);
    let names = counting_answers(item).filter(together).filter_map(|answer| answer.answered_by.as_ref());
    names.map(|by| by.principal.clone()).collect()
}

/// The answer that decided: the strictest that counts; among approvals, the one that completed the quorum.
fn deciding_answer(item: &InboxItem) -> Option<&ResponsePart> {
    let counting = || counting_answers(item);
    let cancels = counting().find(|answer| answer.cancel);
    cancels.or_else(|| counting().find(|answer| !answer.approved)).or_else(|| counting().last())
}
