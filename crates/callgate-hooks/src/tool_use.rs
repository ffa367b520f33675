//! Normalises tools: the agent's tool and input → calls that policies match, and back.

use std::path::Path;

use callgate::json::{Key, Map, Value};

use crate::event_error::EventError;

/// The normalised tools whose input has a `file_path`.
const FILE_TOOLS: [&str; 4] = ["Read", "Write", "Edit", "Delete"];

/// How an agent's tool is normalised.
pub(crate) struct ToolRule {
    /// The agent's name.
    pub(crate) native: &'static str,
    /// The normalised name.
    pub(crate) tool: &'static str,
    /// A normalised member of the input, and the agent's names of it.
    pub(crate) member: Option<(&'static str, &'static [&'static str])>,
}

impl ToolRule {
    /// A tool with a member that has the normalised name or one of `aliases`.
    pub(crate) const fn new(
        native: &'static str,
        tool: &'static str,
        member: &'static str,
        aliases: &'static [&'static str],
    ) -> Self {
        Self { native, tool, member: Some((member, aliases)) }
    }
}

/// A use of a tool by an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolUse {
    /// The agent's id of the call, if it has one.
    pub id: Option<String>,
    /// The agent's name of the tool.
    pub native_tool: String,
    /// The calls that policies decide: one, or one for each file of a patch. All of them must be permitted.
    pub calls: Vec<NormalizedCall>,
    /// The directory in which the tool runs, if the call names one.
    pub cwd: Option<String>,
    /// The agent's names of members that were renamed: (normalised, native).
    pub(crate) renamed: Vec<(String, String)>,
    /// Members around the normalised input, if it is a part of the agent's: the member that contains it, and the whole.
    pub(crate) wrapper: Option<(String, Map)>,
}

/// A call as policies see it.
#[derive(Clone, Debug, PartialEq)]
pub struct NormalizedCall {
    /// The normalised name.
    pub tool: String,
    /// The normalised input.
    pub input: Value,
}

impl ToolUse {
    /// A use of a tool that keeps its name and input.
    pub(crate) fn unchanged(native: &str, tool: impl Into<String>, input: Value) -> Self {
        Self {
            id: None,
            native_tool: native.to_owned(),
            calls: vec![NormalizedCall { tool: tool.into(), input }],
            cwd: None,
            renamed: Vec::new(),
            wrapper: None,
        }
    }

    /// Normalises a tool by the rules of its agent; a tool without a rule keeps its name.
    pub(crate) fn normalized(native: &str, input: Value, rules: &[ToolRule]) -> Result<Self, EventError> {
        let Some(rule) = rules.iter().find(|rule| rule.native == native) else {
            return Ok(Self::unchanged(native, native, input));
        };
        let mut used = Self::unchanged(native, rule.tool, input);
        let (Some((member, aliases)), Some(NormalizedCall { input: Value::Object(members), .. })) =
            (rule.member, used.calls.first_mut())
        else {
            return Ok(used);
        };
        let mut present = std::iter::once(&member).chain(aliases).filter(|name| members.contains_key(name));
        let (first, second) = (present.next().copied(), present.next().copied());
        match (first, second) {
            (Some(one), Some(other)) => return Err(EventError::Ambiguous(one.to_owned(), other.to_owned())),
            (Some(name), None) if name != member => {
                *members = rename(members, name, member);
                used.renamed.push((member.to_owned(), name.to_owned()));
            }
            _ => {}
        }
        Ok(used)
    }

    /// The same with the agent's id of the call.
    pub(crate) fn with_id(self, id: Option<String>) -> Self {
        Self { id, ..self }
    }

    /// Makes the paths of read and edited files absolute. A path that begins with `~` stays: only some agents replace it.
    pub(crate) fn make_paths_absolute(&mut self, directory: &Path) {
        if !directory.has_root() {
            return;
        }
        for call in self.calls.iter_mut().filter(|call| FILE_TOOLS.contains(&call.tool.as_str())) {
            let Some(path) = call.input.get("file_path").and_then(Value::as_str) else { continue };
            if path.is_empty() || path.starts_with('~') {
                continue;
            }
            let absolute = directory.join(path).to_str().map(str::to_owned);
            if let (Some(absolute), Some(members)) = (absolute, call.input.as_object_mut()) {
                members.insert("file_path", absolute.into());
            }
        }
    }

    /// The input in the agent's form. `None` if the agent's input can't be made of it, so the tool must not run with it.
    pub fn native_input(&self, input: &Value) -> Option<Value> {
        let [_] = self.calls.as_slice() else { return None };
        let mut members = input.as_object()?.clone();
        for (normal, native) in &self.renamed {
            members = rename(&members, normal, native);
        }
        match &self.wrapper {
            None => Some(Value::Object(members)),
            Some((member, whole)) => {
                let mut whole = whole.clone();
                // An object in a string stays one.
                let inner = match whole.get(member) {
                    Some(Value::String(_)) => Value::from(Value::Object(members).to_string()),
                    _ => Value::Object(members),
                };
                whole.insert(member.clone(), inner);
                Some(Value::Object(whole))
            }
        }
    }
}

fn rename(members: &Map, from: &str, to: &str) -> Map {
    members
        .iter()
        .map(|(name, value)| (if name == from { Key::from(to) } else { name.clone() }, value.clone()))
        .collect()
}
