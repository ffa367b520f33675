//! What a hook process leaves for the next one of its session: the user's messages, and calls whose result is expected. Entries expire.

use std::sync::Arc;

use callgate::Task;
use callgate::host::StateStore;
use callgate::json::{Value, json};
use callgate::state::{Account, CacheEntry, CacheSpace};
use jiff::{SignedDuration, Timestamp};

const TASKS: &str = "hooks/tasks";
const CALLS: &str = "hooks/calls";
const LIFETIME: SignedDuration = SignedDuration::from_hours(30 * 24);
const MAX_ENTRIES: usize = 10_000;
/// The most that is kept of the user's messages; beyond it the task is unknown.
const MAX_TASK_BYTES: usize = 256 << 10;

/// The records of one session.
pub(super) struct HookRecords {
    pub(super) store: Arc<dyn StateStore>,
    pub(super) session: String,
    pub(super) account: Account,
}

impl HookRecords {
    /// Adds a message of the user.
    pub(super) async fn add_prompt(&self, text: &str) -> Result<(), String> {
        let mut turns = match self.get(TASKS, &self.session).await? {
            None => Vec::new(),
            Some(Value::Array(turns)) => turns,
            // It is unknown already.
            Some(_) => return Ok(()),
        };
        turns.push(json!({ "text": text, "at": Timestamp::now().to_string() }));
        let turns = Value::Array(turns);
        let is_too_long = turns.to_string().len() > MAX_TASK_BYTES;
        self.put(TASKS, &self.session, if is_too_long { json!("too long") } else { turns }).await
    }

    /// What the user asked for. It is unknown if the agent reported no message.
    pub(super) async fn task(&self) -> Result<Task, String> {
        Ok(match self.get(TASKS, &self.session).await? {
            Some(turns @ Value::Array(_)) => Task::from_json(&turns).unwrap_or_else(Task::unknown),
            Some(_) => Task::unknown("the messages of the session are longer than 256 KiB"),
            None => Task::unknown("the agent reported no message of the user"),
        })
    }

    /// Records the inputs that the calls of a tool had before policies changed them.
    pub(super) async fn add_started(&self, id: &str, requested: Vec<Value>) -> Result<(), String> {
        self.put(CALLS, &self.call_key(id), Value::Array(requested)).await
    }

    /// The inputs of the calls of a tool as they were requested. Empty if they are unknown.
    pub(super) async fn started(&self, id: &str) -> Result<Vec<Value>, String> {
        match self.get(CALLS, &self.call_key(id)).await? {
            Some(Value::Array(requested)) => Ok(requested),
            _ => Ok(Vec::new()),
        }
    }

    fn call_key(&self, id: &str) -> String {
        format!("{}/{id}", self.session)
    }

    fn space(&self, name: &'static str) -> CacheSpace<'static> {
        CacheSpace { name, max_entries: MAX_ENTRIES, account: self.account }
    }

    async fn get(&self, space: &'static str, key: &str) -> Result<Option<Value>, String> {
        let found = self.store.cache_get(Timestamp::now(), self.space(space), key).await;
        found.map(|found| found.entry.map(|entry| entry.output)).map_err(|error| error.to_string())
    }

    async fn put(&self, space: &'static str, key: &str, value: Value) -> Result<(), String> {
        let now = Timestamp::now();
        let found = self.store.cache_get(now, self.space(space), key).await;
        let generation = found.map_err(|error| error.to_string())?.generation;
        let expires_at = now.checked_add(LIFETIME).unwrap_or(Timestamp::MAX);
        let entry = CacheEntry { output: value, stored_at: now, expires_at };
        let written = self.store.cache_put(self.space(space), key, entry, generation).await;
        written.map_err(|error| error.to_string())
    }
}
