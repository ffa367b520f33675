//! Host of a replay: the call as it was, and the effect results of the journal.

use std::sync::Arc;

use super::call_host::EMPTY;
use super::control_flow::{EffectError, World};
use super::effect::{Answer, ScriptEffect, parse_duration};
use super::error_object::error_object;
use super::exported_value::ExportedValue;
use super::fuel::{EvalError, Fuel};
use super::journal::{Journal, JournalEntry, MAX_EFFECTS};
use super::named_value::{NamedValue, read_result};
use super::printed_lines::PrintedLines;
use super::program::{ReadOnlyVariable, SourcePosition};
use super::replay_result::{ReplayResult, ScriptException, ScriptRunError};
use super::script_call::CallSnapshot;
use super::script_function::EffectKind;
use super::value::{ScriptValue, ValueKind};
use crate::call::Root;
use crate::json::Value;

/// The host of a replay: the call and the journal.
pub(super) struct ReplayHost<'r, 'c> {
    pub(super) call: &'r CallSnapshot<'c>,
    pub(super) journal: &'r Journal<'c>,
    /// The number of effects that returned in this replay.
    pub(super) effects_completed: usize,
    pub(super) result: Option<ReplayResult<'c>>,
    pub(super) printed: PrintedLines,
}

impl<'r, 'c> ReplayHost<'r, 'c> {
    /// The original of a value that the script passes on unchanged. Returns `None` for any other value.
    fn find_original(&self, value: &ScriptValue<'r>) -> Option<ExportedValue<'c>> {
        let ScriptValue::Json(json) = value else { return None };
        let CallSnapshot { call, annotations, .. } = self.call;
        let parts = [&call.input, &call.context, &call.options].into_iter().chain(*annotations);
        if let Some(part) = parts.into_iter().find(|part| std::ptr::eq(*part, *json)) {
            return Some(ExportedValue::Call(part));
        }
        let answer = self.journal.entries.get(self.entry_of_value(json)?)?;
        match &answer.result {
            Answer::Value(value) => Some(ExportedValue::Shared(Arc::clone(value))),
            Answer::Error { .. } => None,
        }
    }

    /// The index of the entry whose result is this very value in memory.
    fn entry_of_value(&self, value: &Value) -> Option<usize> {
        let is_this =
            |answer: &Answer| matches!(answer, Answer::Value(known) if std::ptr::eq(known.as_ref(), value));
        self.journal.entries.iter().position(|entry| is_this(&entry.result))
    }

    /// Exports a value: one that is passed on unchanged is borrowed, any other copied.
    fn export(&self, value: &ScriptValue<'r>, work: &Fuel) -> Result<ExportedValue<'c>, EvalError> {
        match self.find_original(value) {
            Some(unchanged) => Ok(unchanged),
            None => Ok(ExportedValue::Shared(Arc::new(value.to_json(work)?))),
        }
    }

    /// Whether this equals a value that was exported before, by a cheap test. On `false`, the values may still be equal JSON in another
    /// notation.
    fn is_exported(
        &self,
        value: &ScriptValue<'r>,
        before: &ExportedValue<'c>,
        work: &Fuel,
    ) -> Result<bool, EvalError> {
        match self.find_original(value) {
            Some(unchanged) => Ok(unchanged.is_same_instance(before)),
            None => value.equals_json(before, work),
        }
    }

    /// Whether a script requests the same effect again, by a cheap test that does not export the arguments.
    fn is_repeated_request(
        &self,
        recorded: &ScriptEffect<'c>,
        kind: EffectKind,
        given: &[ScriptValue<'r>],
        work: &Fuel,
    ) -> Result<bool, EvalError> {
        match (kind, recorded, given) {
            (EffectKind::Next, ScriptEffect::Next { input, options: None }, [value]) => {
                self.is_exported(value, input, work)
            }
            (EffectKind::Next, ScriptEffect::Next { input, options: Some(options) }, [value, own]) => {
                Ok(self.is_exported(value, input, work)? && self.is_exported(own, options, work)?)
            }
            (EffectKind::CacheGet, ScriptEffect::CacheGet { key }, [own]) => self.is_exported(own, key, work),
            (EffectKind::CacheSet, ScriptEffect::CacheSet { key, value, ttl }, [own, given, time]) => {
                Ok(self.is_exported(own, key, work)?
                    && self.is_exported(given, value, work)?
                    && matches!(time.kind(), ValueKind::String(text) if parse_duration(text)? == *ttl))
            }
            _ => Ok(false),
        }
    }

    fn build_effect(
        &self,
        kind: EffectKind,
        given: &[ScriptValue<'r>],
        work: &Fuel,
    ) -> Result<ScriptEffect<'c>, EvalError> {
        let passed = |index: usize| match given.get(index) {
            Some(value) => self.export(value, work),
            None => Ok(ExportedValue::Shared(Arc::default())),
        };
        let text = |index: usize, name: &str| match given.get(index).map(|value| (value.kind(), value)) {
            Some((ValueKind::String(text), _)) => Ok(text.to_owned()),
            Some((_, value)) => Err(EvalError::Error(format!(
                "`{name}` takes a string, this is of type {}",
                value.json_type()
            ))),
            None => Ok(String::new()),
        };
        Ok(match kind {
            EffectKind::Next => ScriptEffect::Next {
                input: passed(0)?,
                options: if given.len() > 1 { Some(passed(1)?) } else { None },
            },
            EffectKind::Approve => ScriptEffect::Approve { message: text(0, "approve")? },
            EffectKind::Now => ScriptEffect::Now,
            EffectKind::Random => ScriptEffect::Random,
            EffectKind::CacheGet => ScriptEffect::CacheGet { key: passed(0)? },
            EffectKind::CacheSet => ScriptEffect::CacheSet {
                key: passed(0)?,
                value: passed(1)?,
                ttl: parse_duration(&text(2, "cache_set")?)?,
            },
            EffectKind::Audit => match given.first().map(|value| value.to_json(work)).transpose()? {
                Some(Value::Object(fields)) => ScriptEffect::Audit { fields },
                _ => return Err("`audit` takes an object".into()),
            },
        })
    }

    /// Returns the next journal entry if it is for this effect. Ends the replay if it is not, or if there is none.
    fn next_entry(&mut self, effect: ScriptEffect<'c>) -> Result<&'r JournalEntry<'c>, EffectError<'r>> {
        let Some(entry) = self.journal.entries.get(self.effects_completed) else {
            if self.effects_completed >= MAX_EFFECTS {
                let message = format!("the script requests more than {MAX_EFFECTS} effects");
                return Err(EffectError::Error(EvalError::LimitExceeded(message)));
            }
            self.result = Some(ReplayResult::Effect(effect));
            return Err(EffectError::End);
        };
        if !entry.is_result_of(&effect) {
            let message = if entry.effect_name() == effect.name() {
                format!("the script requests `{}` with other arguments than the journal holds", effect.name())
            } else {
                format!(
                    "the script requests `{}`, the journal holds `{}`",
                    effect.name(),
                    entry.effect_name()
                )
            };
            self.result = Some(ReplayResult::Failed(ScriptRunError::mismatch(message, None)));
            return Err(EffectError::End);
        }
        Ok(entry)
    }

    pub(super) fn complete(&self, value: &ScriptValue<'r>, work: &Fuel) -> ReplayResult<'c> {
        match self.export(value, work) {
            Ok(output) => ReplayResult::Completed { from: self.entry_of_value(&output), output },
            Err(
                EvalError::Error(message) | EvalError::Absent(message) | EvalError::LimitExceeded(message),
            ) => ReplayResult::Failed(ScriptRunError::new(message, None)),
        }
    }

    pub(super) fn exception(&self, error: &ScriptValue<'r>, spot: SourcePosition) -> ReplayResult<'c> {
        let member = |key: &str| match error.kind() {
            ValueKind::Object(object) => object.get(key).and_then(|value| match value.kind() {
                ValueKind::String(text) => Some(text.to_owned()),
                _ => None,
            }),
            _ => None,
        };
        let Some(message) = member("message") else {
            return ReplayResult::Failed(ScriptRunError::new(
                "the thrown value has no `message`",
                Some(spot),
            ));
        };
        let kind = member("kind").filter(|kind| !kind.is_empty());
        let is_this = |answer: &Answer| {
            matches!(answer, Answer::Error { message: known, kind: known_kind }
                if *known == message && known_kind.as_deref().filter(|kind| !kind.is_empty()) == kind.as_deref())
        };
        let from = self.journal.entries.iter().rposition(|entry| is_this(&entry.result));
        ReplayResult::Exception(ScriptException { message, kind, journal_entry: from })
    }
}

impl<'r> World<'r> for ReplayHost<'r, '_> {
    fn read_member(&self, member: ReadOnlyVariable) -> Result<ScriptValue<'r>, EvalError> {
        let CallSnapshot { call, annotations, constants, .. } = self.call;
        let text_or_null =
            |text: &'r Option<String>| text.as_deref().map_or(ScriptValue::Null, ScriptValue::Borrowed);
        Ok(match member {
            ReadOnlyVariable::Options => ScriptValue::Json(&call.options),
            ReadOnlyVariable::Root(Root::Tool) => ScriptValue::Borrowed(&call.tool),
            ReadOnlyVariable::Root(Root::Server) => text_or_null(&call.server),
            ReadOnlyVariable::Root(Root::Id) => ScriptValue::Borrowed(&call.id),
            ReadOnlyVariable::Root(Root::Input) => ScriptValue::Json(&call.input),
            ReadOnlyVariable::Root(Root::Context) if call.context.is_null() => ScriptValue::Json(&EMPTY),
            ReadOnlyVariable::Root(Root::Context) => ScriptValue::Json(&call.context),
            ReadOnlyVariable::Root(Root::Session) => {
                constants.session.as_ref().map_or(ScriptValue::Null, ScriptValue::Json)
            }
            ReadOnlyVariable::Root(Root::Annotations) => {
                annotations.map_or(ScriptValue::Null, ScriptValue::Json)
            }
            ReadOnlyVariable::Root(
                root @ (Root::Output
                | Root::Error
                | Root::Result
                | Root::Task
                | Root::Round
                | Root::Now
                | Root::Element(_)),
            ) => {
                return Err(format!("a script has no `{}`", root.name()).into());
            }
        })
    }

    fn read_named(&self, value: &'r NamedValue) -> Result<ScriptValue<'r>, EvalError> {
        match self.call.constants.lets.get(value.name()) {
            Some(result) => read_result(value.name(), result),
            None => Err(format!("`{}` was not evaluated when the script began", value.name()).into()),
        }
    }

    fn print(&mut self, line: &str) {
        self.printed.push(line);
    }

    fn request_effect(
        &mut self,
        kind: EffectKind,
        given: Vec<ScriptValue<'r>>,
        work: &Fuel,
    ) -> Result<ScriptValue<'r>, EffectError<'r>> {
        let entry = self.journal.entries.get(self.effects_completed);
        let again = match entry.and_then(JournalEntry::local_effect) {
            Some(recorded) => self.is_repeated_request(recorded, kind, &given, work)?,
            None => false,
        };
        let entry = match entry {
            Some(entry) if again => entry,
            _ => self.next_entry(self.build_effect(kind, &given, work)?)?,
        };
        self.effects_completed += 1;
        match &entry.result {
            Answer::Value(value) => Ok(ScriptValue::Json(value)),
            Answer::Error { message, kind } => {
                let kind = ScriptValue::Borrowed(kind.as_deref().unwrap_or_default());
                Err(EffectError::Exception(error_object(ScriptValue::Borrowed(message), kind, work)?))
            }
        }
    }
}
