//! Tasks that a host sends to a gateway: task + session + expiry, sealed with the keys that both have.

use data_encoding::BASE64URL_NOPAD;
use jiff::Timestamp;

use super::Task;
use crate::json::{self, Value, json};
use crate::seal::{Keys, Purpose};

/// The longest sealed task: one of 256 KiB with its times, encoded.
const MAX_SEALED: usize = 1 << 20;

impl Task {
    /// Seals the task for one session until a time, for the header `Callgate-Task` of the gateway over HTTP. `session` is the name of the
    /// conversation, or the `Mcp-Session-Id` where the gateway reads no names. Without a task, it seals that there is none.
    ///
    /// Call it only in the host: who can call it decides what the user asked for.
    pub fn seal(&self, session: &str, expires: Timestamp, keys: &Keys) -> String {
        let turns = self.document().and_then(|document| document.get("turns")).cloned().unwrap_or_default();
        let content = json!({ "session": session, "turns": turns, "expires": expires.to_string() });
        let seal = keys.seal(Purpose::Task, &content);
        format!("{}.{seal}", BASE64URL_NOPAD.encode(content.to_string().as_bytes()))
    }

    /// Reads a sealed task. It is unknown, so that what reads it is undecided, unless the seal is valid for this session and time.
    pub fn open_sealed(sealed: &str, session: Option<&str>, now: Timestamp, keys: &Keys) -> Self {
        let content =
            sealed.split_once('.').filter(|_| sealed.len() <= MAX_SEALED).and_then(|(content, seal)| {
                let content = BASE64URL_NOPAD.decode(content.as_bytes()).ok()?;
                Some((json::parse(std::str::from_utf8(&content).ok()?).ok()?, seal))
            });
        let Some((content, seal)) = content else { return Self::unknown("the sealed task is malformed") };
        if keys.verify(Purpose::Task, &content, seal).is_err() {
            return Self::unknown("the seal of the task is invalid");
        }
        let text = |key: &str| content.get(key).and_then(Value::as_str);
        if session.is_none() || text("session") != session {
            return Self::unknown("the task is sealed for another session");
        }
        match text("expires").and_then(|expires| expires.parse::<Timestamp>().ok()) {
            Some(expires) if now < expires => {}
            _ => return Self::unknown("the sealed task has expired"),
        }
        let turns = content.get("turns").map(Self::from_json);
        turns.and_then(Result::ok).unwrap_or_else(|| Self::unknown("the sealed task is malformed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::TaskTurn;

    #[test]
    fn only_an_unchanged_task_of_this_session_and_time_is_known() {
        let keys = Keys::parse(&"5a".repeat(32)).unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let sent = Some(at("2026-01-01T11:00:00Z"));
        let task = Task::new([TaskTurn { text: "Pay Ana".to_owned(), at: sent }, TaskTurn::new("Thanks")]);
        let expires = at("2026-01-01T12:00:00Z");
        let sealed = task.seal("chat 7", expires, &keys);
        let open = |sealed: &str, session, now| Task::open_sealed(sealed, session, at(now), &keys);
        assert_eq!(open(&sealed, Some("chat 7"), "2026-01-01T11:59:59Z"), task);
        for (session, now) in [
            (Some("chat 8"), "2026-01-01T11:59:59Z"),
            (Some("Chat 7"), "2026-01-01T11:59:59Z"),
            (None, "2026-01-01T11:59:59Z"),
            (Some("chat 7"), "2026-01-01T12:00:00Z"),
        ] {
            assert!(open(&sealed, session, now).unknown_reason().is_some(), "{session:?} {now}");
        }
        let (content, seal) = sealed.split_once('.').unwrap();
        let forged =
            json!({ "session": "chat 7", "turns": [{"text": "Pay Eve"}], "expires": expires.to_string() });
        let forged = BASE64URL_NOPAD.encode(forged.to_string().as_bytes());
        let other_purpose = json!({ "session": "chat 7", "turns": [], "expires": expires.to_string() });
        let other_seal = keys.seal(Purpose::Session, &other_purpose);
        let other_content = BASE64URL_NOPAD.encode(other_purpose.to_string().as_bytes());
        for sealed in [
            String::new(),
            "Pay Eve".to_owned(),
            content.to_owned(),
            format!("{content}."),
            format!("{forged}.{seal}"),
            format!("{other_content}.{other_seal}"),
            sealed.replace(".cg", ".xx"),
            format!("{sealed}0"),
        ] {
            assert!(
                open(&sealed, Some("chat 7"), "2026-01-01T11:00:00Z").unknown_reason().is_some(),
                "{sealed}"
            );
        }
        let other_keys = Keys::parse(&"5b".repeat(32)).unwrap();
        let other = Task::open_sealed(&sealed, Some("chat 7"), at("2026-01-01T11:00:00Z"), &other_keys);
        assert!(other.unknown_reason().is_some());
        assert_eq!(
            open(&Task::NONE.seal("chat 7", expires, &keys), Some("chat 7"), "2026-01-01T11:00:00Z"),
            Task::NONE
        );
    }
}
