//! What the user asked for (`$.task`), as the host supplies it: texts → the document that policies read.

use jiff::Timestamp;

use crate::json::{Map, Value};

/// The longest task, all turns together, in bytes.
const MAX_BYTES: usize = 256 << 10;
/// The most turns of a task.
const MAX_TURNS: usize = 1_000;

/// What the user asked for. Only the host can vouch for it: never make it of what a model, a tool or an unauthenticated client sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Task {
    content: TaskContent,
}

#[derive(Clone, Debug, Default, PartialEq)]
enum TaskContent {
    /// The host supplies none: `$.task` is absent.
    #[default]
    Absent,
    /// The document: `text`, `last`, `turns`.
    Known(Value),
    /// The host supplies one that cannot be used, for this reason: what reads it is undecided.
    Unknown(&'static str),
}

/// One message of the user.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskTurn {
    /// The text.
    pub text: String,
    /// When the user wrote it, if the host knows.
    pub at: Option<Timestamp>,
}

impl TaskTurn {
    /// A message of unknown time.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), at: None }
    }
}

impl Task {
    /// No task: `$.task` is absent.
    pub const NONE: Self = Self { content: TaskContent::Absent };

    /// The messages of the user, in order. No messages are no task. More than 256 KiB or 1,000 messages are undecided.
    ///
    /// ```
    /// use callgate::{Task, TaskTurn};
    /// let task = Task::new([TaskTurn::new("Pay the rent."), TaskTurn::new("And the water bill.")]);
    /// assert_eq!(task.document().unwrap()["last"], "And the water bill.");
    /// ```
    pub fn new(turns: impl IntoIterator<Item = TaskTurn>) -> Self {
        let (mut texts, mut documents, mut bytes) = (String::new(), Vec::new(), 0usize);
        let mut last = None;
        for turn in turns {
            bytes = bytes.saturating_add(turn.text.len());
            if bytes > MAX_BYTES || documents.len() >= MAX_TURNS {
                return Self::unknown("it is longer than 256 KiB or 1,000 turns");
            }
            if last.is_some() {
                texts.push('\n');
            }
            texts.push_str(&turn.text);
            let mut document = Map::new();
            document.insert("text", Value::from(turn.text.as_str()));
            if let Some(at) = turn.at {
                document.insert("at", Value::from(at.to_string()));
            }
            documents.push(Value::Object(document));
            last = Some(turn.text);
        }
        let Some(last) = last else { return Self::NONE };
        let mut document = Map::new();
        document.insert("text", Value::from(texts));
        document.insert("last", Value::from(last));
        document.insert("turns", Value::Array(documents));
        Self { content: TaskContent::Known(Value::Object(document)) }
    }

    /// A task of one message.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self::new([TaskTurn::new(text)])
    }

    /// A task that exists and cannot be used, for this reason: what reads it is undecided, so that it permits nothing.
    pub fn unknown(why: &'static str) -> Self {
        Self { content: TaskContent::Unknown(why) }
    }

    /// Reads the form of files: a string, or a list whose items are strings or `{ text, at }`; null is no task.
    ///
    /// # Errors
    /// The value has another form: what it must be.
    pub fn from_json(value: &Value) -> Result<Self, &'static str> {
        const WANTED: &str = "a string, or a list of strings or of `{ text, at }` with `at` as RFC 3339";
        let turn = |value: &Value| match value {
            Value::String(text) => Some(TaskTurn::new(text.as_str())),
            Value::Object(members) => {
                let at = match members.get("at") {
                    None | Some(Value::Null) => None,
                    Some(at) => Some(crate::time::parse_timestamp(at.as_str()?)?),
                };
                let is_known = members.keys().all(|key| ["text", "at"].contains(&key.as_str()));
                let text = members.get("text")?.as_str().filter(|_| is_known)?;
                Some(TaskTurn { text: text.to_owned(), at })
            }
            _ => None,
        };
        match value {
            Value::Null => Ok(Self::NONE),
            Value::String(text) => Ok(Self::from_text(text.as_str())),
            Value::Array(turns) => {
                let turns: Option<Vec<TaskTurn>> = turns.iter().map(turn).collect();
                turns.map(Self::new).ok_or(WANTED)
            }
            _ => Err(WANTED),
        }
    }

    /// What policies read. Returns `None` if there is no task, or it is unknown.
    pub fn document(&self) -> Option<&Value> {
        match &self.content {
            TaskContent::Known(document) => Some(document),
            TaskContent::Absent | TaskContent::Unknown(_) => None,
        }
    }

    /// Why the task is unknown. Returns `None` if it is known, or there is none.
    pub fn unknown_reason(&self) -> Option<&'static str> {
        match self.content {
            TaskContent::Unknown(why) => Some(why),
            TaskContent::Absent | TaskContent::Known(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    #[test]
    fn turns_are_joined_and_limited() {
        let task = Task::from_json(&json!(["a", {"text": "b", "at": "2026-01-01T12:00:00+01:00"}])).unwrap();
        let turns = json!([{"text": "a"}, {"text": "b", "at": "2026-01-01T11:00:00Z"}]);
        assert_eq!(task.document(), Some(&json!({"text": "a\nb", "last": "b", "turns": turns})));
        assert_eq!(Task::new([]), Task::NONE);
        assert_eq!(Task::from_json(&json!("a")), Ok(Task::from_text("a")));
        for too_long in
            [Task::from_text("a".repeat(MAX_BYTES + 1)), Task::new((0..1_001).map(|_| TaskTurn::new("")))]
        {
            assert!(too_long.unknown_reason().is_some() && too_long.document().is_none());
        }
        assert!(Task::from_text("a".repeat(MAX_BYTES)).document().is_some());
    }

    #[test]
    fn other_forms_are_errors() {
        for value in [
            json!(1),
            json!({"text": "a"}),
            json!([1]),
            json!([{"text": "a", "role": "user"}]),
            json!([{"at": "2026-01-01T12:00:00Z"}]),
            json!([{"text": "a", "at": "today"}]),
        ] {
            assert!(Task::from_json(&value).is_err(), "{value}");
        }
    }
}
