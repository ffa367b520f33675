//! The world around a replay of a script: the call as it was, and the answers that the journal holds.

use std::sync::Arc;

use serde_json::Value;

use super::around::{Replay, ScriptFailure, Seen, Thrown};
use super::effect::{Answer, Effect, span_of_time};
use super::evaluate::{Halt, World};
use super::functions::EffectKind;
use super::journal::{Journal, MAX_EFFECTS};
use super::predicate::EMPTY;
use super::program::{Member, Spot};
use super::thrown::error_object;
use super::value::{Kind, Val};
use super::work::{Fault, Work};
use crate::call::Root;

/// The world around a replay: the call, and the journal.
pub(super) struct Outside<'r> {
    pub(super) call: &'r Seen,
    pub(super) journal: &'r Journal,
    /// How many effects were answered in this replay.
    pub(super) answered: usize,
    pub(super) end: Option<Replay>,
}

impl<'r> Outside<'r> {
    /// The value for others to own: what is passed on unchanged is shared, all else copied.
    fn shared(&self, value: &Val<'r>, work: &Work) -> Result<Arc<Value>, Fault> {
        if let Val::Json(json) = value {
            let answers = self.journal.entries.iter().filter_map(|entry| match &entry.answer {
                Answer::Value(value) => Some(value),
                Answer::Error { .. } => None,
            });
            let known = [&self.call.input, &self.call.options].into_iter().chain(answers);
            if let Some(shared) = known.into_iter().find(|known| std::ptr::eq(known.as_ref(), *json)) {
                return Ok(Arc::clone(shared));
            }
        }
        Ok(Arc::new(value.to_json(work)?))
    }

    fn asked(&self, kind: EffectKind, given: &[Val<'r>], work: &Work) -> Result<Effect, Fault> {
        let shared = |index: usize| match given.get(index) {
            Some(value) => self.shared(value, work),
            None => Ok(Arc::new(Value::Null)),
        };
        let text = |index: usize, name: &str| match given.get(index).map(|value| (value.kind(), value)) {
            Some((Ok(Kind::Text(text)), _)) => Ok(text.to_owned()),
            Some((_, value)) => {
                Err(Fault::Wrong(format!("`{name}` takes a string, this is of type {}", value.json_type())))
            }
            None => Ok(String::new()),
        };
        Ok(match kind {
            EffectKind::Next => Effect::Next {
                input: shared(0)?,
                options: if given.len() > 1 { Some(shared(1)?) } else { None },
            },
            EffectKind::Approve => Effect::Approve { message: text(0, "approve")? },
            EffectKind::Now => Effect::Now,
            EffectKind::Random => Effect::Random,
            EffectKind::CacheGet => Effect::CacheGet { key: shared(0)? },
            EffectKind::CacheSet => Effect::CacheSet {
                key: shared(0)?,
                value: shared(1)?,
                ttl: span_of_time(&text(2, "cache_set")?)?,
            },
            EffectKind::Audit => match given.first().map(|value| value.to_json(work)).transpose()? {
                Some(Value::Object(fields)) => Effect::Audit { fields },
                _ => return Err("`audit` takes an object".into()),
            },
        })
    }

    pub(super) fn done(&self, value: &Val<'r>, work: &Work) -> Replay {
        match self.shared(value, work) {
            Ok(output) => {
                let is_output =
                    |answer: &Answer| matches!(answer, Answer::Value(value) if Arc::ptr_eq(value, &output));
                let from = self.journal.entries.iter().position(|entry| is_output(&entry.answer));
                Replay::Done { output, from }
            }
            Err(Fault::Wrong(message) | Fault::Limit(message)) => {
                Replay::Failed(ScriptFailure::new(message, None))
            }
        }
    }

    pub(super) fn threw(&self, error: &Val<'r>, spot: Spot) -> Replay {
        let member = |key: &str| match error.kind() {
            Ok(Kind::Object(object)) => object.get(key).and_then(|value| match value.kind() {
                Ok(Kind::Text(text)) => Some(text.to_owned()),
                _ => None,
            }),
            _ => None,
        };
        let Some(message) = member("message") else {
            return Replay::Failed(ScriptFailure::new("what is thrown has no message", Some(spot)));
        };
        let kind = member("kind").filter(|kind| !kind.is_empty());
        let is_this = |answer: &Answer| {
            matches!(answer, Answer::Error { message: known, kind: known_kind }
                if *known == message && known_kind.as_deref().filter(|kind| !kind.is_empty()) == kind.as_deref())
        };
        let from = self.journal.entries.iter().rposition(|entry| is_this(&entry.answer));
        Replay::Threw(Thrown { message, kind, from })
    }
}

impl<'r> World<'r> for Outside<'r> {
    fn member(&self, member: Member) -> Result<Val<'r>, String> {
        let call = self.call;
        let text_or_null = |text: &'r Option<String>| text.as_deref().map_or(Val::Null, Val::Borrowed);
        Ok(match member {
            Member::Options => Val::Json(&call.options),
            Member::Root(Root::Tool) => Val::Borrowed(&call.tool),
            Member::Root(Root::Server) => text_or_null(&call.server),
            Member::Root(Root::Id) => Val::Borrowed(&call.id),
            Member::Root(Root::Input) => Val::Json(&call.input),
            Member::Root(Root::Context) if call.context.is_null() => Val::Json(&EMPTY),
            Member::Root(Root::Context) => Val::Json(&call.context),
            Member::Root(Root::Session) => call.session.as_ref().map_or(Val::Null, Val::Json),
            Member::Root(Root::Annotations) => call.annotations.as_ref().map_or(Val::Null, Val::Json),
            Member::Root(root @ (Root::Output | Root::Error)) => {
                return Err(format!("a script has no `{}`", root.name()));
            }
        })
    }

    fn effect(&mut self, kind: EffectKind, given: Vec<Val<'r>>, work: &Work) -> Result<Val<'r>, Halt<'r>> {
        let effect = self.asked(kind, &given, work)?;
        let journal = self.journal;
        let Some(entry) = journal.entries.get(self.answered) else {
            if self.answered >= MAX_EFFECTS {
                let message = format!("the script asks for more than {MAX_EFFECTS} effects");
                return Err(Halt::Fault(Fault::Limit(message)));
            }
            self.end = Some(Replay::Effect(effect));
            return Err(Halt::End);
        };
        if !entry.answers(&effect) {
            let message = if entry.effect() == effect.name() {
                format!("the script asks for `{}` with other values than the journal holds", effect.name())
            } else {
                format!("the script asks for `{}`, the journal holds `{}`", effect.name(), entry.effect())
            };
            self.end = Some(Replay::Failed(ScriptFailure::mismatch(message, None)));
            return Err(Halt::End);
        }
        self.answered += 1;
        match &entry.answer {
            Answer::Value(value) => Ok(Val::Json(value)),
            Answer::Error { message, kind } => {
                let kind = Val::Borrowed(kind.as_deref().unwrap_or_default());
                Err(Halt::Threw(error_object(Val::Borrowed(message), kind, work)?))
            }
        }
    }
}
