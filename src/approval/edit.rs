//! Arguments that a person changed.

use crate::json::{Map, Value};
use crate::path::{Path, Step};

/// Why changed arguments are not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditRefused {
    /// A place was changed that nobody may change here.
    #[error("`{0}` may not be changed by who answers")]
    NotAllowed(String),
    /// Arguments are an object.
    #[error("the changed arguments are no object")]
    NoObject,
}

/// The arguments as a person changed them. People are shown `shown`, in which secrets are hidden, and give back `given`; what
/// they left as it was shown stays what it really is. Only what is at or below one of the `allowed` paths may differ.
pub fn edited(real: &Value, shown: &Value, given: &Value, allowed: &[&[Step]]) -> Result<Value, EditRefused> {
    if !given.is_object() {
        return Err(EditRefused::NoObject);
    }
    Edit { allowed, at: Vec::new() }.merge(real, shown, given)
}

struct Edit<'e> {
    allowed: &'e [&'e [Step]],
    at: Vec<Step>,
}

impl Edit<'_> {
    fn merge(&mut self, real: &Value, shown: &Value, given: &Value) -> Result<Value, EditRefused> {
        if shown == given {
            return Ok(real.clone());
        }
        match (real, shown, given) {
            (Value::Object(real), Value::Object(shown), Value::Object(given)) => {
                self.members(real, shown, given)
            }
            (Value::Array(real), Value::Array(shown), Value::Array(given))
                if real.len() == shown.len() && shown.len() == given.len() =>
            {
                let items = real.iter().zip(shown).zip(given).enumerate();
                let items = items.map(|(index, ((real, shown), given))| {
                    self.below(Step::Index(i64::try_from(index).unwrap_or(i64::MAX)), |edit| {
                        edit.merge(real, shown, given)
                    })
                });
                items.collect::<Result<Vec<_>, _>>().map(Value::Array)
            }
            _ => self.taken(given),
        }
    }

    fn members(&mut self, real: &Map, shown: &Map, given: &Map) -> Result<Value, EditRefused> {
        let mut members = Map::new();
        for (name, value) in real {
            let merged = self.below(Step::Name(name.clone()), |edit| {
                match (shown.get(name), given.get(name)) {
                    (Some(shown), Some(given)) => edit.merge(value, shown, given).map(Some),
                    // What was hidden altogether can't be given back.
                    (None, None) => Ok(Some(value.clone())),
                    (None, Some(given)) => edit.taken(given).map(Some),
                    (Some(_), None) => edit.taken(&Value::Null).map(|_| None),
                }
            })?;
            members.extend(merged.map(|value| (name.clone(), value)));
        }
        for (name, value) in given.iter().filter(|(name, _)| !real.contains_key(*name)) {
            let value = self.below(Step::Name(name.clone()), |edit| edit.taken(value))?;
            members.insert(name.clone(), value);
        }
        Ok(members.into())
    }

    fn below<T>(&mut self, step: Step, there: impl FnOnce(&mut Self) -> T) -> T {
        self.at.push(step);
        let result = there(self);
        self.at.pop();
        result
    }

    fn taken(&self, given: &Value) -> Result<Value, EditRefused> {
        match self.allowed.iter().any(|path| self.at.starts_with(path)) {
            true => Ok(given.clone()),
            false => Err(EditRefused::NotAllowed(self.place())),
        }
    }

    fn place(&self) -> String {
        self.at.iter().fold("$.input".to_owned(), |text, step| format!("{text}{step}"))
    }
}

/// The places that all of several policies allow to change: what is at or below a path of each.
pub(super) fn allowed_by_all(edits: &[Vec<Path>]) -> Vec<Vec<Step>> {
    let steps = |paths: &Vec<Path>| -> Vec<Vec<Step>> {
        paths.iter().filter_map(|path| path.steps().map(<[Step]>::to_vec)).collect()
    };
    let mut all = edits.iter().map(steps);
    let Some(first) = all.next() else { return Vec::new() };
    all.fold(first, |common, other| {
        let narrower = |a: &Vec<Step>, b: &Vec<Step>| match (a.starts_with(b), b.starts_with(a)) {
            (true, _) => Some(a.clone()),
            (_, true) => Some(b.clone()),
            _ => None,
        };
        common.iter().flat_map(|a| other.iter().filter_map(move |b| narrower(a, b))).collect()
    })
}
