//! The functions that an expression may call: one table, from which the engine, the checks and the docs are made.
//!
//! What a function takes is what the test of the same name takes in YAML: `len` and `contains` look at texts and arrays,
//! all others at one type. Everything else raises.

use rhai::{Array, Dynamic, FnPtr, NativeCallContext};

use super::arithmetic::add;
use super::engine;
use super::value::{Kind, Number, compare, equal, position};

/// Pieces that `split` gives at most.
const MAX_PIECES: usize = 1_000;

/// One function of the expression language.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// Its parameters as in the docs. The first can stand in front: `lower(x)` is `x.lower()`.
    pub parameters: &'static [&'static str],
    /// What it gives.
    pub about: &'static str,
    pub(super) run: Run,
    /// It looks at no more of its first argument than its type and, of an object, its keys.
    pub(super) outline: bool,
}

/// How a function is run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Run {
    One(fn(&Dynamic) -> Result<Dynamic, String>),
    Two(fn(&Dynamic, &Dynamic) -> Result<Dynamic, String>),
    /// An array, and a closure of one parameter for its elements.
    Each(Each),
}

/// A function that runs a closure on the elements of an array.
#[derive(Clone, Copy, Debug)]
pub(super) enum Each {
    All,
    Some,
    Filter,
    Map,
}

const fn function(
    name: &'static str,
    parameters: &'static [&'static str],
    about: &'static str,
    run: Run,
) -> Function {
    Function { name, parameters, about, run, outline: false }
}

const fn outline(
    name: &'static str,
    parameters: &'static [&'static str],
    about: &'static str,
    run: Run,
) -> Function {
    Function { name, parameters, about, run, outline: true }
}

/// Every function, by name.
pub const FUNCTIONS: &[Function] = &[
    function("abs", &["number"], "the number without its sign", Run::One(abs)),
    function(
        "all",
        &["array", "|x| …"],
        "whether the closure is true of every element",
        Run::Each(Each::All),
    ),
    function(
        "at",
        &["array or object", "index or key"],
        "the element at an index that is reckoned",
        Run::Two(at),
    ),
    function(
        "contains",
        &["text or array", "part"],
        "whether a string has this part, or an array this element",
        Run::Two(contains),
    ),
    function("count", &["array", "value"], "how many elements of an array equal a value", Run::Two(count)),
    function("ends_with", &["text", "end"], "whether a string ends so", Run::Two(ends_with)),
    function(
        "filter",
        &["array", "|x| …"],
        "the elements of which the closure is true",
        Run::Each(Each::Filter),
    ),
    outline("has", &["object", "key"], "whether an object has a key", Run::Two(has)),
    function("index_of", &["array", "value"], "the first index of a value, or -1", Run::Two(index_of)),
    function(
        "indices",
        &["array"],
        "the indices of an array, from 0: `indices(a).all(|k| at(a, k) != at(b, k))` goes through two arrays side by side",
        Run::One(indices),
    ),
    outline("is_null", &["value"], "whether a value is null", Run::One(is_null)),
    outline("keys", &["object"], "the keys of an object, sorted", Run::One(keys)),
    function(
        "is_empty",
        &["text, array or object"],
        "whether it has no characters, elements or keys",
        Run::One(|x| Ok((size("is_empty", x)? == 0).into())),
    ),
    function(
        "len",
        &["text, array or object"],
        "how many characters, elements or keys it has",
        Run::One(|x| Ok(whole(size("len", x)?))),
    ),
    function("map", &["array", "|x| …"], "what the closure gives for each element", Run::Each(Each::Map)),
    function(
        "matches",
        &["text", "\"regex\""],
        "whether a regex matches anywhere in a string",
        Run::Two(matches),
    ),
    function("max", &["a", "b"], "the larger of two numbers or strings", Run::Two(max)),
    function("min", &["a", "b"], "the smaller of two numbers or strings", Run::Two(min)),
    function("some", &["array", "|x| …"], "whether the closure is true of an element", Run::Each(Each::Some)),
    function("split", &["text", "separator"], "the pieces of a string", Run::Two(split)),
    function("starts_with", &["text", "start"], "whether a string starts so", Run::Two(starts_with)),
    function("sum", &["array"], "the sum of an array of numbers", Run::One(sum)),
    function(
        "to_lower",
        &["text"],
        "the string in lower case",
        Run::One(|x| Ok(text("to_lower", x)?.to_lowercase().into())),
    ),
    function(
        "to_upper",
        &["text"],
        "the string in upper case",
        Run::One(|x| Ok(text("to_upper", x)?.to_uppercase().into())),
    ),
    function(
        "trim",
        &["text"],
        "the string without white space around it",
        Run::One(|x| Ok(text("trim", x)?.trim().into())),
    ),
    outline(
        "type_of",
        &["value"],
        "`null`, `boolean`, `number`, `string`, `array` or `object`",
        Run::One(type_of),
    ),
    function("values", &["object"], "the values of an object, in the order of its keys", Run::One(values)),
];

/// The function of this name.
pub(super) fn by_name(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}

impl Function {
    /// The parameters as a caller writes them: `contains(text, part)`.
    pub fn signature(&self) -> String {
        format!("{}({})", self.name, self.parameters.join(", "))
    }
}

fn text(name: &str, value: &Dynamic) -> Result<rhai::ImmutableString, String> {
    match Kind::of(value)? {
        Kind::Text(text) => Ok(text.clone()),
        other => Err(wrong(name, "a string", &other)),
    }
}

fn wrong(name: &str, wanted: &str, found: &Kind<'_>) -> String {
    format!("`{name}` takes {wanted}, this is of type {}", found.json_type())
}

fn abs(value: &Dynamic) -> Result<Dynamic, String> {
    match Kind::of(value)? {
        Kind::Number(Number::Whole(value)) => {
            value.checked_abs().map(Dynamic::from_int).ok_or_else(|| format!("{value} has no absolute value"))
        }
        Kind::Number(Number::Decimal(value)) => Ok(Dynamic::from_float(value.abs())),
        other => Err(wrong("abs", "a number", &other)),
    }
}

fn at(container: &Dynamic, index: &Dynamic) -> Result<Dynamic, String> {
    match (Kind::of(container)?, Kind::of(index)?) {
        (Kind::List(list), Kind::Number(Number::Whole(index))) => usize::try_from(index)
            .ok()
            .and_then(|index| list.get(index))
            .cloned()
            .ok_or_else(|| format!("the array has {} elements, none at {index}", list.len())),
        (Kind::Object(object), Kind::Text(key)) => object
            .get(key.as_str())
            .cloned()
            .ok_or_else(|| format!("the object has no key `{}`", key.as_str())),
        (container, index) => Err(format!(
            "`at` takes an array and a whole number, or an object and a string, these are of type {} and {}",
            container.json_type(),
            index.json_type()
        )),
    }
}

fn contains(whole: &Dynamic, part: &Dynamic) -> Result<Dynamic, String> {
    match Kind::of(whole)? {
        Kind::Text(whole) => Ok(whole.contains(text("contains", part)?.as_str()).into()),
        Kind::List(list) => Ok(position(&list, part)?.is_some().into()),
        other => Err(wrong("contains", "a string or an array", &other)),
    }
}

fn starts_with(whole: &Dynamic, start: &Dynamic) -> Result<Dynamic, String> {
    Ok(text("starts_with", whole)?.starts_with(text("starts_with", start)?.as_str()).into())
}

fn ends_with(whole: &Dynamic, end: &Dynamic) -> Result<Dynamic, String> {
    Ok(text("ends_with", whole)?.ends_with(text("ends_with", end)?.as_str()).into())
}

fn has(object: &Dynamic, key: &Dynamic) -> Result<Dynamic, String> {
    match Kind::of(object)? {
        Kind::Object(object) => Ok(object.contains_key(text("has", key)?.as_str()).into()),
        other => Err(wrong("has", "an object", &other)),
    }
}

fn index_of(list: &Dynamic, wanted: &Dynamic) -> Result<Dynamic, String> {
    match Kind::of(list)? {
        Kind::List(list) => {
            let index = position(&list, wanted)?.and_then(|index| i64::try_from(index).ok());
            Ok(Dynamic::from_int(index.unwrap_or(-1)))
        }
        other => Err(wrong("index_of", "an array", &other)),
    }
}

fn count(list: &Dynamic, wanted: &Dynamic) -> Result<Dynamic, String> {
    match Kind::of(list)? {
        Kind::List(list) => {
            let equals = list.iter().map(|item| equal(item, wanted)).collect::<Result<Vec<_>, _>>()?;
            Ok(whole(equals.into_iter().filter(|equal| *equal).count()))
        }
        other => Err(wrong("count", "an array", &other)),
    }
}

fn indices(list: &Dynamic) -> Result<Dynamic, String> {
    match Kind::of(list)? {
        Kind::List(list) => Ok((0..list.len()).map(whole).collect::<Array>().into()),
        other => Err(wrong("indices", "an array", &other)),
    }
}

fn whole(number: usize) -> Dynamic {
    Dynamic::from_int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn is_null(value: &Dynamic) -> Result<Dynamic, String> {
    Ok(matches!(Kind::of(value)?, Kind::Null).into())
}

fn keys(object: &Dynamic) -> Result<Dynamic, String> {
    match Kind::of(object)? {
        Kind::Object(object) => Ok(object.keys().map(|key| key.as_str().into()).collect::<Array>().into()),
        other => Err(wrong("keys", "an object", &other)),
    }
}

fn values(object: &Dynamic) -> Result<Dynamic, String> {
    match Kind::of(object)? {
        Kind::Object(object) => Ok(object.values().cloned().collect::<Array>().into()),
        other => Err(wrong("values", "an object", &other)),
    }
}

fn size(name: &str, value: &Dynamic) -> Result<usize, String> {
    match Kind::of(value)? {
        Kind::Text(text) => Ok(text.chars().count()),
        Kind::List(list) => Ok(list.len()),
        Kind::Object(object) => Ok(object.len()),
        other => Err(wrong(name, "a string, an array or an object", &other)),
    }
}

fn matches(value: &Dynamic, pattern: &Dynamic) -> Result<Dynamic, String> {
    let (value, pattern) = (text("matches", value)?, text("matches", pattern)?);
    let found =
        engine::regex_matches(&pattern, &value).ok_or("the regex of `matches` must be written out")?;
    Ok(found.into())
}

fn max(a: &Dynamic, b: &Dynamic) -> Result<Dynamic, String> {
    Ok(if compare(a, b)?.is_ge() { a.clone() } else { b.clone() })
}

fn min(a: &Dynamic, b: &Dynamic) -> Result<Dynamic, String> {
    Ok(if compare(a, b)?.is_le() { a.clone() } else { b.clone() })
}

fn split(value: &Dynamic, separator: &Dynamic) -> Result<Dynamic, String> {
    let (value, separator) = (text("split", value)?, text("split", separator)?);
    if separator.is_empty() {
        return Err("`split` takes a separator of at least one character".to_owned());
    }
    let pieces: Array = value.split(separator.as_str()).take(MAX_PIECES + 1).map(Into::into).collect();
    if pieces.len() > MAX_PIECES {
        return Err(format!("`split` gives more than {MAX_PIECES} pieces"));
    }
    Ok(pieces.into())
}

fn sum(list: &Dynamic) -> Result<Dynamic, String> {
    let Kind::List(list) = Kind::of(list)? else {
        return Err("`sum` takes an array of numbers".to_owned());
    };
    list.iter().try_fold(Dynamic::from_int(0), |total, item| add(&total, item))
}

fn type_of(value: &Dynamic) -> Result<Dynamic, String> {
    Ok(Kind::of(value)?.json_type().name().into())
}

/// Runs a closure over the elements of an array.
pub(super) fn each(
    how: Each,
    context: &NativeCallContext<'_>,
    list: &Dynamic,
    closure: &Dynamic,
) -> Result<Dynamic, Box<rhai::EvalAltResult>> {
    let Kind::List(list) = Kind::of(list)? else {
        return Err(format!(
            "`{}` takes an array, this is of type {}",
            how.name(),
            Kind::of(list)?.json_type()
        )
        .into());
    };
    let Some(closure) = closure.read_lock::<FnPtr>() else {
        return Err(format!("`{}` takes a closure: write `|x| …`", how.name()).into());
    };
    let mut collected = Array::new();
    for item in list.iter() {
        let said = closure.call_raw(context, None, [item.clone()])?;
        if matches!(how, Each::Map) {
            // Arrays in arrays would let a short expression pile up large copies.
            if matches!(Kind::of(&said)?, Kind::List(_) | Kind::Object(_)) {
                return Err(
                    "the closure of `map` gives an array or an object, it may give anything else".into()
                );
            }
            collected.push(said);
            continue;
        }
        let said =
            said.as_bool().map_err(|_| format!("the closure of `{}` must give a boolean", how.name()))?;
        match how {
            Each::All if !said => return Ok(false.into()),
            Each::Some if said => return Ok(true.into()),
            Each::Filter if said => collected.push(item.clone()),
            _ => {}
        }
    }
    Ok(match how {
        Each::All => true.into(),
        Each::Some => false.into(),
        Each::Filter | Each::Map => collected.into(),
    })
}

impl Each {
    fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Some => "some",
            Self::Filter => "filter",
            Self::Map => "map",
        }
    }
}
