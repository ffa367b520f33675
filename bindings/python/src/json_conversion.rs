//! JSON values of Python ↔ the engine's exact [`Value`]s. Nothing is rounded: see `docs/guides/use-from-python.md`.

use callgate::json::{MAX_DEPTH, Map, Number, Value};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};

use crate::errors;

static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();

fn decimal_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    DECIMAL.import(py, "decimal", "Decimal")
}

/// Converts a value of Python.
///
/// # Errors
/// `InvalidValueError` for what is not JSON, with its location.
pub(crate) fn to_value(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    let mut location = Location(Vec::new());
    convert(object, MAX_DEPTH, &mut location)
}

/// The longest location in messages, in characters.
const LONGEST_PATH: usize = 120;

/// Where in a value the conversion is, for messages.
struct Location(Vec<String>);

impl Location {
    fn error(&self, problem: &str) -> PyErr {
        let path = self.0.concat();
        match path.char_indices().nth(LONGEST_PATH) {
            Some((end, _)) => {
                errors::value(format!("${}… is {problem}", path.get(..end).unwrap_or_default()))
            }
            None => errors::value(format!("${path} is {problem}")),
        }
    }
}

fn convert(object: &Bound<'_, PyAny>, depth: usize, location: &mut Location) -> PyResult<Value> {
    if let Ok(string) = object.cast::<PyString>() {
        return string_of(string, location).map(Value::String);
    }
    if let Ok(map) = object.cast::<PyDict>() {
        return members(map, inner_depth(depth, location)?, location).map(Value::Object);
    }
    if let Ok(list) = object.cast::<PyList>() {
        return items(list.iter(), inner_depth(depth, location)?, location);
    }
    if object.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(boolean) = object.cast::<PyBool>() {
        return Ok(Value::Bool(boolean.is_true()));
    }
    if object.is_instance_of::<PyInt>() {
        return integer(object, location);
    }
    if let Ok(float) = object.cast::<PyFloat>() {
        return Number::from_f64(float.value())
            .map(Value::Number)
            .ok_or_else(|| location.error("an infinite number or NaN, which JSON does not have"));
    }
    if let Ok(tuple) = object.cast::<PyTuple>() {
        return items(tuple.iter(), inner_depth(depth, location)?, location);
    }
    // Neither here nor above does code of the value's class run: it could change what is being converted.
    let decimal = decimal_class(object.py())?;
    if object.get_type().is_subclass(decimal)? {
        let text = decimal.call_method1(intern!(object.py(), "__str__"), (object,))?;
        return text
            .cast::<PyString>()?
            .to_str()?
            .replace("E+", "e")
            .replace('E', "e")
            .parse()
            .map(Value::Number)
            .map_err(|_| location.error("an infinite number or NaN, which JSON does not have"));
    }
    let class = object.get_type().qualname()?;
    Err(location.error(&format!(
        "of the type `{class}`, which is not JSON; convert it to a dict, list, string or number"
    )))
}

fn inner_depth(depth: usize, location: &Location) -> PyResult<usize> {
    depth.checked_sub(1).ok_or_else(|| location.error(&format!("nested deeper than {MAX_DEPTH} levels")))
}

fn string_of(string: &Bound<'_, PyString>, location: &Location) -> PyResult<String> {
    string.to_str().map(str::to_owned).map_err(|_| location.error("a string with a lone surrogate"))
}

fn integer(object: &Bound<'_, PyAny>, location: &Location) -> PyResult<Value> {
    if let Ok(small) = object.extract::<i64>() {
        return Ok(Value::from(small));
    }
    // An enum's own text is not its number.
    let text = object.py().get_type::<PyInt>().call_method1(intern!(object.py(), "__repr__"), (object,))?;
    text.cast::<PyString>()?
        .to_str()?
        .parse()
        .map(Value::Number)
        .map_err(|_| location.error("not a number of JSON"))
}

fn members(map: &Bound<'_, PyDict>, depth: usize, location: &mut Location) -> PyResult<Map> {
    let mut members = Map::with_capacity(map.len());
    for (key, member) in map.iter() {
        let Ok(name) = key.cast::<PyString>() else {
            return Err(
                location.error(&format!("a dict with the key {}, which is not a string", key.repr()?))
            );
        };
        let name = string_of(name, location)?;
        let value = match needs_location(&member) {
            false => convert(&member, depth, location)?,
            true => {
                location.0.push(format!(".{name}"));
                let value = convert(&member, depth, location)?;
                location.0.pop();
                value
            }
        };
        members.insert(name, value);
    }
    Ok(members)
}

/// Whether the conversion of a value can fail, so that its location is needed.
fn needs_location(object: &Bound<'_, PyAny>) -> bool {
    !(object.is_exact_instance_of::<PyString>() || object.is_exact_instance_of::<PyInt>() || object.is_none())
}

fn items<'py>(
    list: impl ExactSizeIterator<Item = Bound<'py, PyAny>>,
    depth: usize,
    location: &mut Location,
) -> PyResult<Value> {
    let mut items = Vec::with_capacity(list.len());
    for (index, item) in list.enumerate() {
        location.0.push(format!("[{index}]"));
        items.push(convert(&item, depth, location)?);
        location.0.pop();
    }
    Ok(Value::Array(items))
}

/// Converts a value of the engine. A number with a fraction or an exponent becomes a float if that is the same number, and a `Decimal`
/// otherwise.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(boolean) => PyBool::new(py, *boolean).to_owned().into_any(),
        Value::String(string) => PyString::new(py, string).into_any(),
        Value::Number(number) => number_to_python(py, number)?,
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(to_python(py, item)?)?;
            }
            list.into_any()
        }
        Value::Object(members) => {
            let dict = PyDict::new(py);
            for (key, member) in members.iter() {
                dict.set_item(key.as_str(), to_python(py, member)?)?;
            }
            dict.into_any()
        }
    })
}

fn number_to_python<'py>(py: Python<'py>, number: &Number) -> PyResult<Bound<'py, PyAny>> {
    if let Some(small) = number.as_i64() {
        return Ok(small.into_pyobject(py)?.into_any());
    }
    let text = number.text().to_string();
    if !text.contains(['.', 'e', 'E']) {
        return py.get_type::<PyInt>().call1((text,));
    }
    match number.as_f64().filter(|float| Number::from_f64(*float).as_ref() == Some(number)) {
        Some(float) => Ok(PyFloat::new(py, float).into_any()),
        None => decimal_class(py)?.call1((text,)),
    }
}

/// The value as the engine sees it: what a tool would get. Tuples become lists, and a number that a float has becomes one.
#[pyfunction]
pub(crate) fn normalize_json<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    to_python(object.py(), &to_value(object)?)
}
