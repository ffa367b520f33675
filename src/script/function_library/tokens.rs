//! Functions on the tokens of texts, and on sensitive data in values.

use std::borrow::Cow;

use super::FunctionResult;
use super::arguments::{expect_string, wrong_type};
use crate::json::{Map, Number, Value};
use crate::redaction::Redactor;
use crate::script::exact_number::NumberView;
use crate::script::fuel::{EvalError, Fuel};
use crate::script::value::{MemberMap, ObjectView, ScriptValue, ValueKind};
use crate::tokens::{DecimalMark, TokenError, TokenFormat, TokenKind, TokenSubject};
use crate::work_limit;

/// The implementation of a function that extracts tokens of a kind.
macro_rules! extractor {
    ($($name:ident: $kind:ident),*) => {$(
        pub(in crate::script) fn $name<'r>(work: &Fuel, text: &ScriptValue<'r>) -> FunctionResult<'r> {
            extract(work, stringify!($name), TokenKind::$kind, text)
        }
    )*};
}

extractor!(emails: Email, urls: Url, hosts: Host, ibans: Iban, paths: Path);

fn extract<'r>(work: &Fuel, name: &str, kind: TokenKind, text: &ScriptValue<'_>) -> FunctionResult<'r> {
    let text = expect_string(name, text)?;
    work.spend_scan(text.len())?;
    let tokens = TokenFormat::new(kind).extract(text).map_err(undecided)?;
    work.spend_values(tokens.len())?;
    let tokens = tokens.iter().map(|token| ScriptValue::text(work, token)).collect::<Result<_, _>>()?;
    ScriptValue::list(work, tokens)
}

pub(in crate::script) fn numbers<'r>(
    work: &Fuel,
    text: &ScriptValue<'r>,
    decimal: Option<&ScriptValue<'r>>,
) -> FunctionResult<'r> {
    let format = number_format("numbers", decimal)?;
    let text = expect_string("numbers", text)?;
    work.spend_scan(text.len())?;
    let numbers = format.extract(text).map_err(undecided)?;
    let numbers = numbers.iter().map(|number| {
        let number: Number =
            number.parse().map_err(|_| EvalError::from("a number of the text cannot be read"))?;
        to_number(&number)
    });
    ScriptValue::list(work, numbers.collect::<Result<_, _>>()?)
}

pub(in crate::script) fn amounts<'r>(
    work: &Fuel,
    text: &ScriptValue<'r>,
    decimal: Option<&ScriptValue<'r>>,
) -> FunctionResult<'r> {
    let format = number_format("amounts", decimal)?;
    let text = expect_string("amounts", text)?;
    work.spend_scan(text.len())?;
    let amounts = format.extract_amounts(text).map_err(undecided)?;
    let amounts = amounts.iter().map(|amount| {
        let currency = ScriptValue::text(work, &amount.currency)?;
        let members = [("value".into(), to_number(&amount.value)?), ("currency".into(), currency)];
        ScriptValue::object(work, MemberMap::from_iter(members))
    });
    ScriptValue::list(work, amounts.collect::<Result<_, _>>()?)
}

fn to_number<'r>(number: &Number) -> FunctionResult<'r> {
    Ok(ScriptValue::Number(NumberView::from_json(number).exact()?))
}

/// Numbers, with the decimal mark of an optional argument.
fn number_format(name: &str, decimal: Option<&ScriptValue<'_>>) -> Result<TokenFormat, EvalError> {
    let format = TokenFormat::new(TokenKind::Number);
    let Some(decimal) = decimal else { return Ok(format) };
    let mark = DecimalMark::parse(expect_string(name, decimal)?);
    let mark = mark.ok_or_else(|| format!("the decimal mark of `{name}` is \".\" or \",\""))?;
    Ok(format.with_decimal(mark))
}

/// Whether a value equals a whole token of a source.
///
/// # Errors
/// The value is not exactly one token of the kind, or a source is not a string, an array or an object.
pub(in crate::script) fn mentioned<'r>(
    work: &Fuel,
    format: TokenFormat,
    subject: &ScriptValue<'r>,
    source: &ScriptValue<'r>,
) -> FunctionResult<'r> {
    let number;
    let subject = match (subject.kind(), format.kind()) {
        (ValueKind::String(text), _) => TokenSubject::Text(text),
        (ValueKind::Number(_), TokenKind::Number) => {
            number = subject.to_json(work)?;
            match &number {
                Value::Number(number) => TokenSubject::Number(number),
                _ => return Err(wrong_type("mentioned", "a number", number_type())),
            }
        }
        (other, _) => return Err(wrong_type("mentioned", "a string", other.json_type())),
    };
    if !matches!(source.kind(), ValueKind::String(_) | ValueKind::Array(_) | ValueKind::Object(_)) {
        let wanted = "a source that is a string, an array or an object";
        return Err(wrong_type("mentioned", wanted, source.json_type()));
    }
    let source = copy_of(work, source)?;
    let found = format.is_mentioned(subject, [source.as_ref()]).map_err(undecided)?;
    Ok(ScriptValue::Boolean(found))
}

fn number_type() -> crate::json::JsonType {
    crate::json::JsonType::Number
}

/// Whether a detector finds something in a value. The value has any type in which data can be: whoever wraps a string in an array or an
/// object hides nothing.
pub(in crate::script) fn detects<'r>(
    work: &Fuel,
    redactor: &Redactor,
    value: &ScriptValue<'r>,
) -> FunctionResult<'r> {
    if matches!(value.kind(), ValueKind::Null | ValueKind::Boolean(_)) {
        let wanted = "a string, a number, an array or an object";
        return Err(wrong_type("detects", wanted, value.json_type()));
    }
    let mut copy = copy_of(work, value)?.into_owned();
    match redactor.redact_value(&mut copy) {
        _ if work_limit::is_exceeded() => {
            Err(EvalError::LimitExceeded(work_limit::WorkLimitError.to_string()))
        }
        Ok(is_changed) => Ok(ScriptValue::Boolean(is_changed)),
        Err(_) => Err("the value is nested too deeply for `detects`".into()),
    }
}

/// A value as JSON, borrowed if it is JSON already. Counts a step for each element and member, and a scan for each string.
fn copy_of<'r>(work: &Fuel, value: &ScriptValue<'r>) -> Result<Cow<'r, Value>, EvalError> {
    work.spend_step()?;
    work.spend_scan(value.scan_size())?;
    Ok(match (value, value.kind()) {
        (ScriptValue::Json(json), _) => {
            spend_for_json(work, json)?;
            Cow::Borrowed(json)
        }
        (_, ValueKind::String(text)) => Cow::Owned(Value::from(text)),
        (_, ValueKind::Array(items)) => {
            let items = items.iter().map(|item| copy_of(work, &item).map(Cow::into_owned));
            Cow::Owned(Value::Array(items.collect::<Result<_, _>>()?))
        }
        (_, ValueKind::Object(ObjectView::Created(members))) => {
            let mut copy = Map::with_capacity(members.len());
            for (key, member) in members {
                copy.insert(key.clone().into_owned(), copy_of(work, member)?.into_owned());
            }
            Cow::Owned(Value::Object(copy))
        }
        _ => Cow::Owned(value.to_json(work)?),
    })
}

fn spend_for_json(work: &Fuel, json: &Value) -> Result<(), EvalError> {
    let mut open = vec![json];
    while let Some(next) = open.pop() {
        work.spend_step()?;
        match next {
            Value::String(text) => work.spend_scan(text.len())?,
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    Ok(())
}

fn undecided(error: TokenError) -> EvalError {
    match error {
        TokenError::WorkLimit(_) => EvalError::LimitExceeded(error.to_string()),
        error => EvalError::Error(format!("undecided: {error}")),
    }
}
