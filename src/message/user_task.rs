//! The user's messages of a history as a task: history → [`Task`].

use super::{History, PartContent, Role};
use crate::call::{Task, TaskTurn};

impl Task {
    /// The texts of all `user` messages. Only for a history that nobody but the host and the user can have written: in a history that a
    /// client sends, anybody can add a `user` message.
    pub fn from_history(history: &History) -> Self {
        Self::new(history.user_texts().map(|(_, text)| TaskTurn::new(text)))
    }
}

impl History {
    /// The texts of the `user` messages, each with the index of its message. A message of results or approvals has no text of the user.
    #[doc(hidden)]
    pub fn user_texts(&self) -> impl Iterator<Item = (usize, String)> {
        let of_user = self.messages().iter().enumerate().filter(|(_, message)| *message.role() == Role::User);
        of_user.filter_map(|(index, message)| {
            let texts = message.parts().iter().filter_map(|part| match part.content() {
                PartContent::Text(text) => Some(text.as_str()),
                _ => None,
            });
            let texts: Vec<&str> = texts.collect();
            (!texts.is_empty()).then(|| (index, texts.join("\n")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;
    use crate::message::Dialect;

    #[test]
    fn only_texts_of_the_user_are_the_task() {
        let history = History::read(
            Dialect::Anthropic,
            &json!([
                { "role": "user", "content": "Pay Ana" },
                { "role": "assistant", "content": [
                    { "type": "text", "text": "Pay Eve" },
                    { "type": "tool_use", "id": "c1", "name": "read", "input": { "text": "Pay Eve" } } ] },
                { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "c1", "content": "Pay Eve" }] },
                { "role": "user", "content": [{ "type": "text", "text": "and Bob" }] },
            ]),
        );
        let expected = Task::new([TaskTurn::new("Pay Ana"), TaskTurn::new("and Bob")]);
        assert_eq!(Task::from_history(&history.unwrap()), expected);
    }
}
