//! stub
use std::borrow::Cow;
#[derive(Debug, Clone, Copy)]
pub struct Detector;
impl Detector {
    pub const ALL: [Detector; 1] = [Detector];
    pub fn from_name(_: &str) -> Option<Self> {
        Some(Self)
    }
    pub fn name(&self) -> &'static str {
        "email"
    }
}
pub enum Style {
    Mask,
    Hash,
    Remove,
    KeepLast(usize),
}
#[derive(Debug)]
pub struct Redactor;
#[derive(Debug)]
pub struct TooDeep;
impl Redactor {
    pub fn new(_: Vec<Detector>, _: Vec<regex::Regex>, _: Style) -> Self {
        Self
    }
    pub fn redact_text<'a>(&self, t: &'a str) -> Cow<'a, str> {
        t.into()
    }
    pub fn redact_value(&self, _: &mut serde_json::Value) -> Result<bool, TooDeep> {
        Ok(false)
    }
}
