//! `Session`: one run of an agent. Its calls come one by one, from any thread, or as rounds of a history.

use std::sync::{Arc, Mutex};

use callgate::Task;
use callgate::approval::IgnoredAnswer;
use callgate::message::RequestPart;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::answers::{read_answer, read_request};
use crate::decision::Decision;
use crate::detached::Detached;
use crate::engine::Engine;
use crate::engine_options::read_tools;
use crate::errors;
use crate::history::History;
use crate::json_conversion::{to_python, to_value};
use crate::operation::{Operation, OperationResult};
use crate::outcome::{Outcome, OutcomeFormatter};
use crate::session_parts::{Mode, SessionParts};
use crate::session_run::{chunks_to_python, config_to_python, read_chunk, read_config, read_end, read_usage};
use crate::tool_call::read_context;
use crate::tool_requests::PythonTools;

/// The options of a session.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct SessionOptions<'py> {
    name: Option<String>,
    context: Option<Bound<'py, PyAny>>,
    requester: Option<String>,
    tools: Option<Bound<'py, PyAny>>,
    task: Option<Bound<'py, PyAny>>,
    layers: Vec<String>,
    records_calls: bool,
    has_unknown_past: bool,
}

/// A session.
#[pyclass(frozen, module = "callgate._callgate")]
pub(crate) struct Session {
    parts: Detached<SessionParts>,
}

impl Session {
    fn parts(&self) -> PyResult<&SessionParts> {
        self.parts.check_owner()?;
        self.parts.as_ref().ok_or_else(|| errors::state("the session is closed"))
    }

    /// Starts a round of a history, or resumes it.
    fn start_history(&self, history: &Bound<'_, History>, resumes: bool) -> PyResult<Operation> {
        let parts = self.parts()?;
        let (formatter, session) = (Arc::clone(&parts.formatter), parts.rounds()?);
        let history = history.get().shared();
        Ok(Operation::new(|context| {
            Box::pin(async move {
                let tools = PythonTools(context);
                let mut session = session.lock().await;
                let mut history = history.lock().await;
                let round = match resumes {
                    true => session.resume(&mut history, &tools).await,
                    false => session.run_round(&mut history, &tools).await,
                };
                match round {
                    Ok(round) => round_result(&formatter, round.outcomes, round.ignored),
                    Err(error) => {
                        let message = error.to_string();
                        Box::new(move |_: Python<'_>| Err(errors::state(message))) as OperationResult
                    }
                }
            })
        }))
    }
}

/// A round as a tuple: the outcomes, and the answers that do not count.
fn round_result(
    formatter: &OutcomeFormatter,
    outcomes: Vec<callgate::Outcome>,
    ignored: Vec<IgnoredAnswer>,
) -> OperationResult {
    let outcomes: Vec<Outcome> = outcomes.into_iter().map(|outcome| formatter.format(outcome)).collect();
    let ignored: Vec<(String, &'static str, String)> =
        ignored.into_iter().map(|answer| (answer.approval_id, answer.code, answer.why)).collect();
    Box::new(move |py| {
        let list = PyList::empty(py);
        for outcome in outcomes {
            list.append(Py::new(py, outcome)?)?;
        }
        Ok((list, ignored).into_pyobject(py)?.into_any().unbind())
    })
}

fn outcome_result(outcome: Outcome) -> OperationResult {
    Box::new(move |py| Ok(Py::new(py, outcome)?.into_any()))
}

#[pymethods]
impl Session {
    #[new]
    fn create(engine: &Bound<'_, Engine>, options: SessionOptions<'_>) -> PyResult<Self> {
        let py = engine.py();
        let engine = engine.get().parts()?.engine.clone();
        let mut session = engine.session();
        if let Some(name) = options.name {
            session = session.with_name(name);
        }
        let context = options.context.map(|context| read_context(&context)).transpose()?.unwrap_or_default();
        session = session.with_context(context.clone());
        if let Some(tools) = options.tools {
            session = session.with_tools(read_tools(&to_value(&tools)?)?);
        }
        if options.records_calls {
            session = session.with_call_recording();
        }
        if options.has_unknown_past {
            session = session.with_unknown_past();
        }
        for layer in options.layers {
            let rules = engine.rules();
            let layer = py.detach(|| callgate::engine::load_layer(&layer, &rules));
            session = session.with_layer(layer.map_err(|error| errors::rules(py, &error))?);
        }
        if let Some(task) = options.task {
            session.set_task(read_task(&task)?);
        }
        let run = session.run().clone();
        let mode = Mutex::new(Mode::New(Box::new(session)));
        let formatter = Arc::new(OutcomeFormatter::new(&engine));
        let parts = SessionParts { engine, formatter, mode, requester: options.requester, run, context };
        Ok(Self { parts: Detached::new(parts) })
    }

    /// Starts a call.
    fn start(&self, call: &Bound<'_, PyAny>) -> PyResult<Operation> {
        let parts = self.parts()?;
        let (formatter, session) = (Arc::clone(&parts.formatter), parts.calls()?);
        let call = parts.read_call(call)?;
        Ok(Operation::new(|context| {
            Box::pin(async move {
                let outcome = session.execute(call, &PythonTools(context)).await;
                outcome_result(formatter.format(outcome))
            })
        }))
    }

    /// Starts a call, unless the store has its approval request; the result is the outcome, or the request as a dict.
    fn start_or_find_request(&self, call: &Bound<'_, PyAny>) -> PyResult<Operation> {
        let parts = self.parts()?;
        let (formatter, session) = (Arc::clone(&parts.formatter), parts.calls()?);
        let call = parts.read_call(call)?;
        Ok(Operation::new(|context| {
            Box::pin(async move {
                if let Some(request) = session.find_request(&format!("approval_{}", call.id)).await {
                    let request = request.to_json();
                    return Box::new(move |py: Python<'_>| Ok(to_python(py, &request)?.unbind()))
                        as OperationResult;
                }
                let outcome = session.execute(call, &PythonTools(context)).await;
                outcome_result(formatter.format(outcome))
            })
        }))
    }

    /// Starts to resume a suspended call with its request and the answers to it.
    fn start_resume(
        &self,
        call: &Bound<'_, PyAny>,
        request: &Bound<'_, PyAny>,
        answers: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Operation> {
        let parts = self.parts()?;
        let (formatter, session) = (Arc::clone(&parts.formatter), parts.calls()?);
        let (call, request) = (parts.read_call(call)?, read_request(request)?);
        let answers = answers.iter().map(read_answer).collect::<PyResult<Vec<_>>>()?;
        Ok(Operation::new(|context| {
            Box::pin(async move {
                let tools = PythonTools(context);
                let outcome = session.resume_call(call, &request, &answers, &tools).await;
                outcome_result(formatter.format(outcome))
            })
        }))
    }

    /// Starts to look up the request of an approval id in the store; the result is a list of at most one dict.
    fn start_find_request(&self, approval_id: String) -> PyResult<Operation> {
        let session = self.parts()?.calls()?;
        Ok(Operation::new(|_| {
            Box::pin(async move {
                let found = session.find_request(&approval_id).await.as_ref().map(RequestPart::to_json);
                Box::new(move |py: Python<'_>| {
                    let list = PyList::empty(py);
                    if let Some(request) = found {
                        list.append(to_python(py, &request)?)?;
                    }
                    Ok(list.into_any().unbind())
                }) as OperationResult
            })
        }))
    }

    /// Starts a round: the new calls of the history's last message.
    fn start_round(&self, history: &Bound<'_, History>) -> PyResult<Operation> {
        self.start_history(history, false)
    }

    /// Starts a round of calls that are not part of a history.
    fn start_calls(&self, calls: Vec<Bound<'_, PyAny>>) -> PyResult<Operation> {
        let parts = self.parts()?;
        let (formatter, session) = (Arc::clone(&parts.formatter), parts.rounds()?);
        let calls = calls.iter().map(|call| parts.read_call(call)).collect::<PyResult<Vec<_>>>()?;
        Ok(Operation::new(|context| {
            Box::pin(async move {
                let outcomes = session.lock().await.execute_round(calls, &PythonTools(context)).await;
                round_result(&formatter, outcomes, Vec::new())
            })
        }))
    }

    /// Starts to resume the session from its history.
    fn start_resume_history(&self, history: &Bound<'_, History>) -> PyResult<Operation> {
        self.start_history(history, true)
    }

    /// Decides a call in the present state of the session. Executes, counts and records nothing.
    fn decide(&self, call: &Bound<'_, PyAny>) -> PyResult<Decision> {
        let parts = self.parts()?;
        let session = parts.calls()?;
        let py = call.py();
        let call = parts.read_call(call)?;
        Ok(py.detach(|| Decision::new(&parts.engine.decide(&call, &session.state()))))
    }

    /// Ends the run: no later call runs.
    fn abort(&self, py: Python<'_>, reason: String) -> PyResult<()> {
        let parts = self.parts()?;
        py.detach(|| parts.run.abort(reason));
        Ok(())
    }

    /// Sets what the user asked for, which policies read as `$.task`. For sessions of rounds.
    fn set_task(&self, task: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut session = self.parts()?.idle_rounds()?;
        session.set_task(read_task(task)?);
        Ok(())
    }

    /// Begins a run. Returns its configuration as policies leave it, or its end.
    #[pyo3(signature = (config, history=None))]
    fn begin(&self, config: &Bound<'_, PyAny>, history: Option<&Bound<'_, History>>) -> PyResult<Py<PyAny>> {
        let read = read_config(config, history)?;
        let mut session = self.parts()?.idle_rounds()?;
        config_to_python(config.py(), config.py().detach(|| session.begin(read)))
    }

    /// Starts to make the configuration of the next model call; the result is that of `begin`.
    #[pyo3(signature = (config, history=None))]
    fn start_before_model(
        &self,
        config: &Bound<'_, PyAny>,
        history: Option<&Bound<'_, History>>,
    ) -> PyResult<Operation> {
        let config = read_config(config, history)?;
        let session = self.parts()?.rounds()?;
        Ok(Operation::new(|_| {
            Box::pin(async move {
                let config = session.lock().await.before_model(config).await;
                Box::new(move |py: Python<'_>| config_to_python(py, config)) as OperationResult
            })
        }))
    }

    /// Passes a chunk of the model's stream through the policies. Returns the chunks to pass on now, or the end of the run.
    fn chunk(&self, chunk: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = chunk.py();
        let chunk = read_chunk(chunk)?;
        let mut session = self.parts()?.idle_rounds()?;
        chunks_to_python(py, py.detach(|| session.chunk(chunk)))
    }

    /// The chunks that policies still hold back.
    fn rest_of_stream(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let mut session = self.parts()?.idle_rounds()?;
        chunks_to_python(py, py.detach(|| session.rest_of_stream()))
    }

    /// Counts the use of a model.
    fn report_usage(&self, usage: &Bound<'_, PyAny>) -> PyResult<()> {
        let usage = read_usage(usage)?;
        self.parts()?.idle_rounds()?.report_usage(usage);
        Ok(())
    }

    /// Starts to end the run; the result is what failed in hooks that were notified of it.
    fn start_end(&self, end: &Bound<'_, PyAny>) -> PyResult<Operation> {
        let end = read_end(end)?;
        let session = self.parts()?.rounds()?;
        Ok(Operation::new(|_| {
            Box::pin(async move {
                let failures = session.lock().await.end(&end).await.finish().await;
                Box::new(move |py: Python<'_>| Ok(failures.into_pyobject(py)?.unbind())) as OperationResult
            })
        }))
    }

    /// The state of the session, as JSON values.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let parts = self.parts()?;
        let rounds = match &*parts.mode() {
            Mode::Rounds(session) => Some(Arc::clone(session)),
            _ => None,
        };
        match rounds {
            Some(session) => {
                let session = session.try_lock().map_err(|_| errors::state("the session runs a round"))?;
                to_python(py, session.state().document())
            }
            None => to_python(py, parts.calls()?.state().document()),
        }
    }
}

fn read_task(task: &Bound<'_, PyAny>) -> PyResult<Task> {
    Task::from_json(&to_value(task)?).map_err(|wanted| errors::value(format!("`task` must be {wanted}")))
}
