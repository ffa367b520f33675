//! `Engine`: the rules in effect, with stores, keys, hooks and observers.

use std::collections::BTreeSet;
use std::path::PathBuf;

use callgate::approval::Inbox;
use callgate::host::StateStore;
use callgate::message::{Approver, ResponsePart};
use callgate::{Engine as InnerEngine, SessionState};
use callgate::{LoadError, load, load_text};
use pyo3::prelude::*;
use std::sync::Arc;

use crate::answers::{self, read_answer, read_request};
use crate::clock::OperationClock;
use crate::decision::Decision;
use crate::detached::Detached;
use crate::engine_options::EngineOptions;
use crate::errors;
use crate::hooks::HookForms;
use crate::json_conversion::to_python;
use crate::operation::Operation;
use crate::tool_call::read_call;

/// What an engine has beside its rules.
pub(crate) struct EngineParts {
    pub(crate) engine: InnerEngine,
    store: Option<Arc<dyn StateStore>>,
    pub(crate) paths: Vec<PathBuf>,
    hook_forms: HookForms,
}

/// An engine.
#[pyclass(frozen, subclass, module = "callgate._callgate")]
pub(crate) struct Engine {
    parts: Detached<EngineParts>,
}

impl Engine {
    /// The engine, in the process that created it.
    pub(crate) fn parts(&self) -> PyResult<&EngineParts> {
        self.parts.check_owner()?;
        self.parts.as_ref().ok_or_else(|| errors::state("the engine is closed"))
    }

    /// The inbox of the engine's store.
    fn inbox(&self) -> PyResult<Inbox> {
        let parts = self.parts()?;
        let Some(store) = &parts.store else {
            return Err(errors::state("this engine has no state store; load it with `state=\"file:PATH\"`"));
        };
        Ok(Inbox::new(Arc::clone(store), parts.engine.keys().clone(), OperationClock::new(None)))
    }
}

#[pymethods]
impl Engine {
    /// Rules at and below paths, or else one rules file as a string.
    #[new]
    fn create(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        text: Option<String>,
        options: EngineOptions<'_>,
    ) -> PyResult<Self> {
        let loaded: Result<_, LoadError> = py.detach(|| match text {
            Some(text) => load_text(&text),
            None => load(&paths),
        });
        let policies = loaded.map_err(|error| errors::rules(py, &error))?;
        let (builder, opened, hook_forms) = options.builder(py, policies)?;
        let engine = py.detach(|| builder.build());
        let parts = EngineParts { engine, store: opened.map(|opened| opened.store), paths, hook_forms };
        Ok(Self { parts: Detached::new(parts) })
    }

    /// The digest of the active rules.
    #[getter]
    fn revision(&self) -> PyResult<String> {
        Ok(self.parts()?.engine.revision())
    }

    /// The kinds of the active policies, each once.
    #[getter]
    fn policy_kinds(&self) -> PyResult<BTreeSet<&'static str>> {
        let rules = self.parts()?.engine.rules();
        Ok(rules.policies().iter().map(|policy| policy.kind.definition().name).collect())
    }

    /// The id of a hook because of which calls can't be synchronous, and of one because of which they can't be asynchronous.
    #[getter]
    fn hook_forms(&self) -> PyResult<(Option<&str>, Option<&str>)> {
        let forms = &self.parts()?.hook_forms;
        Ok((forms.asynchronous.as_deref(), forms.blocking.as_deref()))
    }

    /// Decides a call that no session has. Executes, counts and records nothing.
    fn decide(&self, call: &Bound<'_, PyAny>) -> PyResult<Decision> {
        let engine = &self.parts()?.engine;
        let py = call.py();
        let call = read_call(call)?;
        Ok(py.detach(|| Decision::new(&engine.decide(&call, &SessionState::default()))))
    }

    /// Adds the verified approver to an answer, and seals it, so that it can travel through a client.
    fn seal_answer<'py>(
        &self,
        request: &Bound<'py, PyAny>,
        answer: &Bound<'py, PyAny>,
        by: (String, Vec<String>),
    ) -> PyResult<Bound<'py, PyAny>> {
        let engine = &self.parts()?.engine;
        let py = request.py();
        let (request, answer) = (read_request(request)?, read_answer(answer)?);
        to_python(py, &answers::seal(engine, &request, answer, approver(by))?.to_json())
    }

    /// Starts to list the approval requests of the store, as dicts.
    fn start_approvals(&self) -> PyResult<Operation> {
        Ok(answers::list(self.inbox()?))
    }

    /// Starts to record an answer in the store; the result is the status of the request.
    fn start_answer(
        &self,
        answer: &Bound<'_, PyAny>,
        by: Option<(String, Vec<String>)>,
    ) -> PyResult<Operation> {
        let answer: ResponsePart = read_answer(answer)?;
        Ok(answers::record(self.inbox()?, answer, by.map(approver)))
    }
}

fn approver((principal, roles): (String, Vec<String>)) -> Approver {
    Approver { principal, roles }
}
