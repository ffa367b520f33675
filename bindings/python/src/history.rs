//! `History`: the messages of a conversation in a provider's form, with approval requests and answers.

use std::sync::Arc;

use callgate::json::Value;
use callgate::message::{Dialect, History as EngineHistory};
use pyo3::prelude::*;
use tokio::sync::{Mutex, MutexGuard};

use crate::answers::read_answer;
use crate::errors;
use crate::json_conversion::{to_python, to_value};

/// The history of a conversation.
#[pyclass(frozen, module = "callgate._callgate")]
pub(crate) struct History {
    history: Arc<Mutex<EngineHistory>>,
    dialect: Dialect,
}

impl History {
    pub(crate) fn shared(&self) -> Arc<Mutex<EngineHistory>> {
        Arc::clone(&self.history)
    }

    /// The messages as they are now.
    pub(crate) fn snapshot(&self) -> PyResult<EngineHistory> {
        Ok(self.lock()?.clone())
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, EngineHistory>> {
        self.history.try_lock().map_err(|_| errors::state("the history is in use by a round that runs"))
    }
}

fn read(dialect: Dialect, document: &Bound<'_, PyAny>) -> PyResult<EngineHistory> {
    EngineHistory::read(dialect, &to_value(document)?).map_err(|error| errors::value(error.to_string()))
}

#[pymethods]
impl History {
    /// Reads a history in a dialect: `openai-chat`, `openai-responses`, `anthropic`, `gemini` or `ai-sdk`.
    #[new]
    fn create(dialect: &str, messages: &Bound<'_, PyAny>) -> PyResult<Self> {
        let dialect = Dialect::from_name(dialect).map_err(|error| errors::value(error.to_string()))?;
        Ok(Self { history: Arc::new(Mutex::new(read(dialect, messages)?)), dialect })
    }

    /// Adds messages in the dialect of the history.
    fn extend(&self, messages: &Bound<'_, PyAny>) -> PyResult<()> {
        let added = read(self.dialect, messages)?;
        let mut history = self.lock()?;
        for message in added.messages() {
            history.push(message.clone());
        }
        Ok(())
    }

    /// The messages to store, with approval requests, answers and the session's sealed state.
    fn messages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.lock()?.write(self.dialect))
    }

    /// The messages to send to the provider.
    fn for_provider<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.lock()?.for_provider(self.dialect).write(self.dialect))
    }

    /// The approval requests without an answer, as dicts.
    fn pending<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let history = self.lock()?;
        let requests = history.find_approval_requests().into_iter();
        let open = requests.filter(|request| history.find_approval_decision(&request.approval_id).is_none());
        to_python(py, &Value::Array(open.map(|request| request.to_json()).collect()))
    }

    /// Adds an answer, a dict, to the request that it names.
    fn answer(&self, answer: &Bound<'_, PyAny>) -> PyResult<()> {
        let answer = read_answer(answer)?;
        self.lock()?.append_approval_response(answer).map_err(|error| errors::answer(error.to_string()))
    }
}
