//! `NativeHistory`: the messages of a conversation, in the form of any provider.

use std::sync::{Arc, Mutex, PoisonError};

use callgate::json::{self, Value};
use callgate::message::{Dialect, History};
use napi_derive::napi;

use crate::approvals::read_response_part;
use crate::failure::Failure;
use crate::json_text::flagged;

/// A history, which operations and JavaScript share.
#[napi]
pub struct NativeHistory {
    history: SharedHistory,
    dialect: Dialect,
}

/// A history that operations replace when they end.
#[derive(Clone)]
pub struct SharedHistory(Arc<Mutex<History>>);

impl SharedHistory {
    /// The present messages.
    pub fn get(&self) -> History {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the messages.
    pub fn set(&self, history: History) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = history;
    }
}

impl NativeHistory {
    /// The messages, for an operation.
    pub fn shared(&self) -> SharedHistory {
        self.history.clone()
    }
}

#[napi]
impl NativeHistory {
    /// Reads the messages of a provider.
    #[napi(factory)]
    pub fn read(dialect: String, document: String) -> napi::Result<Self> {
        let dialect = read_dialect(&dialect)?;
        let document = json::parse(&document).map_err(Failure::invalid_argument)?;
        let history = History::read(dialect, &document)
            .map_err(|error| Failure::new("invalid_history", error.to_string()))?;
        Ok(Self { history: SharedHistory(Arc::new(Mutex::new(history))), dialect })
    }

    /// The messages, with approval requests and answers, for storage.
    #[napi]
    pub fn write(&self, dialect: Option<String>) -> napi::Result<String> {
        let dialect = self.dialect_or_own(dialect)?;
        Ok(flagged(&self.history.get().write(dialect).to_string()))
    }

    /// The messages that a provider accepts.
    #[napi]
    pub fn for_provider(&self, dialect: Option<String>) -> napi::Result<String> {
        let dialect = self.dialect_or_own(dialect)?;
        Ok(flagged(&self.history.get().for_provider(dialect).write(dialect).to_string()))
    }

    /// Appends messages in the form in which the history was read.
    #[napi]
    pub fn append(&self, messages: String) -> napi::Result<()> {
        let added = json::parse(&messages).map_err(Failure::invalid_argument)?;
        let Value::Array(added) = added else {
            return Err(Failure::invalid_argument("the messages to append are not an array").into());
        };
        let mut document = self.history.get().write(self.dialect);
        let items = document.as_array_mut().ok_or_else(|| {
            Failure::new("invalid_history", "only a history that is an array of messages can be extended")
        })?;
        items.extend(added);
        let history = History::read(self.dialect, &document)
            .map_err(|error| Failure::new("invalid_history", error.to_string()))?;
        self.history.set(history);
        Ok(())
    }

    /// The requests of calls that have no result.
    #[napi]
    pub fn approval_requests(&self) -> String {
        let history = self.history.get();
        let requests = history.find_approval_requests();
        flagged(&Value::Array(requests.into_iter().map(|request| request.to_json()).collect()).to_string())
    }

    /// Appends an answer to a request.
    #[napi]
    pub fn append_approval_response(&self, response: String) -> napi::Result<()> {
        let response = json::parse(&response).map_err(Failure::invalid_argument)?;
        let response = read_response_part("", &response)?;
        let mut history = self.history.get();
        history
            .append_approval_response(response)
            .map_err(|error| Failure::new("approval_not_recorded", error.to_string()))?;
        self.history.set(history);
        Ok(())
    }

    fn dialect_or_own(&self, dialect: Option<String>) -> Result<Dialect, Failure> {
        dialect.map_or(Ok(self.dialect), |name| read_dialect(&name))
    }
}

fn read_dialect(name: &str) -> Result<Dialect, Failure> {
    Dialect::from_name(name).map_err(Failure::invalid_argument)
}
