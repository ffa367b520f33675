//! stub
use crate::call::{CallView, Root};
/// s
#[derive(Debug)]
pub struct Predicate;
/// s
pub struct ScriptError {
    pub message: String,
    pub offset: Option<usize>,
    pub help: Option<String>,
}
/// s
pub struct PredicateError {
    pub message: String,
}
impl Predicate {
    pub fn compile(_: &str) -> Result<Self, ScriptError> {
        Ok(Self)
    }
    pub fn roots_read(&self) -> Vec<Root> {
        vec![]
    }
    pub fn eval(&self, _: &CallView<'_>) -> Result<bool, PredicateError> {
        Err(PredicateError { message: String::new() })
    }
}
