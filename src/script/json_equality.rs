//! Equality of a script value with a stored JSON value, without converting the script value to JSON.

use super::fuel::{EvalError, Fuel, VALUE_BYTES};
use super::value::{ScriptValue, nesting_error};
use crate::json::{MAX_DEPTH, Value};

impl ScriptValue<'_> {
    /// Whether a JSON copy of this value would equal `json`. Copies nothing, but counts the same work and returns the same errors as
    /// the copy: a replay spends the same whether or not its journal was stored in between.
    pub(super) fn equals_json(&self, json: &Value, work: &Fuel) -> Result<bool, EvalError> {
        self.equals_json_below(json, work, 0)
    }

    fn equals_json_below(&self, json: &Value, work: &Fuel, depth: usize) -> Result<bool, EvalError> {
        work.spend_step()?;
        work.spend_output(VALUE_BYTES)?;
        if depth > MAX_DEPTH {
            return Err(nesting_error());
        }
        let text = |text: &str| {
            work.spend_output(text.len())?;
            Ok(json.as_str() == Some(text))
        };
        match self {
            Self::Null => Ok(json.is_null()),
            Self::Boolean(value) => Ok(json.as_bool() == Some(*value)),
            Self::Number(number) => Ok(number.to_json() == *json),
            Self::Borrowed(value) => text(value),
            Self::String(value) => text(value),
            Self::Json(Value::String(value)) => text(value),
            Self::Json(Value::Array(items)) => {
                equals_array(items.iter().map(ScriptValue::Json), json, work, depth)
            }
            Self::Json(Value::Object(members)) => {
                let members = members.iter().map(|(key, member)| (key.as_str(), ScriptValue::Json(member)));
                equals_object(members, json, work, depth)
            }
            Self::Json(other) => Ok(*other == json),
            Self::Time(value) => text(&value.to_string()),
            Self::Array(list) => equals_array(list.content.iter().cloned(), json, work, depth),
            Self::Object(object) => {
                let members = object.content.iter().map(|(key, member)| (key.as_ref(), member.clone()));
                equals_object(members, json, work, depth)
            }
        }
    }
}

fn equals_array<'r>(
    items: impl ExactSizeIterator<Item = ScriptValue<'r>>,
    json: &Value,
    work: &Fuel,
    depth: usize,
) -> Result<bool, EvalError> {
    let Some(others) = json.as_array().filter(|others| others.len() == items.len()) else { return Ok(false) };
    for (item, other) in items.zip(others) {
        if !item.equals_json_below(other, work, depth + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equals_object<'v, 'r>(
    members: impl ExactSizeIterator<Item = (&'v str, ScriptValue<'r>)>,
    json: &Value,
    work: &Fuel,
    depth: usize,
) -> Result<bool, EvalError> {
    let Some(others) = json.as_object().filter(|others| others.len() == members.len()) else {
        return Ok(false);
    };
    for (key, member) in members {
        work.spend_output(key.len())?;
        match others.get(key) {
            Some(other) if member.equals_json_below(other, work, depth + 1)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;
    use crate::script::SCRIPT_LIMITS;
    use crate::script::value::MemberMap;

    fn spent(work: &Fuel) -> String {
        format!("{work:?}").split("steps").last().unwrap_or_default().to_owned()
    }

    /// The cost of a replay must not depend on whether it compares or copies values.
    #[test]
    fn comparison_agrees_with_the_json_copy_and_costs_the_same() {
        let call = json!({"z": [1, 1.50, "text", null, true], "y": {"n": 12345678901234567890u64, "e": []}});
        let own = Fuel::new(&SCRIPT_LIMITS);
        let list_with = |second: ScriptValue<'static>| {
            let items = vec![
                ScriptValue::whole(1),
                second,
                ScriptValue::Borrowed("s"),
                ScriptValue::text(&own, "t").unwrap(),
            ];
            ScriptValue::list(&own, items).unwrap()
        };
        let object = |value| ScriptValue::object(&own, MemberMap::from_iter([("k".into(), value)])).unwrap();
        let values = [
            ScriptValue::Json(&call),
            ScriptValue::Null,
            list_with(ScriptValue::Null),
            list_with(ScriptValue::Boolean(true)),
            object(ScriptValue::Json(&call)),
            object(list_with(ScriptValue::whole(9))),
        ];
        for (at, value) in values.iter().enumerate() {
            let (writing, comparing) = (Fuel::new(&SCRIPT_LIMITS), Fuel::new(&SCRIPT_LIMITS));
            let json = value.to_json(&writing).unwrap();
            assert!(value.equals_json(&json, &comparing).unwrap(), "{json}");
            assert_eq!(spent(&comparing), spent(&writing), "{json}");
            for (other_at, other) in values.iter().enumerate() {
                assert_eq!(other.equals_json(&json, &own).unwrap(), at == other_at, "{json} and {other:?}");
            }
        }
        let respelled =
            json!({"y": {"e": [], "n": 12345678901234567890u64}, "z": [1.0, 1.5, "text", null, true]});
        assert!(ScriptValue::Json(&call).equals_json(&respelled, &own).unwrap());
    }
}
